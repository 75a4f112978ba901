"""The queue tree: spec config.md, 6, 7, 9 and 13; scheduling.md, 4.1, 4.2, 12, 15.1, 15.2 and 16.1; states.md, 2."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.config.model import QueueConfig, TemplateConfig
from licorne.core.accounting import Books
from licorne.core.application import Application
from licorne.core.asks import NO_PRIORITY, Ask, Shape
from licorne.core.nodeindex import NodeIndex
from licorne.core.nodes import ScorePolicy, first_need
from licorne.core.parking import Parking
from licorne.core.placement_rules import RECOVERY_PATH
from licorne.core.queue import Queue
from licorne.core.timers import Timers
from licorne.core.tree import Tree
from licorne.core.vectors import UNLIMITED, Types

MAX, GUARANTEED, MAX_APPS = "namespace.resourcequota", "namespace.resourceguaranteed", "namespace.resourcemaxapps"


def queue(name: str, *children: QueueConfig, **fields: Any) -> QueueConfig:
    fields.setdefault("parent", bool(children))
    return QueueConfig(name, children=children, **fields)


def root(*children: QueueConfig, **fields: Any) -> QueueConfig:
    return queue("root", *children, parent=True, **fields)


class Bench:
    """A tree with books, so that sums, priorities and orders are those of the running scheduler."""

    def __init__(self, config: QueueConfig) -> None:
        self.types = Types()
        self.types.slot("vcore")
        self.tree = Tree(config, self.types)
        self.parking = Parking(Timers(), UNLIMITED)
        self.books = Books(self.parking, NodeIndex(ScorePolicy(False, [])))
        self.need = first_need()
        self.apps: dict[str, Application] = {}

    def __getitem__(self, path: str) -> Queue:
        found = self.tree.find(path)
        assert found is not None
        return found

    def app(self, id: str, path: str, submitted: int = 0) -> Application:
        app = Application(id, len(self.apps), submitted, self[path], "user")
        self.apps[id] = self[path].apps[id] = app
        return app

    def ask(self, app: Application, key: str, priority: int = 0, vcore: int = 1) -> Ask:
        amounts = {"vcore": vcore}
        shape = Shape(self.types.vector(amounts), amounts, self.need, (vcore,))
        ask = Ask(key, app, shape, priority, 0, 0)
        self.books.add_ask(app, ask)
        return ask

    def resize(self, **amounts: int) -> None:
        self.tree.set_total(self.types.vector(amounts))
        self.tree.reweigh()

    def order(self, path: str) -> list[str]:
        """Who comes first, second, ... among what stands in the queue's order: taken out one by one."""
        items = list(self[path].order.items)
        rest, found = list(items), []
        while rest:
            self[path].order.refill(rest)
            first = self[path].order.items[0]
            found.append(getattr(first, "name", "") or getattr(first, "id", ""))
            rest.remove(first)
        self[path].order.refill(items)
        return found


def facts(queue: Queue) -> tuple[Any, ...]:
    """All that a configuration decides about a queue."""
    return (
        queue.path,
        queue.is_leaf,
        queue.serves,
        str(queue.state),
        queue.limit.named(queue.types),
        queue.guaranteed.named(queue.types),
        queue.weights.named(queue.types),
        queue.max_resource(),
        queue.guaranteed_resource(),
        queue.max_apps,
        queue.settings,
        queue.properties,
        (queue.offset, queue.fence, queue.by_priority, queue.fair, queue.stateaware, queue.backoff),
        (queue.submit_acl, queue.admin_acl, queue.template, queue.inherited_template),
        queue.priority,
        queue.share,
    )


# -- building ----------------------------------------------------------------------------------------------


def test_a_tree_is_what_the_configuration_says() -> None:
    tree = Tree(
        root(
            queue("b", queue("x-y"), queue("x"), max={"vcore": 5}, max_applications=7),
            queue("b-c", parent=True, guaranteed={"memory": 1}),
            submit_acl="*",
        ),
        Types(),
    )
    assert [q.path for q in tree.queues()] == ["root", "root.b", "root.b-c", "root.b.x", "root.b.x-y"]
    assert [q.path for q in tree.queues() if q.is_leaf] == ["root.b.x", "root.b.x-y"]
    b = tree.find("root.b")
    assert b is not None
    assert (b.max_resource(), b.guaranteed_resource(), b.max_apps, b.managed) == ({"vcore": 5}, None, 7, True)
    assert tree.find("root.B") is None
    assert tree.root.submit_allowed("anybody", [])
    assert tree.stale
    tree.validate()


