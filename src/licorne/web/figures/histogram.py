"""A histogram, in any unit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """How many values there were up to each bound, and one bucket beyond; the buckets are not cumulative.

    `sum` is that of the values, in the unit of the bounds, which rise; whole numbers are added exactly.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum: float = 0

    def add(self, value: float, times: int = 1) -> None:
        """One more, or several that were the same."""
        self.sum += value * times
        self.buckets[bisect_left(self._bounds, value)] += times


__all__ = ["Histogram"]
