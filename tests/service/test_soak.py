"""A service under a mixed load of clients that come and go, and of pods, takes no more memory after a while."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import sys
import time

import pytest

from common.waiting import wait_for
from licorne.si import v19
from service.clients import GRPC, REST, in_a_process
from service.peers import Peer
from service.processes import resident_kb, serving

MINUTES = float(os.environ.get("LICORNE_SOAK_MINUTES", "12"))
EVERY_S = 5.0
SLACK_KB = 4_000
"""Growth from the third to the last quarter, in which there are thousands of clients: the leak that this is for was 3 to 280 kB each."""


async def clients(address: dict[str, str], until: float, drawn: random.Random) -> int:
    """Let clients of all kinds come and go, in a process of their own; return how many."""
    count = 0
    async with in_a_process() as come_and_go:
        while time.monotonic() < until:
            kind = drawn.choice([*REST, *GRPC])
            await come_and_go(address["rest" if kind in REST else "grpc"], 10, kind)
            count += 10
    return count


async def pods(address: str, until: float) -> int:
    """Let pods come and go; return how many."""
    async with Peer(address, "busy") as peer:
        await peer.running()
        for number in itertools.count():
            keys = [f"{number}-{n}" for n in range(100)]
            await peer.asks(*keys, vcore=1)
            await peer.allocations(len(keys))
            gone = [
                v19.AllocationRelease(partition_name="default", application_id="app", allocation_key=one)
                for one in keys
            ]
            releases = v19.AllocationReleasesRequest(allocations_to_release=gone)
            await peer.send("allocation", v19.AllocationRequest(rm_id="busy", releases=releases))
            await asyncio.sleep(0.1)
            if time.monotonic() >= until:
                return 100 * (number + 1)
    raise AssertionError


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not resident_kb(os.getpid()), reason="the system does not show the memory of a process")
def test_memory_is_flat_under_load(new_seed: int) -> None:
    sizes: list[int] = []

    async def story(pid: int, address: dict[str, str]) -> None:
        until = time.monotonic() + 60 * MINUTES
        drawn = random.Random(new_seed)
        work = asyncio.gather(pods(address["grpc"], until), *(clients(address, until, drawn) for _ in range(2)))
        while time.monotonic() < until and not work.done():
            sizes.append(resident_kb(pid))
            await asyncio.sleep(EVERY_S)
        counts = await work
        quarters = [max(sizes[len(sizes) * n // 4 : len(sizes) * (n + 1) // 4]) for n in range(4)]
        sys.stdout.write(f"{counts[0]} pods, {sum(counts[1:])} clients; most kB in each quarter: {quarters}\n")
        assert quarters[3] - quarters[2] < SLACK_KB, (quarters, sizes)

    with serving("--rest", "127.0.0.1:0") as running:
        rest = str(wait_for(lambda: running.events("listening for REST"))[0]["addresses"][0])
        asyncio.run(story(running.process.pid, {"grpc": running.address, "rest": rest}))
        assert running.end() == 0
