"""HTTP/1.1 by uvicorn and h11, changed in three respects.

* The head of an answer is sent together with the first bytes of its body. Each write is a system call and wakes the
  client; for a small answer two of them cost as much as making the answer.
* Connections that send nothing, or that do not read what is sent, are closed. uvicorn closes only connections that are
  idle between two requests.
* Some malformed requests that h11 accepts are refused.

h11 is used even where httptools is installed, because httptools has no limit for headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CUT = "licorne.cut"
"""Key in the state of a request's ASGI scope; the value is a function that closes the connection at once."""
JOINED_MAX = 64 << 10
"""Bytes of a body chunk from which on it is written separately, as copying it to join it to the head would cost more."""


class HttpConnection(h11.Connection):
    """h11's state of a connection; it delays the head of an answer until the next bytes are sent."""

    def __init__(self, head_bytes: int) -> None:
        super().__init__(h11.SERVER, head_bytes)
        self._head_bytes = head_bytes
        self._head = b""
        self.write: Callable[[bytes], None] = lambda _data: None

    def next_event(self) -> Any:
        """Return the next event of h11.

        Raises:
            h11.RemoteProtocolError: the bytes are not HTTP, or are something that h11 accepts and this server does not: a head
                that is too long but arrived at once, or a body with two lengths, of which a proxy may believe the other one.
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
        """Return the bytes to write now for an event; None if the event closes the connection."""
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
    """All connections of a server, with the limits on their number and on the time each may take.

    A connection is quiet while no request is under way on it: it is new, has sent only part of a head, or is between two
    requests. When there are too many connections, or too many quiet ones from one address, the one that has been quiet
    longest is closed. So idle connections can lock nobody out.

    `most`: limit for all connections; `quiet_most`: limit for quiet ones of one address; `head_s`: seconds from the first
    byte of a request, or from the start of the connection, until the head of the request must be complete; `send_s`: seconds
    for which a client may take no byte of what is written.
    """

    def __init__(self, most: int, quiet_most: int = 200, *, head_s: float = 10.0, send_s: float = 30.0) -> None:
        self.most = most
        self.quiet_most = quiet_most
        self.head_s = head_s
        self.send_s = send_s
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
        """Note that a request is under way on the connection, or that the connection is closed."""
        self._quiet.pop(one, None)
        same = self._by_address.get(one.address, {})
        same.pop(one, None)
        if not same:
            self._by_address.pop(one.address, None)

    def make_room(self, number: int) -> None:
        """Close the connection that has been quiet longest, if `number` connections are too many."""
        if number >= self.most and len(self._quiet) > 1:
            # The new connection is quiet too, and the last in order, so it is never the one that is closed.
            next(iter(self._quiet)).cut()


class Protocol(H11Protocol):
    """A connection as uvicorn serves it, but with time limits: see `Connections`."""

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
        """Register the new connection and start the time limit for its first head."""
        super().connection_made(transport)
        self.conn.write = transport.write
        self.address = self.client[0] if self.client else ""
        self._all.is_quiet(self)
        self._all.make_room(len(self.connections))
        self._head_timer = self.loop.call_later(self._all.head_s, self.cut)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and cancel its timers."""
        self._all.is_not_quiet(self)
        _cancel(self._head_timer)
        self._head_timer = None
        _cancel(self._send_timer)
        self._send_timer = None
        super().connection_lost(exc)

    def cut(self) -> None:
        """Close the connection at once; a handler that is still answering sees that the client has disconnected."""
        self._drop_cycle()
        self._all.is_not_quiet(self)
        self.connections.discard(self)
        self.transport.abort()

    def _drop_cycle(self) -> None:
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            # The handler may wait for more of the body, or for the client to read: wake it from both.
            cycle.message_event.set()
            self.flow.resume_writing()

    def handle_events(self) -> None:
        """Handle received bytes, and note whether a request is now under way."""
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
        """Note that the answer is complete; the client may still have to read part of it."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._linger()
        elif self.conn.their_state is h11.IDLE:
            self._all.is_quiet(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, as no further request came in time."""
        super().timeout_keep_alive_handler()
        self._linger()

    def _linger(self) -> None:
        """Limit the time that a closing connection waits for a client to read the remaining bytes."""
        if self.transport.get_write_buffer_size() and self._send_timer is None:
            self._send_timer = self.loop.call_later(self._all.send_s, self.cut)

    def pause_writing(self) -> None:
        """Start the time limit, as the client does not read what is written."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self._all.send_s, self.cut)

    def resume_writing(self) -> None:
        """Cancel the time limit, as the client reads again."""
        super().resume_writing()
        _cancel(self._send_timer)
        self._send_timer = None

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP. An answer under way ends without an error, since nobody can read it any more."""
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
        except h11.LocalProtocolError:  # the connection is already in h11's error state
            self.cut()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: web sockets are not supported, and a request for one gets the ordinary answer."""


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


__all__ = ["CUT", "JOINED_MAX", "Connections", "HttpConnection", "Protocol"]
