"""When Python's garbage collector runs in a service, and how the state of a dropped resource manager is freed.

A full collection visits every object; with 150,000 allocations it stops decisions for a quarter of a second, and by
default Python starts one again and again. Asks, decisions and releases leave no reference cycles behind
(`tests/service/test_memory.py`), so full collections are not needed for them. Here the young generations are collected
as usual, in larger steps, and a full collection runs only when there is enough garbage, while nothing is to be decided.

Such garbage comes from resource managers that were dropped, whose state consists of cycles. Most of these are broken at
once, in steps, so that their objects are freed without the collector. And it comes from connections of REST: what a client
has sent is freed when its connection ends (`licorne.host.web.http`), since counting cannot bound it: a few hundred connections may
leave as much as the whole state. Only asyncio's transport, of the same size each time, is left to the collector and counted.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from licorne.host.pace import paced

if TYPE_CHECKING:
    from licorne.core.cluster import Cluster
    from licorne.core.manager import RegisteredManager

THRESHOLDS = (2_000, 5, 1 << 30)
"""For `gc.set_threshold`: new objects before generation 0 is collected; collections of it before one of generation 1;
of that before a full one, which is never."""
TICK_S = 1.0
IDLE_S = 1.0
"""A full collection is due only after the engine has been idle for this time."""
OVERDUE_S = 60.0
"""After this time with enough garbage, a full collection runs even if the engine is not idle."""
GARBAGE_MIN = 20_000
SHARE = 0.25
"""Enough garbage for a full collection: at least `GARBAGE_MIN` objects, and this share of the living ones."""
CONNECTION = 10
"""Objects in reference cycles that a closed connection to REST leaves: the transport of asyncio, which refers to one of its own
bound methods, and its socket."""
PARTITION, QUEUE = 150, 20
"""Upper bounds for objects in reference cycles: those of a partition without nodes and applications, and those of each queue."""
LONGEST_S = 3600.0
"""The longest time without a full collection, if the engine is idle at all: for cycles that no count knows of."""


class Memory:
    """Decides when the garbage collector runs, within `running`.

    Parameters:
        cluster: the scheduler's state.
        idle_s: for how long the engine has had nothing to decide, in seconds; 0 while it works.
        clock: seconds, from any start.
    """

    def __init__(
        self, cluster: Cluster, idle_s: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._idle_s = idle_s
        self._clock = clock
        self._garbage = 0  # objects in cycles that were left to the collector, estimated
        self._since = 0.0  # since when there has been enough garbage; 0: there is not
        self._last = clock()  # of the last full collection
        self._under_way: set[asyncio.Task[None]] = set()
        self.walks = 0
        """Full collections so far."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Set the thresholds of the collector for a service within the `with` block, and restore them afterwards."""
        before = gc.get_threshold()
        # Modules and other objects of the start live as long as the process: collections need not visit them.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            looking.cancel()
            for task in self._under_way:
                task.cancel()
            gc.set_threshold(*before)
            gc.unfreeze()

    def gone(self, manager: RegisteredManager) -> None:
        """Free the state of a resource manager that has left the cluster, or was replaced by another of its id."""
        task = asyncio.create_task(self._take_apart(manager))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def connection_ended(self) -> None:
        """Count the objects that a closed connection to REST leaves to the garbage collector."""
        self._garbage += CONNECTION

    async def _take_apart(self, manager: RegisteredManager) -> None:
        async for number in paced(taken_apart(manager)):
            self._garbage += number

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.look()

    def look(self) -> None:
        """Run a full collection if there is enough garbage and the engine is idle, or if one is overdue."""
        now = self._clock()
        enough = self._garbage >= GARBAGE_MIN and self._garbage >= SHARE * self._live()
        if not enough:
            self._since = 0.0
        elif not self._since:
            self._since = now
        idle = self._idle_s() >= IDLE_S
        if (enough and (idle or now - self._since >= OVERDUE_S)) or (idle and now - self._last >= LONGEST_S):
            gc.collect()
            self.walks += 1
            self._garbage, self._since, self._last = 0, 0.0, self._clock()

    def _live(self) -> int:
        """Estimate how many objects of the scheduler's state are alive."""
        return sum(
            4 * len(partition.nodes)
            + 2 * sum(len(app.asks) + len(app.allocations) for app in partition.applications.values())
            for partition in self._cluster.partitions()
        )


def taken_apart(manager: RegisteredManager) -> Iterator[int]:
    """Free the allocations of a resource manager that has left; each step yields how many objects stay in cycles.

    An allocation is removed from its node and its application in one step, so that code which still reads the state (a
    REST answer, for example) finds it in both or in neither.
    """
    for partition in manager.ordered:
        for app in partition.applications.values():
            yield 10 + 2 * len(app.asks)
            allocations = app.allocations
            while allocations:
                _, found = allocations.popitem()
                if found.node is not None:
                    found.node.allocations.pop(found, None)
                if len(allocations) % 100 == 0:
                    yield 0
        yield PARTITION + QUEUE * len(partition.tree.queues()) + 4 * len(partition.nodes)
