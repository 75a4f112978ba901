"""The fine points of docs/spec/scheduling.md, section 16, one by one.

Point 1 is in `core/test_tree_reload.py`; 2, 7 and 8 are also in `core/test_reservations.py`, 3 and 10 to 12 in `core/test_limits.py`.
"""

from __future__ import annotations

import json

import pytest

from core.bench import Bench, cluster, config, limit, parent
from licorne.si.messages import NodeAction, Termination

# -- 4: foreign allocations go with their node ---------------------------------------------------------------


def test_4_foreign_allocations_go_with_their_node() -> None:
    b = cluster(config("a"), 10, apps="x")
    assert b.foreign("f", "n1", vcore=8) == []
    b.node("n1", NodeAction.DECOMISSION)
    b.node("n1", vcore=10)
    b.ask("x", "k", vcore=5)
    assert b.run() == "k@n1"
    assert b.foreign("f", "n1", vcore=8) == []
    assert b.free("n1") == {"vcore": -3}


# -- 5: what runs past maximum applications ------------------------------------------------------------------


def test_5_a_completing_application_runs_at_once_past_the_maximum() -> None:
    b = cluster(config("a maxapplications: 1"), 10, apps="x1 x2")
    b.ask("x1", "k1", vcore=1)
    b.run()
    b.release("x1")
    b.ask("x2", "k2", vcore=1)
    assert (b.run(), b.states()) == ("k2@n1", "x1:Completing x2:Running")
    b.ask("x1", "again", vcore=1)
    assert (b.run(), b.states()) == ("again@n1", "x1:Running x2:Running")


def test_5_a_recovered_application_runs_past_the_maximum() -> None:
    b = cluster(config("a maxapplications: 1"), 10)
    for app in ("x1", "x2"):
        b.app(app)
        b.ask(app, app, node="n1", vcore=1)
    assert b.states() == "x1:Running x2:Running"
    b.app("x3")
    b.ask("x3", "k3", vcore=1)
    assert b.run() == ""
    b.release("x1")
    assert b.run() == "k3@n1"  # the count was never above the maximum (section 10)


# -- 6: larger pending ---------------------------------------------------------------------------------------

# pending of a, b, c as (vcore, memory): a partial order, settled by a stable insertion sort from name order
PARTIAL = [
    ([(1, 2), (2, 1), (2, 2)], "c"),  # c is larger than both
    ([(1, 2), (2, 1), (1, 3)], "a"),  # c and b are not comparable: c stays after b, though it is larger than a
    ([(1, 1), (1, 1), (1, 1)], "a"),
]


@pytest.mark.parametrize(("pending", "first"), PARTIAL)
def test_6_larger_pending_is_an_insertion_sort_from_name_order(pending: list[tuple[int, int]], first: str) -> None:
    b = Bench(config("a", "b", "c"))
    b.node("n1", vcore=100, memory=100)
    for name, (vcore, memory) in zip("abc", pending, strict=True):
        b.app(name, f"root.{name}")
        b.ask(name, name, vcore=vcore, memory=memory)
    assert b.run(limit=1) == f"{first}@n1"


# -- 7: echoes, lost nodes, draining queues, templates, ids -----------------------------------------------------


def test_7_what_ran_on_a_lost_node_is_forgotten_not_pending_again() -> None:
    b = cluster(config("a"), 10, apps="x")
    b.ask("x", "k", vcore=1)
    b.run()
    found = b.node("n1", NodeAction.DECOMISSION)
    assert found == ["released k STOPPED_BY_RM: Node n1 Removed", "x Completing: completeApplication"]
    assert b.pending() == {}
    b.node("n1", vcore=10)
    assert b.run() == ""
    b.ask("x", "k", vcore=2)  # the key is free
    assert b.run() == "k@n1"


def test_7_applications_of_a_draining_queue_still_get_new_asks_scheduled() -> None:
    b = cluster(config("a", "b"), 10, apps="x")
    b.ask("x", "k1", vcore=1)
    b.run()
    b.reload(config("b"))
    b.ask("x", "k2", vcore=1)
    assert b.run() == "k2@n1"
    assert b.app("y") == ["rejected y: failed to place application y: application rejected: no placement rule matched"]
    b.remove("x")
    b.run(after=10)
    assert b.queues() == ["root", "root.b"]


