"""A stream that ends while its first answer is being written ends for the client too, with its status.

The long form (`-m nightly`) does it 20,000 times, in an order that a new seed gives, which is printed.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import grpc
import pytest

from licorne.grpc.service import Service
from licorne.grpc.service.streams import Stream
from licorne.si import v19
from licorne.si.rpc import RM_ID
from service.peers import Peer, service

ENDS = {
    "another rmID": grpc.StatusCode.INVALID_ARGUMENT,
    "no message": grpc.StatusCode.INVALID_ARGUMENT,
    "registered again": grpc.StatusCode.ABORTED,
    "stopped": grpc.StatusCode.FAILED_PRECONDITION,
}


def report(rm_id: str) -> v19.NodeRequest:
    node = v19.NodeInfo(node_id="n1", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 1})
    return v19.NodeRequest(rm_id=rm_id, nodes=[node])


async def ended(serving: Service, peer: Peer, how: str, wait_s: float) -> grpc.StatusCode:
    """Open a stream, and at once, or a little later, let it end in this way; the status that the client gets."""
    await peer.register()
    await peer.send("node", report(peer.rm_id))
    if wait_s:
        await asyncio.sleep(wait_s)
    if how == "another rmID":
        await peer.send("node", report("another"))
    elif how == "no message":
        await peer.send("node", b"\xff\xff")
    elif how == "registered again":
        while not serving._streams:  # noqa: ASYNC110  one that arrives after the registration belongs to it
            await asyncio.sleep(0)
        async with Peer(serving.addresses[0], peer.rm_id) as again:
            await again.register()
    else:
        serving.sessions.stop(serving.sessions.by_id[peer.rm_id], "for a test", resync=True)
    try:
        return (await peer.ending("node"))[0]
    except TimeoutError:
        raise AssertionError(f"never ended: {how}, after {wait_s} s") from None


async def story(count: int, rng: random.Random) -> Counter[str]:
    found: Counter[str] = Counter()
    async with service() as serving:
        for number in range(count):
            how = sorted(ENDS)[number % len(ENDS)]
            async with Peer(serving.addresses[0], f"rm{number % 100}") as peer:
                code = await ended(serving, peer, how, rng.choice((0.0, 0.0, 0.0005, 0.001, 0.002, 0.006)))
            # A stream that is not bound yet when its resource manager is over is told to register again.
            assert code in (ENDS[how], grpc.StatusCode.FAILED_PRECONDITION), (number, how, code)
            found[how] += 1
        await asyncio.sleep(0)
        assert not serving._streams
    return found


def test_it_ends_with_a_status() -> None:
    assert asyncio.run(story(120, random.Random(1))).total() == 120


class Stuck:
    """The context of a call whose head of the answer leaves only when a test says so."""

    def __init__(self) -> None:
        self.leaves = asyncio.Event()

    def peer(self) -> str:
        return "test"

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ((RM_ID, "rm"),)

    async def send_initial_metadata(self, _metadata: object) -> None:
        await self.leaves.wait()

    async def write(self, _message: bytes) -> None:
        raise AssertionError


async def test_one_that_breaks_before_the_client_was_told_of_it_leaves_no_task() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.register()
        before = asyncio.all_tasks()
        context = Stuck()
        call = asyncio.create_task(serving._run(Stream("node", context, serving.sessions.next_number())))
        await asyncio.sleep(0)  # it is bound, and its head is being sent
        assert "node" in serving.sessions.by_id["rm"].streams
        call.cancel()  # as gRPC does when a connection breaks
        context.leaves.set()
        await asyncio.wait([call])
        await asyncio.sleep(0)
        assert call.cancelled()
        assert not asyncio.all_tasks() - before


@pytest.mark.nightly
def test_it_ends_with_a_status_very_often(new_seed: int) -> None:
    assert asyncio.run(story(20_000, random.Random(new_seed))).total() == 20_000
