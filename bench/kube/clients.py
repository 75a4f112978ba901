"""Measures HTTP clients as `licorne kube` would use them: many bindings in flight, on asyncio's loop and on uvloop.

`python -m bench clients` runs each client in a process of its own, in turn, against a server that answers every request
with the same few bytes, so that the client is what limits. The figure that counts is the processor time of a request,
which other programs disturb less than the rate.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from bench.run import ROOT, BenchError, environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CLIENTS = ("aiohttp", "httpx", "httpx2")
LOOPS = ("asyncio", "uvloop")
PATH = "/api/v1/namespaces/default/pods/pod-1/binding"
BODY = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "pod-1", "namespace": "default", "uid": "00000000-0000-0000-0000-000000000001"},
    "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
}
ANSWER = (
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n"
    b'{"kind":"Status","apiVersion":"v1","status":"Success","code":20}'
)
Post = Callable[[bytes], Awaitable[int]]


class ClientFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a client reached on a loop, as medians of the turns."""

    client: str
    loop: str
    requests_per_s: float
    cpu_ms_a_request: float


class _Server(asyncio.Protocol):
    """Answers each request as soon as its body is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end].lower()
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self._read) < end + 4 + size:
                return
            self._read = self._read[end + 4 + size :]
            self._transport.write(ANSWER)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201  whoever started this reads it
    await asyncio.Event().wait()


@asynccontextmanager
async def _aiohttp(server: str, in_flight: int) -> AsyncIterator[Post]:
    import aiohttp  # noqa: PLC0415  each process loads one client

    async with aiohttp.ClientSession(server, connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def post(body: bytes) -> int:
            async with session.post(PATH, data=body, headers={"Content-Type": "application/json"}) as response:
                await response.read()
                return response.status

        yield post


@asynccontextmanager
async def _httpx(module: Any, server: str, in_flight: int) -> AsyncIterator[Post]:
    limits = module.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with module.AsyncClient(base_url=server, limits=limits, timeout=None) as client:

        async def post(body: bytes) -> int:
            response = await client.post(PATH, content=body, headers={"Content-Type": "application/json"})
            status: int = response.status_code
            return status

        yield post


def _opened(name: str, server: str, in_flight: int) -> AbstractAsyncContextManager[Post]:
    return _aiohttp(server, in_flight) if name == "aiohttp" else _httpx(import_module(name), server, in_flight)


async def _load(name: str, port: int, count: int, in_flight: int) -> dict[str, float]:
    """Send so many requests, so many at a time. Returns the rate and the processor time of a request."""
    numbers = iter(range(count))
    async with _opened(name, f"http://127.0.0.1:{port}", in_flight) as post:

        async def work() -> None:
            for _ in numbers:
                status = await post(msgspec.json.encode(BODY))
                assert status == 201, status

        await post(msgspec.json.encode(BODY))  # the first one loads modules
        cpu_s, began = time.process_time(), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(in_flight)))
        took_s, used_s = time.perf_counter() - began, time.process_time() - cpu_s
    return {"requests_per_s": count / took_s, "cpu_ms_a_request": 1000 * used_s / count}


def _started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.kube.clients", *map(str, arguments)]
    return subprocess.Popen(  # noqa: S603  all arguments are from this package
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(interpreted=False)
    )


def measure_clients(count: int, in_flight: int, turns: int, say: Callable[[str], None]) -> list[ClientFigures]:
    """Measure all clients that are installed, on all loops that are, in turn.

    Parameters:
        count: requests of each client in each turn.
        in_flight: how many of them at a time.
        turns: how often; the median counts.
        say: told of progress.
    """
    pairs = [(client, loop) for client in CLIENTS if find_spec(client) for loop in LOOPS if find_spec(loop)]
    found: dict[tuple[str, str], list[dict[str, float]]] = {pair: [] for pair in pairs}
    server = _started("serve")
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        for number in range(turns):
            say(f"turn {number + 1} of {turns}")
            for client, loop in pairs:
                process = _started("load", client, loop, port, count, in_flight)
                said, _ = process.communicate()
                if process.returncode:
                    raise BenchError(f"{client} on {loop} failed")
                found[client, loop].append(json.loads(said))
    finally:
        server.kill()
        server.communicate()  # closes its output
    return [
        ClientFigures(
            client=client,
            loop=loop,
            requests_per_s=round(median(one["requests_per_s"] for one in turns_of)),
            cpu_ms_a_request=round(median(one["cpu_ms_a_request"] for one in turns_of), 3),
        )
        for (client, loop), turns_of in found.items()
    ]


def _main(task: str, *arguments: str) -> None:
    if task == "serve":
        asyncio.run(_serve())
        return
    client, loop, port, count, in_flight = arguments
    with asyncio.Runner(loop_factory=import_module(loop).new_event_loop) as runner:
        figures = runner.run(_load(client, int(port), int(count), int(in_flight)))
    print(json.dumps(figures))  # noqa: T201  whoever started this reads it


if __name__ == "__main__":
    _main(*sys.argv[1:])
