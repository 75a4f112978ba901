"""Laws of methods that are C methods once compiled, so that no test can call or override them; and a program to try these.

`python -m core.c_methods NAME`, with the hot modules as plain Python, tries one law, and fails as Hypothesis says.
"""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

import common.examples  # noqa: F401  loads the profile of Hypothesis
from core.test_algebra import AMOUNTS, Amounts
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec
from licorne.core.base.order import Order, Ranked
from licorne.core.constants import UNLIMITED

Step = tuple[str, int, int]
STEPS = st.lists(st.tuples(st.sampled_from(["push", "drop", "mend"]), st.integers(0, 30), st.integers(-5, 5)))


class Number(Ranked):
    """Compares by a number that may change; only plain Python asks this method."""

    def __init__(self, value: int, seq: int) -> None:
        self.heap_index = -1
        self.value = value
        self.seq = seq

    def before(self, other: Ranked) -> bool:
        assert isinstance(other, Number)
        return (self.value, self.seq) < (other.value, other.seq)


@given(STEPS)
def the_first_is_the_smallest(steps: list[Step]) -> None:
    order, members = Order(), list[Number]()
    for seq, (step, at, value) in enumerate(steps):
        if step == "push" or not members:
            members.append(Number(value, seq))
            order.push(members[-1])
        elif step == "drop":
            item = members.pop(at % len(members))
            order.drop(item)
            assert item.heap_index == -1
        else:
            item = members[at % len(members)]
            item.value = value
            order.mend(item)
        order.validate()
        assert len(order.items) == len(members)
        if members:
            assert order.top() is min(members, key=lambda item: (item.value, item.seq))


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def headroom_and_what_binds(limit: Amounts, used: Amounts, ask: Amounts) -> None:
    types = Types()
    vector, usage = types.vector(limit, UNLIMITED), types.vector(used)
    room = Vec(0, UNLIMITED)
    room.lower_to_rest(vector, usage)
    left = {name: limit[name] - used.get(name, 0) for name in limit}
    assert {name: room.at(types.slot(name)) for name in limit} == left
    assert vector.binds(usage, types.vector(ask)) == any(
        ask[name] > 0 and left[name] < ask[name] for name in ask if name in limit
    )


@given(AMOUNTS, AMOUNTS)
def componentwise_minimum_and_maximum(a: Amounts, b: Amounts) -> None:
    types = Types()
    low, high = types.vector(a, UNLIMITED), types.vector(a)
    low.lower_to(types.vector(b, UNLIMITED))
    high.raise_to(types.vector(b))
    names = a.keys() | b.keys()
    expected = {name: min(a.get(name, UNLIMITED), b.get(name, UNLIMITED)) for name in names}
    assert {name: low.at(types.slot(name)) for name in names} == expected
    assert {name: high.at(types.slot(name)) for name in names} == {n: max(a.get(n, 0), b.get(n, 0)) for n in names}


LAWS = {
    "the first is the smallest": the_first_is_the_smallest,
    "headroom and what binds": headroom_and_what_binds,
    "componentwise minimum and maximum": componentwise_minimum_and_maximum,
}


if __name__ == "__main__":
    LAWS[sys.argv[1]]()
    sys.stdout.write("holds")
