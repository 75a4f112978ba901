"""Ratios of speed, pair by pair, when one of the two runs may have been stopped before it was done.

A run that was cut off gives only a lower bound of its time, so the ratio has a lower bound too: such a ratio is called a
*bound*. The median, least and greatest of a list are computed with bounds taken at their values; whether the result is
itself only a bound follows from which of the values could be greater.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

SAME = 0.98
"""A run that ended by itself with fewer allocations than this part of the other's counts as not done either."""


class Ratio(msgspec.Struct, frozen=True):
    """A ratio of speeds; `bound`: the true ratio is this one or greater."""

    value: float
    bound: bool = False

    def __str__(self) -> str:
        return f"{'≥ ' if self.bound else ''}{shown(self.value)}"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Median, least and greatest ratio of the pairs."""

    median: Ratio
    least: Ratio
    greatest: Ratio


class Timed(msgspec.Struct, frozen=True):
    """Allocations made and the seconds that they took; `cut_off`: the run was stopped before it was done."""

    allocations: int
    seconds: float
    cut_off: bool = False

    @property
    def per_s(self) -> float:
        """Allocations per second."""
        return self.allocations / self.seconds if self.seconds > 0 else 0.0


def shown(value: float) -> str:
    """Format a ratio with a sensible number of digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def not_done(ours: Timed, theirs: Timed) -> bool:
    """Whether the peer was cut off, or gave up, before it had made as many allocations as licorne."""
    return theirs.cut_off or theirs.allocations < SAME * ours.allocations


def ratio(ours: Timed, theirs: Timed) -> Ratio:
    """Return how many times as fast licorne is, by allocations per second; if the peer was not done, as a bound."""
    if not_done(ours, theirs):
        return Ratio(theirs.seconds / ours.seconds, bound=True)
    return Ratio(ours.per_s / theirs.per_s)


def spread(ratios: Sequence[Ratio]) -> Spread:
    """Return median, least and greatest of at least one ratio."""
    # Among equal values bounds come last, as their true values may be greater.
    ordered = sorted(ratios, key=lambda each: (each.value, each.bound))
    number = len(ordered)
    middle = (ordered[(number - 1) // 2].value + ordered[number // 2].value) / 2
    return Spread(
        # A bound above the middle may be greater without moving the median; one at or below the middle moves it.
        median=Ratio(middle, any(each.bound for each in ordered[: number // 2 + 1])),
        least=ordered[0],
        greatest=Ratio(ordered[-1].value, any(each.bound for each in ordered)),
    )
