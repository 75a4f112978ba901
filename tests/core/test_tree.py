"""The queue tree.

Source: docs/spec/config.md, sections 7 and 9; docs/spec/scheduling.md, sections 4.1 and 4.2, 12 and 15.2;
docs/spec/states.md, section 2.
"""

from __future__ import annotations

import json

import pytest

from core.tree_bench import PROPERTIES, Bench, queue, root
from licorne.config.model import QueueConfig, TemplateConfig
from licorne.config.properties import QueueProperties
from licorne.core.amounts.types import Types
from licorne.core.constants import NO_PRIORITY, UNLIMITED
from licorne.core.placement.rules import RECOVERY_PATH
from licorne.core.queues.tree import Tree

MAX, GUARANTEED, MAX_APPS = "namespace.resourcequota", "namespace.resourceguaranteed", "namespace.resourcemaxapps"


# -- building ----------------------------------------------------------------------------------------------


def test_a_tree_follows_its_configuration() -> None:
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
    assert isinstance(leaf.settings, QueueProperties)
    assert leaf.settings.preemption_policy == "default"
    dynamic = tree.create_dynamic("root.a.new.deep")
    assert dynamic.parent is not None
    assert dynamic.properties == dynamic.parent.properties == {}
    tree.validate()


def test_root_is_limited_by_the_cluster_and_by_nothing_it_lacks() -> None:
    bench = Bench(root(queue("a"), queue("b", max={"gpu": 2})))
    bench.resize(vcore=10, memory=0)
    assert bench.tree.root.max_resource() == {"vcore": 10}
    assert bench.tree.root.limit.at(bench.types.slot("memory")) == UNLIMITED
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
    bench.accounting.unpend(app, twenty)
    seen.append([q.priority for q in bench["root.p.leaf"].lineage()])
    for parent in ({"priority.offset": "100"}, {"priority.policy": "fence", "priority.offset": "10"}, {}):
        bench.tree.reload(config(parent))
        bench.tree.validate()
        seen.append([q.priority for q in bench["root.p.leaf"].lineage()])
    bench.accounting.unpend(app, app.asks["ten"])
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


# -- dynamic queues ----------------------------------------------------------------------------------------


def test_a_template_makes_the_leaf() -> None:
    """docs/spec/config.md, section 9: the nearest ancestor's, not merged, for the leaf only."""
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
    assert mid is not None
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


def test_a_guarantee_from_tags_changes_the_fair_order() -> None:
    template = TemplateConfig(properties={"application.sort.policy": "fair"})
    bench = Bench(root(queue("p", parent=True, template=template)))
    leaf = bench.tree.create_dynamic("root.p.x")
    for name, used in (("x", {"vcore": 3}), ("y", {"memory": 5})):
        app = bench.app(name, leaf.path)
        app.allocated.plus(bench.types.vector(used))
        for upper in leaf.lineage():
            upper.allocated.plus(bench.types.vector(used))
        app.recompute_usage()
        bench.ask(app, name)
    assert bench.order(leaf.path) == ["x", "y"]
    assert bench.tree.apply_namespace_tags(leaf, {GUARANTEED: amount(vcore=3, memory=100)})
    bench.tree.validate()
    assert bench.order(leaf.path) == ["y", "x"]


def test_the_cleaner_removes_empty_queues_children_first() -> None:
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
