"""Times of a simulation in seconds, and percentiles: nearest-rank, so each is a value that occurred."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

NANOSECONDS = 1_000_000_000
Number = TypeVar("Number", int, float)


def seconds(nanoseconds: float) -> float:
    """Convert to seconds, rounded to microseconds: finer digits say nothing to a reader, such as those of 29196.000000002.

    Whole microseconds need no rounding: the quotient is already the float nearest to them. It would take four times as long.
    """
    quotient = nanoseconds / NANOSECONDS
    return quotient if not nanoseconds % 1000 else round(quotient, 6)


def percentiles(values: Iterable[Number], ranks: Sequence[int]) -> list[Number]:
    """Return the nearest-rank values for percentages from 1 to 100; zeros if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return [0] * len(ranks)
    return [ordered[-(-len(ordered) * rank // 100) - 1] for rank in ranks]
