"""One stream of a resource manager: it reads requests one by one, and writes the messages queued for it.

A stream decides nothing. It passes requests to `take`, and ends with the reason that the session or the service gives.
Messages wait in `Session.boxes`, and one is removed only when it has been written. So when a stream replaces another
one of its kind, nothing is lost but what the network had already accepted.

gRPC's own buffers are bounded by its flow control: `write` returns when the message has left, and a request that is
not read stays with its sender.

The head of the answer (its initial metadata) is sent by itself, once, and that is never cancelled. gRPC would send it
with the first message. If that was cancelled because the stream ended, the status that follows brought a second head,
which gRPC refuses: the stream then never ended for the client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import grpc
import msgspec

from licorne.si.rpc import Kind

if TYPE_CHECKING:
    from .session import Session

SETTLE_S = 0.05
"""Wait after the client's end of a stream before it counts as a goodbye: a broken connection looks the same at
first."""
LAST_WORDS_S = 2.0
"""How long a stream that ends may take to write its queued messages."""


Take = Callable[["Stream", bytes], Awaitable[None]]
"""A coroutine that handles a request; the next request is read when it has returned."""


class End(msgspec.Struct, frozen=True):
    """How a stream ends: a status, a text for people, and perhaps a message before it."""

    code: grpc.StatusCode
    details: str = ""
    last: bytes | None = None


class Stream:
    """One stream. `opened`: a number that grows with each stream and registration of the service."""

    def __init__(self, kind: Kind, context: Any, opened: int) -> None:
        self.kind = kind
        self.context = context
        self.opened = opened
        self.peer: str = context.peer()
        self.session: Session | None = None
        self.orderly = False  # the resource manager closed the stream, as opposed to a broken connection
        self._box: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._finishing = False
        self._writer: asyncio.Task[None] | None = None
        self._head: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    def attach(self, session: Session) -> None:
        """Bind the stream to a session, and begin to write the messages queued there for its kind."""
        self.session = session
        self._box = session.boxes[self.kind]
        self._writer = asyncio.create_task(self._guarded(self._write))

    async def begin(self) -> None:
        """Send the head of the answer, by which the client knows that its stream is accepted. Later calls only wait."""
        if self._head is None:
            self._head = asyncio.create_task(self.context.send_initial_metadata(()))
        await asyncio.shield(self._head)

    def wake(self) -> None:
        """Wake the writer: a message has been queued."""
        self._more.set()

    def end(self, end: End) -> None:
        """End the stream. If it is called more than once, the first reason counts."""
        if not self._ended.done():
            self._ended.set_result(end)

    @property
    def over(self) -> bool:
        """Whether the stream has been given a reason to end."""
        return self._ended.done()

    async def run(self, take: Take) -> End:
        """Read and write until the stream ends, and return how it ended. gRPC cancels this if the connection breaks.

        A stream that is bound already is told so first, by the head of the answer.
        """
        reader: asyncio.Task[None] | None = None
        try:
            if self.session is not None:
                await self.begin()
            reader = asyncio.create_task(self._guarded(lambda: self._read(take)))
            end = await self._ended
            self._more.set()
            if end.last is not None:
                await self._say(end.last)
        finally:
            for task in (reader, self._writer):
                if task is not None:
                    task.cancel()
            if self._head is not None:
                await asyncio.wait([self._head], timeout=LAST_WORDS_S)
                if self._head.done() and not self._head.cancelled():
                    self._head.exception()  # retrieved, so that asyncio does not log it; the stream has ended anyway
            self._writer = self._head = None  # a cancelled task keeps the frames that it was in, and these this stream
        return end

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run the reader or the writer; an exception ends the stream. gRPC reports network failures by cancelling."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001  any failure ends the stream
            self.end(End(grpc.StatusCode.UNAVAILABLE, f"the stream broke: {type(error).__name__}"))

    async def _say(self, last: bytes) -> None:
        """Write the last message of the stream, unless the one being written is stuck."""
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=LAST_WORDS_S)
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self.begin()
                await self.context.write(last)
        except (TimeoutError, grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError, RuntimeError):
            return  # the status that follows says the same

    async def _read(self, take: Take) -> None:
        read = self.context.read
        while not self._ended.done():
            if self.session is not None:
                await self.session.readable.wait()
            data = await read()
            if data is grpc.aio.EOF:
                await self._close()
                return
            await take(self, data)

    async def _close(self) -> None:
        """Handle that the resource manager closed its side: write its queued messages, then end the stream."""
        await asyncio.sleep(SETTLE_S)  # cancelled if the connection broke
        self._finishing = True
        self._more.set()
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=LAST_WORDS_S)
        self.orderly = True
        self.end(End(grpc.StatusCode.OK))

    async def _write(self) -> None:
        write, box, session = self.context.write, self._box, self.session
        while True:
            if box and not self._ended.done():
                await self.begin()
            while box and not self._ended.done():
                data = box[0]
                await write(data)
                # The next stream of this kind shares the box, and may have written and removed the message meanwhile.
                if box and box[0] is data:
                    box.popleft()
                    if session is not None:
                        session.written(len(data))
            if self._finishing or self._ended.done():
                return
            self._more.clear()
            await self._more.wait()
