"""Connections of HTTP: limits on their number and on the time that each may take.

uvicorn speaks HTTP/1.1, with h11 even where httptools is installed, because httptools has no limit for headers. Of itself
it closes only connections that are idle between two requests. So each transport gets a `Protocol` of this module, which
passes all events on to uvicorn's protocol and closes connections that send nothing, or that do not read what is sent;
and some malformed requests that h11 accepts are refused before the application sees them (`guarded`). Only interfaces of
asyncio and ASGI are used for this, no class of uvicorn's or h11's connections is extended.

A connection that has ended is freed without the garbage collector, which hardly ever looks at what has lived for a while
(`licorne.host.memory`): a head may have thousands of objects. Nearly each cycle of references passes through uvicorn's
protocol, so `Protocol.connection_lost` lets go of that, whatever it holds; one is h11's (`of_interest`). What asyncio's
transports leave is counted instead.

uvicorn writes the head of an answer and its body separately. Joining them would save 4 % (standard error 2 %) of the
processor time of the smallest answer, and needs a class of h11's to be extended.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any, cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONNECTION = "licorne.connection"
"""Key in the state of a request's ASGI scope; the value is the `Protocol` of its connection."""
HEADER_BYTES = 65_536
IDLE_S = 75
"""Seconds after which the server closes a connection that is idle between two requests.

Clients and proxies close their idle connections earlier by default (httpx after 5 s, aiohttp 15, nginx 60). If the server closed
them first, a client could send a request on a connection that is being closed, and get no answer.
"""
PATIENT = ("/ws/v1/events/stream", "/debug/fullstatedump", "/live")
"""Paths whose answers last by design; the engine does not yield for them."""
INVALID = "Invalid HTTP request received."
"""The text of uvicorn, in its log and its answer, for what is not HTTP."""


