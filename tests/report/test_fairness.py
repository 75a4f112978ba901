"""Guarantees and Jain's index: worked examples, and what must hold for any state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.lab.report.fairness import claim, evenness, jain, served, shortfall


@pytest.mark.parametrize(
    ("used", "pending", "guaranteed", "missing"),
    [
        (0, 0, 10, 0),  # nothing wanted, nothing missing
        (0, 4, 10, 4),  # the demand is less than the guarantee
        (3, 20, 10, 7),
        (10, 20, 10, 0),
        (15, 20, 10, 0),
        (5, 5, 0, 0),
    ],
)
def test_what_a_queue_lacks_of_its_guarantee(used: int, pending: int, guaranteed: int, missing: int) -> None:
    assert shortfall(used, pending, guaranteed) == missing


@pytest.mark.parametrize(
    ("values", "index"),
    [([], None), ([1.0], None), ([1.0, 1.0], 1.0), ([0.5, 0.5, 0.5], 1.0), ([1.0, 0.0], 0.5), ([0.0, 0.0], 1.0),
     ([1.0, 0.5], 0.9), ([1e-170, 1e-170], 1.0), ([3.0, 1.0, 0.0, 0.0], 0.4)],
)  # fmt: skip
def test_jains_index(values: list[float], index: float | None) -> None:
    assert jain(values) == pytest.approx(index) if index is not None else jain(values) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_jains_index_is_between_one_nth_and_one(values: list[float]) -> None:
    index = jain(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


def test_a_queue_claims_its_guarantee_or_an_equal_part_and_no_more_than_it_wants() -> None:
    assert claim(100, 30, 90, 3) == 30
    assert claim(20, 30, 90, 3) == 20
    assert claim(100, None, 90, 3) == 30
    assert served({"cpu": 15}, {"cpu": 85}, {"cpu": 30}, {"cpu": 90}, 3) == 0.5
    assert served({"cpu": 60}, {"cpu": 40}, {"cpu": 30}, {"cpu": 90}, 3) == 1.0
    assert served({}, {"unknown": 4}, {}, {"cpu": 90}, 3) is None
    assert served({"cpu": 30, "gpu": 1}, {"cpu": 70, "gpu": 3}, {"cpu": 30, "gpu": 2}, {"cpu": 90, "gpu": 4}, 2) == 0.5


def test_queues_without_demand_do_not_count() -> None:
    capacity = {"cpu": 100}
    rich: dict[str, int] = {"cpu": 50}
    assert evenness([(rich, {}, {}), ({}, {}, {})], capacity) is None
    assert evenness([(rich, {}, {}), ({}, {"cpu": 50}, {}), ({}, {}, {})], capacity) == 0.5
    assert evenness([(rich, {"cpu": 9}, {}), (rich, {"cpu": 50}, {})], capacity) == 1.0
