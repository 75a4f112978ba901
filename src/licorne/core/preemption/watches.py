"""Which leaves are looked at again for preemption, and when (`licorne.core.preemption.guaranteed`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from licorne.core.base.timers import Timer, Timers
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

RETRIES_KEPT = 1_000
"""With more leaves than this, and twice those that are needed, those that have nothing pending are forgotten."""


class FailedSearch(msgspec.Struct, frozen=True):
    """A search for victims that found none: when it ran, the partition's count of changes then, and why it failed."""

    at_ns: int
    generation: int
    why: str


class LeafRetry:
    """A leaf with asks that may preempt, and the moment at which the first of them may try."""

    def __init__(self, leaf: Queue) -> None:
        self.leaf = leaf
        self.failed_searches: dict[Ask, FailedSearch] = {}
        self.pause_ns = 0
        self.timer: Timer | None = None
        self.due_ns = 0


class LeafRetries:
    """The watches of one partition, by leaf."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_leaf: dict[Queue, LeafRetry] = {}
        self._max = RETRIES_KEPT

    def find(self, leaf: Queue) -> LeafRetry | None:
        """That of this leaf, None if it has none."""
        return self._by_leaf.get(leaf)

    def of(self, leaf: Queue) -> LeafRetry:
        """That of this leaf, which is made if it has none."""
        retry = self._by_leaf.get(leaf)
        if retry is None:
            if len(self._by_leaf) >= self._max:
                self.drop(lambda queue: not queue.asks_pending)
                self._max = max(RETRIES_KEPT, 2 * len(self._by_leaf))
            retry = self._by_leaf[leaf] = LeafRetry(leaf)
        return retry

    def drop(self, unneeded: Callable[[Queue], bool]) -> list[Queue]:
        """Forget those of these leaves, with their deadlines; which they were."""
        dropped = [leaf for leaf in self._by_leaf if unneeded(leaf)]
        for leaf in dropped:
            self._timers.cancel(self._by_leaf.pop(leaf).timer)
        return dropped

    def clear(self) -> None:
        """Forget all."""
        self.drop(lambda _: True)
