"""The heap law: whatever happens, the first of an `Order` is the smallest, and every item knows its heap index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tree_bench import Bench, queue, root
from licorne import core
from licorne.core.base.order import Order, Ranked


class Number(Ranked):
    """Compares by a number that may change; only plain Python asks this method."""

    def __init__(self, value: int, seq: int) -> None:
        self.heap_index = -1
        self.value = value
        self.seq = seq

    def before(self, other: Ranked) -> bool:
        assert isinstance(other, Number)
        return (self.value, self.seq) < (other.value, other.seq)


if TYPE_CHECKING:
    Step = tuple[str, int, int]

STEPS = st.lists(st.tuples(st.sampled_from(["push", "drop", "mend"]), st.integers(0, 30), st.integers(-5, 5)))


@pytest.mark.skipif(core.compiled, reason="C methods cannot be called from here")
@given(STEPS)
def test_the_first_is_the_smallest(steps: list[Step]) -> None:
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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(1, 4)), min_size=1, max_size=12))
def test_queues_stay_in_order_while_priorities_come_and_go(asks: list[tuple[int, int, int]]) -> None:
    """The same law for the compiled form, with queues as items."""
    bench = Bench(root(*(queue(name) for name in "abcd")))
    bench.resize(vcore=100)
    apps = [bench.app(f"x-{name}", f"root.{name}") for name in "abcd"]
    pending = []
    for i, (app, priority, vcore) in enumerate(asks):
        pending.append((apps[app], bench.ask(apps[app], f"k{i}", priority, vcore)))
        bench.tree.validate()
    for app_, ask in pending:
        tops = {name: bench[f"root.{name}"].priority for name in "abcd" if bench[f"root.{name}"].asks_pending}
        assert bench.order("root") == sorted(tops, key=lambda name: (-tops[name], name))
        bench.books.unpend(app_, ask)
        bench.tree.validate()
    assert bench.order("root") == []
