"""Gangs with placeholders, step by step.

Source: docs/spec/scheduling.md, sections 6.3, 9 and 14; docs/spec/states.md, section 1.5.
"""

from __future__ import annotations

from typing import Any

import pytest

from core.bench import config, parent
from gangs.gang import TIMEOUT, Gangs
from licorne.core.inspection.explain import Placeholder
from licorne.core.preemption.guarantee_preemption import RETRY_NS
from licorne.si.messages import NodeAction, Termination

TAKES = "released {} PLACEHOLDER_REPLACED: replacing allocationKey: {}"
STOPPED = Termination.STOPPED_BY_RM
DIALECTS = pytest.mark.parametrize("first_interface", [False, True])


def started(*nodes: int, places: int = 2, vcore: int = 2, total: int | None = None, **more: Any) -> Gangs:
    """An application whose placeholders p1, p2 ... are all placed."""
    b = Gangs(*nodes, first_interface=bool(more.pop("first_interface", False)), holds=more.pop("holds", None))
    b.gang(total=places * vcore if total is None else total, **more)
    b.places(" ".join(f"p{number}" for number in range(1, places + 1)), vcore)
    b.run()
    return b


# -- admission -------------------------------------------------------------------------------------------------

DEEP = parent("top resources: {max: {vcore: 4}}", "low resources: {max: {memory: 9}}")
LARGER = "cannot fit application x: task group request"
MOST = "map[memory:9 vcore:4000]"
ADMISSION = [
    ("a", "root.a", {"vcore": 1000}, "accepted x"),
    (
        "a properties: {application.sort.policy: fair}",
        "root.a",
        {"vcore": 1},
        "rejected x: queue root.a cannot run application x with task group request: unsupported sort type",
    ),
    ("a properties: {application.sort.policy: fair}", "root.a", {}, "accepted x"),
    (
        "a resources: {max: {vcore: 3}}",
        "root.a",
        {"vcore": 3001},
        f"rejected x: queue root.a {LARGER} map[vcore:3001] larger than max queue allocation map[vcore:3000]",
    ),
    ("a resources: {max: {vcore: 3}}", "root.a", {"vcore": 3000, "memory": 99}, "accepted x"),
    (DEEP, "root.top.low", {"vcore": 4000, "memory": 9}, "accepted x"),
    (
        DEEP,
        "root.top.low",
        {"vcore": 4001, "memory": 9},
        f"rejected x: queue root.top.low {LARGER} map[memory:9 vcore:4001] larger than max queue allocation {MOST}",
    ),
]


@pytest.mark.parametrize(("queue", "path", "total", "said"), ADMISSION)
def test_a_gang_needs_a_queue_that_sorts_fifo_and_can_hold_it(
    queue: str, path: str, total: dict[str, int], said: str
) -> None:
    b = Gangs(1, text=config(queue))  # the size of the cluster does not count
    assert b.gang(queue=path, amounts=total) == [said]
    assert ("x" in b.partition.applications) == said.startswith("accepted")


# -- replacement -----------------------------------------------------------------------------------------------


@DIALECTS
def test_smaller_real_asks_free_the_difference_only_when_confirmed(first_interface: bool) -> None:
    b = started(10, first_interface=first_interface)
    b.members("r1 r2", 1)
    assert b.why("r1") == [Placeholder("g", 2)]
    assert b.hear() == [TAKES.format("p1", "r1"), TAKES.format("p2", "r2")]
    assert b.allocated("root.a") == {"vcore": 4}
    assert b.pending() == {}
    assert "new r1@n1" in b.confirm("p1")
    assert (b.allocated("root.a"), b.free("n1")) == ({"vcore": 3}, {"vcore": 7})
    assert "new r2@n1" in b.confirm("p2")
    assert (b.allocated("root.a"), b.state("x"), b.counts()) == ({"vcore": 2}, "Running", "2=0+2+0+0")


def test_real_asks_are_matched_in_request_order_and_oldest_placeholders_go_first() -> None:
    b = started(10, places=3, vcore=1)
    b.members("low1 low2", 1)
    b.member("high", 1, priority=5)
    assert b.hear() == [TAKES.format("p1", "high"), TAKES.format("p2", "low1"), TAKES.format("p3", "low2")]