PROPERTIES = {
    "application.sort.policy": "fair",
    "application.sort.priority": "disabled",
    "priority.policy": "fence",
    "priority.offset": "7",
    "preemption.policy": "fence",
    "preemption.delay": "1m",
}


def test_properties_are_inherited_by_configured_queues_only() -> None:
    tree = Tree(root(queue("a", queue("leaf", properties={"preemption.delay": "2m"}), properties=PROPERTIES)), Types())
    leaf = tree.find("root.a.leaf")
    assert leaf is not None
    assert leaf.properties == {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
        "preemption.delay": "2m",
    } | {key: leaf.properties[key] for key in leaf.properties if key.endswith((".policy", ".offset"))}
    assert (leaf.fair, leaf.by_priority, leaf.fence, leaf.offset) == (True, False, False, 0)
    assert leaf.settings.preemption_policy == "default"
    dynamic = tree.create_dynamic("root.a.new.deep")
    assert dynamic.properties == dynamic.parent.properties == {}
    tree.validate()


def test_shares_of_the_worked_example() -> None:
    """15.1: A 0.5, B 0.6, C 0.1; order C, A, B, and with a higher priority B first."""
    bench = Bench(
        root(queue("a", guaranteed={"vcore": 8000}, max={"vcore": 9000}), queue("b", max={"vcore": 5000}), queue("c"))
    )
    for name, amount in (("a", 4000), ("b", 3000), ("c", 1000)):
        app = bench.app(name, f"root.{name}")
        bench[f"root.{name}"].allocated.plus(bench.types.vector({"vcore": amount}))
        bench.tree.root.allocated.plus(bench.types.vector({"vcore": amount}))
        app.allocated.plus(bench.types.vector({"vcore": amount}))
        bench.ask(app, name)
    bench.resize(vcore=10000)
    assert [bench[f"root.{name}"].share for name in "abc"] == [0.5, 0.6, 0.1]
    assert bench.order("root") == ["c", "a", "b"]
    bench.ask(bench.apps["b"], "urgent", priority=10)
    assert bench.order("root") == ["b", "c", "a"]
    bench.tree.validate()


def test_root_is_limited_by_the_cluster_and_by_nothing_it_lacks() -> None:
    bench = Bench(root(queue("a"), queue("b", max={"gpu": 2})))
    bench.resize(vcore=10, memory=0)
    assert bench.tree.root.max_resource() == {"vcore": 10}
    assert bench.tree.root.limit.get(bench.types.slot("memory")) == UNLIMITED
    assert bench["root.a"].weights.named(bench.types) == {"vcore": 10}
    assert bench["root.b"].weights.named(bench.types) == {"gpu": 2, "vcore": 10}
    bench.resize()
    assert bench.tree.root.max_resource() is None
    assert bench["root.b"].weights.named(bench.types) == {}, "fairMax: where one side is empty, the parent's counts"
    assert not bench.tree.stale


# -- priorities --------------------------------------------------------------------------------------------


def test_offsets_add_up_and_fences_hide() -> None:
    """15.2, with a reload that is seen at all ancestors at once (4.2)."""

    def config(parent: dict[str, str]) -> QueueConfig:
        return root(queue("p", queue("leaf", properties={"priority.offset": "5"}), properties=parent))

    bench = Bench(config({}))
    app = bench.app("x", "root.p.leaf")
    bench.ask(app, "ten", 10)
    twenty = bench.ask(app, "twenty", 20)
    seen = [[q.priority for q in bench["root.p.leaf"].lineage()]]
    bench.books.remove_ask(app, twenty)
    seen.append([q.priority for q in bench["root.p.leaf"].lineage()])
    for parent in ({"priority.offset": "100"}, {"priority.policy": "fence", "priority.offset": "10"}, {}):
        bench.tree.reload(config(parent))
        bench.tree.validate()
        seen.append([q.priority for q in bench["root.p.leaf"].lineage()])
    bench.books.remove_ask(app, app.asks["ten"])
    seen.append([q.priority for q in bench["root.p.leaf"].lineage()])
    assert seen == [
        [25, 25, 25],
        [15, 15, 15],
        [15, 115, 115],
        [15, 10, 10],
        [15, 15, 15],
        [NO_PRIORITY] * 3,
    ]
    bench.tree.validate()


