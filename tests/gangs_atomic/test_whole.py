"""All members in one step, or none: readiness, quotas, the trial placement, limits of a call, restarts."""

from __future__ import annotations

from typing import Any

import pytest

from core.bench import config, limit, parent
from gangs_atomic.helpers import GangBench, task_groups
from licorne.core.inspection.explain import Gang, MaxApplications, QueueQuota
from licorne.si.messages import NodeAction, NodeUpdate

# nodes, members, where they come: in request order, then the largest first, each where it leaves least, by a search
PACKINGS = [
    ((10, 10), (4, 4, 4, 4), "g0@n1 g1@n2 g2@n1 g3@n2"),
    ((10, 10), (4, 4, 4, 4, 4), ""),
    ((10,), (5, 5), "g0@n1 g1@n1"),
    ((10, 10), (5, 5, 10), "g2@n1 g0@n2 g1@n2"),  # in request order the two small ones take both nodes
    ((10, 6), (6, 4, 6), "g0@n1 g2@n2 g1@n1"),  # the largest first
    ((10, 6), (6, 5, 5), "g0@n2 g1@n1 g2@n1"),  # on the first node the 6 leaves too little for the others
    ((6, 7), (3, 3, 2, 5), "g3@n2 g0@n1 g1@n1 g2@n2"),  # where it leaves least, on n1, the 5 is in the way
    ((10, 10), (11,), ""),
]


@pytest.mark.parametrize(("nodes", "members", "placed"), PACKINGS)
def test_a_gang_is_packed_or_waits(nodes: tuple[int, ...], members: tuple[int, ...], placed: str) -> None:
    b = GangBench(*nodes)
    b.gang("g", *members)
    free = [b.free(f"n{number}") for number in range(1, len(nodes) + 1)]
    assert b.run() == placed
    if not placed:
        assert [b.free(f"n{number}") for number in range(1, len(nodes) + 1)] == free
        assert b.state("g") == "Accepted"


@pytest.mark.parametrize("ample", [{}, {"memory": 100}, {"pods": 110}])
def test_what_nodes_have_enough_of_does_not_say_where_a_member_leaves_least(ample: dict[str, Any]) -> None:
    b = GangBench()
    b.node("n1", vcore=6, **ample)
    b.node("n2", vcore=5, gpu=8, **ample)
    b.add("g", task_groups(w=3))
    for number, size in enumerate((5, 4, 2)):
        b.member("g", f"g{number}", size, more=dict.fromkeys(ample, 1))
    assert b.run() == "g0@n2 g1@n1 g2@n1"


@pytest.mark.parametrize(("required", "placed"), [("n2", "g4@n3 g3@n2 g0@n1 g1@n1 g2@n2"), ("n1", "")])
def test_the_search_places_members_on_the_nodes_that_they_require(required: str, placed: str) -> None:
    b = GangBench(6, 7, 7)
    b.add("g", task_groups(w=5))
    for number, (size, on) in enumerate([(3, ""), (3, ""), (2, required), (5, ""), (7, "n3")]):
        b.member("g", f"g{number}", size, tags={"yunikorn.apache.org/requiredNode": on} if on else {})
    assert b.run() == placed


def test_nothing_starts_until_every_group_is_complete() -> None:
    b = GangBench(10, 10)
    b.add("g", task_groups(driver=1, workers=2))
    for key, group in (("w0", "workers"), ("w1", "workers"), ("w2", "workers"), ("x", "other"), ("y", "")):
        b.member("g", key, 2, group)
    assert b.run() == ""
    assert b.why("y") == [Gang(False, {"driver": (0, 1), "workers": (2, 2)}, True, None, ())]
    b.member("g", "d", 2, "driver")
    # The members in request order, in one step; then the application is like any other.
    assert b.run() == "w0@n1 w1@n2 d@n1 w2@n2 x@n1 y@n2"
    b.member("g", "later", 1, "workers")
    assert b.run() == "later@n1"


def test_members_are_the_first_of_each_group_in_request_order() -> None:
    b = GangBench(2)
    b.add("g", task_groups(w=2))
    b.member("g", "low", 1)
    b.member("g", "late", 1, priority=1)
    b.member("g", "first", 1, priority=2)
    assert b.run() == "first@n1 late@n1"


def test_a_released_ask_makes_the_gang_wait_again() -> None:
    b = GangBench(1)
    b.gang("g", 1, 1)
    b.run()
    b.release("g", "g0")
    b.node("n2", vcore=9)
    assert b.run() == ""
    b.member("g", "new", 1)
    assert b.run() == "g1@n1 new@n2"


