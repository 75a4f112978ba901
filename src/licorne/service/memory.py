"""The garbage collector's part in a service, and what becomes of a resource manager's state when it is gone.

Python's collector walks over all that lives, again and again; with 150,000 allocations that stops decisions for a quarter of
a second. The scheduler's own work leaves no cycles behind (`tests/service/test_memory.py`), so it is not needed while
resource managers come with asks and releases: young objects are looked through as usual, in larger steps, and all objects
only when there is reason to, when nothing is to be decided at the moment.

The reason is a resource manager that is gone: what it had hangs together in cycles. Most of it is taken apart at once, a
little at a time, so that it is freed without the collector.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from licorne.daemon.pace import paced

if TYPE_CHECKING:
    from licorne.core.cluster import Cluster
    from licorne.core.manager import RegisteredManager

THRESHOLDS = (2_000, 5, 1 << 30)
"""New objects before the young are looked through, how often that happens before those that survived are; and never all."""
TICK_S = 1.0
IDLE_S = 1.0
"""Nothing was to be decided for so long: a moment for the collector."""
OVERDUE_S = 60.0
"""After so long it is no longer waited for such a moment."""
GARBAGE_MIN = 20_000
SHARE = 0.25
"""Objects that may be garbage before all are looked through: at least so many, and this share of those that live."""
LONGEST_S = 3600.0
"""All are looked through once in so long, for cycles that nobody knows of, if there is a moment."""


class Memory:
    """Looks after the collector while it is `running`.

    Parameters:
        cluster: the scheduler's state.
        idle_s: for how long nothing was to be decided, in seconds; 0 while there is something.
        clock: seconds.
    """

    def __init__(
        self, cluster: Cluster, idle_s: Callable[[], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._idle_s = idle_s
        self._clock = clock
        self._garbage = 0
        self._since = 0.0  # when there was enough of it
        self._last = clock()
        self._under_way: set[asyncio.Task[None]] = set()
        self.walks = 0
        """How often all objects were looked through."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Set the collector for a service; as it was before, afterwards."""
        before = gc.get_threshold()
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
        """This resource manager is gone from the cluster, or another of its id is in its place."""
        task = asyncio.create_task(self._take_apart(manager))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _take_apart(self, manager: RegisteredManager) -> None:
        async for number in paced(taken_apart(manager)):
            self._garbage += number

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.look()

    def look(self) -> None:
        """Look through all objects, if there is reason to and the moment is right."""
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
        """About how many objects live."""
        return sum(
            4 * len(partition.nodes)
            + 2 * sum(len(app.asks) + len(app.allocations) for app in partition.applications.values())
            for partition in self._cluster.partitions()
        )


def taken_apart(manager: RegisteredManager) -> Iterator[int]:
    """Free the allocations of a resource manager that is gone; how many objects are left to the collector, in steps.

    An allocation leaves its node and its application in one step: who still looks at the state finds it nowhere, or in both.
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
        yield 4 * len(partition.nodes)


__all__ = ["THRESHOLDS", "Memory", "taken_apart"]
