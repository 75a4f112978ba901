"""Why an ask waits, as data: each kind of reason with the queue, user or node and what is missing there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.bench import SECOND_NS, START_S, Bench, config, limit, parent
from licorne.core.inspection.explain import (
    Backoff,
    ClusterFull,
    MaxApplications,
    Nodes,
    NotTried,
    QueueQuota,
    Reason,
    RequiredNode,
    Reserved,
    StateOrder,
    UserLimit,
)
from licorne.si.messages import NodeAction


def bench(text: str, *nodes: int, **settings: str) -> Bench:
    b = Bench(text, settings={key.replace("_", "."): value for key, value in settings.items()})
    for number, vcore in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=vcore, memory=100)
    b.app("x", "root.p.a" if "name: p" in text else "root.a", "alice", "dev")
    return b


def queue_quota() -> tuple[Bench, list[Reason]]:
    b = bench(config(parent("p resources: {max: {vcore: 5m}}", "a resources: {max: {vcore: 4m, memory: 2}}")), 10)
    b.ask("x", "on", vcore=3, node="n1")
    b.ask("x", "k", vcore=4, memory=7)
    return b, [QueueQuota("root.p.a", {"memory": 5, "vcore": 3}, never=True), QueueQuota("root.p", {"vcore": 2})]


def cluster_size() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10)
    b.ask("x", "k", vcore=12)
    return b, [ClusterFull({"vcore": 2}, never=True), Nodes({"too small": 1}, never=True)]


def a_type_that_no_node_has() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10)
    b.ask("x", "k", vcore=1, gpu=1)
    return b, [
        Nodes({"too small": 1}, never=True, absent=("gpu",))
    ]  # a quota that does not list a type lets it pass, also the cluster's


def user_and_group() -> tuple[Bench, list[Reason]]:
    b = bench(config("a", root=f"limits: [{limit('alice', vcore=3)}, {limit(groups='dev', vcore=4)}]"), 10)
    b.ask("x", "k", vcore=6)
    return b, [
        UserLimit("user", "alice", "root", {"vcore": 3}, never=True),
        UserLimit("group", "dev", "root", {"vcore": 2}, never=True),
    ]


def max_applications_of_the_queue() -> tuple[Bench, list[Reason]]:
    b = bench(config(parent("p maxapplications: 1", "a maxapplications: 1")), 10)
    b.app("first", "root.p.a")
    b.ask("first", "on", vcore=1, node="n1")
    b.ask("x", "k", vcore=1)
    return b, [MaxApplications("root.p")]


def max_applications_of_the_user() -> tuple[Bench, list[Reason]]:
    b = bench(config("a", root=f"limits: [{limit('*', apps=1)}]"), 10)
    b.app("first", user="alice")
    b.ask("first", "on", vcore=1, node="n1")
    b.ask("x", "k", vcore=1)
    return b, [MaxApplications("root", "user", "alice")]


def state_order() -> tuple[Bench, list[Reason]]:
    b = bench(config("a properties: {application.sort.policy: stateaware}"), 10, application_state_starting="true")
    b.app("second")
    b.ask("x", "on", vcore=1)
    b.ask("second", "k", vcore=1)
    return b, [StateOrder("root.a")]


def backoff() -> tuple[Bench, list[Reason]]:
    b = bench(config("a properties: {application.unschedasks.backoff: '1'}"), 5, 5, reservation_enabled="false")
    b.ask("x", "large", vcore=6)
    b.ask("x", "k", vcore=1)
    return b, [Backoff((START_S + 30) * SECOND_NS)]


def nodes() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10, 10, 1, reservation_enabled="false")
    taints = '[{"key": "x", "value": "y", "effect": "NoSchedule"}]'
    b.node("drained", NodeAction.CREATE_DRAIN, vcore=50, memory=50, attributes={"label/label": "none"})
    b.node("tainted", vcore=50, memory=50, attributes={"label/label": "none", "taints": taints})
    b.node("other", vcore=50, memory=50)
    for name in ("n1", "n2"):
        b.ask("x", f"on-{name}", vcore=6, memory=100, node=name)
    b.ask("x", "k", vcore=5, memory=1, tags={"licorne/node-constraints": '{"nodeSelector": {"label": "none"}}'})
    for name in ("n1", "n3"):
        b.node(name, NodeAction.UPDATE, attributes={"label/label": "none"})
    taint = "taint x=y:NoSchedule"
    failed = {"lack of memory, vcore": 1, "nodeSelector": 2, "not schedulable": 1, "too small": 1, taint: 1}
    return b, [Nodes(failed)]


def required_unknown() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10)
    b.ask("x", "k", required="n9", vcore=1)
    return b, [RequiredNode("n9", "unknown", {}, never=True)]


def required_full() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10, 10)
    b.ask("x", "on", vcore=8, priority=9, node="n1")
    b.ask("x", "k", required="n1", vcore=3)
    return b, [RequiredNode("n1", "full", {"vcore": 1}), Reserved("n1", START_S * SECOND_NS)]


def required_mismatch() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10)
    b.ask("x", "k", required="n1", vcore=3, tags={"licorne/node-constraints": '{"nodeSelector": {"a": "b"}}'})
    return b, [RequiredNode("n1", "nodeSelector", {}, never=True)]


def reserved_for_it() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10, 10)
    for name in ("n1", "n2"):
        b.ask("x", f"on-{name}", vcore=6, node=name)
    b.ask("x", "k", vcore=5, age_s=10)
    return b, [Nodes({"lack of vcore": 2}), Reserved("n1", START_S * SECOND_NS)]


def reserved_for_another() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10)
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=50)
    b.ask("x", "on", vcore=6, node="n1")
    b.ask("x", "first", vcore=5, age_s=10)
    b.ask("x", "k", vcore=1)
    return b, [Nodes({"not schedulable": 1, "reserved": 1})]


def too_small_for_ever_and_reserved_or_closed() -> tuple[Bench, list[Reason]]:
    b = bench(config("a"), 10)
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=4)
    b.ask("x", "on", vcore=6, node="n1")
    b.ask("x", "first", vcore=5, age_s=10)
    b.ask("x", "k", vcore=11)
    return b, [ClusterFull({"vcore": 3}), Nodes({"too small": 2}, never=True)]


KINDS = [
    queue_quota,
    cluster_size,
    a_type_that_no_node_has,
    user_and_group,
    max_applications_of_the_queue,
    max_applications_of_the_user,
    state_order,
    backoff,
    nodes,
    required_unknown,
    required_full,
    required_mismatch,
    reserved_for_it,
    reserved_for_another,
    too_small_for_ever_and_reserved_or_closed,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_kind_of_reason(kind: Callable[[], tuple[Bench, list[Reason]]]) -> None:
    b, expected = kind()
    b.run()
    assert b.why("k") == expected


def test_a_predicate_that_refuses() -> None:
    b = Bench(config("a"), holds=lambda _key, node, _allocate: node != "n1")
    b.node("n1", vcore=10)
    b.node("n2", vcore=1)
    b.app("x")
    b.ask("x", "k", vcore=2)
    b.run()
    assert b.why("k") == [Nodes({"predicate": 1, "too small": 1})]
    b.ask("x", "d", required="n1", vcore=2)
    b.run()
    assert b.why("d") == [RequiredNode("n1", "predicate", {}), Reserved("n1", START_S * SECOND_NS)]


def test_before_its_first_turn_and_when_it_has_been_placed() -> None:
    b = bench(config("a"), 10)
    b.ask("x", "k", vcore=1)
    assert b.why("k") == [NotTried()]
    b.run()
    assert b.why("k") == []


def test_all_pending_asks_are_listed_with_their_application() -> None:
    b = bench(config("a"), 1)
    b.app("y")
    for app, key in (("y", "k1"), ("x", "k2"), ("y", "k0")):
        b.ask(app, key, vcore=2)
    b.run()
    assert [(key, app) for key, app, _ in b.partition.waiting()] == [("k2", "x"), ("k1", "y"), ("k0", "y")]
