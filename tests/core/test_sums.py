"""Sums of amounts of any size: the shown amount saturates, and all that was added can be taken back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import Bench, cluster, config
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import new_sum
from licorne.core.constants import SUM_MAX
from licorne.core.inspection.validate import InvariantError
from licorne.si import messages

TYPES = Types()
A = TYPES.slot("a")
HUGE = SUM_MAX
HALF = 1 << 61

AMOUNT = st.one_of(st.integers(0, 100), st.sampled_from([HUGE, HUGE - 1, HALF, HALF + 1, 1 << 60]))
AMOUNTS = st.dictionaries(st.sampled_from("abcde"), AMOUNT, max_size=5)


def shown(value: int) -> int:
    return max(-SUM_MAX, min(SUM_MAX, value))


@given(st.lists(st.tuples(AMOUNTS, st.sampled_from([1, -1, 2, 7, -3, (1 << 31) - 1])), max_size=12), st.randoms())
def test_a_sum_is_exact_and_gives_everything_back(parts: list[tuple[dict[str, int], int]], rng: random.Random) -> None:
    total, exact = new_sum(), dict.fromkeys("abcde", 0)

    def add(amounts: dict[str, int], times: int) -> None:
        vec = TYPES.vector(amounts)
        if times == 1:
            total.plus(vec)
        elif times == -1:
            total.minus(vec)
        else:
            one = new_sum()
            one.plus(vec)
            total.add_sum(one, times)
        for name, amount in amounts.items():
            exact[name] += amount * times
        for name, value in exact.items():
            assert total.exact(TYPES.slot(name)) == value
            assert total.at(TYPES.slot(name)) == shown(value)

    for amounts, times in parts:
        add(amounts, times)
    rng.shuffle(parts)
    for amounts, times in parts:
        add(amounts, -times)
    assert total.zero() and total.beyond is None


# A queue with a quota of 10, and one without. What the first asks for can never run; the second is another tenant's.


def bench(*, first_interface: bool = False) -> Bench:
    b = cluster(config("a resources: {max: {vcore: 10m}}", "b"), 1000, first_interface=first_interface)
    b.app("x", "root.a")
    b.app("y", "root.b")
    return b


IMPOSSIBLE: list[tuple[str, list[dict[str, int]]]] = [
    ("the largest there is", [{"vcore": HUGE}]),
    ("two that are too much together", [{"vcore": HALF}, {"vcore": HALF - 1}]),
    ("many", [{"vcore": HUGE, "memory": HUGE}] * 9),
]


@pytest.mark.parametrize("amounts", [amounts for _, amounts in IMPOSSIBLE], ids=[name for name, _ in IMPOSSIBLE])
def test_an_ask_that_can_never_run_keeps_no_other_from_asking(amounts: list[dict[str, int]]) -> None:
    b = bench()
    for i, resource in enumerate(amounts):
        assert not [line for line in b.ask("x", f"huge{i}", resource=resource) if "rejected" in line]
    assert b.ask("y", "small", vcore=1) == ["y Accepted: runApplication"]
    assert b.run() == "small@n1"
    assert b.pending("root.a")["vcore"] == min(HUGE, sum(r["vcore"] for r in amounts))
    for i in range(len(amounts)):
        b.release("x", f"huge{i}")
    assert b.pending() == {} and b.partition.tree.root.pending.beyond is None
    b.ask("x", "k", vcore=3)
    assert b.pending() == {"vcore": 3} and b.run() == "k@n1"


def test_asks_that_repeat_without_end() -> None:
    b = bench(first_interface=True)
    assert b.ask("x", "huge", times=(1 << 31) - 1, vcore=HUGE) == ["x Accepted: runApplication"]
    b.ask("y", "many", times=1 << 30, vcore=400)
    assert b.run() == "many@n1 many@n1"
    assert b.pending("root.b") == {"vcore": ((1 << 30) - 2) * 400}
    assert b.pending() == {"vcore": HUGE}
    b.release("x", "huge", what="ask")
    assert b.pending() == {"vcore": ((1 << 30) - 2) * 400}


def test_allocations_that_no_node_could_hold() -> None:
    """Running allocations are reported, not asked for: none is refused because of another application's usage."""
    b = bench()
    for i in range(4):
        b.ask("x", f"huge{i}", node="n1", vcore=HUGE)
    b.ask("y", "there", node="n1", vcore=5)
    b.foreign("f1", "n1", vcore=HUGE)
    b.foreign("f2", "n1", vcore=HUGE)
    assert b.allocated("root.a") == {"vcore": HUGE} and b.allocated("root.b") == {"vcore": 5}
    assert b.free("n1") == {"vcore": -HUGE}
    for i in range(4):
        b.release("x", f"huge{i}")
    b.send(messages.Release(application_id="", key="f1"), messages.Release(application_id="", key="f2"))
    assert b.free("n1") == {"vcore": 995} and b.allocated("root") == {"vcore": 5}
    b.ask("y", "next", vcore=995)
    assert b.run() == "next@n1"


def test_nodes_that_are_too_large_together() -> None:
    b = bench()
    assert b.node("big1", vcore=HUGE) == ["accepted big1"]
    assert b.node("big2", vcore=HUGE) == ["accepted big2"]
    assert b.partition.tree.root.max_resource() == {"vcore": HUGE}
    for node in ("big1", "big2"):
        b.node(node, messages.NodeAction.DECOMISSION)
    assert b.partition.tree.root.max_resource() == {"vcore": 1000}


def test_a_sum_that_forgets_the_amount_beyond_its_bound_is_found() -> None:
    b = bench()
    b.ask("x", "h1", vcore=HUGE)
    b.ask("x", "h2", vcore=HUGE)
    b.partition.tree.root.pending.beyond = None
    with pytest.raises(InvariantError, match="pending"):
        b.api.validate()