class Connections:
    """All connections of a server, with the limits on their number and on the time each may take.

    A connection is quiet while no request is under way on it: it is new, has sent only part of a head, or is between two
    requests. When there are too many connections, or too many quiet ones from one address, the one that has been quiet
    longest is closed. So idle connections can lock nobody out.

    `most`: limit for all connections; `quiet_most`: limit for quiet ones of one address; `head_s`: seconds from the start of
    the connection, or from the first byte of a later request, until the head of the request must be complete; `idle_s`:
    seconds from an answer until the next byte; `send_s`: seconds for which a client may take no byte of what is written;
    `left`: called when a connection has ended.

    `waiting`: requests under way, but for `PATIENT` ones. While there are any the engine yields more turns of the loop: a
    request takes several, and with a slice of decisions in each an answer that is made in a millisecond would take 30.
    """

    def __init__(
        self,
        most: int,
        quiet_most: int = 200,
        *,
        head_s: float = 10.0,
        idle_s: int = IDLE_S,
        send_s: float = 30.0,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self.most = most
        self.quiet_most = quiet_most
        self.head_s = head_s
        self.idle_s = idle_s
        self.send_s = send_s
        self.left = left
        self.waiting = 0
        self.open: dict[Protocol, None] = {}
        self._quiet: dict[Protocol, None] = {}
        self._by_address: dict[str, dict[Protocol, None]] = {}

    def is_quiet(self, one: Protocol) -> None:
        """Note that no request is under way on the connection."""
        self._quiet.setdefault(one)
        same = self._by_address.setdefault(one.address, {})
        same.setdefault(one)
        if len(same) > self.quiet_most:
            next(iter(same)).cut()

    def is_not_quiet(self, one: Protocol) -> None:
        """Note that a request is under way on the connection."""
        self._quiet.pop(one, None)
        same = self._by_address.get(one.address, {})
        same.pop(one, None)
        if not same:
            self._by_address.pop(one.address, None)

    def opened(self, one: Protocol) -> None:
        """Register a connection; if there are too many, close the one that has been quiet longest."""
        self.open[one] = None
        self.is_quiet(one)
        if len(self.open) >= self.most and len(self._quiet) > 1:
            # The new connection is quiet too, and the last in order, so it is never the one that is closed.
            next(iter(self._quiet)).cut()

    def closed(self, one: Protocol) -> None:
        """Forget a connection."""
        self.is_not_quiet(one)
        self.open.pop(one, None)


class Protocol(asyncio.Protocol):
    """A connection, with time limits: see `Connections`. `make` makes uvicorn's protocol for it, given the state of its scopes.

    `reading`: the body of the request under way is not complete.
    """

    def __init__(self, make: Callable[[dict[str, Any]], Any], all_connections: Connections) -> None:
        self.address = ""
        self.reading = False
        self._all = all_connections
        self._loop = asyncio.get_running_loop()
        self._http = make({CONNECTION: self})
        self._answers = 0  # under way: two where a pipelined request begins before the last answer has returned
        self._begun = True  # the next head; the limit for the first one is from the start of the connection
        self._paused = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the new connection and start the time limit for its first head."""
        transport = cast("asyncio.Transport", transport)  # uvloop's have its methods, and are no subclasses
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        self._http.connection_made(transport)
        self._all.opened(self)
        self._limit_head(self._all.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and cancel its timers."""
        self._all.closed(self)
        _cancel(self._head_timer)
        _cancel(self._send_timer)
        self._http.connection_lost(None)  # with an error it would not cancel its timer, and stay in a cycle with that
        del self._http  # which refers to this object, too: the state of its scopes does
        self._all.left()

    def cut(self) -> None:
        """Close the connection at once; a handler that is still answering sees that the client has disconnected."""
        self._all.closed(self)
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Pass received bytes on."""
        if not self._answers and not self._begun:
            self._begun = True
            self._limit_head(self._all.head_s)
        try:
            self._http.data_received(data)
        except h11.LocalProtocolError:  # uvicorn cannot refuse bytes that are not HTTP once an answer has begun
            self.cut()
        if self._transport.is_closing():
            self._limit_sending()

    def eof_received(self) -> bool | None:
        """Pass on that the client sends nothing more."""
        found: bool | None = self._http.eof_received()
        return found

    def pause_writing(self) -> None:
        """Start the time limit, as the client does not read what is written."""
        self._paused = True
        self._http.pause_writing()
        self._limit_sending()

    def resume_writing(self) -> None:
        """End the time limit, as the client reads again."""
        self._paused = False
        self._http.resume_writing()
        self._limit_sending()

    def _limit_head(self, seconds: float) -> None:
        _cancel(self._head_timer)
        self._head_timer = self._loop.call_later(seconds, self.cut)

    def _limit_sending(self) -> None:
        """Limit the time for which the client reads nothing: while writing is paused, and after the end of an answer."""
        _cancel(self._send_timer)
        self._send_timer = None
        ended = not self._answers or self._transport.is_closing()
        if self._paused or (ended and self._transport.get_write_buffer_size()):
            self._send_timer = self._loop.call_later(self._all.send_s, self._not_read)

    def _not_read(self) -> None:
        if self._transport.get_write_buffer_size():
            self.cut()

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer a request of this connection, which is not quiet meanwhile."""

        async def receiving() -> Message:
            message = await receive()
            self.reading = message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if not self._transport.is_closing():  # uvicorn may have answered itself, to refuse the rest of the request
                await send(message)

        waits = scope["path"] not in PATIENT
        self._all.waiting += waits
        self._answers += 1
        self.reading = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        _cancel(self._head_timer)
        self._head_timer = None
        self._all.is_not_quiet(self)
        try:
            await app(scope, receiving, sending)
            while self._transport.is_closing() and (await receive())["type"] != "http.disconnect":
                pass  # uvicorn logs an incomplete answer as an error, except after a disconnect
        except asyncio.CancelledError:
            pass  # the server is shutting down
        finally:
            self._all.waiting -= waits
            self._answers -= 1
            if not self._answers and self in self._all.open:
                self._rest()

    def _rest(self) -> None:
        self.reading = False
        self._all.is_quiet(self)
        self._limit_sending()
        self._begun = False
        self._limit_head(self._all.idle_s)


def guarded(app: ASGIApp) -> ASGIApp:
    """Wrap an application so that connections know which requests are under way, and malformed requests are refused."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        connection: Protocol = scope["state"][CONNECTION]
        await connection.answer(_refuse if _malformed(scope) else app, scope, receive, send)

    return answer


def _malformed(scope: Scope) -> bool:
    """Whether a head is too long but arrived at once, or a body has two lengths, of which a proxy may believe the other one."""
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    return size > HEADER_BYTES or {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}


async def _refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer as uvicorn answers what is not HTTP."""
    logging.getLogger("uvicorn.error").warning(INVALID)
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": INVALID.encode()})


def of_interest(record: logging.LogRecord) -> bool:
    """Return whether a log record of uvicorn is logged. Those about WebSocket requests are not: these get the ordinary answer.

    uvicorn logs `INVALID` while it handles h11's error. That is raised from a frame that refers to it, so with its traceback
    it would be in a cycle of references, which holds the connection and what was received.
    """
    error = sys.exc_info()[1]
    if error is not None and record.msg == INVALID:
        error.__traceback__ = None
    return not record.getMessage().startswith(("Unsupported upgrade request", "No supported WebSocket library"))


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
