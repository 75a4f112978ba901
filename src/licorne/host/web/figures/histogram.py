"""A histogram, in any unit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of values up to each bound, with one bucket beyond the last; the buckets are not cumulative.

    The bounds rise. `sum` is the sum of the values, in the unit of the bounds; integers are summed exactly.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum: float = 0

    def add(self, value: float, times: int = 1) -> None:
        """Count a value, `times` times."""
        self.sum += value * times
        self.buckets[bisect_left(self._bounds, value)] += times
