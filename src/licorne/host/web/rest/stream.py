"""A stream of events: one line for each, flushed as it happens, until the client disconnects or the stream is cut.

Source: docs/spec/rest-api.md, "Stream".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from licorne.host.web.event_ring import EventRing, Listener, as_event_record
from licorne.host.web.http import CONNECTION, Protocol
from licorne.si.events import Event
from licorne.si.rest_objects import EventStream, Failure

from .answers import JSON, encode
from .errors import STREAM_CLOSED

Result = TypeVar("Result")
CHUNK = 100
"""Events that are sent in one write."""


class StreamResponse(Response):
    """A response that sends events as they happen. A client that takes none for `send_s` seconds is disconnected."""

    def __init__(self, ring: EventRing, listener: Listener, send_s: float) -> None:
        super().__init__(b"", 200, media_type=JSON)
        del self.headers["content-length"]
        self._ring = ring
        self._listener = listener
        self._send_s = send_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects, reads too slowly, or the stream is cut."""
        gone = asyncio.create_task(client_gone(receive))
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._lines(send, [encode(EventStream(instance_uuid=self._ring.uuid))])
            await self._follow(send, gone)
        except (TimeoutError, OSError):  # the client does not read, or has disconnected
            connection: Protocol | None = scope.get("state", {}).get(CONNECTION)
            if connection is not None:
                connection.cut()
        finally:
            self._ring.leave(self._listener)
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone

    async def _follow(self, send: Send, gone: asyncio.Task[None]) -> None:
        while not gone.done():
            # Wait for events and for the end of the connection at once, whichever comes first.
            news = asyncio.create_task(self._listener.drain())
            try:
                await asyncio.wait({news, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not news.done():
                    return
                events = news.result()
            finally:
                news.cancel()
            await self._events(send, events)
            if self._listener.cut and not self._listener.waiting:
                why = self._listener.reason or STREAM_CLOSED
                last = Failure(status_code=500, message=why, description=why)
                await self._lines(send, [encode(last)], more=False)
                return

    async def _events(self, send: Send, events: Iterator[Event]) -> None:
        while lines := [encode(as_event_record(event)) for event in islice(events, CHUNK)]:
            await self._lines(send, lines)
            await asyncio.sleep(0)  # give the loop a turn: `send` does not suspend while the client keeps up

    async def _lines(self, send: Send, lines: Iterable[bytes], *, more: bool = True) -> None:
        body = b"".join(line + b"\n" for line in lines)
        await self._send(send, {"type": "http.response.body", "body": body, "more_body": more})

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        async with asyncio.timeout(self._send_s):
            await send(message)


async def client_gone(receive: Receive) -> None:
    """Wait until the client has disconnected. The body of its request must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of some work, which is cancelled if the client disconnects.

    Raises:
        ClientDisconnect: the client has disconnected.
    """
    working, gone = asyncio.create_task(work), asyncio.create_task(client_gone(receive))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        gone.cancel()