def test_a_larger_real_ask_releases_the_placeholders_and_is_placed_afterwards() -> None:
    b = started(10)
    b.member("r1", 3)
    assert b.hear() == [
        "released p1 TIMEOUT: cancel placeholder: resource incompatible",
        "released p2 TIMEOUT: cancel placeholder: resource incompatible",
    ]
    assert (b.confirm("p1", TIMEOUT), b.run()) == ([], "")
    b.confirm("p2", TIMEOUT)
    assert b.counts() == "2=0+0+0+2"
    assert b.run() == "r1@n1"


def test_a_real_ask_with_a_type_that_the_placeholder_lacks_is_larger() -> None:
    b = started(10)
    b.node("n2", vcore=10, memory=10)
    b.member("r1", vcore=1, memory=1)
    assert b.hear()[0] == "released p1 TIMEOUT: cancel placeholder: resource incompatible"


def test_without_placeholders_left_real_asks_are_ordinary_asks() -> None:
    b = started(10, places=1)
    b.members("r1 r2", 2)
    b.run()
    assert b.run() == ""
    b.confirm("p1")
    assert b.run() == "r2@n1"


def test_a_real_ask_does_not_wait_for_a_withdrawn_pending_placeholder() -> None:
    b = started(4, places=1)
    b.places("p2", 3)  # there is no room for it
    b.members("r1 r2", 2)
    assert b.run() == ""
    b.confirm("p1")
    assert b.run() == ""  # r2 has room, and waits for p2
    b.release("x", "p2")
    assert b.run() == "r2@n1"


def test_failed_shape_is_rechecked_when_only_a_gated_ask_has_it() -> None:
    b = Gangs(4, settings={"reservation.enabled": "false"})
    b.node("n2", vcore=1)
    b.app("other")
    b.ask("other", "full", vcore=3)
    assert b.run() == "full@n1"
    b.ask("other", "small", vcore=2)
    b.gang(total=5)
    b.places("p1", 5)
    assert b.run() == ""
    b.members("r1", 3)  # there is no room for 2, and so none for 3
    assert b.run() == ""
    b.release("other", "small")
    b.release("other", "full")
    assert b.run() == ""
    b.ask("x", "free", vcore=3)
    assert b.run() == "free@n1"


def test_asks_that_came_before_the_first_placeholder_wait_from_then_on() -> None:
    b = Gangs()
    b.gang(total=2)
    b.members("r1", 2)
    b.places("p1", 2)
    assert b.why("r1") == [Placeholder("g", 1)]
    b.node("n1", vcore=10)
    assert b.hear() == ["x Running: runApplication", "new p1@n1", TAKES.format("p1", "r1")]
    assert b.group().live() == 1


def test_a_reservation_of_an_ask_ends_when_it_has_to_wait_for_a_placeholder() -> None:
    b = Gangs(2)
    b.gang()
    b.member("other", 1, group="")
    b.run()
    b.node("n2", vcore=1)
    b.member("r1", 2)
    b.run(after=3)
    assert b.reserved() == "r1@n1"
    b.places("p1", 2)
    assert b.reserved() == ""


@DIALECTS
def test_a_group_without_placeholders_waits_for_none(first_interface: bool) -> None:
    b = started(10, first_interface=first_interface)
    b.member("r1", 1, group="other")
    assert b.run() == "r1@n1"


def test_a_draining_node_keeps_its_placeholder() -> None:
    b = started(10)
    b.node("n1", NodeAction.DRAIN_NODE)
    b.member("r1", 2)
    assert b.hear() == [TAKES.format("p1", "r1")]
    assert b.confirm("p1") == ["new r1@n1"]


def test_a_real_ask_that_its_node_refuses_goes_to_another_and_counts_at_once() -> None:
    b = started(10, holds=lambda key, node, _: key[0] == "p" or node != "n1")
    b.member("r1", 1)
    assert b.hear() == []  # there is no other node
    b.node("n2", vcore=10)
    assert b.hear() == [TAKES.format("p1", "r1")]
    assert (b.free("n2"), b.allocated("root.a")) == ({"vcore": 9}, {"vcore": 4})
    assert b.confirm("p1") == ["new r1@n2"]
    assert (b.free("n1"), b.free("n2"), b.allocated("root.a")) == ({"vcore": 8}, {"vcore": 9}, {"vcore": 3})


