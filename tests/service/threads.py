"""A service in a thread of this process, so that its state can be inspected, and a connection to it that can be cut."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from common.waiting import WAIT_S
from licorne.grpc.service import Service, ServiceSettings

T = TypeVar("T")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT_S)
        self.loop.close()


class Wire:
    """Carries bytes between a port of its own and the service, until it is cut."""

    def __init__(self) -> None:
        self.target = ("127.0.0.1", 0)
        self.address = ""
        self.bytes_left: int | None = None
        """After how many more bytes, both ways together, everything is cut."""
        self.carried = 0
        """Bytes so far, both ways together."""
        self.reads = asyncio.Event()
        """Set while the client reads what it is told."""
        self.reads.set()
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, None] = {}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.reads.set()
        self.cut()
        await asyncio.sleep(0.05)

    def cut(self, after_bytes: int = 0) -> None:
        if after_bytes:
            self.bytes_left = after_bytes
            return
        for writer in list(self._open):
            writer.transport.abort()
        self.bytes_left = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self._open[writer] = self._open[there_writer] = None
        await asyncio.gather(self._carry(reader, there_writer), self._carry(there_reader, writer, self.reads))
        for end in (writer, there_writer):
            self._open.pop(end, None)
            end.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, open: asyncio.Event | None = None
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if open is not None:
                    await open.wait()
                self.carried += len(data)
                if self.bytes_left is not None:
                    data = data[: self.bytes_left]
                    self.bytes_left -= len(data)
                writer.write(data)
                if self.bytes_left == 0:
                    self.cut()
                    return
                await writer.drain()
        writer.transport.abort()


class Site:
    """A service, a wire to it, and faults."""

    def __init__(self, **settings: Any) -> None:
        self.settings = ServiceSettings(**{"grace_s": 0.1, **settings})
        self._loop = Loop()
        self.wire = Wire()
        self.service: Service
        self.start()
        self._loop.run(self.wire.start())

    def start(self) -> None:
        async def run() -> None:
            self.service = Service(["127.0.0.1:0"], settings=self.settings)
            await self.service.start()
            host, _, port = self.service.addresses[0].partition(":")
            self.wire.target = (host, int(port))

        self._loop.run(run())

    def restart(self) -> None:
        """The scheduler forgets everything."""
        self._loop.run(self.service.stop())
        self.start()

    def _call(self, work: Callable[[], T]) -> T:
        """Call something in the service's own thread."""

        async def run() -> T:
            return work()

        return self._loop.run(run())

    def cut(self, after_bytes: int = 0) -> None:
        """Break all connections, now or after a number of bytes."""
        self._call(lambda: self.wire.cut(after_bytes))

    def stop_reading(self, *, stopped: bool = True) -> None:
        """The client takes no bytes any more; or again, all that has waited."""
        self._call(self.wire.reads.clear if stopped else self.wire.reads.set)

    def look(self, at: Callable[[Service], T]) -> T:
        """Look at the service in its own thread."""
        return self._call(lambda: at(self.service))

    def close(self) -> None:
        self._loop.run(self.wire.stop())
        self._loop.run(self.service.stop())
        self._loop.close()


@contextmanager
def site(**settings: Any) -> Iterator[Site]:
    made = Site(**settings)
    try:
        yield made
    finally:
        made.close()
