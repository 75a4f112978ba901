"""Connections that are silent, do not read, or do not speak HTTP: they end without effect on others, and the log is quiet."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from common.certificates import self_signed
from common.virtual import in_virtual_time, run
from common.waiting import WAIT_S, eventually, wait_for
from licorne.grpc.service import Security, Service, Web
from licorne.host.log import Levels, Log
from licorne.host.process_log import process_log
from licorne.host.web.http import HEADER_BYTES, Connections, Protocol, guarded
from service.peers import client_of, watched
from service.processes import serving

GET = b"GET /ws/v1/clusters HTTP/1.1\r\nHost: here\r\n\r\n"
HALF = GET[:-2]
NEVER_S = 3600


@asynccontextmanager
async def listening(
    most: int = 1000, quiet_most: int = 200, head_s: float = NEVER_S, send_s: float = NEVER_S, **given: Any
) -> AsyncIterator[tuple[Service, tuple[str, int]]]:
    """A service with REST, with other limits of its connections."""
    made = Service(("127.0.0.1:0",), web=Web(addresses=("127.0.0.1:0",)), **given)
    assert made.web is not None
    made.web.connections = Connections(most, quiet_most, head_s=head_s, idle_s=NEVER_S, send_s=send_s)
    async with made:
        host, _, port = made.web.addresses[0].rpartition(":")
        yield made, (host, int(port))


async def ended(reader: asyncio.StreamReader) -> None:
    """Wait until the other side has closed."""
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), WAIT_S)


def test_an_unfinished_tls_handshake_is_closed_and_a_failed_one_is_logged(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    security = Security(certificate=certificate, key=key)

    async def story(log: Log) -> None:
        async with listening(head_s=0.5, security=security, log=log) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            await ended(reader)
            writer.close()
        async with listening(security=security, log=log) as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET)
            await ended(reader)
            writer.close()

    out = io.StringIO()
    with process_log(out, form="json", levels=Levels()) as log:
        asyncio.run(story(log))
    (told,) = [one for one in map(json.loads, out.getvalue().splitlines()) if one["event"] == "access refused"]
    assert (told["peer"], told["reason"]) == ("TLS", "http request")


async def test_unfinished_request_heads_lock_no_client_out() -> None:
    async with listening(most=40, quiet_most=1000) as (made, address):
        assert made.web is not None
        silent = [await asyncio.open_connection(*address) for _ in range(60)]
        for _, writer in silent:
            writer.write(HALF)
        async with client_of(made) as client:
            for _ in range(5):
                assert (await client.get("/ws/v1/metrics")).status_code == 200
        await ended(silent[0][0])  # the oldest made room
        assert len(made.web._state.connections) <= 41
        for _, writer in silent:
            writer.close()


async def test_quiet_connections_per_address_are_bounded() -> None:
    async with listening(quiet_most=5) as (made, address):
        silent = [await asyncio.open_connection(*address) for _ in range(9)]
        for reader, _ in silent[:4]:
            await ended(reader)
        assert not silent[8][0].at_eof()
        for _, writer in silent:
            writer.close()
        web = made.web
        assert web is not None
        await eventually(lambda: not web.connections._quiet)
        assert web.connections._by_address == {}


async def test_a_client_that_reads_no_answer_is_cut_off() -> None:
    async with listening(send_s=0.5) as (made, address):
        assert made.web is not None
        _, writer = await asyncio.open_connection(*address, limit=1024)
        state = made.web._state
        await eventually(lambda: state.connections)
        writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n" * 2_000)
        await eventually(lambda: not state.connections)
        writer.close()


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
            answer = await reader.read()
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
        async with listening() as (_, address):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"PUT /ws/v1/clusters HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            answer = await reader.readuntil(b"Method Not Allowed\n")
            writer.write(b"zz\r\n")
            await ended(reader)
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

    def pause_reading(self) -> None:
        """Do nothing: it hands on what the test gives."""

    resume_reading = pause_reading

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


@contextlib.contextmanager
def connected(**limits: Any) -> Iterator[tuple[Protocol, Unread]]:
    """A connection that has just been opened to a server with limits of its own."""
    connections = Connections(10, **{"head_s": NEVER_S, "idle_s": NEVER_S, "send_s": NEVER_S, **limits})
    config = uvicorn.Config(
        guarded(app),
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=connections.idle_s,
    )
    config.load()
    state = uvicorn.server.ServerState()
    made = Protocol(
        lambda one: config.http_protocol_class(config=config, server_state=state, app_state=one),  # type: ignore[call-arg]
        connections,
    )
    transport = Unread()
    made.connection_made(transport)
    yield made, transport
    made.connection_lost(None)
    assert not state.connections


CLOSED = {
    "nothing": ({}, 10),
    "half a head": ({0: HALF}, 10),
    "a byte now and then": ({at: HALF[at : at + 1] for at in range(30)}, 10),
    "half of a second head": ({1: GET, 5: HALF}, 5 + 10),
    "one and a half heads": ({1: GET + HALF}, 1 + 60),
    "nothing after an answer": ({1: GET}, 1 + 60),
    "requests in between": ({1: GET, 50: GET, 100: GET}, 100 + 60),
}


@pytest.mark.parametrize("what", CLOSED)
def test_a_connection_is_closed_when_no_request_comes_for_long(what: str) -> None:
    sent, closed_at = CLOSED[what]

    async def story() -> None:
        with connected(head_s=10, idle_s=60) as (made, transport):
            loop = asyncio.get_running_loop()

            async def sending() -> None:
                for at, data in sent.items():
                    await asyncio.sleep(at - loop.time())
                    made.data_received(data)

            client = asyncio.create_task(sending())
            await eventually(transport.is_closing)
            client.cancel()
            assert loop.time() == pytest.approx(closed_at, abs=0.1)
            assert transport.written.count(b"HTTP/1.1 200 ") == sum(data.startswith(GET) for data in sent.values())

    run(story())


async def test_a_server_keeps_idle_connections_for_longer_than_clients_do() -> None:
    async with listening() as (made, address):
        assert made.web is not None
        _, writer = await asyncio.open_connection(*address)
        await eventually(lambda: made.web is not None and made.web._state.connections)
        (http,) = made.web._state.connections
        assert vars(http)["timeout_keep_alive"] == made.web.connections.idle_s
        writer.close()


@pytest.mark.parametrize("request_", [GET, GET[:-2] + b"Connection: close\r\n\r\n", b"\x16\x03\x01 what\r\n\r\n"])
@in_virtual_time
async def test_a_client_that_does_not_read_the_end_of_an_answer_is_cut_off(request_: bytes) -> None:
    with connected(send_s=30) as (made, transport):
        made.data_received(request_)
        await asyncio.sleep(29)
        assert transport.written.startswith(b"HTTP/1.1 ")
        assert not transport.aborted
        await eventually(lambda: transport.aborted)
        assert asyncio.get_running_loop().time() == pytest.approx(30, abs=0.1)


async def test_a_stream_of_events_ends_when_events_are_switched_off() -> None:
    async with watched() as (made, client), client.stream("GET", "/ws/v1/events/stream") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        made.retune(made.settings, {"event.trackingEnabled": "false"})
        (last,) = [json.loads(line) async for line in lines]
    assert last["message"] == "Event tracking is disabled"


async def test_the_service_ends_at_once_and_quietly_with_open_requests() -> None:
    """A reader of events, a body that does not come, half a head, and a client that takes nothing."""
    with serving("--rest", "127.0.0.1:0") as running:
        wait_for(lambda: running.events("listening for REST"))
        address = running.events("listening for REST")[0]["addresses"][0]
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /ws/v1/events/stream HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"InstanceUUID")
        _, missing = await asyncio.open_connection(host, int(port))
        missing.write(b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n")
        _, half = await asyncio.open_connection(host, int(port))
        half.write(HALF)
        await asyncio.sleep(0.5)
        running.process.send_signal(signal.SIGTERM)
        rest = await reader.read()
        assert b"The scheduler is shutting down" in rest
        assert rest.endswith(b"0\r\n\r\n")  # the stream has its end
        for one in (writer, missing, half):
            one.close()
        assert running.end() == 0
        assert not any("exception" in line or "library" in line for line in running.lines)


def test_nothing_is_written_around_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """`logging` has its handlers again afterwards."""
    before = logging.getLogger().handlers[:]
    with process_log(io.StringIO(), form="text", levels=Levels()):
        logging.getLogger("uvicorn.error").error("x")
    assert logging.getLogger().handlers == before
    assert capsys.readouterr().err == ""