def template(amount: int) -> str:
    rules = "placementrules: [{name: user, create: true, parent: {name: fixed, value: root.p}}]"
    return config(f"p parent: true, childtemplate: {{resources: {{max: {{vcore: {amount}m}}}}}}", more=rules)


def test_7_a_changed_template_does_not_touch_the_leaves_that_exist() -> None:
    b = cluster(template(3), 100)
    b.app("x1", "", "alice")
    b.reload(template(7))
    b.app("x2", "", "bob")
    found = [b.partition.tree.find(f"root.p.{user}") for user in ("alice", "bob")]
    assert [queue.max_resource() for queue in found if queue] == [{"vcore": 3}, {"vcore": 7}]


def test_7_a_duplicate_id_does_no_harm_and_an_id_can_be_used_again() -> None:
    b = cluster(config("a", "b"), 10, apps="x")
    b.ask("x", "k", vcore=1)
    b.run()
    assert b.app("x", "root.b") == [
        "rejected x: adding application x to partition [rm]default, but application already existed"
    ]
    assert b.allocated("root.a") == {"vcore": 1}
    b.remove("x")
    assert b.app("x", "root.b") == ["accepted x"]
    assert b.application("x").queue.path == "root.b"


def test_7_a_completed_applications_id_can_be_used_again() -> None:
    b = cluster(config("a"), 10, apps="x")
    b.ask("x", "k", vcore=1)
    b.run()
    b.release("x", "k")
    b.run(after=30)
    assert b.app("x") == ["accepted x"]
    assert b.state("x") == "New"


# -- 9: execution timeouts -----------------------------------------------------------------------------------

TIMEOUT = "TIMEOUT: execution timeout reached"


@pytest.mark.parametrize("first_interface", [False, True])
def test_9_an_asks_timeout_runs_from_its_allocation(first_interface: bool) -> None:
    b = cluster(config("a"), 10, apps="x", first_interface=first_interface)
    b.ask("x", "k", timeout_ms=1500, vcore=10)
    b.ask("x", "waits", timeout_ms=1500, vcore=10)
    assert b.run() == "k@n1"
    assert b.hear(after=1) == []
    assert b.hear(after=0.5) == [f"released k {TIMEOUT}"]
    assert b.hear(after=9) == []  # said once; counted until it is confirmed
    assert b.allocated("root") == {"vcore": 10}
    name = "k" if not first_interface else next(iter(b.uuids()))
    assert b.release("x", name, termination=Termination.TIMEOUT) == []
    assert b.run() == "waits@n1"
    assert b.hear(after=1.5) == [f"released waits {TIMEOUT}"]


@pytest.mark.parametrize("timeout_ms", [0, -5])
def test_9_zero_or_negative_is_never(timeout_ms: int) -> None:
    b = cluster(config("a"), 10, first_interface=True)
    b.app("x", timeout_ms=timeout_ms)
    b.ask("x", "k", timeout_ms=timeout_ms, vcore=1)
    b.run()
    assert b.hear(after=10**6) == ["x Running: runApplication"]


def test_9_an_applications_timeout_fails_it_in_the_first_interface() -> None:
    b = cluster(config("a"), 10, first_interface=True)
    b.app("x", timeout_ms=20_000)
    b.run(after=1000)  # it does not run yet
    b.ask("x", "k", vcore=6)
    b.ask("x", "waits", vcore=6)
    assert b.run() == "k@n1"
    assert b.hear(after=19) == []
    assert b.hear(after=1) == ["x Failing: ExecutionTimeout", f"released k {TIMEOUT}"]
    assert b.pending() == {}
    assert b.release("x", next(iter(b.uuids())), termination=Termination.TIMEOUT) == ["x Failed: failApplication"]
    assert b.states() == ""


def test_9_the_field_is_not_a_running_time_in_1_9() -> None:
    b = cluster(config("a"), 10)
    b.app("x", timeout_ms=20_000)
    b.ask("x", "k", vcore=6)
    b.run()
    assert b.hear(after=1000) == []