def test_a_stuck_replacement_is_tried_again_when_another_node_has_room() -> None:
    tags = {"licorne/node-constraints": '{"nodeSelector": {"zone": "z"}}'}
    b = started(4, places=1)
    b.node("n2", vcore=2, attributes={"label/zone": "z"})
    b.member("full", 2, group="", tags=tags)
    assert b.run() == "full@n2"
    b.member("r1", 2, tags=tags)
    assert b.hear() == []
    b.release("x", "full")
    assert b.hear() == [TAKES.format("p1", "r1")]
    assert b.confirm("p1") == ["new r1@n2"]


def test_every_real_ask_whose_node_refuses_is_tried_on_other_nodes_and_not_on_its_own() -> None:
    """Difference 75: the original tries only r1 elsewhere, and also asks about n1 again, now with its room."""
    asked: list[tuple[str, str, bool]] = []

    def holds(key: str, node: str, allocate: bool) -> bool:
        asked.append((key, node, allocate))
        return key[0] == "p" or (key, node) == ("r2", "n2")

    b = started(10, holds=holds)
    b.node("n2", vcore=10)
    b.members("r1 r2", 2)
    asked.clear()
    assert b.hear() == [TAKES.format("p1", "r2")]
    assert b.confirm("p1") == ["new r2@n2"]
    assert not any(node == "n1" and allocate for _, node, allocate in asked)


def test_repeated_asks_replace_one_placeholder_each() -> None:
    b = Gangs(10, first_interface=True)
    b.gang(total=3)
    b.member("p", 1, placeholder=True, times=3)
    b.run()
    assert b.counts() == "3=3+0+0+0"
    b.member("r", 1, times=5)
    assert b.hear() == [TAKES.format("p", "r")] * 3
    assert b.pending() == {"vcore": 2}
    for _ in range(3):
        b.confirm("p")
    assert (b.counts(), b.run()) == ("3=0+3+0+0", "r@n1 r@n1")


# -- confirmations and releases in flight ----------------------------------------------------------------------

# what the resource manager sends while p1 is replaced by r1: (key, type), said, vcores used, counters, pending, again
IN_FLIGHT = [
    (("p1", Termination.PLACEHOLDER_REPLACED), ["new r1@n1"], 3, "2=1+1+0+0", ""),
    (("p2", Termination.PLACEHOLDER_REPLACED), [], 2, "2=1+0+1+0", ""),  # without a linked ask: it only ends
    (("p1", STOPPED), ["released p1 STOPPED_BY_RM: allocation remove as per RM request"], 2, "2=1+0+1+0", "r1"),
    (("p1", TIMEOUT), [], 2, "2=1+0+0+1", "r1"),
    (("p1", Termination.PREEMPTED_BY_SCHEDULER), [], 2, "2=1+0+1+0", "r1"),
    (("r1", STOPPED), [], 4, "2=2+0+0+0", ""),  # nothing was announced of it
    (("r1", TIMEOUT), [], 4, "2=2+0+0+0", ""),
    (("none", Termination.PLACEHOLDER_REPLACED), [], 4, "2=2+0+0+0", ""),
    (("", TIMEOUT), [], 0, "2=0+0+0+2", "r1"),
]


@pytest.mark.parametrize(("release", "said", "used", "counts", "pending"), IN_FLIGHT)
def test_releases_while_a_real_ask_is_in_flight(
    release: tuple[str, Termination], said: list[str], used: int, counts: str, pending: str
) -> None:
    b = started(10)
    b.member("r1", 1)
    b.run()
    assert b.release("x", release[0], termination=release[1]) == said
    assert b.allocated("root.a").get("vcore", 0) == used
    assert b.counts() == counts
    assert " ".join(b.application("x").asks) == pending
    b.release("x", release[0], termination=Termination.PLACEHOLDER_REPLACED)  # again: nothing more happens to it
    b.run()


@DIALECTS
def test_a_withdrawn_replacement_leaves_a_placeholder_that_only_ends(first_interface: bool) -> None:
    b = started(10, first_interface=first_interface)
    b.member("r1", 1)
    b.run()
    b.release("x", "r1", what="ask" if first_interface else "both")
    assert b.confirm("p1") == []
    assert b.counts() == "2=1+0+1+0"
    b.member("r1", 1)  # the key is free again
    assert b.hear() == [TAKES.format("p2", "r1")]


