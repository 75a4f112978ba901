"""The model of a resource manager: what it submits and confirms, and what it reports to a scheduler that knows nothing."""

from __future__ import annotations

from typing import Any

import pytest

from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.si.messages import AddApplication, Allocation, Input, NodeAction, NodeUpdate, Release, Termination
from licorne.sim.model import ResourceManager
from licorne.workload.lines import App, Ask, Foreign, Node, NodeDrain, NodeRemove, NodeUndrain, TaskGroup
from licorne.workload.lines import NodeUpdate as Change

SECOND_NS = 10**9


def manager(**policy: Any) -> ResourceManager:
    """An application with two pods on a node: `short` ends after 5 s, `long` does not."""
    made = ResourceManager(grace_ns=2 * SECOND_NS, **policy)
    for line in (Node(id="n", res={"vcore": 9}), App(id="a"), ask("short", duration_s=5), ask("long")):
        assert made.take(line, 0) is not None
    made.accepted("a", "root.q", 0)
    for key in ("short", "long"):
        made.placed("a", key, "", "n", 0)
    return made


def ask(key: str, **fields: object) -> Ask:
    return Ask(key=key, app="a", res={"vcore": 1}, **fields)  # type: ignore[arg-type]


def said(inputs: list[Input]) -> list[str]:
    return [
        f"ask {one.key}{' on ' * bool(one.node_id)}{one.node_id}"
        if isinstance(one, Allocation)
        else f"{one.termination.name} {one.key}"
        if isinstance(one, Release)
        else type(one).__name__
        for one in inputs
    ]


def test_a_pod_that_ended_is_released_once_and_not_reported_meanwhile() -> None:
    made = manager(replaces=True)
    assert made.next_ns() == 5 * SECOND_NS
    assert said(made.due(5 * SECOND_NS)) == ["STOPPED_BY_RM short"]
    assert made.released("a", "short", "", Termination.STOPPED_BY_RM, 5 * SECOND_NS) == []
    assert list(made.pods) == ["long"]

    again = manager()
    again.due(5 * SECOND_NS)
    assert said(again.report()) == ["NodeUpdate", "AddApplication", "ask long on n"]
    assert again.released("a", "short", "", Termination.STOPPED_BY_RM, 6 * SECOND_NS) == []


def test_an_evicted_pod_is_there_until_its_grace_period_is_over_and_then_created_again() -> None:
    made = manager()
    assert made.released("a", "long", "", Termination.PREEMPTED_BY_SCHEDULER, SECOND_NS) == []
    assert said(made.report())[2:] == ["ask short on n", "ask long on n"]
    assert made.due(2 * SECOND_NS) == []
    assert said(made.due(3 * SECOND_NS)) == ["PREEMPTED_BY_SCHEDULER long", "ask long"]
    assert said(made.report())[2:] == ["ask short on n", "ask long"]
    assert (made.counts["preempted_by_scheduler"], made.counts["resubmitted"]) == (1, 1)


def test_an_evicted_pod_that_is_not_wanted_any_more_is_only_confirmed() -> None:
    made = manager()
    made.released("a", "long", "", Termination.PREEMPTED_BY_SCHEDULER, 0)
    assert made.forget("a")
    assert said(made.report()) == ["NodeUpdate"]
    assert said(made.due(2 * SECOND_NS)) == ["PREEMPTED_BY_SCHEDULER long"]


def test_only_a_pod_that_can_run_elsewhere_is_created_again_when_its_node_is_lost() -> None:
    made = manager(replaces=True)
    made.take(ask("daemon", tags={TAG_REQUIRED_NODE: "n"}), 0)
    made.placed("a", "daemon", "", "n", 0)
    made.take(NodeRemove(id="n"), 0)
    answers = [made.released("a", key, "", Termination.STOPPED_BY_RM, 0) for key in ("long", "daemon")]
    assert [said(answer) for answer in answers] == [["ask long"], []]
    assert manager().released("a", "long", "", Termination.STOPPED_BY_RM, 0) == []


def test_an_allocation_that_runs_already_is_one_also_of_an_ask_that_repeats() -> None:
    made = manager()
    made.take(ask("there", node="n", max=3, duration_s=1), 0)
    made.placed("a", "there", "", "n", 0)
    made.due(SECOND_NS)
    made.released("a", "there", "", Termination.STOPPED_BY_RM, SECOND_NS)
    assert "there" not in made.pods
    asked = made.counts["asked"]
    made.take(ask("there"), 2 * SECOND_NS)
    assert made.counts["asked"] == asked + 1


