"""`licorne serve --demo` as a process: every endpoint has an answer, and the process ends in good order."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest

import licorne.cli
from common.waiting import WAIT_S, eventually, wait_for
from deployment.places import certificate
from licorne.cli.demo import reachable
from licorne.grpc.demo import Demonstration, sights
from licorne.grpc.demo.run import SPEED_MAX
from licorne.grpc.service.streams import End
from licorne.state.recording import Replay, choose_run
from service.peers import Peer, service
from service.processes import Serving, serving

METRICS = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "metrics.md"
PARTITION = "/ws/v1/partition/default"
MOVED = ("/ws/v1/stack", "/ws/v1/fullstatedump")


@contextmanager
def demonstration(*more: str) -> Iterator[tuple[Serving, httpx.Client]]:
    with serving("--demo", "--rest", "127.0.0.1:0", *more) as running:
        (event,) = wait_for(lambda: running.events("listening for REST"))
        with httpx.Client(base_url=f"http://{event['addresses'][0]}", timeout=WAIT_S) as client:
            yield running, client


def lists_that_are_empty(client: httpx.Client) -> list[str]:
    paths = [f"{PARTITION}/applications/{state}" for state in ("active", "completed", "rejected")]
    paths += [f"{PARTITION}/{what}" for what in ("nodes", "placementrules", "usage/users", "usage/groups")]
    paths += ["/ws/v1/clusters", "/ws/v1/partitions", "/ws/v1/scheduler/node-utilizations"]
    return [path for path in paths if not client.get(path).json()]


def one_running(client: httpx.Client) -> dict[str, str]:
    """Values for the variables of paths: those of an application that runs and has pods."""
    for app in client.get(f"{PARTITION}/applications/active").json():
        if app["applicationState"] == "Running" and app.get("allocations") and app["queueName"] == "root.system":
            return {
                "application": app["applicationID"],
                "name": app["applicationID"],
                "namespace": app["allocations"][0]["allocationTags"]["kubernetes.io/meta/namespace"],
                "pod": app["allocations"][0]["allocationKey"],
                "queue": app["queueName"],
                "user": app["user"],
                "node": app["allocations"][0]["nodeId"],
            }
    return {}


def test_every_endpoint_has_an_answer() -> None:
    with demonstration("--demo-speed", "4") as (running, client):
        wait_for(lambda: not lists_that_are_empty(client), "some list stayed empty")
        wait_for(lambda: client.get("/ws/v1/scheduler/healthcheck").status_code == 200)
        values = {"partition": "default", "group": "developers", "state": "active"}
        values |= wait_for(lambda: one_running(client))
        document = client.get("/openapi.json").json()
        for path, operations in document["paths"].items():
            if "get" not in operations or path == "/ws/v1/events/stream":
                continue
            answer = client.get(re.sub(r"\{(\w+)\}", lambda found: values[found[1]], path))
            assert answer.status_code == (301 if path in MOVED else 200), (path, answer.text)
            assert answer.content, path
            if "/history/" not in path:
                assert answer.text.strip() not in ("[]", "{}"), path
        health = client.get("/ws/v1/scheduler/healthcheck").json()
        assert health["Healthy"], health
        (build,) = client.get("/ws/v1/clusters").json()[0]["rmBuildInformation"]
        assert build["buildVersion"] == licorne.__version__
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", build["buildDate"])
        for node in client.get(f"{PARTITION}/nodes").json():
            for pod in [*node.get("allocations", ()), *node.get("foreignAllocations", ())]:
                tags = pod["allocationTags"]
                assert tags["kubernetes.io/meta/podName"] == pod["allocationKey"]
                assert tags["kubernetes.io/meta/namespace"]
        events = client.get("/ws/v1/events/batch").json()["EventRecords"]
        assert {2, 3, 4} <= {event["type"] for event in events}  # applications, nodes, queues
        with client.stream("GET", "/ws/v1/events/stream", params={"count": 5}) as stream:
            lines = stream.iter_lines()
            assert [len(next(lines)) > 10 for _ in range(6)] == [True] * 6
        assert running.end() == 0
        assert running.events("stopped")[0]["reason"] == "goodbye"
        assert running.events("ended")[0]["allocations"] > 0  # how many depends on the load of the machine
        assert not running.events("demonstration")


def documented_metrics() -> set[str]:
    """The names in the first column of the tables of docs/reference/metrics.md, in full; of queues those of root.

    Metrics of `licorne kube` alone are left out.
    """
    names: set[str] = set()
    for line in METRICS.read_text(encoding="utf-8").splitlines():
        of_another_host = "licorne kube" in line
        first = line.split("|")[1] if line.startswith("| `") and not of_another_host else ""
        for name in re.findall(r"`([\w*]+)`", first):
            full = (
                name
                if name.startswith(("licorne_", "yunikorn_", "process_", "python_"))
                else f"yunikorn_scheduler_{name}"
            )
            names.add(full.replace("RESOURCE", "vcore").replace("PATH", "root"))
    assert len(names) > 20
    return names


def metrics_without_a_sample(client: httpx.Client) -> set[str]:
    text = client.get("/ws/v1/metrics").text
    return {
        name
        for name in documented_metrics()
        if not re.search(
            rf"^{name.removesuffix('*')}{'' if name.endswith('*') else r'(?:_count)?(?:[{ ])'}", text, re.MULTILINE
        )
    }


@pytest.mark.gate
def test_each_metric_has_a_sample(tmp_path: Path) -> None:
    with demonstration("--demo-speed", "4", "--record", str(tmp_path / "recording")) as (_, client):
        wait_for(lambda: not metrics_without_a_sample(client), f"without a sample: {metrics_without_a_sample(client)}")


def recorded_entries(client: httpx.Client) -> float:
    (value,) = re.findall(r"^licorne_recording_entries_total (\S+)$", client.get("/ws/v1/metrics").text, re.MULTILINE)
    return float(value)


@pytest.mark.gate
@pytest.mark.parametrize("killed", [False, True])
def test_what_a_service_decided_is_decided_again_from_its_recording(tmp_path: Path, killed: bool) -> None:
    folder = tmp_path / "recording"
    with demonstration("--demo-speed", "20", "--record", str(folder)) as (running, client):
        wait_for(lambda: client.get(f"{PARTITION}/applications/completed").json())
        wait_for(lambda: recorded_entries(client) > 500)
        if killed:
            running.kill()
        else:
            assert running.end() == 0
            (recorded,) = running.events("recorded")
            assert recorded["complete"]
    outcome = Replay(choose_run(folder)).run()
    assert outcome.checked > 50
    assert killed or (outcome.checked, outcome.allocations) == (outcome.messages, recorded["allocations"])


@pytest.mark.nightly
def test_after_two_minutes_there_is_a_history_and_all_states_were_seen() -> None:
    with demonstration() as (running, client):
        wait_for(lambda: client.get("/ws/v1/history/apps").json())
        wait_for(lambda: client.get("/ws/v1/history/containers").json())

        def states() -> set[str]:
            ended = client.get(f"{PARTITION}/applications/completed").json()
            return {app["applicationState"] for app in ended}

        wait_for(lambda: {"Completed", "Failed"} <= states())
        assert client.get("/ws/v1/scheduler/healthcheck").json()["Healthy"]
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(WAIT_S) == 0
        assert running.end() == 0


async def test_a_resource_manager_of_the_same_name_ends_the_demonstration_only() -> None:
    async with service() as made:
        ends: list[str] = []
        shown = Demonstration(made.addresses[0], speed=4, on_end=ends.append)
        shown.start()
        async with Peer(made.addresses[0], "demo") as peer:
            await eventually(lambda: made.engine.decided > 0)
            await peer.running()
            await eventually(lambda: bool(ends))
            assert "another instance took over" in ends[0]
            await asyncio.to_thread(shown.stop)
            await peer.asks("a")
            assert list(await peer.allocations(1)) == ["a"]


@pytest.mark.gate
async def test_the_demonstration_reports_everything_again_after_a_broken_connection() -> None:
    async with service() as made:
        ends: list[str] = []
        shown = Demonstration(made.addresses[0], speed=4, on_end=ends.append)
        shown.start()
        await eventually(lambda: made.engine.decided > 30)
        first = made.sessions.by_id["demo"]
        first.end_streams(lambda _: End(grpc.StatusCode.UNAVAILABLE, "cut"))
        await eventually(lambda: made.sessions.by_id["demo"] is not first)

        def all_there() -> bool:
            partition = made.api.cluster.partition("demo")
            return len(partition.nodes) >= 23 and "node-agents" in partition.applications

        await eventually(all_there)
        decided = made.engine.decided
        await eventually(lambda: made.engine.decided > decided + 10)
        made.api.cluster.validate()
        assert ends == []
        await asyncio.to_thread(shown.stop)


@pytest.mark.gate
async def test_the_demonstration_can_be_ended_at_any_moment() -> None:
    async with service() as made:
        for wait_s in (0, 0.002, 0.01, 0.05, 0.2):
            ends: list[str] = []
            shown = Demonstration(made.addresses[0], on_end=ends.append)
            shown.start()
            await asyncio.sleep(wait_s)
            await asyncio.to_thread(shown.stop)
            assert ends == []


WRONG = [
    (("--demo-speed", "0"), f"--demo-speed: 0 is not between 0.01 and {SPEED_MAX:g}"),
    (("--demo-speed", "nan"), "--demo-speed: nan is not between"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG)
def test_wrong_options(options: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["serve", "--demo", "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0", *options]
    assert licorne.cli.run(arguments) == 2
    assert reason in capsys.readouterr().err


def test_the_demonstration_has_the_token_of_its_service(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open-sesame\n")
    with demonstration("--token-file", str(tmp_path / "token")) as (running, client):
        wait_for(lambda: len(client.get(f"{PARTITION}/nodes").json()) == 24)
        assert running.end() == 0


def test_the_demonstration_has_no_tls(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    certificate(tmp_path, "localhost")
    files = ["--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")]
    assert licorne.cli.run(["serve", "--demo", "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0", *files]) == 2
    assert "--demo speaks to the service without TLS: leave out --tls-cert, or --demo" in capfd.readouterr().err


def test_addresses_and_commands_to_try_are_printed() -> None:
    text = sights("127.0.0.1:9080", "127.0.0.1:3333")
    assert "over gRPC at 127.0.0.1:3333" in text
    assert "Bearer" not in text
    assert "Bearer" in sights("127.0.0.1:9080", "127.0.0.1:3333", token=True)
    assert "curl -s http://127.0.0.1:9080/ws/v1/partition/default/queues\n" in text
    assert "licorne why --from http://127.0.0.1:9080\n" in text
    assert "rest.sock http://localhost/api/v1/why\n" in sights("unix:rest.sock", "unix:grpc.sock")
    assert "curl -s --unix-socket rest.sock http://localhost/ws/v1/metrics\n" in sights(
        "unix:rest.sock", "unix:grpc.sock"
    )


def test_a_client_connects_to_loopback_where_a_service_listens_everywhere() -> None:
    addresses = ["0.0.0.0:9080", "[::]:1", "127.0.0.2:5", "unix:a/b:c", "host:7"]
    assert [reachable(address) for address in addresses] == [
        "127.0.0.1:9080",
        "[::1]:1",
        "127.0.0.2:5",
        "unix:a/b:c",
        "host:7",
    ]
