"""Connections that are silent, do not read, or do not speak HTTP: they end without effect on others, and the log is quiet."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from licorne.daemon.log import Levels, Log
from licorne.daemon.process_log import process_log
from licorne.service import Security, Service, Web
from licorne.web.http import HEADER_BYTES, Connections, Protocol, guarded
from service.peers import eventually, service
from service.processes import serving
from service.test_serve import wait_for

GET = b"GET /ws/v1/clusters HTTP/1.1\r\nHost: here\r\n\r\n"
HALF = GET[:-2]


@asynccontextmanager
async def listening(
    most: int = 1000, quiet_most: int = 200, head_s: float = 0.5, idle_s: int = 60, send_s: float = 0.5, **given: Any
) -> AsyncIterator[tuple[Service, tuple[str, int]]]:
    """A service with REST, with other limits of its connections."""
    made = Service(("127.0.0.1:0",), web=Web(addresses=("127.0.0.1:0",)), **given)
    assert made.web is not None
    made.web.connections = Connections(most, quiet_most, head_s=head_s, idle_s=idle_s, send_s=send_s)
    async with made:
        host, _, port = made.web.addresses[0].rpartition(":")
        yield made, (host, int(port))


async def ended(reader: asyncio.StreamReader) -> float:
    """After how many seconds the other side has closed."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 20)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("what", "idle_s"),
    [
        ("nothing", 60),
        ("half a head", 60),
        ("a byte now and then", 60),
        ("half of a second head", 60),
        ("one and a half heads", 1),
        ("nothing after an answer", 1),
    ],
)
def test_a_connection_without_a_request_is_closed(what: str, idle_s: int) -> None:
    async def story() -> None:
        async with listening(idle_s=idle_s) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            if what in ("half of a second head", "nothing after an answer"):
                writer.write(GET)
                assert (await reader.read(1000)).startswith(b"HTTP/1.1 200 ")
            if what.startswith("half"):
                writer.write(HALF)
            if what == "one and a half heads":
                writer.write(GET + HALF)
            end = asyncio.create_task(ended(reader))
            for at in range(300):
                if what == "a byte now and then" and not end.done():
                    writer.write(HALF[at % len(HALF) :][:1])
                await asyncio.sleep(0.02)
                if end.done():
                    break
            assert 0.3 < await end < 5
            writer.close()

    asyncio.run(story())


def test_a_connection_stays_open_between_requests_for_longer_than_clients_keep_it() -> None:
    async def story() -> None:
        async with listening(head_s=0.1) as (made, address):
            reader, writer = await asyncio.open_connection(*address)
            for _ in range(3):
                writer.write(GET)
                await asyncio.sleep(0.3)
                assert (await reader.read(100_000)).startswith(b"HTTP/1.1 200 ")
            writer.close()
            assert made.web is not None
            assert made.web._server is not None
            assert made.web._server.config.timeout_keep_alive == made.web.connections.idle_s

    asyncio.run(story())


