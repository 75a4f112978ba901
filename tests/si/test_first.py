"""The first interface: the order in which a request takes effect, the meaning of its parts, refusals, and answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.si import first
from licorne.si import messages as m
from licorne.si.adapt_first import inputs_from_update_request, responses, resync
from licorne.si.messages import NodeAction, Termination

PARTITION = "si/node-partition"
DEFAULT = {PARTITION: "[rm]default"}


def test_the_order_of_a_request() -> None:
    request = first.UpdateRequest(
        rm_id="rm",
        remove_applications=[first.RemoveApplicationRequest(application_id="gone")],
        releases=first.AllocationReleasesRequest(
            allocation_asks_to_release=[first.AllocationAskRelease(application_id="a", allocation_key="k")],
            allocations_to_release=[first.AllocationRelease(application_id="a", uuid="u")],
        ),
        asks=[first.AllocationAsk(allocation_key="k", application_id="a")],
        new_applications=[first.AddApplicationRequest(application_id="a", execution_timeout_milli_seconds=9)],
        updated_nodes=[first.UpdateNodeInfo(node_id="n", action=first.ActionFromRM.DRAIN_NODE)],
        new_schedulable_nodes=[
            first.NewNodeInfo(
                node_id="n", existing_allocations=[first.Allocation(allocation_key="e", application_id="a", uuid="x")]
            ),
            first.NewNodeInfo(node_id="o"),
        ],
    )
    assert inputs_from_update_request(request).inputs == [
        m.NodeUpdate(
            node_id="n",
            action=NodeAction.CREATE,
            attributes=DEFAULT,
            existing=(m.Allocation(key="e", application_id="a", node_id="n", uuid="x"),),
            strict=True,
        ),
        m.NodeUpdate(node_id="o", action=NodeAction.CREATE, attributes=DEFAULT, strict=True),
        m.NodeUpdate(node_id="n", action=NodeAction.DRAIN_NODE, strict=True),
        m.AddApplication(application_id="a", execution_timeout_ms=9, timeout_is_running_time=True),
        m.Allocation(key="k", application_id="a"),
        m.Release(application_id="a", uuid="u", what="allocation"),
        m.Release(application_id="a", key="k", what="ask"),
        m.RemoveApplication(application_id="gone"),
    ]


# -- asks


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"application_id": "a"}, {"application_id": "a"}),
        ({}, {"application_id": "k", "independent": True}),
        ({"application_id": "a", "max_allocations": 5}, {"application_id": "a", "max_allocations": 5}),
        (
            {"application_id": "a", "priority": first.Priority(priority_value=-7)},
            {"application_id": "a", "priority": -7},
        ),
        (
            {"application_id": "a", "priority": first.Priority(priority_class_name="high")},
            {"application_id": "a", "priority_class": "high"},
        ),
        ({"application_id": "a", "priority": first.Priority()}, {"application_id": "a"}),
        (
            {
                "application_id": "a",
                "partition_name": "[rm]gpu",
                "resource_ask": {"vcore": 1},
                "execution_timeout_milli_seconds": -1,
                "tags": {"t": "u"},
                "task_group_name": "g",
                "placeholder": True,
            },
            {
                "application_id": "a",
                "partition": "gpu",
                "resource": {"vcore": 1},
                "timeout_ms": -1,
                "tags": {"t": "u"},
                "task_group": "g",
                "placeholder": True,
            },
        ),
    ],
)
def test_asks(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    request = first.UpdateRequest(rm_id="rm", asks=[first.AllocationAsk(allocation_key="k", **fields)])
    result = inputs_from_update_request(request)
    assert result.inputs == [m.Allocation(key="k", **expected)]
    assert not result.outputs


BOTH = first.Priority(priority_value=1, priority_class_name="high")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("priority", BOTH, f"priority {BOTH!r}: must be a number or the name of a class, not both"),
        (
            "priority",
            first.Priority(priority_class_name=""),
            "priority.priorityClassName '': must be the name of a class",
        ),
        ("priority", 5, "priority 5: must be Priority"),
        (
            "priority",
            first.Priority(priority_value=2**31),
            "priority.priorityValue 2147483648: must fit in 32 bits with sign",
        ),
        (
            "priority",
            first.Priority(priority_value=1.5),  # type: ignore[arg-type]
            "priority.priorityValue 1.5: must be an integer",
        ),
        ("max_allocations", -1, "maxAllocations -1: must not be negative"),
        ("max_allocations", None, "maxAllocations None: must be an integer"),
        ("resource_ask", {"vcore": 1.5}, "resourceAsk['vcore'] 1.5: must be an integer"),
        ("execution_timeout_milli_seconds", "5", "executionTimeoutMilliSeconds '5': must be an integer"),
    ],
)
@pytest.mark.parametrize("others", [0, 1])
def test_bad_asks(field: str, value: object, reason: str, others: int) -> None:
    bad = first.AllocationAsk(allocation_key="bad", application_id="a")
    setattr(bad, field, value)
    asks = [bad, *[first.AllocationAsk(allocation_key="x", application_id="a")] * others]
    result = inputs_from_update_request(first.UpdateRequest(asks=asks))
    assert result.inputs == [m.Allocation(key="x", application_id="a")] * others
    (refusal,) = result.outputs
    assert isinstance(refusal, m.RejectedAllocation)
    assert (refusal.key, refusal.application_id) == ("bad", "a")
    assert refusal.reason[:60] == f"invalid asks[0].{reason}"[:60]
    assert refusal.reason.endswith(reason.rpartition(": ")[2])


# -- nodes


def test_a_new_node_with_its_running_allocations() -> None:
    node = first.NewNodeInfo(
        node_id="n",
        attributes={PARTITION: "gpu", "si/arch": "arm"},
        schedulable_resource={"vcore": 8},
        occupied_resource={"vcore": 1},
        existing_allocations=[
            first.Allocation(
                allocation_key="k",
                uuid="u",
                node_id="n",
                application_id="a",
                resource_per_alloc={"vcore": 2},
                priority=first.Priority(priority_class_name="high"),
                allocation_tags={"t": "u"},
                task_group_name="g",
                placeholder=True,
            ),
            first.Allocation(
                allocation_key="alone", partition_name="default", priority=first.Priority(priority_value=3)
            ),
        ],
    )
    result = inputs_from_update_request(first.UpdateRequest(rm_id="rm", new_schedulable_nodes=[node]))
    assert result.inputs == [
        m.NodeUpdate(
            node_id="n",
            action=NodeAction.CREATE,
            partition="gpu",
            attributes={PARTITION: "[rm]gpu", "si/arch": "arm"},
            capacity={"vcore": 8},
            occupied={"vcore": 1},
            existing=(
                m.Allocation(
                    key="k",
                    application_id="a",
                    partition="gpu",
                    resource={"vcore": 2},
                    priority_class="high",
                    tags={"t": "u"},
                    node_id="n",
                    task_group="g",
                    placeholder=True,
                    uuid="u",
                ),
                m.Allocation(key="alone", application_id="alone", priority=3, node_id="n", independent=True),
            ),
            strict=True,
        ),
    ]


@pytest.mark.parametrize(
    ("existing", "reason"),
    [
        (first.Allocation(node_id="other"), "nodeID 'other': must be the node that reports it"),
        (first.Allocation(resource_per_alloc={"vcore": "1"}), "resourcePerAlloc['vcore'] '1': must be an integer"),  # type: ignore[dict-item]
        (
            first.Allocation(priority=first.Priority(priority_class_name="")),
            "priority.priorityClassName '': must be the name of a class",
        ),
        (None, "None: must be Allocation"),
    ],
)
def test_a_node_is_refused_as_a_whole(existing: Any, reason: str) -> None:
    node = first.NewNodeInfo(node_id="n", existing_allocations=[first.Allocation(allocation_key="k"), existing])
    result = inputs_from_update_request(first.UpdateRequest(new_schedulable_nodes=[node]))
    assert not result.inputs
    joint = " " if existing is None else "."
    place = "invalid newSchedulableNodes[0].existingAllocations[1]"
    assert result.outputs == [m.RejectedNode("n", f"{place}{joint}{reason}")]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            0,
            {"action": NodeAction.UPDATE, "capacity": {"vcore": 1}, "occupied": {}, "attributes": DEFAULT | {"x": "y"}},
        ),
        (1, {"action": NodeAction.DRAIN_NODE}),
        (2, {"action": NodeAction.DECOMISSION}),
        (3, {"action": NodeAction.DRAIN_TO_SCHEDULABLE}),
    ],
)
def test_updated_nodes(action: int, expected: dict[str, Any]) -> None:
    node = first.UpdateNodeInfo(
        node_id="n",
        attributes={"x": "y"},
        schedulable_resource={"vcore": 1},
        occupied_resource={},
        action=first.ActionFromRM(action),
    )
    result = inputs_from_update_request(first.UpdateRequest(rm_id="rm", updated_nodes=[node]))
    assert result.inputs == [m.NodeUpdate(node_id="n", strict=True, **expected)]


def test_an_unknown_action_is_refused() -> None:
    node = first.UpdateNodeInfo(node_id="n", action=4)  # type: ignore[arg-type]
    result = inputs_from_update_request(first.UpdateRequest(updated_nodes=[node]))
    assert result.outputs == [
        m.RejectedNode(
            "n",
            "invalid updatedNodes[0].action 4: must be one of 0 UPDATE, 1 DRAIN_NODE, 2 DECOMISSION, "
            "3 DRAIN_TO_SCHEDULABLE",
        )
    ]


# -- releases


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_termination_types_are_shifted_by_one(number: int) -> None:
    releases = first.AllocationReleasesRequest(
        allocations_to_release=[first.AllocationRelease(uuid="u", termination_type=first.TerminationType(number))]
    )
    result = inputs_from_update_request(first.UpdateRequest(releases=releases))
    assert result.inputs == [m.Release(uuid="u", termination=Termination(number + 1), what="allocation")]
    ((_, response),) = responses([m.Released("k", "a", Termination(number + 1), uuid="u")], "rm")
    assert isinstance(response, first.UpdateResponse)
    assert response.released_allocations[0].termination_type == number


def test_releases_of_everything_and_of_nothing() -> None:
    releases = first.AllocationReleasesRequest(
        allocations_to_release=[first.AllocationRelease(application_id="a", message="m"), first.AllocationRelease()],
        allocation_asks_to_release=[
            first.AllocationAskRelease(application_id="a"),
            first.AllocationAskRelease(allocation_key="k"),
            first.AllocationAskRelease(),
            first.AllocationAskRelease(allocation_key="k", termination_type=4),  # type: ignore[arg-type]
        ],
    )
    result = inputs_from_update_request(first.UpdateRequest(releases=releases))
    assert result.inputs == [
        m.Release(application_id="a", message="m", what="allocation"),
        m.Release(application_id="a", what="ask"),
        m.Release(key="k", what="ask"),
    ]
    assert not result.outputs
    assert [note.partition(" ")[2].partition(" ")[0] for note in result.ignored] == [
        "releases.allocationsToRelease[1]",
        "releases.allocationAsksToRelease[2]",
        "releases.allocationAsksToRelease[3].terminationType",
    ]


# -- bad input as such


@pytest.mark.parametrize("junk", [None, 5, "text", {}, first.EventRecord()])
def test_nothing_is_raised_for_junk_in_place_of_a_request_or_a_list(junk: Any) -> None:
    assert inputs_from_update_request(junk).ignored
    request = first.UpdateRequest(
        rm_id=junk,
        asks=junk,
        releases=junk,
        new_schedulable_nodes=junk,
        updated_nodes=junk,
        new_applications=junk,
        remove_applications=junk,
    )
    result = inputs_from_update_request(request)
    assert (result.inputs, result.outputs) == ([], [])


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(),
    st.binary(),
    st.dictionaries(st.text(max_size=3) | st.integers(), st.text(max_size=3) | st.integers(), max_size=2),
    st.builds(first.Priority, priority_value=st.none() | st.integers(), priority_class_name=st.none() | st.text()),
)
asks = st.dictionaries(st.sampled_from(first.AllocationAsk.__struct_fields__), values, max_size=4)
nodes = st.dictionaries(st.sampled_from(first.UpdateNodeInfo.__struct_fields__), values, max_size=4)


@given(st.lists(asks, max_size=3), st.lists(nodes, max_size=3), st.lists(values, max_size=3))
def test_each_item_is_read_or_refused(
    ask_fields: list[dict[str, Any]], node_fields: list[dict[str, Any]], others: list[Any]
) -> None:
    result = inputs_from_update_request(
        first.UpdateRequest(
            asks=[first.AllocationAsk(**fields) for fields in ask_fields],
            updated_nodes=[first.UpdateNodeInfo(**fields) for fields in node_fields],
            new_applications=others,
        )
    )
    assert len(result.inputs) + len(result.outputs) == len(ask_fields) + len(node_fields) + len(others)
    msgspec.json.encode(result.inputs)
    msgspec.json.encode(result.outputs)


# -- answers

names = st.text(st.characters(codec="utf-8"), max_size=8)
quantities = st.dictionaries(names, st.integers(-(2**63), 2**63 - 1), max_size=3)
terminations = st.sampled_from([Termination(number) for number in (1, 2, 3, 4)])
outputs = st.lists(
    st.one_of(
        st.builds(
            m.NewAllocation,
            key=names,
            application_id=names,
            node_id=names,
            resource=quantities,
            queue=names,
            priority=st.integers(-(2**31), 2**31 - 1),
            tags=st.none() | st.dictionaries(names, names, min_size=1, max_size=2),
            task_group=names,
            placeholder=st.booleans(),
            uuid=names,
        ),
        st.builds(m.Released, st.just(""), names, terminations, names, uuid=names),
        st.builds(m.Released, names, names, terminations, names, ask=st.just(value=True)),
        st.builds(m.RejectedAllocation, names, names, names),
        st.builds(m.AcceptedApplication, names),
        st.builds(m.RejectedApplication, names, names),
        st.builds(m.UpdatedApplication, names, names, st.integers(0, 2**63 - 1), names),
        st.builds(m.AcceptedNode, names),
        st.builds(m.RejectedNode, names, names),
    ),
    min_size=1,
)


def read_back(response: first.UpdateResponse) -> list[m.Output]:
    """The outputs that a response came from, list by list."""
    found: list[m.Output] = [
        m.NewAllocation(
            item.allocation_key,
            item.application_id,
            item.node_id,
            item.resource_per_alloc or {},
            queue=item.queue_name,
            priority=(item.priority and item.priority.priority_value) or 0,
            tags=item.allocation_tags or None,
            task_group=item.task_group_name,
            placeholder=item.placeholder,
            uuid=item.uuid,
        )
        for item in response.new_allocations
    ]
    for gone in response.released_allocations:
        cause = Termination(gone.termination_type + 1)
        found.append(m.Released("", gone.application_id, cause, gone.message, uuid=gone.uuid))
    for end in response.released_allocation_asks:
        cause = Termination(end.termination_type + 1)
        found.append(m.Released(end.allocation_key, end.application_id, cause, end.message, ask=True))
    found += [
        m.RejectedAllocation(ask.allocation_key, ask.application_id, ask.reason)
        for ask in response.rejected_allocations
    ]
    found += [m.AcceptedApplication(app.application_id) for app in response.accepted_applications]
    found += [m.RejectedApplication(app.application_id, app.reason) for app in response.rejected_applications]
    found += [
        m.UpdatedApplication(app.application_id, app.state, app.state_transition_timestamp, app.message)
        for app in response.updated_applications
    ]
    found += [m.AcceptedNode(node.node_id) for node in response.accepted_nodes]
    found += [m.RejectedNode(node.node_id, node.reason) for node in response.rejected_nodes]
    return found


@given(outputs)
def test_answers_survive_the_wire_in_the_order_of_each_list(given_outputs: list[m.Output]) -> None:
    ((kind, response),) = responses(given_outputs, "rm")
    assert kind == "update"
    received = msgspec.json.decode(msgspec.json.encode(response), type=first.UpdateResponse)
    assert received == response
    assert {item.partition_name for item in received.new_allocations} <= {"[rm]default"}
    back = read_back(received)
    for output_type in {type(output) for output in given_outputs}:
        for ask in (False, True):
            assert [item for item in back if type(item) is output_type and getattr(item, "ask", False) is ask] == [
                item for item in given_outputs if type(item) is output_type and getattr(item, "ask", False) is ask
            ]
    assert len(back) == len(given_outputs)


def test_states_travel_beside_the_response() -> None:
    waiting = m.WaitingForResources("k", "a")
    state = first.UpdateContainerSchedulingStateRequest(
        application_id="a",
        allocation_key="k",
        state=first.SchedulingState.FAILED,
        reason="request is waiting for cluster resources become available",
    )
    assert list(responses([waiting], "rm")) == [("state", state)]
    assert [kind for kind, _ in responses([waiting, m.AcceptedNode("n")], "rm")] == ["update", "state"]
    assert list(responses([], "rm")) == []
    assert b'"applicartionID":"a"' in msgspec.json.encode(state)


def test_an_unknown_cause_is_reported_as_stopped() -> None:
    ((_, response),) = responses([m.Released("k", "a", Termination.UNKNOWN)], "rm")
    assert isinstance(response, first.UpdateResponse)
    assert response.released_allocations[0].termination_type is first.TerminationType.STOPPED_BY_RM


def test_resync() -> None:
    assert msgspec.to_builtins(resync()) == {"action": 1}
