"""Nodes that have less than is allocated there: what one has too much is taken from no other (differences 146 and 147).

A node shrinks while its device plugin restarts, or an allocation there grows, or comes from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.bench import Bench, cluster, config
from licorne.core.inspection.explain import ClusterFull, RequiredNode
from licorne.si.messages import Allocation, NodeAction, Release, Termination

UPDATE = NodeAction.UPDATE
QUEUES = config("a", "b resources: {guaranteed: {vcore: 4m}}, properties: {preemption.delay: 1s}")


def bench(used: dict[str, int], text: str = QUEUES, **settings: str) -> Bench:
    """Nodes of 8 vcore, on which so many pods of 1 run in a queue that is guaranteed nothing."""
    b = Bench(text, settings=settings)
    b.app("a", "root.a")
    b.app("b", "root.b")
    for node, number in used.items():
        b.node(node, vcore=8)
        for i in range(number):
            b.ask("a", f"{node}-{i}", node=node, vcore=1)
    return b


def shrunk(size: int) -> Callable[[Bench], object]:
    return lambda b: b.node("n1", UPDATE, capacity={"vcore": size})


def grown(b: Bench) -> None:
    b.ask("a", "n1-0", node="n1", vcore=8)


def given(b: Bench) -> None:
    for i in range(3):
        b.ask("a", f"by hand {i}", node="n1", vcore=1)


def evicted(b: Bench) -> list[str]:
    """Let time pass for the ask of `b`, whose victims end at once, until nothing more happens; return the victims."""
    gone: list[str] = []
    for _ in range(12):
        b.run(after=16)
        for alloc in list(b.partition.accounting.victims):
            gone.append(alloc.key)
            b.release("a", alloc.key, termination=Termination.PREEMPTED_BY_SCHEDULER)
    return gone


@pytest.mark.parametrize("queue", ["a", "b"])
@pytest.mark.parametrize("parking", ["true", "false"])
@pytest.mark.parametrize("happens", [shrunk(7), shrunk(4), shrunk(0), grown, given])
def test_what_is_free_on_another_node_is_used(happens: Callable[[Bench], object], queue: str, parking: str) -> None:
    b = bench({"n1": 8, "n2": 6}, **{"scheduler.parking": parking})
    happens(b)
    for i in range(3):
        b.ask(queue, f"new{i}", vcore=1, preempt_other=queue == "b")
    assert b.run() == "new0@n2 new1@n2"
    assert b.partition.tree.root.max_resource() == b.partition.total.named(b.partition.types), "as it is shown"


@pytest.mark.parametrize("happens", [shrunk(8), shrunk(7), shrunk(4), shrunk(0), grown, given])
def test_one_victim_is_enough_for_an_ask_of_its_size(happens: Callable[[Bench], object]) -> None:
    b = bench({"n1": 8, "n2": 8, "n3": 8})
    happens(b)
    b.ask("b", "new", vcore=1, preempt_other=True)
    assert len(evicted(b)) == 1
    assert "new" in b.application("b").allocations


def test_a_queue_that_uses_more_than_the_nodes_have_left_may_preempt_for_its_guarantee() -> None:
    b = Bench(QUEUES.replace("vcore: 4m", "vcore: 9m"))
    for node in ("n1", "n2"):
        b.node(node, vcore=8)
    b.app("a", "root.a")
    b.app("b", "root.b")
    for i in range(8):
        b.ask("b", f"n1-{i}", node="n1", vcore=1)
        b.ask("a", f"n2-{i}", node="n2", vcore=1)
    shrunk(0)(b)
    b.ask("b", "new", vcore=1, preempt_other=True)
    assert len(evicted(b)) == 1
    assert "new" in b.application("b").allocations


@pytest.mark.parametrize("parking", ["true", "false"])
def test_an_ask_is_woken_when_more_is_left_although_usage_has_grown_meanwhile(parking: str) -> None:
    """An ask for more than all that is left; then, in one call, n1 gets 3 more by hand, and n2 gives 2 back."""
    b = bench({"n1": 8, "n2": 6}, config("a", "b"), **{"scheduler.parking": parking})
    b.ask("b", "large", vcore=4)
    assert b.run() == ""
    assert isinstance(b.why("large")[0], ClusterFull)
    b.send(
        *[Allocation(key=f"by hand {i}", application_id="a", resource={"vcore": 1}, node_id="n1") for i in range(3)],
        *[Release(application_id="a", key=f"n2-{i}", termination=Termination.STOPPED_BY_RM) for i in range(2)],
    )
    assert b.run() == "large@n2"


def test_the_end_of_what_a_node_has_too_much_is_no_room() -> None:
    b = bench({"n1": 8, "n2": 8})
    shrunk(4)(b)
    b.ask("a", "new", vcore=1)
    for i in range(4):
        b.release("a", f"n1-{i}")
        assert b.run() == ""
        assert b.why("new") == [ClusterFull({"vcore": 1})]
    b.release("a", "n1-4")
    assert b.run() == "new@n1"


def test_an_ask_is_told_that_it_is_larger_than_the_cluster_as_it_is_now() -> None:
    b = bench({"n1": 8, "n2": 0})
    shrunk(0)(b)
    b.ask("a", "new", vcore=9)
    b.run()
    assert b.why("new")[0] == ClusterFull({"vcore": 1}, never=True)


@pytest.mark.parametrize("parking", ["true", "false"])
@pytest.mark.parametrize(("more", "priority"), [("", 0), ("", 1000), ("bigger", 0)])
def test_an_ask_gets_the_node_that_it_requires_though_the_whole_cluster_is_full(
    more: str, priority: int, parking: str
) -> None:
    b = bench({"n1": 8, "n2": 8}, **{"scheduler.parking": parking})
    if more:  # of the same application, and kept off by the size of the cluster
        b.ask("b", more, vcore=5, priority=priority)
    b.ask("b", "daemon", vcore=1, required="n1", priority=priority)
    b.run()
    assert b.why("daemon")[0] == RequiredNode("n1", "full", {"vcore": 1})
    assert evicted(b) == ["n1-7"]
    assert "daemon" in b.application("b").allocations


def test_each_of_two_asks_gets_the_node_that_it_requires_in_a_full_cluster() -> None:
    """The second is not held off by what the first claims of the cluster."""
    b = bench({"n1": 8, "n2": 8})
    for node in ("n1", "n2"):
        b.ask("b", f"daemon-{node}", vcore=1, required=node)
    b.run()
    b.run(after=1)
    assert {alloc.key for alloc in b.partition.accounting.victims} == {"n1-7", "n2-7"}


def test_an_ask_that_requires_its_node_waits_for_a_quota_all_the_same() -> None:
    b = cluster(config("a", "b resources: {max: {vcore: 1m}}"), 8)
    b.app("a", "root.a")
    b.app("b", "root.b")
    b.ask("a", "full", node="n1", vcore=7)
    b.ask("b", "first", vcore=1, required="n1")
    assert b.run() == "first@n1"
    b.ask("b", "second", vcore=1, required="n1")
    assert evicted(b) == []