def test_an_unfinished_tls_handshake_is_closed_and_a_failed_one_is_logged(tmp_path: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    try:
        subprocess.run([*command, "-keyout", "key", "-out", "crt"], cwd=tmp_path, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not here: it makes the certificate")
    security = Security(certificate=(tmp_path / "crt").read_bytes(), key=(tmp_path / "key").read_bytes())

    async def story(log: Log) -> None:
        async with listening(security=security, log=log) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            assert 0.3 < await ended(reader) < 5
            writer.close()
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET)
            await ended(reader)
            writer.close()

    out = io.StringIO()
    with process_log(out, form="json", levels=Levels()) as log:
        asyncio.run(story(log))
    (told,) = [one for one in map(json.loads, out.getvalue().splitlines()) if one["event"] == "access refused"]
    assert (told["peer"], told["reason"]) == ("TLS", "http request")


def test_unfinished_request_heads_lock_no_client_out() -> None:
    async def story() -> None:
        async with listening(most=40, quiet_most=1000, head_s=60) as (made, address):
            assert made.web is not None
            silent = [await asyncio.open_connection(*address) for _ in range(60)]
            for _, writer in silent:
                writer.write(HALF)
            await asyncio.sleep(0.1)
            async with httpx.AsyncClient(base_url=f"http://{made.web.addresses[0]}", timeout=20) as client:
                for _ in range(5):
                    assert (await client.get("/ws/v1/metrics")).status_code == 200
            assert await ended(silent[0][0]) < 5  # the oldest made room
            assert made.web._server is not None
            assert len(made.web._server.server_state.connections) <= 41
            for _, writer in silent:
                writer.close()

    asyncio.run(story())


def test_quiet_connections_per_address_are_bounded() -> None:
    async def story() -> None:
        async with listening(quiet_most=5, head_s=60) as (made, address):
            silent = [await asyncio.open_connection(*address) for _ in range(9)]
            for reader, _ in silent[:4]:
                assert await ended(reader) < 5
            assert not silent[8][0].at_eof()
            for _, writer in silent:
                writer.close()
            assert made.web is not None
            await eventually(lambda: not made.web.connections._quiet)
            assert made.web.connections._by_address == {}

    asyncio.run(story())


def test_a_client_that_reads_no_answer_is_cut_off() -> None:
    async def story() -> None:
        async with listening(send_s=0.5) as (made, address):
            assert made.web is not None
            _, writer = await asyncio.open_connection(*address, limit=1024)
            writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n" * 2_000)
            await asyncio.sleep(0.2)
            server = made.web._server
            assert server is not None
            assert len(server.server_state.connections) == 1
            await eventually(lambda: not server.server_state.connections)
            writer.close()

    asyncio.run(story())


REFUSED = {
    "a head that is too long and comes at once": GET[:-2] + b"X: " + b"x" * (HEADER_BYTES + 5_000) + b"\r\n\r\n",
    "a body with two lengths": b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "a bad chunk": b"PUT /debug/fullstatedump HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a bad chunk of a body": b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "no HTTP": b"\x16\x03\x01 what\r\n\r\n",
    "a web socket": GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + b"\x16\x03\x01 what\r\n\r\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_request_leaves_one_line_in_the_log(what: str) -> None:
    out = io.StringIO()

    async def story() -> bytes:
        async with listening() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(REFUSED[what])
            answer = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return answer

    with process_log(out, form="json", levels=Levels()):
        answer = asyncio.run(story())
    assert b"HTTP/1.1 400 " in answer
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [one["event"] for one in events] == ["Invalid HTTP request received."]
    assert "exception" not in events[0]


def test_bytes_that_are_not_http_after_an_answer_end_the_connection_quietly() -> None:
    out = io.StringIO()

    async def story() -> bytes:
        async with listening(head_s=60) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"PUT /ws/v1/clusters HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            answer = await asyncio.wait_for(reader.readuntil(b"Method Not Allowed\n"), 20)
            writer.write(b"zz\r\n")
            assert await ended(reader) < 5
            writer.close()
            return answer

    with process_log(out, form="json", levels=Levels()):
        assert b"HTTP/1.1 405 " in asyncio.run(story())
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["Invalid HTTP request received."]


class Unread(asyncio.Transport):
    """A transport whose client reads nothing: it closes only when it is aborted."""

    def __init__(self) -> None:
        super().__init__({"peername": ("here", 1)})
        self.aborted = self.closed = False
        self.written = b""

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize("request_", [GET, GET[:-2] + b"Connection: close\r\n\r\n", b"\x16\x03\x01 what\r\n\r\n"])
def test_a_client_that_does_not_read_the_end_of_an_answer_is_cut_off(request_: bytes) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    async def story() -> None:
        config = uvicorn.Config(guarded(app), http="h11", ws="none", log_config=None, access_log=False, lifespan="off")
        config.load()
        state = uvicorn.server.ServerState()
        made = Protocol(
            lambda one: config.http_protocol_class(config=config, server_state=state, app_state=one),  # type: ignore[call-arg]
            Connections(10, head_s=60, send_s=0.05),
        )
        transport = Unread()
        made.connection_made(transport)
        made.data_received(request_)
        await asyncio.sleep(0.02)
        assert transport.written.startswith(b"HTTP/1.1 ")
        assert not transport.aborted
        await eventually(lambda: transport.aborted)
        made.connection_lost(None)
        assert not state.connections

    asyncio.run(story())


def test_a_stream_of_events_ends_when_events_are_switched_off() -> None:
    async def story() -> list[dict[str, Any]]:
        async with service(web=Web(addresses=("127.0.0.1:0",))) as made:
            assert made.web is not None
            base = f"http://{made.web.addresses[0]}"
            async with (
                httpx.AsyncClient(base_url=base, timeout=20) as client,
                client.stream("GET", "/ws/v1/events/stream") as stream,
            ):
                lines = stream.aiter_lines()
                await anext(lines)
                made.retune(made.settings, {"event.trackingEnabled": "false"})
                return [json.loads(line) async for line in lines]

    (last,) = asyncio.run(asyncio.wait_for(story(), 30))
    assert last["message"] == "Event tracking is disabled"


def test_the_service_ends_at_once_and_quietly_with_open_requests() -> None:
    """A reader of events, a body that does not come, half a head, and a client that takes nothing."""
    with serving("--rest", "127.0.0.1:0") as running:
        wait_for(lambda: running.events("listening for REST"))
        address = running.events("listening for REST")[0]["addresses"][0]
        host, _, port = address.rpartition(":")

        async def story() -> float:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /ws/v1/events/stream HTTP/1.1\r\nHost: h\r\n\r\n")
            await reader.readuntil(b"InstanceUUID")
            _, missing = await asyncio.open_connection(host, int(port))
            missing.write(b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n")
            _, half = await asyncio.open_connection(host, int(port))
            half.write(HALF)
            await asyncio.sleep(0.5)
            began = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            rest = await asyncio.wait_for(reader.read(), 20)
            took = time.monotonic() - began
            assert b"The scheduler is shutting down" in rest
            assert rest.endswith(b"0\r\n\r\n")  # the stream has its end
            for one in (writer, missing, half):
                one.close()
            return took

        assert asyncio.run(story()) < 2
        assert running.end() == 0
        assert not any("exception" in line or "library" in line for line in running.lines)


def test_nothing_is_written_around_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """`logging` has its handlers again afterwards."""
    before = logging.getLogger().handlers[:]
    with process_log(io.StringIO(), form="text", levels=Levels()):
        logging.getLogger("uvicorn.error").error("x")
    assert logging.getLogger().handlers == before
    assert capsys.readouterr().err == ""