# -- 11, 13: slots are left ------------------------------------------------------------------------------------


def test_11_an_application_leaves_its_users_slot_with_its_last_ask() -> None:
    b = cluster(config("a", root=f"limits: [{limit('u', apps=1)}]"), 10)
    for app in ("x1", "x2"):
        b.app(app)
        b.ask(app, app, vcore=1)
    assert b.run() == "x1@n1"
    b.ask("x1", "waits", vcore=10)
    b.release("x1", "x1")
    assert b.run() == "waits@n1"
    b.ask("x1", "more", vcore=10)
    b.release("x1", "waits", termination=Termination.TIMEOUT)
    b.node("n1", NodeAction.DRAIN_NODE)
    assert b.run() == ""  # x1 has a pending ask: it keeps its place
    b.release("x1", "more")
    b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert b.run() == "x2@n1"


@pytest.mark.parametrize("how", ["remove", "complete"])
def test_13_a_slot_of_an_accepted_application_is_left_at_all_levels(how: str) -> None:
    leaf = "a maxapplications: 1"
    b = cluster(config(parent("p maxapplications: 1", leaf)), 10)
    for app in ("x1", "x2"):
        b.app(app, "root.p.a")
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.ask("x1", "k1", vcore=11)
    b.node("n1", NodeAction.UPDATE, vcore=11)
    b.foreign("f", "n1", vcore=5)
    b.run(after=3)
    assert (b.reserved(), b.state("x1")) == ("k1@n1", "Accepted")  # it holds the slot at both levels
    b.ask("x2", "k2", vcore=1)
    assert b.run() == ""
    if how == "remove":
        b.remove("x1")
    else:
        b.release("x1", "k1")
    assert b.run() == "k2@n1"


def test_an_application_completes_after_a_release_of_everything_at_once() -> None:
    """Difference 33: in the original the timer is stopped, and it stays Completing."""
    b = cluster(config("a"), 10, apps="x")
    b.ask("x", "k1", vcore=1)
    b.ask("x", "k2", vcore=1)
    b.run()
    b.release("x")
    assert b.state("x") == "Completing"
    b.run(after=29)
    assert b.state("x") == "Completing"
    assert b.hear(after=1) == ["x Completed: completeApplication"]


def test_an_application_that_runs_again_keeps_its_first_start_time() -> None:
    """Difference 34: in the original Completing to Running sets the start time again."""
    b = cluster(config("a"), 10, apps="x")
    b.ask("x", "k1", vcore=1)
    b.run()
    started_ns = b.application("x").started_ns
    assert started_ns
    b.release("x", "k1")
    assert b.state("x") == "Completing"
    b.seconds += 10
    b.ask("x", "k2", vcore=1)
    assert b.run() == "k2@n1"
    assert (b.state("x"), b.application("x").started_ns) == ("Running", started_ns)


# -- 12 of the spec: namespace tags ----------------------------------------------------------------------------


def quota(vcore: int) -> str:
    return json.dumps({"resources": {"vcore": {"value": vcore}}})


def test_namespace_tags_set_the_quota_of_a_dynamic_leaf_at_each_application() -> None:
    rules = "placementrules: [{name: tag, value: namespace, create: true}]"
    b = cluster(config("a", more=rules), 100)
    b.app("x1", "", tags={"namespace": "ns", "namespace.resourcequota": quota(2)})
    for i in range(4):
        b.ask("x1", f"k{i}", vcore=1)
    assert b.run() == "k0@n1 k1@n1"
    b.app("x2", "", tags={"namespace": "ns", "namespace.resourcequota": quota(3), "namespace.resourcemaxapps": "1"})
    b.ask("x2", "other", vcore=1)
    assert b.run() == "k2@n1"
    b.app("x3", "", tags={"namespace": "ns", "namespace.resourceguaranteed": quota(1)})  # max is unset with it
    assert b.run() == "k3@n1"
    for app in ("x1", "x2", "x3"):
        b.remove(app)
    b.run(after=10)
    assert b.queues() == ["root", "root.a"]
