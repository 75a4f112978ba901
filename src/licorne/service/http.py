"""HTTP/1.1 as uvicorn speaks it with h11, but that the head of an answer leaves together with what follows it.

Each write is a call of the kernel, and wakes the client: for a small answer that is as much work as making it. h11 reads
requests also where httptools is installed, which knows no limit for headers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

JOINED_MAX = 64 << 10
"""Bytes of a body from which on it is not copied behind its head."""


class Connection(h11.Connection):
    """What h11 knows of a connection; it keeps the head of an answer until the next bytes are sent."""

    def __init__(self, head_bytes: int) -> None:
        super().__init__(h11.SERVER, head_bytes)
        self._head = b""
        self.write: Callable[[bytes], None] = lambda _data: None

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


class Protocol(H11Protocol):
    """A connection, as uvicorn serves it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        assert self.config.h11_max_incomplete_event_size is not None
        self.conn: Connection = Connection(self.config.h11_max_incomplete_event_size)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """It is there."""
        super().connection_made(transport)
        self.conn.write = transport.write
