"""Clients of the REST interface: each asks once a second, for one thing after the other, on a connection of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

WAIT_S = 60.0


class Getter:
    """One connection, kept alive."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._both: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, target: str) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        async with asyncio.timeout(WAIT_S):
            if self._both is None:
                self._both = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
            reader, writer = self._both
            writer.write(f"GET {target} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            status = int(head.split(" ", 2)[1])
            return status, await _body(reader, head)

    def close(self) -> None:
        """Close it."""
        if self._both is not None:
            self._both[1].close()


async def _body(reader: asyncio.StreamReader, head: str) -> bytes:
    _, counted, rest = head.partition("\r\ncontent-length:")
    if counted:
        return await reader.readexactly(int(rest.split("\r\n", 1)[0]))
    body = bytearray()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return bytes(body)


async def get(address: str, target: str) -> bytes:
    """One answer; raises OSError if it is no success."""
    getter = Getter(address)
    try:
        status, body = await getter.get(target)
    finally:
        getter.close()
    if status != 200:
        raise OSError(f"{target}: {status}")
    return body


class Askers:
    """So many clients, each with a connection of its own.

    `paths`: (kind, path). Each client begins elsewhere in them, and at another moment of the second. `taken` is how long each
    answer took, in seconds, by kind and in all (`all`); `failures` is what failed.
    """

    def __init__(self, address: str, paths: Sequence[tuple[str, str]], clients: int) -> None:
        self.taken: dict[str, list[float]] = {}
        self.failures: list[str] = []
        self._paths = paths
        self._getters = [Getter(address) for _ in range(clients)]
        self._asked = [number * (len(paths) // clients + 1) for number in range(clients)]  # not all at the same kind

    async def ask(self, seconds: float) -> None:
        """Ask for so long, once a second each."""
        ends = time.perf_counter() + seconds
        await asyncio.gather(*(self._ask(number, ends) for number in range(len(self._getters))))

    async def _ask(self, number: int, ends: float) -> None:
        due = time.perf_counter() + number / len(self._getters)
        while due < ends:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            kind, path = self._paths[self._asked[number] % len(self._paths)]
            began = time.perf_counter()
            try:
                status, _ = await self._getters[number].get(path)
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.failures.append(f"{path}: {type(error).__name__}")
                return
            took = time.perf_counter() - began
            if status != 200:
                self.failures.append(f"{path}: {status}")
            for each in ("all", kind):
                self.taken.setdefault(each, []).append(took)
            due += 1.0
            self._asked[number] += 1

    def close(self) -> None:
        """Close the connections."""
        for getter in self._getters:
            getter.close()


async def slow_get(address: str, target: str, bytes_per_s: float) -> int:
    """Read an answer slowly; how many bytes it had, with the head."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 16)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    size = 0
    while part := await reader.read(1 << 16):
        size += len(part)
        await asyncio.sleep(len(part) / bytes_per_s)
    writer.close()
    return size
