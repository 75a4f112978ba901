"""Bytes as no honest peer sends them: each gets an answer, nothing of a bad message is taken, the service lives on.

LICORNE_FUZZ sets the number of messages, LICORNE_FUZZ_SEED where they begin.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import grpc
import pytest

from licorne.service.intake import whole
from licorne.si import WireError, seed, v19, wire
from licorne.si._schema import Message
from service.peers import Peer, service
from si.soup import Soup

COUNT = int(os.environ.get("LICORNE_FUZZ", "300"))
SEED = int(os.environ.get("LICORNE_FUZZ_SEED", "1"))
REQUESTS: dict[str, type[Message]] = {
    "node": v19.NodeRequest,
    "application": v19.ApplicationRequest,
    "allocation": v19.AllocationRequest,
    "update": seed.UpdateRequest,
}
RM_FIELD = {"node": 2, "application": 3, "allocation": 3, "update": 5}
ANSWERS = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
}


def named(kind: str, data: bytes, rm_id: str) -> bytes:
    """The message, of this resource manager: of a scalar that comes twice the last counts."""
    return data + bytes([RM_FIELD[kind] << 3 | 2, len(rm_id)]) + rm_id.encode()


def is_readable(kind: str, data: bytes) -> bool:
    try:
        whole(kind, data)  # type: ignore[arg-type]
    except WireError:
        return False
    return True


@pytest.mark.timeout(3600)
def test_hostile_messages() -> None:
    async def run() -> None:
        soup, rng = Soup(SEED), random.Random(SEED)
        async with service() as serving:
            address = serving.addresses[0]
            for number in range(COUNT):
                kind = rng.choice(sorted(REQUESTS))
                data = soup.hostile(REQUESTS[kind])
                if rng.random() < 0.7:
                    data = named(kind, data, "rm")
                if number % 50 == 0:
                    peer = Peer(address)
                    await peer.register()
                before = serving.api.state_dump() if number % 10 == 0 and not is_readable(kind, data) else None
                peer.calls.pop(kind, None)
                await peer.send(kind, data)
                await peer.call(kind).done_writing()
                code, text = await peer.ending(kind)
                assert code in ANSWERS, (SEED, number, kind, data, code, text)
                assert "Traceback" not in text
                if not is_readable(kind, data):
                    assert code is grpc.StatusCode.INVALID_ARGUMENT, (SEED, number, kind, data)
                if before is not None:
                    assert serving.api.state_dump() == before, (SEED, number, kind, data)
                if "rm" not in serving.sessions.by_id:  # its last stream was closed: that was a goodbye
                    await peer.register()
                if number % 50 == 49:
                    await peer.close()
                    serving.api.validate()
            await peer.close()
            async with Peer(address, "sane") as sane:
                await sane.running()
                await sane.asks("k")
                assert await sane.allocations(1) == {"k": "n1"}

    asyncio.run(run())


@pytest.mark.timeout(3600)
def test_hostile_registrations() -> None:
    async def run() -> None:
        soup = Soup(SEED + 1)
        async with service(settings={"managers": 5}) as serving, Peer(serving.addresses[0]) as peer:
            method: Any = peer.channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager")
            for number in range(COUNT):
                data = soup.hostile(v19.RegisterResourceManagerRequest)
                try:
                    await method(data, timeout=20)
                except grpc.aio.AioRpcError as error:
                    assert error.code() in {  # noqa: PT017
                        grpc.StatusCode.INVALID_ARGUMENT,
                        grpc.StatusCode.RESOURCE_EXHAUSTED,
                    }, (SEED, number, data)
                    continue
                wire.decode(v19.RegisterResourceManagerRequest, data)
            assert len(serving.sessions.by_id) <= 5

    asyncio.run(run())
