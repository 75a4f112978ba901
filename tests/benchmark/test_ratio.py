"""Ratios of the runs of a pair, of which the peer's may have been cut off: then the ratio is a bound."""

from __future__ import annotations

from itertools import product

import pytest
from bench.ratio import Ratio, Spread, Timed, not_done, ratio, spread

# A number is a ratio as measured; a text one that is a bound.
Value = float | str


def of(value: Value) -> Ratio:
    return Ratio(float(value), bound=isinstance(value, str))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (Timed(1_000, 1), Timed(1_000, 20), 20),
        # It made a few less, which happens: rates are compared.
        (Timed(1_000, 1), Timed(990, 20), pytest.approx(20 * 1000 / 990)),
        (Timed(1_000, 1), Timed(1_010, 20), pytest.approx(20 * 1000 / 1010)),
        # Cut off after 60 s, whatever it had made by then: 60 times as long, or longer.
        (Timed(1_000, 1), Timed(10, 60, cut_off=True), "60"),
        (Timed(1_000, 2), Timed(900, 60, cut_off=True), "30"),
        # Not cut off, but it gave up much too early.
        (Timed(1_000, 2), Timed(900, 50), "25"),
    ],
)
def test_a_ratio_of_two_runs(ours: Timed, theirs: Timed, expected: Value) -> None:
    found = ratio(ours, theirs)
    assert found.bound is isinstance(expected, str) is not_done(ours, theirs)
    assert found.value == (float(expected) if isinstance(expected, str) else expected)


@pytest.mark.parametrize(
    ("ratios", "median", "least", "greatest"),
    [
        ([7.0], 7.0, 7.0, 7.0),
        (["7"], "7", "7", "7"),
        ([3.0, 1.0, 2.0], 2.0, 1.0, 3.0),
        ([1.0, 2.0, 3.0, 6.0], 2.5, 1.0, 6.0),
        # The bound is beyond the middle: whatever it is in truth, the median stays.
        ([1.0, 2.0, "3"], 2.0, 1.0, "3"),
        # The bound is below the middle: in truth it may be above.
        (["1", 2.0, 3.0], "2", "1", "3"),
        ([1.0, "2", 3.0], "2", 1.0, "3"),
        ([1.0, 2.0, "3", "4"], "2.5", 1.0, "4"),
        ([2.0, "2", 2.0], 2.0, 2.0, "2"),
    ],
)
def test_a_spread(ratios: list[Value], median: Value, least: Value, greatest: Value) -> None:
    assert spread([of(each) for each in ratios]) == Spread(median=of(median), least=of(least), greatest=of(greatest))


@pytest.mark.parametrize("ratios", list(product((1.0, 2.0, "1", "2", "3"), repeat=3)))
def test_ratios_of_bounds_are_bounds_of_the_ratio(ratios: tuple[Value, ...]) -> None:
    """Whatever the true ratios are: a figure that is no bound stays as it is, and one that is a bound only grows."""
    found = spread([of(each) for each in ratios])
    for more in product((0, 0.5, 10), repeat=3):
        truth = sorted(
            float(each) + (extra if isinstance(each, str) else 0) for each, extra in zip(ratios, more, strict=True)
        )
        for said, true in zip((found.least, found.median, found.greatest), truth, strict=True):
            assert true >= said.value if said.bound else true == said.value
