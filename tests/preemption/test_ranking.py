"""The order of victim sets, compared with its rule as a tuple: of two sets the one whose tuple is smaller is better."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from licorne.core.preemption.ranking import VictimRank, set_rank

members = st.lists(
    st.tuples(st.booleans(), st.integers(-1, 1), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3
)
"""Of each victim: whether it is reluctant, its priority, when it was created, and the number of its arrival."""


def rank(victims: list[tuple[bool, int, int, int]], node_order: int) -> VictimRank:
    ages: list[tuple[int, ...]] = [(-created, -seq) for _, _, created, seq in victims]
    return set_rank(sum(each[0] for each in victims), [each[1] for each in victims], ages, node_order)


def rule(victims: list[tuple[bool, int, int, int]], node_order: int) -> tuple[Any, ...]:
    newest_first = sorted((created, seq) for _, _, created, seq in victims)[::-1]
    older = [(-created, -seq) for created, seq in newest_first]
    return sum(each[0] for each in victims), len(victims), sum(each[1] for each in victims), older, node_order


@examples(300)
@given(members, st.integers(0, 1), members, st.integers(0, 1))
def test_the_better_set_precedes(
    one: list[tuple[bool, int, int, int]], on: int, other: list[tuple[bool, int, int, int]], at: int
) -> None:
    assert rank(one, on).precedes(rank(other, at)) == (rule(one, on) < rule(other, at))
    reluctant, count, *_ = rule(one, on)
    assert rank(other, at).admits(reluctant, 0, count) == ((reluctant, count) <= rule(other, at)[:2])
