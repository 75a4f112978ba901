"""Confidence intervals: known quantiles, a worked example, and how often they hold the mean."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.lab.sweep.intervals import interval, quantile


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (9, 2.2622), (30, 2.0423), (31, 2.0395), (40, 2.0211), (60, 2.0003), (120, 1.9799), (10**6, 1.96)],
)  # fmt: skip
def test_quantiles_of_students_distribution(freedom: int, expected: float) -> None:
    assert quantile(freedom) == pytest.approx(expected, abs=0.0005)


def test_no_value_has_no_interval_and_one_has_no_width() -> None:
    assert interval([]) is None
    one = interval([4.0])
    assert one is not None
    assert (one.number, one.mean, one.half) == (1, 4.0, None)


def test_a_worked_example() -> None:
    """1, 2, 3, 4: mean 2.5, s = √(5/3), t = 3.1824."""
    found = interval([1.0, 2.0, 3.0, 4.0])
    assert found is not None
    assert found.half is not None
    assert (found.mean, round(found.half, 4)) == (2.5, 2.0542)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.floats(-1e6, 1e6))
def test_a_shift_moves_the_mean_and_keeps_the_width(values: list[float], by: float) -> None:
    some, other = interval(values), interval([value + by for value in values])
    assert some is not None
    assert other is not None
    assert other.mean == pytest.approx(some.mean + by, abs=1e-3)
    assert other.half == pytest.approx(some.half, abs=1e-3)


def test_ninety_five_of_a_hundred_intervals_hold_the_mean() -> None:
    drawn = random.Random(5)
    held = 0
    for _ in range(4000):
        found = interval([drawn.gauss(10, 3) for _ in range(5)])
        assert found is not None
        assert found.half is not None
        held += abs(found.mean - 10) <= found.half
    assert 0.935 < held / 4000 < 0.965