def test_refresh_of_one_subtree_reaches_root() -> None:
    bench = Bench(root(queue("p", queue("a")), queue("q")))
    bench.ask(bench.app("x", "root.p.a"), "k", 1)
    bench.ask(bench.app("y", "root.q"), "k", 2)
    assert bench.order("root") == ["q", "p"]
    bench["root.p.a"].offset = 9
    bench.tree.refresh_priorities(bench["root.p.a"])
    assert [q.priority for q in bench["root.p.a"].lineage()] == [10, 10, 10]
    assert bench.order("root") == ["p", "q"]
    bench.tree.validate()


def test_a_changed_policy_reorders_the_applications() -> None:
    def config(**properties: str) -> QueueConfig:
        return root(queue("a", properties={key.replace("_", "."): value for key, value in properties.items()}))

    bench = Bench(config())
    for name, used, submitted in (("x", 3, 1), ("y", 1, 2), ("z", 2, 3)):
        app = bench.app(name, "root.a", submitted)
        bench.ask(app, name, priority=submitted)
        for target in (app.allocated, bench["root.a"].allocated, bench.tree.root.allocated):
            target.plus(bench.types.vector({"vcore": used}))
    orders = []
    for properties in ({"application_sort_priority": "disabled"}, {}):
        for policy in ("fifo", "fair"):
            bench.tree.reload(config(application_sort_policy=policy, **properties))
            bench.tree.validate()
            orders.append("".join(bench.order("root.a")))
    assert orders == ["xyz", "yzx", "zyx", "zyx"]


# -- reload ------------------------------------------------------------------------------------------------


def test_a_reload_forgets_what_is_no_longer_said() -> None:
    """16.1 and config.md, 13."""
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


def test_what_is_no_longer_configured_drains_and_comes_back() -> None:
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
    assert (bench["root.a"].serves, bench["root.a.b"].serves, old.place) == (False, True, -1)
    assert (bench["root.a"].asks_pending, bench["root.a"].active, bench.tree.root.active) == (1, 0, 1)
    assert bench.order("root") == ["z"]
    new = bench.app("new", "root.a.b")
    bench.ask(new, "k3", 2)
    assert (bench.order("root"), bench.order("root.a")) == (["a", "z"], ["b"])
    bench.tree.validate()
    bench.tree.reload(leaf)
    bench.tree.validate()
    assert (new.place, str(bench["root.a.b"].state), bench["root.a.b"].serves) == (-1, "Draining", False)
    bench.parking.wake_app(old)
    assert (bench.order("root"), bench.order("root.a")) == (["a", "z"], ["old"])
    bench.tree.validate()


# -- dynamic queues ----------------------------------------------------------------------------------------


def test_a_template_makes_the_leaf() -> None:
    """Config.md, section 9: the nearest ancestor's, not merged, for the leaf only."""
    near = TemplateConfig(4, {"application.sort.policy": "fair", "blank": " "}, {"vcore": 1}, {"vcore": 8})
    tree = Tree(
        root(
            queue("near", parent=True, template=near),
            queue("far", queue("sub", parent=True)),
            template=TemplateConfig(max_applications=9),
        ),
        Types(),
    )
    leaf = tree.create_dynamic("root.near.Mid.Leaf")
    assert leaf.path == "root.near.mid.leaf"
    assert (leaf.max_apps, leaf.fair, leaf.properties) == (4, True, {"application.sort.policy": "fair"})
    assert (leaf.max_resource(), leaf.guaranteed_resource(), leaf.managed) == ({"vcore": 8}, {"vcore": 1}, False)
    mid = leaf.parent
    assert (mid.is_leaf, mid.managed, mid.max_apps, mid.template) == (False, False, 0, near)
    assert tree.create_dynamic("root.far.sub.x").max_apps == 9
    assert tree.create_dynamic("root.near.mid.leaf") is leaf
    recovery = tree.create_dynamic(RECOVERY_PATH)
    assert (recovery.is_leaf, recovery.max_apps, recovery.fair, recovery.submit_allowed("u", [])) == (
        True,
        0,
        False,
        False,
    )
    tree.validate()