def test_a_changed_ask_counts_as_it_is_now() -> None:
    b = GangBench(10)
    b.gang("g", 6, 6)
    assert b.run() == ""
    b.member("g", "g1", 4)
    assert b.run() == "g0@n1 g1@n1"


QUOTAS = [
    # configuration, what leaves too little for three members of 2
    (config("a resources: {max: {vcore: 8m}}"), "root.a"),
    (config(parent("p resources: {max: {vcore: 8m}}", "a", "b")), "root.p"),
    (config("a limits: [" + limit("u", vcore=8) + "]"), "user"),
    (config("a limits: [" + limit("", "team", vcore=8) + "]"), "group"),
]


@pytest.mark.parametrize(("text", "level"), QUOTAS)
def test_the_sum_must_fit_every_quota_and_limit(text: str, level: str) -> None:
    b = GangBench(100, text=text)
    queue = "root.p.a" if "p" in level and level.startswith("root") else "root.a"
    more = {"queue": queue, "groups": ("team",)}
    b.add("x", task_groups(w=1), "", **more)
    b.member("x", "x0", 3)
    assert b.run() == "x0@n1"
    b.gang("g", 2, 2, 2, **more)
    assert b.run() == ""
    assert not b.gang_reason("g0").fits_quota
    assert b.held() == ""
    b.release("x", "x0")
    assert b.run() == "g0@n1 g1@n1 g2@n1"


def test_all_members_name_the_quota_that_is_short() -> None:
    b = GangBench(100, text=config("a resources: {max: {vcore: 5m}}"))
    b.add("g", task_groups(w=2))
    b.member("g", "g0", 3)
    b.member("g", "g1", 3)
    b.run()
    expected = [QueueQuota("root.a", {"vcore": 1}, never=True), Gang(True, {"w": (2, 2)}, False, None, ())]
    assert b.why("g0") == b.why("g1") == expected


def test_a_call_never_splits_a_gang() -> None:
    b = GangBench(10)
    b.gang("g", 1, 1, 1)
    b.gang("h", 1, 1)
    assert b.run(limit=1) == "g0@n1 g1@n1 g2@n1"
    assert b.run(limit=1) == "h0@n1 h1@n1"


def test_a_gang_takes_its_turn_among_other_applications() -> None:
    b = GangBench(4)
    b.app("x")
    b.ask("x", "x0", vcore=1)
    b.gang("g", 1, 1)
    b.app("y")
    b.ask("y", "y0", vcore=1)
    assert b.run() == "x0@n1 g0@n1 g1@n1 y0@n1"


def test_max_applications_count_for_a_gang() -> None:
    b = GangBench(10, text=config("a maxapplications: 1"))
    b.app("x")
    b.ask("x", "x0", vcore=1)
    b.run()
    b.gang("g", 1, 1)
    assert b.run() == ""
    assert MaxApplications("root.a") in b.why("g0")
    b.release("x", "x0")
    assert b.run(after=31) == "g0@n1 g1@n1"


def test_a_member_may_require_a_node() -> None:
    b = GangBench(4, 4)
    b.add("g", task_groups(w=3))
    b.member("g", "g0", 4, tags={"yunikorn.apache.org/requiredNode": "n2"})
    b.member("g", "g1", 2)
    b.member("g", "g2", 2)
    assert b.run() == "g0@n2 g1@n1 g2@n1"


