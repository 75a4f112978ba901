"""HTTP/1.1 as uvicorn speaks it with h11, with three differences.

The head of an answer leaves together with what follows it: each write is a call of the kernel, and wakes the client, and
for a small answer that is as much work as making it. Connections end that say nothing, or take nothing: uvicorn itself
closes only those between two requests. And requests are refused that h11 lets through. h11 reads requests also where
httptools is installed, which knows no limit for headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CUT = "licorne.cut"
"""Key in the state of a request's ASGI scope; its value is a function that closes the connection at once."""
JOINED_MAX = 64 << 10
"""Bytes of a body from which on it is not copied behind its head."""


class HttpConnection(h11.Connection):
    """What h11 knows of a connection; it keeps the head of an answer until the next bytes are sent."""

    def __init__(self, head_bytes: int) -> None:
        super().__init__(h11.SERVER, head_bytes)
        self._head_bytes = head_bytes
        self._head = b""
        self.write: Callable[[bytes], None] = lambda _data: None

    def next_event(self) -> Any:
        """What comes next.

        Raises:
            h11.RemoteProtocolError: it is no HTTP, or what h11 lets through: a head that is too long but came at once, and a
                body with two lengths, of which a proxy may believe the other one.
        """
        event = super().next_event()
        if type(event) is h11.Request:
            size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers)
            if size > self._head_bytes:
                raise h11.RemoteProtocolError("the head is too long", error_status_hint=431)
            names = {name for name, _ in event.headers}
            if b"content-length" in names and b"transfer-encoding" in names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        return event

    def send(self, event: Any) -> Any:
        """The bytes of an event that are to be written now; None where it closes the connection."""
        data = super().send(event)
        if type(event) is h11.Response:
            self._head, data = data or b"", b""
        elif self._head and data is not None:
            head, self._head = self._head, b""
            if len(data) > JOINED_MAX:
                self.write(head)
            else:
                data = head + data
        return data


class Connections:
    """All connections of a server, for what each may take of their number and of time.

    A connection is quiet while no request is under way on it: new, with half a head, or between two requests. Where there
    are too many of all, or too many quiet ones of an address, the one that has been quiet longest makes room. So nobody is
    locked out by connections that say nothing.

    `most`: of all; `quiet_most`: quiet ones of one address; `head_s`: seconds from its first byte, or from the beginning of
    the connection, until the head of a request is there; `send_s`: seconds without a byte taken of what is written.
    """

    def __init__(self, most: int, quiet_most: int = 200, *, head_s: float = 10.0, send_s: float = 30.0) -> None:
        self.most = most
        self.quiet_most = quiet_most
        self.head_s = head_s
        self.send_s = send_s
        self._quiet: dict[Protocol, None] = {}
        self._by_address: dict[str, dict[Protocol, None]] = {}

    def is_quiet(self, one: Protocol) -> None:
        """No request is under way on it."""
        self._quiet.setdefault(one)
        same = self._by_address.setdefault(one.address, {})
        same.setdefault(one)
        if len(same) > self.quiet_most:
            next(iter(same)).cut()

    def is_not_quiet(self, one: Protocol) -> None:
        """A request is under way, or it is gone."""
        self._quiet.pop(one, None)
        same = self._by_address.get(one.address, {})
        same.pop(one, None)
        if not same:
            self._by_address.pop(one.address, None)

    def make_room(self, number: int) -> None:
        """Make room for a new connection where there are too many: close the one that has been silent longest."""
        if number >= self.most and len(self._quiet) > 1:
            next(iter(self._quiet)).cut()


class Protocol(H11Protocol):
    """A connection, as uvicorn serves it, but with an end: see `Connections`."""

    def __init__(self, *given: Any, all_connections: Connections, **named: Any) -> None:
        super().__init__(*given, **named)
        assert self.config.h11_max_incomplete_event_size is not None
        self.conn: HttpConnection = HttpConnection(self.config.h11_max_incomplete_event_size)
        self.app_state = {**self.app_state, CUT: self.cut}
        self.address = ""
        self._all = all_connections
        self._head_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """It is there."""
        super().connection_made(transport)
        self.conn.write = transport.write
        self.address = self.client[0] if self.client else ""
        self._all.is_quiet(self)
        self._all.make_room(len(self.connections))
        self._head_timer = self.loop.call_later(self._all.head_s, self.cut)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._all.is_not_quiet(self)
        _cancel(self._head_timer)
        self._head_timer = None
        _cancel(self._send_timer)
        self._send_timer = None
        super().connection_lost(exc)

    def cut(self) -> None:
        """End it at once; what is being answered is told that the client has gone."""
        self._drop_cycle()
        self._all.is_not_quiet(self)
        self.connections.discard(self)
        self.transport.abort()

    def _drop_cycle(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            self.flow.resume_writing()

    def handle_events(self) -> None:
        """Look at what has come."""
        super().handle_events()
        if self.transport.is_closing():
            return
        if self.conn.their_state is not h11.IDLE:
            self._all.is_not_quiet(self)
            _cancel(self._head_timer)
            self._head_timer = None
            return
        self._all.is_quiet(self)
        if self._head_timer is None and self.conn.trailing_data[0]:
            self._head_timer = self.loop.call_later(self._all.head_s, self.cut)

    def on_response_complete(self) -> None:
        """The answer is written, as far as the client takes it."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._linger()
        elif self.conn.their_state is h11.IDLE:
            self._all.is_quiet(self)

    def timeout_keep_alive_handler(self) -> None:
        """No further request has come."""
        super().timeout_keep_alive_handler()
        self._linger()

    def _linger(self) -> None:
        """It is closed once all is written; who takes nothing does not keep it."""
        if self.transport.get_write_buffer_size() and self._send_timer is None:
            self._send_timer = self.loop.call_later(self._all.send_s, self.cut)

    def pause_writing(self) -> None:
        """The client does not take what is written."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self._all.send_s, self.cut)

    def resume_writing(self) -> None:
        """The client takes it again."""
        super().resume_writing()
        _cancel(self._send_timer)
        self._send_timer = None

    def send_400_response(self, msg: str) -> None:
        """What has come is no HTTP. An answer that is under way ends without an error, for it has nobody to read it."""
        self._drop_cycle()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
            self._linger()
        else:
            self.cut()

    def shutdown(self) -> None:
        """Shut down: a response that has begun is completed; a connection whose request is incomplete is closed."""
        cycle: Any = self.cycle
        try:
            if cycle is None or cycle.response_complete or not cycle.more_body:
                super().shutdown()
            else:
                self.cut()
        except h11.LocalProtocolError:  # it is broken already
            self.cut()

    def _unsupported_upgrade_warning(self) -> None:
        """There are no web sockets; who asks for one gets the answer without."""


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


__all__ = ["CUT", "JOINED_MAX", "Connections", "HttpConnection", "Protocol"]
