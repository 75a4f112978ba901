"""The laws of gangs that start as a whole, on random clusters; and planted faults, which must break them."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seeds
from common.examples import examples
from common.plain_python import printed_by
from gangs_atomic import packings
from gangs_atomic.faults import FAULTS
from gangs_atomic.laws import start_of_gang
from rings import first_in_gate

work = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 25)), min_size=2, max_size=8)
jobs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8), st.one_of(st.just(0), st.integers(1, 30))), min_size=1, max_size=12
)


@examples(60)
@given(st.lists(st.integers(6, 12), min_size=1, max_size=4), work, st.integers(1, 12), st.integers(1, 5), jobs)
def test_smaller_work_in_front_of_a_gang_never_delays_it(
    nodes: list[int],
    work: list[tuple[int, int]],
    size: int,
    members: int,
    jobs: list[tuple[int, int, int]],
) -> None:
    """With members that are all alike a plan is exact: with the jobs the gang starts when it would without them."""
    gang = [size] * members
    planned, without = start_of_gang(nodes, work, gang, [])
    assert planned == without
    assert start_of_gang(nodes, work, gang, jobs) == (planned, without) or planned is None


@examples(60)
@given(
    st.lists(st.integers(6, 12), min_size=1, max_size=4),
    work,
    st.lists(st.integers(1, 9), min_size=2, max_size=5),
    jobs,
)
def test_a_gang_of_different_members_starts_no_later_than_planned(
    nodes: list[int],
    work: list[tuple[int, int]],
    gang: list[int],
    jobs: list[tuple[int, int, int]],
) -> None:
    planned, started = start_of_gang(nodes, work, gang, jobs)
    if planned is not None:
        assert started is not None
        assert started <= planned


def test_a_gang_of_few_different_members_starts_exactly_if_it_fits() -> None:
    for seed in seeds.some_seeds("LICORNE_PACKINGS_SEED", 160):
        packings.check(seed)


@pytest.mark.nightly
def test_thousands_of_tight_gangs_start(new_seed: int) -> None:
    """All of the small ones; of the larger ones all but one in a hundred."""
    for seed in range(new_seed, new_seed + 3000):
        packings.check(seed)
    fit, missed = packings.misses(new_seed, 1000, large=True)
    sys.stdout.write(f"{fit} {missed}\n")
    assert missed.total() <= fit.total() / 100


@pytest.mark.parametrize("name", first_in_gate(FAULTS))
def test_a_planted_fault_is_caught(name: str) -> None:
    """In a process of its own, with the hot modules as plain Python, where every function can be replaced."""
    printed = printed_by("gangs_atomic.faults", name)
    assert printed.startswith("caught"), printed