@DIALECTS
def test_the_application_is_removed_while_a_replacement_is_in_flight(first_interface: bool) -> None:
    b = started(10, first_interface=first_interface)
    b.member("r1", 1)
    b.run()
    said = b.remove("x")
    assert [line.split(":")[0] for line in said][:2] == ["released p1 STOPPED_BY_RM", "released p2 STOPPED_BY_RM"]
    assert (b.free("n1"), b.allocated("root")) == ({"vcore": 10}, {})
    assert b.confirm("p1") == []


def apart(**more: Any) -> Gangs:
    """p1 on n1 is being replaced by r1 on n2."""
    b = started(10, holds=lambda key, node, _: key[0] == "p" or node != "n1", **more)
    b.node("n2", vcore=10)
    b.member("r1", 1)
    b.run()
    return b


def test_the_node_of_the_placeholder_is_lost_and_the_replacement_is_elsewhere() -> None:
    b = apart()
    said = b.node("n1", NodeAction.DECOMISSION)
    assert said[:2] == ["released p1 STOPPED_BY_RM: Node n1 Removed", "new r1@n2"]
    assert (b.counts(), b.allocated("root.a")) == ("2=0+1+1+0", {"vcore": 1})
    assert b.confirm("p1") == []


def test_the_node_of_the_replacement_is_lost() -> None:
    b = apart()
    assert b.node("n2", NodeAction.DECOMISSION) == []  # nothing was announced of it
    assert (b.pending(), b.free("n1")) == ({"vcore": 1}, {"vcore": 6})
    assert b.confirm("p1") == []
    assert b.counts() == "2=1+0+1+0"
    b.node("n3", vcore=10)
    assert b.hear()[-1] == TAKES.format("p2", "r1")


def test_the_node_of_both_is_lost() -> None:
    b = started(10)
    b.member("r1", 1)
    b.run()
    b.node("n1", NodeAction.DECOMISSION)
    assert (b.counts(), b.pending()) == ("2=0+0+2+0", {"vcore": 1})
    b.node("n2", vcore=10)
    assert b.run() == "r1@n2"


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(("key", "size"), [("r1", 2), ("r1", 9), ("p1", 1), ("p1", 9)])
def test_placeholder_or_replacement_is_resized_in_flight(elsewhere: bool, key: str, size: int) -> None:
    b = apart() if elsewhere else started(10)
    b.member("r1", 1)
    b.run()
    b.member(key, size, placeholder=key == "p1")
    real = size if key == "r1" else 1
    assert b.confirm("p1") == [f"new r1@{'n2' if elsewhere else 'n1'}"]
    assert b.allocated("root.a") == {"vcore": 2 + real}


def test_a_replacement_in_flight_is_placed_by_the_resource_manager() -> None:
    b = started(10)
    b.node("n2", vcore=10)
    b.member("r1", 1)
    b.run()
    assert b.member("r1", 1, node="n2") == ["new r1@n2"]
    assert (b.confirm("p1"), b.counts()) == ([], "2=1+0+1+0")


def test_a_placeholder_that_is_reported_as_ending_is_replaced() -> None:
    """As after a restart in the middle of its replacement: its room is still the gang's."""
    b = Gangs(1)
    b.gang(total=1)
    b.member("p", placeholder=True, node="n1", tags={"licorne/ending": "true"})
    b.app("y", "root.a")
    b.ask("y", "other", vcore=1, age_s=1000)
    b.member("m")
    b.run()
    b.confirm("p")
    assert b.run() == ""
    assert b.allocated("root.a") == {"vcore": 1}
    assert [*b.partition.applications["x"].allocations] == ["m"]


def test_a_preempted_placeholder_is_not_replaced() -> None:
    b = started(4)
    b.node("n2", vcore=3, attributes={"taints": '[{"key": "k", "effect": "NoSchedule"}]'})
    b.app("d")
    b.member("daemon", 2, app="d", group="", priority=5, tags={"yunikorn.apache.org/requiredNode": "n1"})
    b.run()
    b.run(after=1)
    victims = [alloc.key for alloc in b.application("x").allocations.values() if alloc.preempted]
    assert len(victims) == 1
    b.member("r1", 2)
    b.member("r2", 2)
    other = "p1" if victims == ["p2"] else "p2"
    assert [line for line in b.hear() if "REPLACED" in line] == [TAKES.format(other, "r1")]
    b.confirm(victims[0], Termination.PREEMPTED_BY_SCHEDULER)
    b.confirm(other)
    assert b.counts() == "2=0+1+1+0"
    assert b.run() == "daemon@n1"


