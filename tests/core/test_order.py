"""The heap law: whatever happens, the first of an `Order` is the smallest. Its form of plain Python: `core.c_methods`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.tree_bench import Bench, queue, root


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(1, 4)), min_size=1, max_size=12))
def test_queues_stay_in_order_while_priorities_come_and_go(asks: list[tuple[int, int, int]]) -> None:
    """With queues as items, which are compiled where the order is."""
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
        bench.accounting.unpend(app_, ask)
        bench.tree.validate()
    assert bench.order("root") == []
