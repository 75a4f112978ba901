"""Amounts over time: means and peaks, as every moment has them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.core.amounts.types import Types
from licorne.core.constants import UNLIMITED
from licorne.sim.gauges import Gauge, Level, Share

TYPES = Types()


def set_gauge(gauge: Gauge, now_ns: int, value: dict[str, int]) -> None:
    gauge.set(now_ns, TYPES.vector(value), TYPES.names.copy())


def set_share(share: Share, now_ns: int, used: dict[str, int], capacity: dict[str, int]) -> None:
    names = (TYPES.vector({**used, **capacity}), TYPES.names.copy())[1]
    share.resize(now_ns, TYPES.vector(capacity), names)
    share.set(now_ns, TYPES.vector(used), names)


def test_a_gauge_weighs_by_time() -> None:
    gauge = Gauge(0)
    set_gauge(gauge, 0, {"vcore": 4})
    set_gauge(gauge, 10, {"vcore": 1, "gpu": 2})
    set_gauge(gauge, 10, {"vcore": 9, "gpu": 9})  # lasts no time
    set_gauge(gauge, 10, {"vcore": 2, "gpu": 1})
    assert gauge.over(0, 20) == {"gpu": Level(mean=0.5, peak=1), "vcore": Level(mean=3.0, peak=4)}


def test_where_no_time_passes_the_last_state_counts() -> None:
    gauge = Gauge(0)
    set_gauge(gauge, 0, {"vcore": 4})
    set_gauge(gauge, 0, {"vcore": 3})
    assert gauge.over(0, 0) == {"vcore": Level(mean=3.0, peak=3)}


def test_a_share_follows_use_and_capacity() -> None:
    share = Share(0)
    set_share(share, 0, {"vcore": 5}, {"vcore": 10})
    set_share(share, 10, {"vcore": 4}, {"vcore": 5})
    set_share(share, 20, {}, {"vcore": 5})
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
        set_share(share, now, {"x": used} if used else {}, capacity)
        current = used / capacity["x"] if capacity["x"] else 0.0
    share.finish(now + tail)
    assert share.peak("x", lasting=True) == max(*moments, current)
    assert share.peak("x", lasting=False) == current


def test_a_number_that_another_type_gets_is_no_longer_that_of_the_first() -> None:
    gauge, types = Gauge(0), Types()
    gauge.set(0, types.vector({"gpu": 4}), types.names.copy())
    gone = types.forget("gpu")
    types.set_free([gone])
    gauge.set(10, types.vector({"disk": 6}), types.names.copy())
    assert types.slot("disk") == gone
    assert gauge.over(0, 20) == {"disk": Level(mean=3.0, peak=6), "gpu": Level(mean=2.0, peak=4)}


def test_sums_may_have_more_than_64_bits() -> None:
    gauge = Gauge(0)
    set_gauge(gauge, 0, {"memory": 2**60})
    assert gauge.over(0, 2**60) == {"memory": Level(mean=float(2**60), peak=2**60)}


def test_a_type_that_a_limit_does_not_list_has_no_capacity() -> None:
    share = Share(0)
    share.resize(0, TYPES.vector({"vcore": 10}, UNLIMITED), TYPES.names.copy())
    share.finish(10)
    assert share.capacity.over(0, 10) == {"vcore": Level(mean=10.0, peak=10)}


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
        set_gauge(gauge, now, {"x": value})
    moments += [value] * tail
    got = gauge.over(0, now + tail).get("x", Level(mean=0.0, peak=0))
    if moments:
        assert got.mean == pytest.approx(float(Fraction(sum(moments), len(moments))))
        assert got.peak == max(moments)
    else:
        assert got == Level(mean=float(value), peak=value)