def amount(**values: int) -> str:
    return json.dumps({"resources": {name: {"value": value} for name, value in values.items()}})


NONE: dict[str, int] | None = None
TAGS = [
    # tags, changed, max, guaranteed, maximum of applications; the leaf starts with max 8, guaranteed 1, 4 applications
    ({}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: amount(vcore=1000)}, True, {"vcore": 1000}, NONE, 4),
    ({GUARANTEED: amount(vcore=5)}, True, NONE, {"vcore": 5}, 4),
    ({MAX: amount(vcore=8), GUARANTEED: amount(vcore=1)}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: amount(vcore=8, memory=0), GUARANTEED: amount(memory=2)}, True, {"vcore": 8, "memory": 0}, {"memory": 2}, 4),
    ({MAX: amount(vcore=0)}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: amount(vcore=5, memory=-1)}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: "no json"}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: "[]"}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: '{"resources": {"vcore": {"value": "5"}}}'}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: '{"resources": {"vcore": {"value": true}}}'}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX: '{"resources": {"vcore": {"value": 9223372036854775808}}}'}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX_APPS: "7"}, True, {"vcore": 8}, {"vcore": 1}, 7),
    ({MAX_APPS.upper(): "7"}, True, {"vcore": 8}, {"vcore": 1}, 7),
    ({MAX_APPS: "0"}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX_APPS: "-1"}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX_APPS: "18446744073709551616"}, False, {"vcore": 8}, {"vcore": 1}, 4),
    ({MAX_APPS: "x", MAX: amount(vcore=2)}, True, {"vcore": 2}, NONE, 4),
]


@pytest.mark.parametrize(("tags", "changed", "maximum", "guaranteed", "apps"), TAGS)
def test_namespace_tags(
    tags: dict[str, str],
    changed: bool,
    maximum: dict[str, int] | None,
    guaranteed: dict[str, int] | None,
    apps: int,
) -> None:
    template = TemplateConfig(4, {}, {"vcore": 1}, {"vcore": 8})
    tree = Tree(root(queue("p", parent=True, template=template), queue("managed", max={"vcore": 8})), Types())
    leaf = tree.create_dynamic("root.p.x")
    tree.reweigh()
    assert tree.apply_namespace_tags(leaf, tags) is changed
    assert (leaf.max_resource(), leaf.guaranteed_resource(), leaf.max_apps) == (maximum, guaranteed, apps)
    assert tree.stale is ((maximum, guaranteed) != ({"vcore": 8}, {"vcore": 1}))
    managed = tree.find("root.managed")
    assert managed is not None
    assert tree.apply_namespace_tags(managed, tags) is False
    assert (managed.max_resource(), managed.max_apps) == ({"vcore": 8}, 0)


def test_the_cleaner_removes_what_is_empty_children_first() -> None:
    bench = Bench(root(queue("p", queue("a")), queue("q"), queue("r", parent=True)))
    bench.tree.create_dynamic("root.r.x.y")
    bench.app("busy", bench.tree.create_dynamic("root.r.x.z").path)
    assert bench.tree.has_removable()
    assert bench.tree.remove_empty() == ["root.r.x.y"]
    assert not bench.tree.has_removable()
    bench.tree.reload(root(queue("r", parent=True)))
    assert bench.tree.remove_empty() == ["root.q", "root.p.a", "root.p"]
    bench["root.r.x.z"].apps.clear()
    assert bench.tree.remove_empty() == ["root.r.x.z", "root.r.x"]
    assert [q.path for q in bench.tree.queues()] == ["root", "root.r"]
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
            bench.parking.wake_tree(bench.tree.root)
        else:
            place, priority = step
            leaves = [q for q in bench.tree.queues() if q.is_leaf]
            if not leaves:
                continue
            path = leaves[place % len(leaves)].path
            app = next(iter(bench[path].apps.values()), None) or bench.app(f"x{number}", path)
            if priority == 0 and app.asks:
                bench.books.remove_ask(app, next(iter(app.asks.values())))
            else:
                bench.ask(app, f"k{number}", priority)
        bench.tree.validate()