# -- states ----------------------------------------------------------------------------------------------------


def test_a_gang_runs_when_all_announced_placeholders_are_placed() -> None:
    b = started(10, total=6)
    assert b.state("x") == "Accepted"
    b.places("p3", 2)
    b.run()
    assert b.state("x") == "Running"


def test_the_second_replacement_makes_a_gang_run_and_not_the_first() -> None:
    b = started(10, total=9)
    b.members("r1 r2", 2)
    b.run()
    assert b.confirm("p1") == ["new r1@n1"]
    assert b.confirm("p2") == ["x Running: runApplication", "new r2@n1"]


def test_placeholders_replaced_before_the_last_is_placed_count_as_placed() -> None:
    b = started(4, places=3, vcore=2)
    b.member("r1", 1)
    b.run()
    b.confirm("p1")
    assert (b.state("x"), b.run()) == ("Accepted", "")
    b.node("n2", vcore=2)
    assert (b.run(), b.state("x")) == ("p3@n2", "Running")


def test_without_real_allocations_a_gang_completes_and_its_placeholders_end() -> None:
    b = started(10)
    b.member("r1", 2)
    b.run()
    b.confirm("p1")
    assert b.release("x", "r1")[1:] == ["x Completing: completeApplication"]
    assert b.hear(after=30) == ["released p2 TIMEOUT: releasing placeholders on app complete"]
    assert b.hear(after=100) == []
    assert b.confirm("p2", TIMEOUT) == ["x Completed: completeApplication"]


def test_a_gang_without_asks_completes_with_the_last_placeholders_end() -> None:
    b = started(10)
    b.release("x", "p1")
    assert b.state("x") == "Running"
    assert b.release("x", "p2")[1:] == ["x Completing: completeApplication"]


def test_a_gang_of_one_does_not_complete_on_the_way() -> None:
    b = started(10, places=1)
    b.member("r1", 2)
    b.run()
    assert b.confirm("p1") == ["new r1@n1"]


def test_placeholders_count_for_user_and_queue() -> None:
    text = config("a limits: [{limit: x, users: [u], maxresources: {vcore: 3m}}]")
    b = Gangs(10, text=text)
    b.gang(total=4)
    b.places("p1 p2", 2)
    assert b.run() == "p1@n1"
    assert b.allocated("root.a") == {"vcore": 2}


def test_an_allocation_that_took_a_placeholders_place_may_be_evicted_for_a_guarantee() -> None:
    """A placeholder is no victim, the allocation that replaces it is: a search that failed before is repeated."""
    b = Gangs(
        4, text=config(parent("p", "q1", "q2 resources: {guaranteed: {vcore: 2m}}, properties: {preemption.delay: 1s}"))
    )
    b.gang(total=4, queue="root.p.q1")
    b.places("p1", 4)
    b.run()
    b.app("x2", "root.p.q2")
    b.member("r1", 4)
    b.run()
    b.ask("x2", "k", vcore=2, preempt_other=True)
    assert b.hear(after=2) == []  # the replacement is in flight: there is nothing to evict
    b.confirm("p1")
    assert "released r1 PREEMPTED_BY_SCHEDULER" in " ".join(b.hear(after=RETRY_NS / 1e9))


def test_asks_that_repeat_replace_placeholders_that_repeat() -> None:
    """In both interfaces: a workload of the simulator may repeat any ask."""
    b = Gangs(10)
    b.gang(total=3)
    b.places("p", times=3)
    b.run()
    b.members("r", times=3)
    b.run()
    placeholders = [alloc.id for alloc in b.application("x").allocations.values() if alloc.placeholder]
    assert len(placeholders) == 3
    for uuid in placeholders:
        b.release("x", uuid, termination=Termination.PLACEHOLDER_REPLACED)
    app = b.application("x")
    assert ([alloc.key for alloc in app.allocations.values()], app.asks) == (["r"] * 3, {})
