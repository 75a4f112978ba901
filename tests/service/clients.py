"""Clients of all kinds that come and go: what they send, and how they leave. Each takes a connection of its own.

As a program this lets clients come and go in a process of its own, so that only what they leave in a service counts: it reads
lines of an address, a number and the kind of client, and answers each with a line when as many have gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc

from common.waiting import WAIT_S
from licorne.si import v19
from service.peers import Peer

TESTS = Path(__file__).resolve().parents[1]
Client = Callable[[str], None]
"""What a client of an address does."""


def get(path: str, *headers: str) -> bytes:
    """A request without a body."""
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: here", *headers, "", "")).encode()


def post(path: str, body: bytes, *, length: int = 0, method: str = "POST") -> bytes:
    """A request with a body, of which more may be announced than comes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {length or len(body)}\r\n\r\n"
    return head.encode() + body


def http(*sent: bytes, reads: int | None = 100, resets: bool = False) -> Client:
    """A client that sends, each time followed by a read of so many bytes (None: all that comes), and closes or resets."""

    def client(address: str) -> None:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), WAIT_S) as one, contextlib.suppress(ConnectionError):
            for data in sent:
                one.sendall(data)
                if reads is None:
                    one.shutdown(socket.SHUT_WR)
                    while one.recv(65_536):
                        pass
                elif reads:
                    one.recv(reads)
            if resets:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return client


CONF = "/ws/v1/validate-conf"
PARTITIONS = get("/ws/v1/partitions")
CHUNKED = f"POST {CONF} HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==",
    "Sec-WebSocket-Version: 13",
)
REST: dict[str, Client] = {
    "connects": http(),
    "is answered": http(PARTITIONS, reads=None),
    "closes at once": http(PARTITIONS, reads=0),
    "resets": http(PARTITIONS, resets=True),
    "keeps alive": http(PARTITIONS, PARTITIONS, PARTITIONS, reads=65_536),
    "asks to close": http(get("/ws/v1/partitions", "Connection: close"), reads=None),
    "sends five requests at once": http(PARTITIONS * 5),
    "sends 2,000 headers": http(get("/ws/v1/partitions", *(f"X-{n}: yyyyyyyyyyyy" for n in range(2000)))),
    "sends half a head": http(PARTITIONS[:-2], reads=0),
    "sends a head too long": http(get("/", "X: " + "y" * 70_000)),
    "sends no HTTP": http(b"\0\1\2 what\r\n\r\n", reads=None),
    "finds nothing": http(get("/nope"), reads=None),
    "sends a body that is not allowed": http(post("/ws/v1/partitions", b"x" * 50_000)),
    "sends a body that is too long": http(post(CONF, b"#" * 100_000, length=2_000_000)),
    "sends a part of a body": http(post(CONF, b"abc", length=5_000), reads=0),
    "sends a bad chunk": http(CHUNKED + b"zz\r\n"),
    "sends a configuration": http(post(CONF, b"partitions"), reads=0),
    "sends a configuration that is refused": http(post("/ws/v1/config", b"partitions", method="PUT")),
    "wants a web socket": http(get("/ws/v1/partitions", *UPGRADE)),
    "follows events": http(get("/ws/v1/events/stream")),
    "asks why": http(get("/api/v1/why/nobody"), reads=None),
    "opens the page of why": http(get("/why?name=nobody")),
    "reads metrics": http(get("/ws/v1/metrics")),
    "reads the state dump": http(get("/debug/fullstatedump")),
}


async def registers(address: str) -> None:
    """A resource manager that takes over from the one before, sends a node, and drops its stream."""
    async with Peer(address, f"rm-{os.getpid()}") as peer:
        await peer.register()
        assert (await peer.node()).accepted


async def is_refused(address: str) -> None:
    """A stream that belongs to no resource manager."""
    async with Peer(address, "stranger") as peer:
        await peer.send("node", v19.NodeRequest(rm_id="stranger"))
        await peer.ending("node")


async def sends_no_message(address: str) -> None:
    """A stream of bytes that are no message, and a registration of such."""
    async with Peer(address) as peer:
        await peer.send("node", b"\xff\xff")
        await peer.ending("node")
        with contextlib.suppress(grpc.RpcError):
            call: Any = peer.channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager")
            await call(b"\xff")


async def drops(address: str) -> None:
    """A stream that is dropped before anything was sent."""
    async with Peer(address) as peer:
        await peer.call("node").wait_for_connection()


GRPC: dict[str, Callable[[str], Coroutine[Any, Any, None]]] = {
    "registers": registers,
    "is refused": is_refused,
    "sends no message": sends_no_message,
    "drops": drops,
}


def come_and_go(runner: asyncio.Runner, address: str, number: int, kind: str) -> None:
    """Let so many clients of a kind come and go, one after the other."""
    for _ in range(number):
        if kind in REST:
            REST[kind](address)
        else:
            runner.run(GRPC[kind](address))


@contextlib.asynccontextmanager
async def in_a_process() -> AsyncIterator[Callable[[str, int, str], Awaitable[None]]]:
    """Start this program; what is yielded is `come_and_go` there. It must end with status 0, and is killed if it does not end."""
    program = (sys.executable, "-m", "service.clients")
    process = await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE, cwd=TESTS)
    to, back = process.stdin, process.stdout
    assert to is not None
    assert back is not None

    async def let_come_and_go(address: str, number: int, kind: str) -> None:
        to.write(f"{address} {number} {kind}\n".encode())
        assert await back.readline() == b"\n"

    try:
        yield let_come_and_go
        to.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    with asyncio.Runner() as running:
        for line in sys.stdin:
            address, number, kind = line.rstrip().split(maxsplit=2)
            come_and_go(running, address, int(number), kind)
            sys.stdout.write("\n")
            sys.stdout.flush()
