"""Reloads of the queue tree.

Source: docs/spec/config.md, sections 6 and 13; docs/spec/scheduling.md, section 16.1; docs/spec/states.md, section 2.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.tree_bench import PROPERTIES, Bench, facts, queue, root
from licorne.config.model import QueueConfig, TemplateConfig
from licorne.core.amounts.types import Types
from licorne.core.queues.tree import Tree

# -- reload ------------------------------------------------------------------------------------------------


def test_a_reload_forgets_settings_that_are_no_longer_given() -> None:
    """16.1 and docs/spec/config.md, section 13."""
    template = TemplateConfig(max_applications=3)
    before = root(
        queue("a", max={"vcore": 1}, guaranteed={"vcore": 1}, max_applications=2, properties=PROPERTIES, admin_acl="u"),
        queue("p", queue("q", parent=True), template=template),
        max_applications=9,
        properties={"priority.offset": "4"},
    )
    after = root(queue("a"), queue("p", queue("q", parent=True), template=template), max_applications=8)
    tree, fresh = Tree(before, Types()), Tree(after, Types())
    tree.reload(after)
    assert [facts(q) for q in tree.queues()] == [facts(q) for q in fresh.queues()]
    q = tree.find("root.p.q")
    assert q is not None
    assert (q.template, q.inherited_template) == (template, True)
    assert tree.root.max_apps == 8


def test_a_queue_that_is_no_longer_configured_drains_and_comes_back() -> None:
    full = root(queue("p", queue("a"), queue("b")), queue("c"))
    tree = Tree(full, Types())
    dynamic = tree.create_dynamic("root.c2.x")
    tree.reload(root(queue("c"), queue("e", parent=True)))
    states = {q.path: str(q.state) for q in tree.queues()}
    assert states == {
        "root": "Active",
        "root.c": "Active",
        "root.c2": "Active",
        "root.c2.x": "Active",
        "root.e": "Active",
        "root.p": "Draining",
        "root.p.a": "Draining",
        "root.p.b": "Draining",
    }
    tree.reload(root(queue("p", queue("a")), queue("c")))
    states = {q.path: str(q.state) for q in tree.queues()}
    assert [path for path in states if states[path] == "Draining"] == ["root.e", "root.p.b"]
    assert tree.find("root.c2.x") is dynamic
    tree.validate()


def test_a_dynamic_queue_becomes_managed() -> None:
    tree = Tree(root(queue("p", parent=True, template=TemplateConfig(3, {}, None, {"vcore": 3}))), Types())
    leaf = tree.create_dynamic("root.p.a")
    tree.reload(root(queue("p", queue("a", max_applications=1))))
    assert tree.find("root.p.a") is leaf
    assert (leaf.managed, leaf.max_apps, leaf.max_resource()) == (True, 1, None)
    assert tree.remove_empty() == []


def test_leaf_to_parent_and_back() -> None:
    """Applications of a queue that serves them no longer sleep; sums, priorities and orders stay right."""
    leaf, parent = root(queue("a"), queue("z")), root(queue("a", queue("b")), queue("z"))
    bench = Bench(leaf)
    old, other = bench.app("old", "root.a"), bench.app("other", "root.z")
    bench.ask(old, "k1", 3)
    bench.ask(other, "k2", 1)
    bench.tree.validate()
    bench.tree.reload(parent)
    bench.tree.validate()
    assert (bench["root.a"].reachable, bench["root.a.b"].reachable, old.heap_index) == (False, True, -1)
    assert (bench["root.a"].asks_pending, bench["root.a"].awake_count, bench.tree.root.awake_count) == (1, 0, 1)
    assert bench.order("root") == ["z"]
    new = bench.app("new", "root.a.b")
    bench.ask(new, "k3", 2)
    assert (bench.order("root"), bench.order("root.a")) == (["a", "z"], ["b"])
    bench.tree.validate()
    bench.tree.reload(leaf)
    bench.tree.validate()
    assert (new.heap_index, str(bench["root.a.b"].state), bench["root.a.b"].reachable) == (-1, "Draining", False)
    bench.wakeups.may_run(old)
    assert (bench.order("root"), bench.order("root.a")) == (["a", "z"], ["old"])
    bench.tree.validate()


# -- the law -----------------------------------------------------------------------------------------------

_AMOUNTS = st.none() | st.dictionaries(st.sampled_from(["vcore", "memory"]), st.integers(1, 9), min_size=1)
_PROPERTIES = st.dictionaries(st.sampled_from(sorted(PROPERTIES)), st.sampled_from(["fair", "fence", "3", "disabled"]))
_TEMPLATES = st.none() | st.builds(TemplateConfig, st.integers(1, 3), _PROPERTIES, _AMOUNTS, _AMOUNTS)


@st.composite
def _configs(draw: st.DrawFn, name: str, depth: int) -> QueueConfig:
    names = draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3)) if depth else []
    bare = not draw(st.booleans())
    managed = name != "root" and not bare
    return QueueConfig(
        name,
        parent=draw(st.booleans()),
        children=tuple(draw(_configs(child, depth - 1)) for child in names),
        guaranteed=draw(_AMOUNTS) if managed else None,
        max=draw(_AMOUNTS) if managed else None,
        max_applications=draw(st.integers(0, 3)),
        properties={} if bare else draw(_PROPERTIES),
        submit_acl=draw(st.sampled_from(["", "*", " g"])),
        template=None if bare else draw(_TEMPLATES),
    )


@examples(100)
@given(first=_configs("root", 2), second=_configs("root", 2))
def test_a_reload_comes_to_the_same_as_a_fresh_start(first: QueueConfig, second: QueueConfig) -> None:
    types = Types()
    reloaded, fresh = Tree(first, types), Tree(second, types)
    reloaded.reload(second)
    reloaded.validate()
    active = {q.path for q in fresh.queues()}
    assert {q.path for q in reloaded.queues() if str(q.state) != "Draining"} == active
    reloaded.remove_empty()
    reloaded.validate()
    for tree in (reloaded, fresh):
        tree.set_total(types.vector({"vcore": 20, "memory": 10}))
        tree.reweigh()
    assert [facts(q) for q in reloaded.queues() if q.path in active] == [facts(q) for q in fresh.queues()]
    assert {q.path for q in reloaded.queues()} == active


@examples(60)
@given(
    first=_configs("root", 2),
    steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)) | _configs("root", 2), max_size=12),
)
def test_sums_and_orders_survive_every_reload(first: QueueConfig, steps: list[Any]) -> None:
    bench = Bench(first)
    bench.resize(vcore=9)
    for number, step in enumerate(steps):
        if isinstance(step, QueueConfig):
            bench.tree.reload(step)
            bench.tree.validate()
            bench.tree.reweigh()
            bench.tree.remove_empty()
            bench.wakeups.retry_everything(bench.tree.root)
        else:
            place, priority = step
            leaves = [q for q in bench.tree.queues() if q.is_leaf]
            if not leaves:
                continue
            path = leaves[place % len(leaves)].path
            app = next(iter(bench[path].apps.values()), None) or bench.app(f"x{number}", path)
            if priority == 0 and app.asks:
                bench.accounting.unpend(app, next(iter(app.asks.values())))
            else:
                bench.ask(app, f"k{number}", priority)
        bench.tree.validate()
