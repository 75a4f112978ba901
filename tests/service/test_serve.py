"""`licorne serve` as a process: start, end, options, logs, TLS, clients that are killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

import licorne.cli
from common.certificates import make_certificates
from common.waiting import wait_for
from service.peers import Peer
from service.processes import serving

CLIENT = """
import asyncio, sys
from service.peers import Peer
async def run():
    peer = Peer(sys.argv[1])
    await peer.running()
    print("ready", flush=True)
    await asyncio.sleep(3600)
asyncio.run(run())
"""
CONFIGURATION = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: fixed
"""


async def test_the_service_starts_serves_and_ends_in_good_order() -> None:
    with serving() as running:
        async with Peer(running.address) as peer:
            await peer.running()
            await peer.asks("a", "b")
            assert len(await peer.allocations(2)) == 2
            ended = asyncio.create_task(peer.ending("node"))
            assert await asyncio.to_thread(running.end) == 0
            assert (await ended)[0] is grpc.StatusCode.UNAVAILABLE
        assert running.events("ended")[0]["allocations"] == 2
        assert [line for line in running.lines if not line.startswith("{")] == []


def test_a_killed_client_is_paused_and_stopped_after_the_timeout(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("licorne.rm-timeout: 3600\n")
    with serving("--settings", str(settings)) as running:
        environment_path = str(Path(__file__).resolve().parent.parent)
        client = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {environment_path!r})\n{CLIENT}", running.address],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        settings.write_text("licorne.rm-timeout: 0.5\n")
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: running.events("settings changed"))
        client.kill()
        client.wait()
        client.stdout.close()
        wait_for(lambda: running.events("stopped"))
        assert running.events("paused")[0]["reason"] == "its last stream broke"
        assert running.events("stopped")[0]["reason"] == "paused for 0.5 s"


async def test_configurations_and_policy_groups(tmp_path: Path) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text(CONFIGURATION)
    with serving("--config", str(config)) as running:
        async with Peer(running.address) as peer:
            await peer.register()
            await peer.node()
            assert (await peer.application()).rejected  # no rule places it in the only queue
    with serving("--policy-group", f"fixed={config}") as running:
        async with Peer(running.address, "a") as peer:
            await peer.register(policy_group="fixed")
            assert (await peer.application()).rejected
        async with Peer(running.address, "b") as peer:
            await peer.register()
            assert (await peer.application()).accepted


