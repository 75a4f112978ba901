"""Clients that have gone leave nothing, however they left: no object that the garbage collector would have to find.

The service hardly ever collects objects that have lived for a while, so a cycle of references stays, with all that it holds.
Here the collector is off, and objects are counted by their class before and after some clients of each kind.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from common.waiting import eventually
from licorne.grpc.service import Web
from licorne.host.memory import CONNECTION, PARTITION, QUEUE
from service.clients import GRPC, REST, in_a_process
from service.peers import service

CLIENTS = 8
CALL = 5
"""Objects in a cycle that gRPC itself leaves of each call. Calls are ended when they begin, so young objects; not counted."""
SLACK = 60
"""Objects that come and go meanwhile; less than what one more for each client, and what it holds, would be."""
ROUNDS = 5
"""So often the same is tried: caches are filled once, and a thread keeps its last job. A cycle is left by each client."""
SHORT = ("TimerHandle", "Context")
"""Of timers that were cancelled, which a loop drops when there are a hundred."""


def alive() -> Counter[str]:
    """Count what is alive, by class."""
    return Counter(name for one in gc.get_objects() if (name := type(one).__name__) not in SHORT)


async def leave_at_most(bound: int) -> None:
    """Let clients of each kind come and go, until a round of them leaves at most so many objects each."""
    async with service(web=Web(addresses=("127.0.0.1:0",))) as made, in_a_process() as come_and_go:
        web = made.web
        assert web is not None
        tasks = len(asyncio.all_tasks())
        of_manager = PARTITION + QUEUE * 3
        kinds = dict.fromkeys(REST, (web.addresses[0], bound))
        kinds |= {name: (made.addresses[0], 3 * CALL + (of_manager if name == "registers" else 0)) for name in GRPC}
        for name, (address, most) in kinds.items():
            before = alive()
            for _ in range(ROUNDS):
                await come_and_go(address, CLIENTS, name)
                await eventually(lambda: not web.connections.open and len(asyncio.all_tasks()) <= tasks)
                now = alive()
                more, grown, before = now.total() - before.total(), now - before, now
                if more <= most * CLIENTS + SLACK:
                    break
            else:
                raise AssertionError(name, more, {kind: count for kind, count in grown.items() if count >= CLIENTS})
            gc.collect()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("run", "bound"),
    [
        pytest.param(asyncio.run, CONNECTION, id="asyncio"),
        pytest.param(uvloop.run, 0, id="uvloop"),
    ],
)
def test_clients_leave_no_objects(run: Callable[[Coroutine[Any, Any, None]], None], bound: int) -> None:
    """On the loops of `licorne serve` and `licorne kube`; only what `Memory` counts is left, and on uvloop nothing."""
    gc.disable()
    try:
        run(leave_at_most(bound))
    finally:
        gc.enable()
