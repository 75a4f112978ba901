"""When a leaf queue whose searches for victims failed may search again.

Preemption for guarantees (`licorne.core.preemption.guarantee_preemption`) keeps one entry, and at most one deadline,
for each leaf that has asks which may preempt. So a leaf is visited when its first ask is due, and not in every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from licorne.core.base.timers import Timer, Timers
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

RETRIES_KEPT = 1_000
"""Entries of leaves without pending asks are dropped once there are this many entries.

The next cleaning is due at twice the number that is left, but not below this.
"""


class FailedSearch(msgspec.Struct, frozen=True):
    """A search that found no victims: when it ran, the generation of the node index then, and why it failed."""

    at_ns: int
    generation: int
    why: str


class LeafRetry:
    """A leaf with asks that may preempt, its failed searches, and the deadline of the first ask that may try.

    `due_ns` is the time of `timer`; before `pause_ns` the leaf makes no search, after too many without result.
    """

    def __init__(self, leaf: Queue) -> None:
        self.leaf: Queue = leaf
        self.failed_searches: dict[Ask, FailedSearch] = {}
        self.pause_ns: int = 0
        self.timer: Timer | None = None
        self.due_ns: int = 0


class LeafRetries:
    """The entries (`LeafRetry`) of one partition, by leaf."""

    def __init__(self, timers: Timers) -> None:
        self._timers: Timers = timers
        self._by_leaf: dict[Queue, LeafRetry] = {}
        self._max: int = RETRIES_KEPT

    def find(self, leaf: Queue) -> LeafRetry | None:
        """Return the entry of a leaf queue; None if it has none."""
        return self._by_leaf.get(leaf)

    def of(self, leaf: Queue) -> LeafRetry:
        """Return the entry of a leaf queue; make one if it has none, and drop those of leaves without pending asks if too many are kept."""
        retry = self._by_leaf.get(leaf)
        if retry is None:
            if len(self._by_leaf) >= self._max:
                self.drop(lambda queue: not queue.asks_pending)
                self._max = max(RETRIES_KEPT, 2 * len(self._by_leaf))
            retry = self._by_leaf[leaf] = LeafRetry(leaf)
        return retry

    def drop(self, unneeded: Callable[[Queue], bool]) -> list[Queue]:
        """Drop the entries of leaves for which `unneeded` is true, with their deadlines; return these leaves."""
        dropped = [leaf for leaf in self._by_leaf if unneeded(leaf)]
        for leaf in dropped:
            self._timers.cancel(self._by_leaf.pop(leaf).timer)
        return dropped

    def clear(self) -> None:
        """Drop all entries and their deadlines."""
        self.drop(lambda _: True)
