"""Seconds, and percentiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.workload.measure import percentiles, seconds


@given(st.integers(-(10**20), 10**20), st.sampled_from((1, 10, 1000, 1500)))
def test_seconds_are_the_floats_nearest_to_six_digits(number: int, unit: int) -> None:
    nanoseconds = number * unit
    assert seconds(nanoseconds) == round(nanoseconds / 10**9, 6)
    assert seconds(float(nanoseconds)) == round(float(nanoseconds) / 10**9, 6)


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
