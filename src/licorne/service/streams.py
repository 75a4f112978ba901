"""One stream of a resource manager: reads its requests one by one, and writes what waits for it.

A stream has no say in what happens. Requests go to `take`; what is to be written stands in a box of its session, from
where it goes only when it has been written. So nothing is lost between two streams of a kind but what the network had
already taken. The session, or the service, ends a stream with a reason.

gRPC's own buffers are bounded by its flow control: `write` returns when the message has left, and a request that is
not read stays with its sender.

The head of the answer (its initial metadata) is sent by itself, once, and that is never cancelled. gRPC would send it
with the first message; where that was cancelled because the stream ended, the status that follows brought a second head,
which gRPC refuses: the stream never ended for the client.
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
"""How long the end of a stream must stand before it counts as wanted: a broken connection looks the same at first."""
LAST_WORDS_S = 2.0
"""How long a stream that ends may take to write what waits for it."""


Take = Callable[["Stream", bytes], Awaitable[None]]
"""Takes in a request; the next one is read when it has."""


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
        self.orderly = False  # the resource manager closed it, it did not break
        self._box: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._finishing = False
        self._writer: asyncio.Task[None] | None = None
        self._head: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    def attach(self, session: Session) -> None:
        """From now on it belongs to this session, and writes what waits there for its kind."""
        self.session = session
        self._box = session.boxes[self.kind]
        self._writer = asyncio.create_task(self._guarded(self._write))

    async def begin(self) -> None:
        """Send the head of the answer, which tells the client that its stream is taken; the first call does it."""
        if self._head is None:
            self._head = asyncio.create_task(self.context.send_initial_metadata(()))
        await asyncio.shield(self._head)

    def wake(self) -> None:
        """There is something to write."""
        self._more.set()

    def end(self, end: End) -> None:
        """End it; the first reason counts."""
        if not self._ended.done():
            self._ended.set_result(end)

    @property
    def over(self) -> bool:
        """Has it a reason to end?"""
        return self._ended.done()

    async def run(self, take: Take) -> End:
        """Read and write until it ends; how it ended. Cancelled if it breaks."""
        reader = asyncio.create_task(self._guarded(lambda: self._read(take)))
        try:
            end = await self._ended
            self._more.set()
            if end.last is not None:
                await self._say(end.last)
        finally:
            reader.cancel()
            if self._writer is not None:
                self._writer.cancel()
            if self._head is not None:
                await asyncio.wait([self._head], timeout=LAST_WORDS_S)
                if self._head.done() and not self._head.cancelled():
                    self._head.exception()  # the stream is over in any case
        return end

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Read or write; a failure ends the stream. What the network does to it, gRPC tells by cancelling."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001  whatever it is, the stream is over
            self.end(End(grpc.StatusCode.UNAVAILABLE, f"the stream broke: {type(error).__name__}"))

    async def _say(self, last: bytes) -> None:
        """Write one more message, unless what was being written before never leaves."""
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
        """The resource manager has nothing more to say: it gets what waits for it, then the stream is over."""
        await asyncio.sleep(SETTLE_S)  # cancelled if it broke
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
                if box and box[0] is data:
                    box.popleft()
                    if session is not None:
                        session.written(len(data))
            if self._finishing or self._ended.done():
                return
            self._more.clear()
            await self._more.wait()
