"""REST beside gRPC in one process: changes by resource managers show at once; over TCP, unix sockets and TLS."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from pathlib import Path

import httpx
import msgspec
import pytest

import licorne.cli
from common.certificates import self_signed
from common.waiting import WAIT_S, eventually, wait_for
from licorne.grpc.service import Security, SecurityError, Service, Web
from licorne.host.setting_table import TABLE
from licorne.host.web.http import HEADER_BYTES
from licorne.host.web.rest import Access, RequestLimits
from licorne.host.web.settings import WebSettings
from service.peers import Peer, service, watched
from service.processes import serving

P = "/ws/v1/partition/default"
QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: %s}]}]}]"


async def test_changes_by_resource_managers_show_at_once() -> None:
    async with watched() as (made, client), Peer(made.addresses[0]) as peer:
        assert (await client.get("/ws/v1/clusters")).json() == []
        await peer.register(build_info={"buildVersion": "7"})
        assert (await peer.node()).accepted
        assert (await peer.application()).accepted
        await peer.asks("a", "b")
        await peer.allocations(2)
        (cluster,) = (await client.get("/ws/v1/clusters")).json()
        assert cluster["rmBuildInformation"] == [{"buildVersion": "7", "rmId": "rm"}]
        app = (await client.get(f"{P}/application/app")).json()
        assert {alloc["allocationKey"] for alloc in app["allocations"]} == {"a", "b"}
        assert abs(app["submissionTime"] - time.time_ns()) < 3600 * 10**9
        (node,) = (await client.get(f"{P}/nodes")).json()
        assert node["allocated"] == {"vcore": 2000}
        text = (await client.get("/ws/v1/metrics")).text
        assert 'yunikorn_scheduler_container_allocation_attempt_total{state="allocated"} 2.0\n' in text
        assert 'licorne_messages_total{rm="rm",way="in"} 3.0\n' in text
        assert "licorne_decisions_total 2.0\n" in text
        dump = (await client.get("/debug/fullstatedump")).json()
        assert dump["logLevel"] == "fatal"  # nothing at all, as in a program of one's own
        await eventually(lambda: made.monitor is not None and made.monitor.health is not None)
        assert (await client.get("/ws/v1/scheduler/healthcheck")).json()["Healthy"] is True


async def test_events_come_as_they_happen() -> None:
    async with (
        watched() as (made, client),
        Peer(made.addresses[0]) as peer,
        client.stream("GET", "/ws/v1/events/stream") as stream,
    ):
        lines = stream.aiter_lines()
        assert list(msgspec.json.decode(await anext(lines))) == ["InstanceUUID"]
        await peer.running()
        await peer.asks("a")
        async for line in lines:
            event = msgspec.json.decode(line)
            if event.get("eventChangeDetail") == 303:  # the node has an allocation
                assert (event["objectID"], event["referenceID"]) == ("n1", "a")
                break


async def test_an_open_stream_does_not_keep_the_service_from_ending() -> None:
    async with watched() as (made, client), client.stream("GET", "/ws/v1/events/stream") as stream:
        await anext(stream.aiter_lines())
        await made.stop()


async def test_a_configuration_from_rest_counts_at_once() -> None:
    async with watched() as (made, client), Peer(made.addresses[0]) as peer:
        await peer.register(config=QUEUES % "old")
        taken = await client.put("/ws/v1/config", content=QUEUES % "new")
        assert taken.json() == {"allowed": True}
        assert (await client.get(f"{P}/queue/root.new")).status_code == 200
        assert (await client.get(f"{P}/queue/root.old")).json()["status"] == "Draining"
        refused = await client.put("/ws/v1/config", content=QUEUES % "'no name'")
        assert (refused.status_code, refused.json()["problems"][0]["rule"]) == (409, "queue-name")
        await peer.node()


async def test_headers_without_end_are_cut_off() -> None:
    async with watched() as (made, client):
        assert made.web is not None
        host, _, port = made.web.addresses[0].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /ws/v1/clusters HTTP/1.1\r\nHost: here\r\n")
        answer = asyncio.create_task(reader.read())
        sent = 0
        with contextlib.suppress(OSError):
            while not answer.done() and sent < 100 * HEADER_BYTES:
                writer.write(b"X-More: " + b"x" * 8_000 + b"\r\n")
                sent += 8_010
                await writer.drain()
                await asyncio.sleep(0)
        assert sent < 100 * HEADER_BYTES
        with contextlib.suppress(OSError):
            assert (await answer).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
        writer.close()
        assert (await client.get("/ws/v1/clusters")).json() == []


async def test_two_resource_managers() -> None:
    async with watched() as (made, client), Peer(made.addresses[0], "a") as a, Peer(made.addresses[0], "b") as b:
        await a.running()
        await b.running()
        names = [one["name"] for one in (await client.get("/ws/v1/partitions")).json()]
        assert names == ["[a]default", "[b]default"]
        assert (await client.get(f"{P}/nodes")).status_code == 404
        (node,) = (await client.get("/ws/v1/partition/[b]default/nodes")).json()
        assert node["attributes"]["si/node-partition"] == "[b]default"


async def test_a_large_dump_does_not_hold_up_decisions() -> None:
    """The dump is asked for, and while it is made an ask is decided."""
    async with watched() as (made, client), Peer(made.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        keys = [f"k{number}" for number in range(20_000)]
        for at in range(0, len(keys), 1000):
            await peer.asks(*keys[at : at + 1000], vcore=1)
        await peer.allocations(len(keys))
        dump = asyncio.create_task(client.get("/debug/fullstatedump"))
        await asyncio.sleep(0.02)
        await peer.asks("late", vcore=1)
        assert list(await peer.allocations(1)) == ["late"]
        (app,) = (await dump).json()["applications"]
        assert len(app["allocations"]) in (20_000, 20_001)


# -- where it listens ------------------------------------------------------------------------------------


async def test_a_unix_socket_that_a_dead_service_left_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "rest"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with service(web=Web(addresses=(f"unix:{path}",))):
        with pytest.raises(SecurityError, match="cannot listen"):
            async with service(web=Web(addresses=(f"unix:{path}",))):
                pass


async def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "rest"
    async with service(web=Web(addresses=(f"unix:{path}",))):
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            assert (await client.get("/ws/v1/partitions")).json() == []
    assert not path.exists()


async def test_an_address_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SecurityError, match="cannot listen there"):
            await Service(("127.0.0.1:0",), web=Web(addresses=(f"127.0.0.1:{taken.getsockname()[1]}",))).start()


BEYOND = [
    (Security(), Access(), "give TLS a certificate and a key, or say --insecure"),
    (
        Security(certificate=b"x", key=b"x"),
        Access(),
        "ask for tokens .--rest-token-file. or certificates of clients, or say --insecure",
    ),
]


@pytest.mark.parametrize(("security", "access", "reason"), BEYOND)
def test_listening_beyond_loopback_requires_protection(security: Security, access: Access, reason: str) -> None:
    web = Web(addresses=("0.0.0.0:0",), access=access)
    with pytest.raises(SecurityError, match=reason):
        Service(("127.0.0.1:0",), web=web, security=security)


async def test_strangers_may_read_and_change_nothing() -> None:
    async with service(web=Web(addresses=("0.0.0.0:0",)), security=Security(insecure=True)) as made:
        assert made.web is not None
        base = f"http://127.0.0.1:{made.web.addresses[0].rpartition(':')[2]}"
        async with Peer(made.addresses[0]) as peer, httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client:
            await peer.register()
            assert (await client.put("/ws/v1/config", content=QUEUES % "new")).status_code == 403
            assert (await client.get("/ws/v1/config")).status_code == 200


async def test_tls_with_a_token(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    security = Security(certificate=certificate, key=key)
    web = Web(addresses=("0.0.0.0:0",), access=Access(read_tokens=("open",)))
    async with service(web=web, security=security) as made:
        assert made.web is not None
        port = made.web.addresses[0].rpartition(":")[2]
        context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
        async with httpx.AsyncClient(base_url=f"https://localhost:{port}", verify=context, timeout=WAIT_S) as client:
            assert (await client.get("/ws/v1/clusters")).status_code == 401
            answer = await client.get("/ws/v1/clusters", headers={"authorization": "Bearer open"})
            assert answer.json() == []


def test_the_command(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("one\ntwo\n")
    with serving("--rest", "127.0.0.1:0", "--rest-read-token-file", str(tokens)) as running:
        (event,) = wait_for(lambda: running.events("listening for REST"))
        base = f"http://{event['addresses'][0]}"
        assert httpx.get(f"{base}/ws/v1/clusters", timeout=WAIT_S).status_code == 401
        headers = {"authorization": "Bearer two"}
        assert httpx.get(f"{base}/ws/v1/clusters", headers=headers, timeout=WAIT_S).json() == []
        assert httpx.put(f"{base}/ws/v1/config", headers=headers, timeout=WAIT_S).status_code == 403
        assert running.end() == 0


WRONG = [
    ("0.0.0.0:0", "", "0.0.0.0:0 is beyond loopback: give TLS a certificate and a key, or say --insecure"),
    ("nonsense", "", "'nonsense': an address is written HOST:PORT or unix:PATH"),
    ("127.0.0.1:0", " \n", "holds no token; give one a line"),
    ("127.0.0.1:0", "a b\n", "a token is a line of printable ASCII characters without spaces"),
]


@pytest.mark.parametrize(("address", "tokens", "reason"), WRONG)
def test_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, tokens: str, reason: str
) -> None:
    arguments = ["serve", "--grpc", "127.0.0.1:0", "--rest", address]
    if tokens:
        (tmp_path / "tokens").write_text(tokens)
        arguments += ["--rest-token-file", str(tmp_path / "tokens")]
    assert licorne.cli.run(arguments) == 1
    assert reason in capsys.readouterr().err


SETTINGS = [
    ({}, (30.0, 100_000, 10_000, 100, 15)),
    ({"health.checkInterval": "1m", "event.maxStreams": "7"}, (60.0, 100_000, 10_000, 7, 15)),
    ({"health.checkInterval": "0s", "event.trackingEnabled": "false"}, (0.0, 0, 10_000, 100, 15)),
    ({"health.checkInterval": "soon", "event.RESTResponseSize": "-1"}, (30.0, 100_000, 10_000, 100, 15)),
    ({"event.ringBufferCapacity": "5", "event.maxStreamsPerHost": "0"}, (30.0, 5, 10_000, 100, 15)),
]


@pytest.mark.parametrize(("texts", "expected"), SETTINGS)
def test_settings(texts: dict[str, str], expected: tuple[float, int, int, int, int]) -> None:
    found, limits = TABLE.fill(WebSettings(), texts), TABLE.fill(RequestLimits(), texts)
    events = found.event_capacity if found.tracks_events else 0
    values = found.health_interval_s, events, limits.batch, limits.streams, limits.streams_per_host
    assert values == expected
