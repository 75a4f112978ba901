"""Confidence intervals of means over seeds: Student's t, 95 %, for values that differ only in what was drawn.

The mean of n values has the interval mean ± t · s / √n, with the sample standard deviation s (divisor n - 1) and the 97.5 %
quantile t of Student's distribution with n - 1 degrees of freedom. It holds exactly for normal values, and about for means of
others; of one value there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

import msgspec

_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314,
    2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""The 97.5 % quantiles for 1 to 30 degrees of freedom."""
_Z = 1.959964


class Interval(msgspec.Struct, frozen=True):
    """A mean of `number` values, and how far its 95 % confidence interval reaches to both sides; None for a single value."""

    number: int
    mean: float
    half: float | None


def quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution; beyond the table by an expansion that is right to 0.0005."""
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom")
    if freedom <= len(_T):
        return _T[freedom - 1]
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)


def interval(values: Sequence[float]) -> Interval | None:
    """Return the mean of values with its confidence interval, None if there are no values."""
    number = len(values)
    if not number:
        return None
    mean = fsum(values) / number
    if number == 1:
        return Interval(1, mean, None)
    deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (number - 1))
    return Interval(number, mean, quantile(number - 1) * deviation / sqrt(number))
