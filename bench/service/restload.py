"""Clients of the REST interface: each sends a request once a second, for one path after the other, on its own connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

WAIT_S = 60.0


async def get(address: str, target: str) -> bytes:
    """Return the body of one answer. Raises OSError if its status is not 200."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(WAIT_S):
        reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        body = await _body(reader, head)
        writer.close()
    if head.split(" ", 2)[1] != "200":
        raise OSError(f"{target}: {head[:100]}")
    return body


async def _body(reader: asyncio.StreamReader, head: str) -> bytes:
    _, counted, rest = head.partition("\r\ncontent-length:")
    if counted:
        return await reader.readexactly(int(rest.split("\r\n", 1)[0]))
    body = bytearray()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return bytes(body)


class Getter(asyncio.BufferedProtocol):
    """A connection that is kept alive. It parses the head of an answer and only counts the bytes of the body.

    Data is read into one preallocated buffer, and no objects are made of it: on a machine with two processors, any time that
    this took would be taken from the service that is measured.
    """

    _space = memoryview(bytearray(1 << 18))  # shared by all: its content is used up before the next read

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, int]] | None = None
        self._head = b""
        self._status = self._size = self._missing = 0

    async def get(self, address: str, target: str) -> tuple[int, int]:
        """Return the status of an answer, and the number of bytes of its body. Raises OSError if the connection is lost."""
        was_open = self._transport is not None
        try:
            return await self._get(address, target)
        except ConnectionError:
            if not was_open:
                raise
            return await self._get(address, target)  # the server closed the idle connection just as it was used

    async def _get(self, address: str, target: str) -> tuple[int, int]:
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        if self._transport is None:
            await loop.create_connection(lambda: self, host, int(port))
        assert self._transport is not None
        self._head, self._missing, self._answer = b"", 0, loop.create_future()
        self._transport.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        async with asyncio.timeout(WAIT_S):
            return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, _hint: int) -> memoryview:
        """Return the buffer for received data."""
        return self._space

    def buffer_updated(self, nbytes: int) -> None:
        """Count received bytes; complete the answer when all are received."""
        if not self._missing:
            nbytes = self._begin(bytes(self._space[:nbytes]))
        self._missing -= nbytes
        if self._answer is not None and self._head.endswith(b"\r\n\r\n") and not self._missing:
            self._answer.set_result((self._status, self._size))
            self._answer = None

    def _begin(self, data: bytes) -> int:
        """Parse the head, as far as it is received; return how many bytes of the data belong to the body."""
        head, end, body = (self._head + data).partition(b"\r\n\r\n")
        self._head = head + end
        if end:
            name, _, size = head.lower().partition(b"\r\ncontent-length:")
            self._status = int(name.split(b" ", 2)[1])
            self._size = self._missing = int(size.split(b"\r\n", 1)[0])
        return len(body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the pending answer, if there is one."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the connection was closed"))

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class Askers:
    """A number of clients, each with a connection of its own.

    `paths`: pairs of kind and path. Each client begins at another of them, and at another moment of the second. `taken` is
    how long each answer took, in seconds, by kind and for all (`all`); `failures` are the failed requests.
    """

    def __init__(self, address: str, paths: Sequence[tuple[str, str]], clients: int) -> None:
        self.taken: dict[str, list[float]] = {}
        self.failures: list[str] = []
        self._address = address
        self._paths = paths
        self._getters = [Getter() for _ in range(clients)]
        self._asked = [number * (len(paths) // clients + 1) for number in range(clients)]  # spread over the kinds

    async def ask(self, over: asyncio.Event) -> None:
        """Send one request a second from each client, until the event is set."""
        began = time.perf_counter()
        await asyncio.gather(*(self._ask(number, began, over) for number in range(len(self._getters))))

    async def _ask(self, number: int, began: float, over: asyncio.Event) -> None:
        due = began + number / len(self._getters)
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), max(0.0, due - time.perf_counter()))
            if over.is_set():
                return
            kind, path = self._paths[self._asked[number] % len(self._paths)]
            begins = time.perf_counter()
            try:
                status, size = await self._getters[number].get(self._address, path)
            except (OSError, TimeoutError) as error:
                self.failures.append(f"{path}: {type(error).__name__}")
                return
            took = time.perf_counter() - begins
            if status != 200 or not size:
                self.failures.append(f"{path}: {status}, {size} bytes")
            for each in ("all", kind):
                self.taken.setdefault(each, []).append(took)
            due += 1.0
            self._asked[number] += 1

    def close(self) -> None:
        """Close the connections."""
        for getter in self._getters:
            getter.close()


async def slow_get(address: str, target: str, bytes_per_s: float) -> int:
    """Read an answer slowly; return its number of bytes, including the head."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 16)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    size = 0
    while part := await reader.read(1 << 16):
        size += len(part)
        await asyncio.sleep(len(part) / bytes_per_s)
    writer.close()
    return size
