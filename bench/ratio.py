"""How many times as fast, pair by pair, when one of the two may have been stopped before it was done.

A run that was cut off says only that its time is at least so much, so the ratio is at least so much too: such a ratio is
a *bound*. The median, least and greatest of a list are computed with bounds as they stand; whether the result is itself
only a bound follows from which of the values could be greater.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

SAME = 0.98
"""A run that ended by itself with fewer allocations than this part of the other's was not done either."""


class Ratio(msgspec.Struct, frozen=True):
    """So many times as fast; `bound`: at least."""

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
    """Allocations made and the seconds that they took; `cut_off`: there would have been more."""

    allocations: int
    seconds: float
    cut_off: bool = False

    @property
    def per_s(self) -> float:
        """Allocations per second."""
        return self.allocations / self.seconds if self.seconds > 0 else 0.0


def shown(value: float) -> str:
    """A ratio with as many digits as it deserves."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def not_done(ours: Timed, theirs: Timed) -> bool:
    """Was the peer cut off, or did it give up, before it had made as many allocations?"""
    return theirs.cut_off or theirs.allocations < SAME * ours.allocations


def ratio(ours: Timed, theirs: Timed) -> Ratio:
    """How many times as fast we are: by allocations per second, or if the peer was not done by the time, as a bound."""
    if not_done(ours, theirs):
        return Ratio(theirs.seconds / ours.seconds, bound=True)
    return Ratio(ours.per_s / theirs.per_s)


def spread(ratios: Sequence[Ratio]) -> Spread:
    """Median, least and greatest of at least one ratio."""
    # Of equal values the bounds stand last: they are the ones that may in truth be greater.
    ordered = sorted(ratios, key=lambda each: (each.value, each.bound))
    number = len(ordered)
    middle = (ordered[(number - 1) // 2].value + ordered[number // 2].value) / 2
    return Spread(
        # A bound beyond the middle may be greater without moving it; one at or before the middle moves it.
        median=Ratio(middle, any(each.bound for each in ordered[: number // 2 + 1])),
        least=ordered[0],
        greatest=Ratio(ordered[-1].value, any(each.bound for each in ordered)),
    )