async def test_values_that_may_be_secret_are_not_logged() -> None:
    secret = "OPEN-SESAME"  # noqa: S105
    with serving("--log-level", "debug") as running:
        async with Peer(running.address) as peer:
            with pytest.raises(grpc.aio.AioRpcError):
                await peer.register(config=f"partitions: {secret}")
            await peer.register(
                config=f"{CONFIGURATION}# {secret}", extra_config={"x": secret}, build_info={"y": secret}
            )
            await peer.node()
            await peer.send("application", b"\x0a\x02" + secret.encode())
            await peer.ending("application")
        assert running.end() == 0
        assert running.events("registered")
        (refused,) = running.events("registration refused")
        assert (refused["reason"], refused["rule"], refused["line"]) == ("its configuration", "yaml-type", 1)
        assert running.events("request refused")
        assert secret not in "".join(running.lines)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and key and certificate of a service and of a client."""
    return make_certificates(tmp_path_factory.mktemp("tls"), "server", "client")


async def test_tls_with_certificates_of_clients(certificates: Path) -> None:
    def pem(name: str) -> str:
        return str(certificates / name)

    options = ("--tls-cert", pem("server.pem"), "--tls-key", pem("server.key"), "--tls-client-ca", pem("ca.pem"))
    with serving(*options, address="0.0.0.0:0") as running:
        address = f"localhost:{running.address.rpartition(':')[2]}"
        authority, key, certificate = (
            (certificates / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem")
        )
        for credentials, known in (
            (grpc.ssl_channel_credentials(authority, key, certificate), True),
            (grpc.ssl_channel_credentials(authority), False),
        ):
            peer = Peer(address)
            await peer.channel.close()
            peer.channel = grpc.aio.secure_channel(address, credentials)
            if known:
                await peer.running()
            else:
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await peer.register()
                assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
            await peer.close()


@pytest.mark.parametrize(
    ("certificate", "key", "authority", "complaint"),
    [
        ("server.pem", "client.key", "", "the key does not belong to the certificate"),
        ("server.pem", "locked.key", "", "the key is encrypted"),
        ("server.key", "server.key", "", "they are no PEM files"),
        ("server.pem", "server.key", "server.key", "the certificate of the clients' authority cannot be used"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused_in_one_line(
    certificates: Path, certificate: str, key: str, authority: str, complaint: str
) -> None:
    folder = certificates
    locked = ["openssl", "pkey", "-aes256", "-passout", "pass:x", "-in", "server.key", "-out", "locked.key"]
    subprocess.run(locked, cwd=folder, check=True, capture_output=True)
    words = ["--grpc", "127.0.0.1:0", "--tls-cert", str(folder / certificate), "--tls-key", str(folder / key)]
    if authority:
        words += ["--tls-client-ca", str(folder / authority)]
    command = [sys.executable, "-m", "licorne.cli", "serve", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert ended.returncode == 1
    assert ended.stderr.startswith("licorne: ")
    assert complaint in ended.stderr
    assert ended.stderr.count("\n") == 1  # and nothing of the libraries below


def test_the_insecure_option_causes_a_warning() -> None:
    with serving("--rest", "0.0.0.0:0", "--insecure", address="0.0.0.0:0") as running:
        wait_for(lambda: len(running.events("open to everybody, as insecure was said")) == 2)
        assert all(one["level"] == "warning" for one in running.events("open to everybody, as insecure was said"))


OPEN_REST = (
    "gRPC asks for a token and REST for none, so whoever reaches REST may read and change everything; "
    "rest-token-file gives it tokens"
)


@pytest.mark.parametrize(
    ("grpc_token", "rest_token", "warned"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_rest_without_tokens_beside_grpc_with_one_causes_a_warning(
    grpc_token: bool, rest_token: bool, warned: bool, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-the-test\n")
    token.chmod(0o600)
    words = ["--rest", "127.0.0.1:0"]
    words += ["--token-file", str(token)] if grpc_token else []
    words += ["--rest-token-file", str(token)] if rest_token else []
    with serving(*words) as running:
        wait_for(lambda: len(running.events("listening for REST")) == 1)
        running.end()
        found = running.events(OPEN_REST)
    assert [one["level"] for one in found] == (["warning"] if warned else [])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--grpc", "0.0.0.0:0"), "beyond loopback: give TLS"),
        (("--grpc", "nonsense"), "is written HOST:PORT or unix:PATH"),
        (("--rm-timeout", "0"), "--rm-timeout: '0': must be more than 0"),
        (("--setting", "reservation.delay=soon"), "reservation.delay: 'soon'"),
        (("--config", "{}/none"), "no such file"),
        (("--config", "{}/bad"), "licorne config check"),
        (("--policy-group", "x"), "--policy-group: 'x': is written NAME=FILE"),
        (("--token-file", "{}/empty"), "a token is a line"),
        (("--tls-cert", "{}/bad"), "both a certificate and its key"),
        (("--tls-cert", "{}/bad", "--tls-key", "{}/bad"), "they are no PEM files"),
        (("--tls-cert", "{}/empty", "--tls-key", "{}/empty"), "empty: is empty; give a certificate"),
        (("--tls-cert", "{}/empty", "--tls-key", "{}/empty", "--insecure"), "empty: is empty; give a certificate"),
        (("--tls-cert", "{}/bad", "--tls-key", "{}/none"), "none: no such file"),
    ],
)
def test_wrong_options_and_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "bad").write_text("partitions: 7")
    (tmp_path / "empty").write_text("\n")
    words = [word.format(tmp_path) for word in arguments]
    if "--grpc" not in words:
        words += ["--grpc", "127.0.0.1:0"]
    assert licorne.cli.run(["serve", *words]) == 1
    told = capsys.readouterr().err
    assert complaint in told
    assert "Traceback" not in told
