"""A resource manager that sends prepared bytes, and decodes as little of the answers as possible."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Self

import grpc

from bench.service.work import Work
from licorne.si import v19
from licorne.si.rpc import METHODS, REGISTER, RM_ID, Kind, path
from licorne.si.wire import decode, encode

OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))
"""Options that give each resource manager a connection of its own."""
WAIT_S = 300.0
NEW, RELEASED = 1 << 3 | 2, 2 << 3 | 2
"""The protobuf tags before a decision and before a release in an `AllocationResponse`."""


class RefusedError(Exception):
    """The service refused something, or ended a stream, which makes the measurement void."""


class Peer:
    """A registered resource manager with its three streams."""

    def __init__(self, address: str, work: Work) -> None:
        self.work = work
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self._calls: dict[Kind, Any] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for call in self._calls.values():
            call.cancel()
        await self._channel.close()

    async def register(self) -> None:
        """Register and open the streams."""
        method: Any = self._channel.unary_unary(path(REGISTER))
        await method(encode(self.work.registration), timeout=WAIT_S)
        for name, kind in METHODS.items():
            if kind != "update":
                stream: Any = self._channel.stream_stream(path(name))
                self._calls[kind] = stream(metadata=((RM_ID, self.work.rm_id),))
                await self._calls[kind].initial_metadata()  # the service has accepted the stream

    async def prepare(self) -> None:
        """Add nodes and applications, and wait until all are accepted."""
        await self._calls["node"].write(self.work.nodes)
        await self._answers("node", v19.NodeResponse, len(self.work.node_request.nodes))
        await self._calls["application"].write(self.work.applications)
        await self._answers("application", v19.ApplicationResponse, len(self.work.application_request.new))

    async def _answers(self, kind: Kind, response: Any, count: int) -> None:
        while count > 0:
            found = decode(response, await self.read(kind))
            if found.rejected:
                raise RefusedError(found.rejected[0].reason)
            count -= len(found.accepted)

    async def read(self, kind: Kind) -> bytes:
        """Return the next response."""
        data = await asyncio.wait_for(self._calls[kind].read(), WAIT_S)
        if data is grpc.aio.EOF:
            raise RefusedError("the service ended the stream")
        return bytes(data)

    async def place(self) -> float:
        """Submit all asks and wait until all pods run; return the seconds from the first ask to the last decision."""
        began = time.perf_counter()
        await self._tell(self.work.asks, NEW, self.work.pods)
        return time.perf_counter() - began

    async def clear(self) -> None:
        """End all pods, and wait until that is confirmed."""
        await self._tell(self.work.releases, RELEASED, self.work.pods)

    async def one(self, ask: bytes, release: bytes) -> float:
        """Ask for one more pod, and end it; return the seconds until it was placed."""
        began = time.perf_counter()
        await self._tell([ask], NEW, 1)
        took = time.perf_counter() - began
        await self._tell([release], RELEASED, 1)
        return took

    async def _tell(self, requests: Sequence[bytes], wanted: int, count: int) -> None:
        sending = asyncio.create_task(self._send(requests))
        while count > 0:
            count -= counted(await self.read("allocation"), wanted)
        await sending

    async def _send(self, requests: Sequence[bytes]) -> None:
        write = self._calls["allocation"].write
        for request in requests:
            await write(request)

    async def discard(self) -> None:
        """Read and ignore messages about applications until cancelled."""
        while True:
            await self._calls["application"].read()


def counted(data: bytes, wanted: int) -> int:
    """Return the number of messages of one kind in an `AllocationResponse`. Raises RefusedError if it has a refusal."""
    at, found = 0, 0
    while at < len(data):
        tag = data[at]
        length, shift = 0, 0
        while True:
            at += 1
            length |= (data[at] & 127) << shift
            if data[at] < 128:
                break
            shift += 7
        at += 1 + length
        if tag not in (NEW, RELEASED):
            raise RefusedError(decode(v19.AllocationResponse, data).rejected_allocations[0].reason)
        found += tag == wanted
    return found