def test_constraints_and_closed_nodes_count() -> None:
    b = GangBench()
    b.node("n1", vcore=9, attributes={"label/zone": "z1"})
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=9, attributes={"label/zone": "z2"})
    b.add("g", task_groups(w=2))
    b.member("g", "g0", 1)
    b.member("g", "g1", 1, tags={"licorne/node-constraints": '{"nodeSelector": {"zone": "z2"}}'})
    assert b.run() == ""
    b.node("n2", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert b.run() == "g0@n1 g1@n2"


def test_a_predicate_refuses_a_node_and_is_asked_again_at_the_next_call() -> None:
    refused = {("g1", "n1"), ("g1", "n2")}
    b = GangBench(10, 10, holds=lambda key, node, _: (key, node) not in refused)
    b.gang("g", 1, 1)
    assert b.run() == ""
    refused.discard(("g1", "n1"))
    assert b.run() == "g0@n1 g1@n1"


def test_members_that_run_already_count() -> None:
    b = GangBench(10, 10)
    b.add("g", task_groups(w=3))
    b.member("g", "g0", 2, node_id="n2")
    b.member("g", "g1", 2)
    assert b.run() == ""
    assert b.gang_reason("g1").groups == {"w": (2, 3)}
    b.member("g", "g2", 2, node_id="n2")
    assert b.run() == "g1@n1"
    assert b.application("g").atomic is None


@pytest.mark.parametrize(("end", "first"), [("release", "n2"), ("remove the node", "n3")])
def test_a_gang_waits_for_asks_again_when_a_member_that_ran_already_ends(end: str, first: str) -> None:
    b = GangBench(1, 3)
    b.add("g", task_groups(w=3))
    b.member("g", "g0", 2, node_id="n2")
    b.member("g", "g1", 2)
    b.member("g", "g2", 2)
    assert b.run() == ""
    assert b.gang_reason("g1").ready  # it waits for nodes
    if end == "release":
        b.release("g", "g0")
    else:
        b.send(NodeUpdate(node_id="n2", action=NodeAction.DECOMISSION))
    b.api.validate()
    assert not b.gang_reason("g1").ready
    b.node("n3", vcore=6)
    assert b.run() == ""
    b.member("g", "g3", 2)
    assert b.run() == f"g1@{first} g2@n3 g3@n3"


def test_a_gang_that_runs_already_is_an_ordinary_application() -> None:
    b = GangBench(10)
    b.add("g", task_groups(w=2))
    b.member("g", "g0", 2, node_id="n1")
    b.member("g", "more", 2, "other")
    assert b.run() == ""
    b.member("g", "g1", 2, node_id="n1")
    assert b.run() == "more@n1"


def test_each_repetition_of_an_ask_is_a_member() -> None:
    b = GangBench(10, first_interface=True)
    b.add("g", task_groups(w=3))
    b.member("g", "g0", 2, max_allocations=2)
    assert b.run() == ""
    b.member("g", "g1", 2, max_allocations=2)
    assert b.run() == "g0@n1 g0@n1 g1@n1 g1@n1"


def test_no_node_is_reserved_for_a_member() -> None:
    b = GangBench(10, settings={"reservation.enabled": "true", "reservation.delay": "0s"})
    b.app("x")
    b.ask("x", "x0", vcore=5)
    b.run()
    b.gang("g", 3, 3)
    for _ in range(3):
        assert b.run(after=5) == ""
    assert b.reserved() == ""


def test_members_that_wait_for_nodes_are_reported_as_waiting_for_resources() -> None:
    b = GangBench(1, settings={"outstanding.inspection": "true"})
    b.gang("g", 1, 1)
    assert b.hear(after=2) == ["waiting g0 of g", "waiting g1 of g"]


def test_removing_a_waiting_gang_frees_the_nodes_that_it_holds() -> None:
    b = GangBench(10)
    b.app("x")
    b.ask("x", "x0", vcore=5)
    b.run()
    b.gang("g", 6)
    b.run()
    assert b.held() == "g n1 ?"
    b.remove("g")
    b.ask("x", "x1", vcore=5)
    assert b.run() == "x1@n1"
    assert b.held() == ""


def test_a_gang_that_holds_nothing_starts_when_room_was_freed() -> None:
    b = GangBench(4, 4, settings={"gang.hold.max.age": "0"})
    b.app("x")
    for number in range(4):
        b.ask("x", f"x{number}", vcore=2)
    b.run()
    b.gang("g", 2, 2)
    for key in ("x0", "x1"):
        assert b.run() == ""
        b.release("x", key)
    assert b.run() == "g0@n1 g1@n2"


def test_another_allocation_is_no_reason_to_try_again() -> None:
    b = GangBench(10)
    b.gang("g", 6, 6)
    b.run()
    b.app("x", "root.b")
    b.ask("x", "x0", vcore=1)
    b.run()
    gang = b.application("g").atomic
    assert gang is not None
    assert gang.trials == 1


def test_room_that_is_freed_while_a_quota_is_short_is_not_forgotten() -> None:
    b = GangBench(4, 4, text=config("a resources: {max: {vcore: 4m}}", "b"))
    b.app("x", "root.b")
    for number in range(2):
        b.ask("x", f"x{number}", vcore=4)
    b.run()
    b.gang("g", 2, 2)  # fits its quota, and no node
    assert b.run() == ""
    b.app("y")
    b.ask("y", "y0", node="n1", vcore=1)
    b.run()
    b.release("x", "x0")
    b.release("x", "x1")
    assert b.run() == ""
    b.release("y", "y0")
    assert b.run() == "g0@n1 g1@n2"
