"""Observations over time: means, peaks, percentiles."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.sim.measure import Gauge, Level, Share, percentiles, seconds


def test_a_gauge_weighs_by_time() -> None:
    gauge = Gauge(0)
    gauge.set(0, {"vcore": 4})
    gauge.set(10, {"vcore": 1, "gpu": 2})
    gauge.set(10, {"vcore": 9, "gpu": 9})  # lasts no time
    gauge.set(10, {"vcore": 2, "gpu": 1})
    assert gauge.over(0, 20) == {"gpu": Level(mean=0.5, peak=1), "vcore": Level(mean=3.0, peak=4)}


def test_where_no_time_passes_the_last_state_counts() -> None:
    gauge = Gauge(0)
    gauge.set(0, {"vcore": 4})
    gauge.set(0, {"vcore": 3})
    assert gauge.over(0, 0) == {"vcore": Level(mean=3.0, peak=3)}


def test_a_share_follows_use_and_capacity() -> None:
    share = Share(0)
    share.set(0, {"vcore": 5}, {"vcore": 10})
    share.set(10, {"vcore": 4}, {"vcore": 5})
    share.set(20, {}, {"vcore": 5})
    share.finish(30)
    assert share.peak("vcore", lasting=True) == 0.8
    assert share.peak("vcore", lasting=False) == 0.0
    assert share.peak("gpu", lasting=True) == 0.0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 3)), min_size=1, max_size=20),
    st.integers(1, 3),
)
def test_the_peak_of_a_share_is_that_of_every_moment(steps: list[tuple[int, int, int]], tail: int) -> None:
    share = Share(0)
    capacities = [{"x": amount} for amount in (0, 7, 30, 50)]
    now, current = 0, 0.0
    moments: list[float] = [0.0]
    for wait, used, number in steps:
        moments += [current] * wait
        now += wait
        capacity = capacities[number]
        share.set(now, {"x": used} if used else {}, capacity)
        current = used / capacity["x"] if capacity["x"] else 0.0
    share.finish(now + tail)
    assert share.peak("x", lasting=True) == max(*moments, current)
    assert share.peak("x", lasting=False) == current


@given(st.integers(-(10**20), 10**20), st.sampled_from((1, 10, 1000, 1500)))
def test_seconds_are_the_floats_nearest_to_six_digits(number: int, unit: int) -> None:
    nanoseconds = number * unit
    assert seconds(nanoseconds) == round(nanoseconds / 10**9, 6)
    assert seconds(float(nanoseconds)) == round(float(nanoseconds) / 10**9, 6)


changes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100)), max_size=20)


@given(changes, st.integers(0, 5))
def test_mean_and_peak_are_those_of_every_moment(steps: list[tuple[int, int]], tail: int) -> None:
    gauge = Gauge(0)
    now, value = 0, 0
    moments: list[int] = []
    for wait, level in steps:
        moments += [value] * wait
        now += wait
        value = level
        gauge.set(now, {"x": value})
    moments += [value] * tail
    got = gauge.over(0, now + tail).get("x", Level(mean=0.0, peak=0))
    if moments:
        assert got.mean == pytest.approx(float(Fraction(sum(moments), len(moments))))
        assert got.peak == max(moments)
    else:
        assert got == Level(mean=float(value), peak=value)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], [0, 0, 0]),
        ([7], [7, 7, 7]),
        ([1, 2], [1, 2, 2]),
        (list(range(1, 101)), [50, 95, 99]),
        (list(range(1, 202)), [101, 191, 199]),
    ],
)
def test_percentiles_are_of_the_nearest_rank(values: list[int], expected: list[int]) -> None:
    assert percentiles(reversed(values), (50, 95, 99)) == expected


@given(st.lists(st.integers(), min_size=1), st.integers(1, 100))
def test_a_percentile_has_its_share_of_values_at_or_below(values: list[int], rank: int) -> None:
    (value,) = percentiles(values, (rank,))
    below = sum(other <= value for other in values)
    strictly = sum(other < value for other in values)
    assert below * 100 >= rank * len(values) > strictly * 100
