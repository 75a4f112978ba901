"""How long scheduling takes, as far as it can be measured without a clock in the core (docs/spec/metrics.md, section 1).

Two things are measured: whole slices, and each search for preemption victims, which is rare and long. A single ask is too
quick to be measured; its cost is the mean over a second: the time of all slices, less that of those searches, divided by
the number of asks tried, and by the number of allocations made.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from .histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

    from licorne.core.partition import Partition
    from licorne.core.queues.ask import Ask

BUCKETS_S = (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""The original's buckets, which are seconds although the names of its metrics say milliseconds."""


class Latencies:
    """The durations of one scheduler, in seconds."""

    def __init__(self) -> None:
        self.slices = Histogram(BUCKETS_S)
        self.tried = Histogram(BUCKETS_S)
        """Mean time for each ask that was tried, whether a node was found or not."""
        self.placed = Histogram(BUCKETS_S)
        """Mean time for each allocation that was made."""
        self.preemption = Histogram(BUCKETS_S)
        """Each search for victims on behalf of an ask, or of the members of a gang, whose queue is below its guarantee."""
        self._busy_s = 0.0
        self._made = 0
        self._attempts: dict[Partition, int] = {}  # attempts of each partition that `tried` already counts

    def watch(self, partition: Partition) -> None:
        """Measure this partition's searches for victims, by wrapping `GuaranteePreemption.attempt`."""
        preemption = partition.guarantee_preemption
        preemption.attempt = partial(self._search, preemption.attempt)

    def _search(self, attempt: Callable[[list[Ask]], str], asks: list[Ask]) -> str:
        began = time.perf_counter()
        try:
            return attempt(asks)
        finally:
            took = time.perf_counter() - began
            self.preemption.add(took)
            self._busy_s -= took

    def slice(self, seconds: float, made: int) -> None:
        """Count a slice that took `seconds` and made `made` allocations."""
        self.slices.add(seconds)
        self._busy_s += seconds
        self._made += made

    def settle(self, partitions: Iterable[Partition]) -> None:
        """Add the asks tried and the allocations made since the last call, in these partitions, to the histograms."""
        before, self._attempts = self._attempts, {p: p.descent.attempts for p in partitions}
        tried = sum(attempts - before.get(p, 0) for p, attempts in self._attempts.items())
        busy_s, made = max(self._busy_s, 0.0), self._made
        self._busy_s, self._made = 0.0, 0
        if tried:
            self.tried.add(busy_s / tried, tried)
        if made:
            self.placed.add(busy_s / made, made)
