"""Clients that have gone leave nothing, however they left: no object that the garbage collector would have to find.

The service hardly ever collects objects that have lived for a while, so a cycle of references stays, with all that it holds.
Here the collector is off, and objects are counted by their class before and after as many clients of each kind.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from common.waiting import eventually
from licorne.daemon.memory import CONNECTION, PARTITION, QUEUE
from licorne.service import Service, Web
from service.clients import GRPC, REST
from service.peers import service

TESTS = Path(__file__).resolve().parents[1]
CLIENTS = 12
CALL = 5
"""Objects in a cycle that gRPC itself leaves of each call. Calls are ended when they begin, so young objects; not counted."""
SLACK = 60
"""Objects that come and go meanwhile; less than what one more for each client, and what it holds, would be."""
SHORT = ("TimerHandle", "Context")
"""Of timers that were cancelled, which a loop drops when there are a hundred."""


async def alive(made: Service, tasks: int) -> Counter[str]:
    """Count what is alive when nothing of a client is under way any more, by class."""
    web = made.web
    assert web is not None
    await eventually(lambda: not web.connections.open and not made._streams and len(asyncio.all_tasks()) <= tasks)
    await asyncio.sleep(0.05)  # the loop drops what it has just run
    return Counter(name for one in gc.get_objects() if (name := type(one).__name__) not in SHORT)


async def leavings(bound: int) -> dict[str, Any]:
    """By kind of client, what it has left beyond the bound: objects in all, and the classes of which each left one."""
    found: dict[str, Any] = {}
    program = (sys.executable, "-m", "service.clients")
    process = await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE, cwd=TESTS)
    assert process.stdin is not None
    assert process.stdout is not None
    async with service(web=Web(addresses=("127.0.0.1:0",))) as made:
        assert made.web is not None
        tasks = len(asyncio.all_tasks())
        of_manager = PARTITION + QUEUE * 3
        kinds = dict.fromkeys(REST, (made.web.addresses[0], bound))
        kinds |= {name: (made.addresses[0], 3 * CALL + (of_manager if name == "registers" else 0)) for name in GRPC}
        for name, (address, most) in kinds.items():
            counts: list[Counter[str]] = []
            for number in (CLIENTS // 2, CLIENTS):  # the first ones fill caches
                process.stdin.write(f"{address} {number} {name}\n".encode())
                assert await process.stdout.readline() == b"\n"
                if not counts:
                    gc.collect()
                counts.append(await alive(made, tasks))
            more = counts[1] - counts[0]
            if counts[1].total() - counts[0].total() > most * CLIENTS + SLACK:
                found[name] = more.total(), {kind: count for kind, count in more.items() if count >= CLIENTS}
    process.stdin.close()
    assert await process.wait() == 0
    return found


@pytest.mark.parametrize(("run", "bound"), [(asyncio.run, CONNECTION), (uvloop.run, 0)], ids=["asyncio", "uvloop"])
def test_clients_leave_no_objects(
    run: Callable[[Coroutine[Any, Any, dict[str, Any]]], dict[str, Any]], bound: int
) -> None:
    """On the loops of `licorne serve` and `licorne kube`; only what `Memory` counts is left, and on uvloop nothing."""
    gc.disable()
    try:
        assert run(leavings(bound)) == {}
    finally:
        gc.enable()
