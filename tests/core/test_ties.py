"""Queues that tie in priority and share take turns by "larger pending", and the counted work of that."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import Bench, config
from licorne.si.messages import Release

NAMES = "abcdefg"
NEVER = 1_000
"""No node has so much."""
TAKEN = 17
"""What others use of a node, at times."""
Amounts = tuple[int, int]


def above(pending: Amounts, other: Amounts) -> bool:
    return pending != other and all(x >= y for x, y in zip(pending, other, strict=True))


def in_order(pending: dict[str, Amounts], share: dict[str, float]) -> list[str]:
    """The queues with pending asks: by share, then "larger pending", put in one after the other from name order."""
    found: list[str] = []
    for name in sorted(pending):
        at = len(found)
        while at and (
            share[name] < share[found[at - 1]]
            or (share[name] == share[found[at - 1]] and above(pending[name], pending[found[at - 1]]))
        ):
            at -= 1
        found.insert(at, name)
    return found


AMOUNTS = st.one_of(
    st.sampled_from([(1, 4), (4, 1), (2, 3), (3, 2), (1, 1), (2, 2)]),
    st.sampled_from([(NEVER, 1), (NEVER - 1, 2), (NEVER - 2, 3), (NEVER - 3, 4)]),
)
"""Most pairs do not compare; half of them no node has."""
ASKS = st.tuples(st.sampled_from(NAMES), AMOUNTS)
STEPS = st.lists(st.sampled_from(["run"] * 8 + ["end", "other", "other"]) | ASKS, min_size=8, max_size=30)


@given(st.lists(AMOUNTS, min_size=len(NAMES), max_size=2 * len(NAMES)), STEPS)
def test_the_turn_is_that_of_the_first_of_all_that_sorting_makes(
    first: list[Amounts], steps: list[tuple[str, Amounts] | str]
) -> None:
    """Each queue has one ask or two from the beginning; then others come, one is placed, one that was placed ends, or the node is
    used by others and then no longer.
    """
    each: list[tuple[str, Amounts] | str] = [(NAMES[i % len(NAMES)], amounts) for i, amounts in enumerate(first)]
    b = Bench(config(*NAMES), settings={"reservation.enabled": "false"})
    b.node("n", cpu=20, disk=20)
    for name in NAMES:
        b.app(name, f"root.{name}")
    keys, taken = count(), 0
    waiting: dict[str, dict[str, Amounts]] = {}
    running: dict[str, tuple[str, Amounts]] = {}
    for step in each + steps:
        if isinstance(step, tuple):
            name, (cpu, disk) = step
            key = f"{next(keys)}"
            waiting.setdefault(name, {})[key] = step[1]
            b.ask(name, key, cpu=cpu, disk=disk)
        elif step == "end":
            if running:
                key = next(iter(running))
                b.release(running.pop(key)[0], key)
        elif step == "other":
            if taken:
                b.send(Release(key="other"))
            else:
                b.foreign("other", "n", cpu=TAKEN, disk=TAKEN)
            taken = TAKEN - taken
        else:
            free = [20 - taken - sum(amounts[d] for _, amounts in running.values()) for d in (0, 1)]
            share = {
                name: max(sum(amounts[d] for own, amounts in running.values() if own == name) / 20 for d in (0, 1))
                for name in NAMES
            }
            pending = {
                name: (sum(cpu for cpu, _ in asks.values()), sum(disk for _, disk in asks.values()))
                for name, asks in waiting.items()
                if asks
            }
            fitting = [
                (name, key)
                for name in in_order(pending, share)
                for key, (cpu, disk) in waiting[name].items()
                if cpu <= free[0] and disk <= free[1]
            ]
            expected = fitting[0] if fitting else None
            assert b.run(limit=1) == (f"{expected[1]}@n" if expected else "")
            if expected:
                running[expected[1]] = expected[0], waiting[expected[0]].pop(expected[1])


def test_a_queue_that_leaves_a_tie_changes_the_order_of_its_neighbours() -> None:
    """`c` wants more than `a` and came after it only because of `b`, with which it does not compare."""
    b = Bench(config("a", "b", "c"), settings={"reservation.enabled": "false"})
    b.node("n", cpu=20, disk=20)
    b.node("full", attributes={"label/zone": "z"}, cpu=5, disk=5)
    b.foreign("other", "full", cpu=5, disk=5)
    for name in "abc":
        b.app(name, f"root.{name}")
    b.ask("a", "a1", cpu=1, disk=1, tags={"licorne/node-constraints": '{"nodeSelector": {"zone": "z"}}'})
    b.ask("b", "b1", cpu=5)
    b.ask("c", "c1", cpu=2, disk=2)
    assert b.run(limit=1) == "b1@n"  # the order is a, b, c, and nothing can be placed for a
    b.send(Release(key="other"))  # wakes a
    assert b.run(limit=1) == "c1@full"  # the order is c, a
    assert b.run() == "a1@full"


@pytest.mark.parametrize("size", [60, 120])
def test_queues_that_tie_are_sorted_once_for_all_their_turns(size: int) -> None:
    """Those before the ones that run go to sleep, for they want too much: the others' turns need no further sorting."""
    tag = "placementrules: [{name: tag, value: namespace, create: true}]"
    b = Bench(config(more=tag))
    b.node("n", cpu=size)
    for number in range(size):
        b.app(f"a{number}", "", tags={"namespace": f"n{number}"})
        b.ask(f"a{number}", f"k{number}", cpu=size * 2 + number % 3 if number % 2 else 1)
    assert len(b.run().split()) == size // 2
    root = b.partition.tree.root
    assert root.tie_sorts <= 3
    assert len(root.tied) == size