def test_a_key_is_new_again_when_the_last_allocation_of_an_ask_that_repeats_has_ended() -> None:
    made = manager()
    asked = made.counts["asked"]
    made.take(ask("many", max=2), 0)
    for uuid in ("u", ""):  # the last one has no UUID
        made.take(ask("many", max=2), 0)  # a change
        made.placed("a", "many", uuid, "n", 0)
    made.take(ask("many", max=2), 0)  # a change of the last one
    assert made.counts["asked"] == asked + 2
    made.released("a", "many", "", Termination.STOPPED_BY_RM, 1)
    made.take(ask("many", max=2), 2)
    assert made.counts["asked"] == asked + 4
    assert [(pod.ask.key, pod.ask.max - pod.placed) for pod in made.waiting()] == [("many", 2)]


def test_an_allocation_that_is_reported_beside_an_ask_that_repeats_is_one_more() -> None:
    made = manager()
    made.take(ask("many", max=3), 0)
    made.take(ask("many", node="n"), 0)
    made.placed("a", "many", "u", "n", 0, reported=True)
    assert [(pod.ask.max, pod.placed) for pod in made.waiting()] == [(4, 1)]


def test_what_the_scheduler_is_told_under_the_key_of_an_ask_kept_back_takes_its_place() -> None:
    made = ResourceManager(grace_ns=0)
    made.take(App(id="a", gang=(TaskGroup(name="g", min=1, res={"vcore": 1}),)), 0)
    assert made.take(ask("x", group="g", max=3), 0) is None
    assert made.take(ask("x", group="g", ph=True), 0) is not None
    assert [(pod.ask.ph, pod.ask.max) for pod in made.waiting()] == [(True, 1)]
    made.accepted("a", "root.q", 0)
    assert said(made.entered("a", "Running", "")) == []


@pytest.mark.parametrize(
    ("max_allocations", "uuids", "ends"),
    [(1, [""], [("", "both")]), (2, ["u", ""], [("u", "allocation"), ("", "both")])],
)
def test_each_end_is_of_one_allocation(max_allocations: int, uuids: list[str], ends: list[tuple[str, str]]) -> None:
    """A release of an allocation that has neither a key nor a UUID would end all of the application."""
    made = manager()
    made.take(ask("x", max=max_allocations, duration_s=1), 0)
    for uuid in uuids:
        made.placed("a", "x", uuid, "n", 0)
    assert [(one.uuid, one.what) for one in made.due(SECOND_NS) if isinstance(one, Release)] == ends


def test_an_evicted_pod_that_ends_before_its_grace_period_is_over_is_created_again_then() -> None:
    made = manager(replaces=True)
    made.released("a", "long", "", Termination.PREEMPTED_BY_SCHEDULER, 0)
    made.take(NodeRemove(id="n"), SECOND_NS)
    assert said(made.released("a", "long", "", Termination.STOPPED_BY_RM, SECOND_NS)) == ["ask long"]
    assert made.due(2 * SECOND_NS) == []


def test_a_pod_that_ends_at_the_moment_of_its_eviction_has_ended() -> None:
    made = manager()
    assert said(made.due(5 * SECOND_NS)) == ["STOPPED_BY_RM short"]
    assert made.released("a", "short", "", Termination.PREEMPTED_BY_SCHEDULER, 5 * SECOND_NS) == []
    assert made.released("a", "short", "", Termination.STOPPED_BY_RM, 5 * SECOND_NS) == []
    assert (made.counts["ended"], made.counts["preempted_by_scheduler"], made.next_ns()) == (1, 0, None)


@pytest.mark.parametrize("state", ["Completed", "Failed"])
def test_the_name_of_an_application_that_is_over_is_free(state: str) -> None:
    made = manager()
    made.take(App(id="a", queue="root.second"), 0)
    assert made.applications["a"].line.queue == ""
    made.entered("a", state, "")
    made.take(App(id="a", queue="root.third"), 0)
    assert made.applications["a"].line.queue == "root.third"


def test_nodes_are_reported_as_they_have_become() -> None:
    made = manager()
    for line in (
        Node(id="m", res={"vcore": 1}, attrs={"si/zone": "a"}),
        Node(id="gone", res={"vcore": 1}),
        Foreign(key="f", node="n", res={"vcore": 1}),
        Foreign(key="g", node="gone", res={"vcore": 1}),
        NodeDrain(id="n"),
        NodeDrain(id="m"),
        NodeUndrain(id="m"),
        Change(id="m", res={"vcore": 2}),
        NodeRemove(id="gone"),
    ):
        made.take(line, 0)
    found = made.report()
    nodes = [one for one in found if isinstance(one, NodeUpdate)]
    assert [(node.node_id, node.action, node.capacity, node.attributes) for node in nodes] == [
        ("n", NodeAction.CREATE_DRAIN, {"vcore": 9}, {}),
        ("m", NodeAction.CREATE, {"vcore": 2}, {"si/zone": "a"}),
    ]
    assert [type(one) for one in found[2:4]] == [AddApplication, Allocation]
    assert said(found)[3:] == ["ask f on n", "ask short on n", "ask long on n"]
