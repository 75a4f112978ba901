"""The 1.9 dialect: the meaning of requests, refusals, and the order of answers."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.si import messages as m
from licorne.si import v19
from licorne.si.adapt_v19 import (
    inputs_from_allocation_request,
    inputs_from_application_request,
    inputs_from_node_request,
    responses,
)
from licorne.si.messages import NodeAction, Termination

INT64_MAX = 2**63 - 1
names = st.text(st.characters(codec="utf-8"), max_size=8)
labels = st.dictionaries(names, names, max_size=3)
quantities = st.integers(-(2**63), INT64_MAX)
amounts = st.dictionaries(names, quantities, max_size=3)


def asks(*allocations: Any, **kwargs: Any) -> v19.AllocationRequest:
    return v19.AllocationRequest(rm_id="rm", allocations=list(allocations), **kwargs)


# -- meaning


def test_an_application() -> None:
    request = v19.ApplicationRequest(
        rm_id="rm",
        remove=[v19.RemoveApplicationRequest(application_id="old", partition_name="gpu")],
        new=[
            v19.AddApplicationRequest(
                application_id="a",
                queue_name="root.q",
                ugi=v19.UserGroupInformation(user="u", groups=["g", "h"]),
                tags={"namespace": "n"},
                execution_timeout_milli_seconds=7,
                placeholder_ask={"vcore": 5},
                gang_scheduling_style="Hard",
            ),
            v19.AddApplicationRequest(),
        ],
    )
    result = inputs_from_application_request(request)
    assert result.inputs == [
        m.AddApplication(
            application_id="a",
            queue="root.q",
            user="u",
            groups=("g", "h"),
            tags={"namespace": "n"},
            execution_timeout_ms=7,
            placeholder_ask={"vcore": 5},
            gang_style="Hard",
        ),
        m.AddApplication(application_id=""),
        m.RemoveApplication(application_id="old", partition="gpu"),
    ]
    assert not result.outputs
    assert not result.ignored


def test_asks_before_releases() -> None:
    request = asks(
        v19.Allocation(allocation_key="k", application_id="a", resource_per_alloc={"vcore": 1}),
        v19.Allocation(
            allocation_key="f",
            partition_name="[rm]gpu",
            allocation_tags={"foreign": "static"},
            priority=-3,
            node_id="n",
            task_group_name="t",
            placeholder=True,
            originator=True,
            preemption_policy=v19.PreemptionPolicy(allow_preempt_other=True),
        ),
        releases=v19.AllocationReleasesRequest(
            allocations_to_release=[
                v19.AllocationRelease(application_id="a", allocation_key="k", termination_type=v19.TerminationType(4)),
                v19.AllocationRelease(message="all"),
            ]
        ),
    )
    result = inputs_from_allocation_request(request)
    assert result.inputs == [
        m.Allocation(key="k", application_id="a", resource={"vcore": 1}),
        m.Allocation(
            key="f",
            partition="gpu",
            tags={"foreign": "static"},
            priority=-3,
            node_id="n",
            task_group="t",
            placeholder=True,
            originator=True,
            allow_preempt_other=True,
        ),
        m.Release(application_id="a", key="k", termination=Termination.PLACEHOLDER_REPLACED),
        m.Release(termination=Termination.UNKNOWN, message="all"),
    ]
    assert not result.outputs
    assert not result.ignored


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("", "default"),
        ("default", "default"),
        ("gpu", "gpu"),
        ("[rm]gpu", "gpu"),
        ("[rm][rm]gpu", "[rm]gpu"),
        ("[rm]", "[rm]"),
        ("[other]default", "[other]default"),
        ("[r]default", "[r]default"),
    ],
)
def test_partition_names(name: str, short: str) -> None:
    """Another resource manager's partition keeps its text, which no partition of this one has."""
    result = inputs_from_allocation_request(asks(v19.Allocation(partition_name=name)))
    assert [allocation.partition for allocation in result.inputs] == [short]


PARTITION = "si/node-partition"


@pytest.mark.parametrize(
    ("action", "attributes", "resource", "expected"),
    [
        ("CREATE", {}, None, {"attributes": {PARTITION: "[rm]default"}}),
        (
            "CREATE_DRAIN",
            {"si/arch": "arm", PARTITION: "gpu"},
            {"vcore": 0},
            {
                "attributes": {"si/arch": "arm", PARTITION: "[rm]gpu"},
                "capacity": {"vcore": 0},
                "partition": "gpu",
            },
        ),
        ("UPDATE", {}, {"vcore": 1}, {"capacity": {"vcore": 1}}),
        ("UPDATE", {}, {}, {"capacity": {}}),
        ("UPDATE", {PARTITION: "[rm]gpu"}, None, {"partition": "gpu"}),
        ("UPDATE", {"si/os": "x"}, None, {"attributes": {"si/os": "x", PARTITION: "[rm]default"}}),
        ("DRAIN_NODE", {"si/os": "x", PARTITION: "gpu"}, {"vcore": 1}, {"partition": "gpu"}),
        ("DRAIN_TO_SCHEDULABLE", {}, None, {}),
        ("DECOMISSION", {PARTITION: "[other]gpu"}, None, {"partition": "[other]gpu"}),
    ],
)
def test_nodes(
    action: str, attributes: dict[str, str], resource: dict[str, int] | None, expected: dict[str, Any]
) -> None:
    info = v19.NodeInfo(
        node_id="n", action=v19.ActionFromRM[action], attributes=attributes, schedulable_resource=resource
    )
    result = inputs_from_node_request(v19.NodeRequest(rm_id="rm", nodes=[info]))
    assert result.inputs == [m.NodeUpdate(node_id="n", action=NodeAction[action], **expected)]
    assert not result.outputs


# -- refusals


class Count(IntEnum):
    SEVEN = 7


class Zone(StrEnum):
    WEST = "west"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("allocation_key", None, "allocationKey None: must be a string"),
        ("application_id", 5, "applicationID 5: must be a string"),
        ("application_id", "\ud800", "applicationID '\\ud800': must be valid Unicode"),
        ("partition_name", b"default", "partitionName b'default': must be a string"),
        ("partition_name", ["unhashable"], "partitionName ['unhashable']: must be a string"),
        ("node_id", {}, "nodeID {}: must be a string"),
        ("task_group_name", 1.5, "taskGroupName 1.5: must be a string"),
        ("priority", "high", "priority 'high': must be an integer"),
        ("priority", True, "priority True: must be an integer"),
        ("priority", 2**31, "priority 2147483648: must fit in 32 bits with sign"),
        ("placeholder", 1, "placeholder 1: must be true or false"),
        ("originator", "yes", "originator 'yes': must be true or false"),
        ("resource_per_alloc", 5, "resourcePerAlloc 5: must be a map"),
        ("resource_per_alloc", {"vcore": "1"}, "resourcePerAlloc['vcore'] '1': must be an integer"),
        ("resource_per_alloc", {"vcore": 1.0}, "resourcePerAlloc['vcore'] 1.0: must be an integer"),
        ("resource_per_alloc", {"vcore": True}, "resourcePerAlloc['vcore'] True: must be an integer"),
        ("resource_per_alloc", {"vcore": 2**63}, f"resourcePerAlloc['vcore'] {2**63}: must fit in 64 bits with sign"),
        ("resource_per_alloc", {"vcore": None}, "resourcePerAlloc['vcore'] None: must be an integer"),
        ("resource_per_alloc", {7: 7}, "resourcePerAlloc[7] 7: must be a string"),
        ("allocation_tags", {"a": 1}, "allocationTags['a'] 1: must be a string"),
        ("allocation_tags", ["a"], "allocationTags ['a']: must be a map"),
        ("preemption_policy", True, "preemptionPolicy True: must be PreemptionPolicy"),
        ("preemption_policy", {}, "preemptionPolicy {}: must be PreemptionPolicy"),
        (
            "preemption_policy",
            v19.PreemptionPolicy(allow_preempt_self="no"),  # type: ignore[arg-type]
            "preemptionPolicy.allowPreemptSelf 'no': must be true or false",
        ),
    ],
)
def test_a_bad_ask_is_refused_and_its_neighbours_are_not(field: str, value: object, reason: str) -> None:
    bad = v19.Allocation(allocation_key="bad", application_id="a")
    setattr(bad, field, value)
    result = inputs_from_allocation_request(
        asks(v19.Allocation(allocation_key="x"), bad, v19.Allocation(allocation_key="y"))
    )
    assert result.inputs == [m.Allocation(key="x"), m.Allocation(key="y")]
    (refusal,) = result.outputs
    assert refusal == m.RejectedAllocation(
        key="" if field == "allocation_key" else "bad",
        application_id="" if field == "application_id" else "a",
        reason=f"invalid allocations[1].{reason}",
    )


@pytest.mark.parametrize("item", [None, 5, "text", v19.NodeInfo(), {}])
def test_an_item_that_is_no_message_is_refused(item: object) -> None:
    result = inputs_from_allocation_request(asks(v19.Allocation(allocation_key="x"), item))
    assert len(result.inputs) == 1
    (refusal,) = result.outputs
    assert isinstance(refusal, m.RejectedAllocation)
    assert refusal.reason.startswith("invalid allocations[1] ")
    assert refusal.reason.endswith(": must be Allocation")


def test_a_huge_or_hostile_value_makes_a_short_reason() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    for value in ("x" * 10**6, Hostile(), 10**5000):
        (refusal,) = inputs_from_allocation_request(asks(v19.Allocation(priority=value))).outputs  # type: ignore[arg-type]
        assert isinstance(refusal, m.RejectedAllocation)
        assert len(refusal.reason) < 200


def test_harmless_deviations_are_mended_to_exact_types() -> None:
    allocation = v19.Allocation(
        allocation_key=Zone.WEST,
        allocation_tags=None,  # type: ignore[arg-type]
        resource_per_alloc={Zone.WEST: Count.SEVEN},
        priority=Count.SEVEN,
    )
    request = asks(allocation)
    request.allocations = tuple(request.allocations)  # type: ignore[assignment]
    result = inputs_from_allocation_request(request)
    assert result.inputs == [m.Allocation(key="west", resource={"west": 7}, priority=7)]
    (found,) = result.inputs
    assert isinstance(found, m.Allocation)
    assert found.resource is not None
    types = {type(value) for value in (found.key, *found.resource)}
    assert (types, type(found.priority), type(found.resource["west"])) == ({str}, int, int)


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
def test_inputs_share_nothing_with_the_message(fast: bool) -> None:
    allocation = v19.Allocation(resource_per_alloc={"vcore": 1}, allocation_tags={"a": "b"})
    result = inputs_from_allocation_request(asks(allocation, *([] if fast else [None])))
    assert allocation.resource_per_alloc is not None
    allocation.resource_per_alloc["vcore"] = -1
    allocation.allocation_tags["a"] = "c"
    assert result.inputs == [m.Allocation(key="", resource={"vcore": 1}, tags={"a": "b"})]


BAD_APPLICATIONS = [
    (v19.AddApplicationRequest(application_id="a", ugi="u"), "ugi 'u': must be UserGroupInformation"),  # type: ignore[arg-type]
    (
        v19.AddApplicationRequest(application_id="a", ugi=v19.UserGroupInformation(groups="g")),  # type: ignore[arg-type]
        "ugi.groups 'g': must be a list",
    ),
    (
        v19.AddApplicationRequest(application_id="a", ugi=v19.UserGroupInformation(groups=["g", 5])),  # type: ignore[list-item]
        "ugi.groups[1] 5: must be a string",
    ),
    (
        v19.AddApplicationRequest(application_id="a", execution_timeout_milli_seconds=2**63),
        f"executionTimeoutMilliSeconds {2**63}: must fit in 64 bits with sign",
    ),
    (
        v19.AddApplicationRequest(application_id="a", placeholder_ask={"vcore": 0.5}),  # type: ignore[dict-item]
        "placeholderAsk['vcore'] 0.5: must be an integer",
    ),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_APPLICATIONS)
def test_bad_applications(bad: v19.AddApplicationRequest, reason: str) -> None:
    good = v19.AddApplicationRequest(application_id="b")
    result = inputs_from_application_request(v19.ApplicationRequest(rm_id="rm", new=[bad, good]))
    assert result.inputs == [m.AddApplication(application_id="b")]
    assert result.outputs == [m.RejectedApplication("a", f"invalid new[0].{reason}")]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"action": 0}, "action 0: must say what is to be done with the node"),
        (
            {"action": 99},
            (
                "action 99: must be one of 0 UNKNOWN_ACTION_FROM_RM, 1 CREATE, 2 UPDATE, 3 DRAIN_NODE, 4 DECOMISSION, "
                "5 DRAIN_TO_SCHEDULABLE, 6 CREATE_DRAIN"
            ),
        ),
        ({"action": "CREATE"}, "action 'CREATE': must be an integer"),
        ({"action": []}, "action []: must be an integer"),
        ({"attributes": {"a": None}}, "attributes['a'] None: must be a string"),
        ({"schedulable_resource": {"vcore": 2**64}}, f"schedulableResource['vcore'] {2**64}: must fit in 64 bits"),
    ],
)
def test_bad_nodes(changes: dict[str, Any], reason: str) -> None:
    node = v19.NodeInfo(node_id="n", action=v19.ActionFromRM.CREATE)
    for name, value in changes.items():
        setattr(node, name, value)
    result = inputs_from_node_request(v19.NodeRequest(rm_id="rm", nodes=[node]))
    assert not result.inputs
    (refusal,) = result.outputs
    assert isinstance(refusal, m.RejectedNode)
    assert refusal.node_id == "n"
    assert refusal.reason.startswith(f"invalid nodes[0].{reason}")


def test_a_bad_item_without_an_answer_is_ignored_with_a_note() -> None:
    applications = inputs_from_application_request(
        v19.ApplicationRequest(remove=[None, v19.RemoveApplicationRequest(application_id="a")])  # type: ignore[list-item]
    )
    assert applications.inputs == [m.RemoveApplication(application_id="a")]
    assert applications.ignored == ["invalid remove[0] None: must be RemoveApplicationRequest"]

    bad = v19.AllocationRelease(termination_type="9")  # type: ignore[arg-type]
    releases = inputs_from_allocation_request(
        asks(releases=v19.AllocationReleasesRequest(allocations_to_release=[bad]))
    )
    assert not releases.inputs
    assert not releases.outputs
    assert releases.ignored[0].startswith("invalid releases.allocationsToRelease[0].terminationType '9': must be")


def test_a_release_of_a_type_that_only_a_later_version_knows_is_a_plain_removal() -> None:
    later = v19.AllocationRelease(application_id="a", allocation_key="k", termination_type=9)  # type: ignore[arg-type]
    (release,) = inputs_from_allocation_request(
        asks(releases=v19.AllocationReleasesRequest(allocations_to_release=[later]))
    ).inputs
    assert isinstance(release, m.Release)
    assert (release.key, release.termination) == ("k", m.Termination.UNKNOWN)


@pytest.mark.parametrize("junk", [None, 5, "text", {}, v19.EventRecord()])
def test_nothing_is_raised_for_junk_in_place_of_a_request_or_a_list(junk: Any) -> None:
    for adapt in (inputs_from_application_request, inputs_from_allocation_request, inputs_from_node_request):
        result = adapt(junk)
        assert (result.inputs, result.outputs, len(result.ignored)) == ([], [], 1)
    for result in (
        inputs_from_application_request(v19.ApplicationRequest(rm_id=junk, new=junk, remove=junk)),
        inputs_from_allocation_request(v19.AllocationRequest(rm_id=junk, allocations=junk, releases=junk)),
        inputs_from_node_request(v19.NodeRequest(rm_id=junk, nodes=junk)),
    ):
        assert (result.inputs, result.outputs) == ([], [])


# -- laws

allocations = st.builds(
    m.Allocation,
    key=names,
    application_id=names,
    partition=st.sampled_from(["default", "gpu"]),
    resource=st.none() | amounts,
    priority=st.integers(-(2**31), 2**31 - 1),
    tags=st.none() | labels.filter(bool),
    node_id=names,
    task_group=names,
    placeholder=st.booleans(),
    originator=st.booleans(),
    allow_preempt_self=st.booleans(),
    allow_preempt_other=st.booleans(),
)


def on_the_wire(allocation: m.Allocation) -> v19.Allocation:
    return v19.Allocation(
        allocation_key=allocation.key,
        application_id=allocation.application_id,
        partition_name=f"[rm]{allocation.partition}",
        resource_per_alloc=allocation.resource,
        priority=allocation.priority,
        allocation_tags=allocation.tags or {},
        node_id=allocation.node_id,
        task_group_name=allocation.task_group,
        placeholder=allocation.placeholder,
        originator=allocation.originator,
        preemption_policy=v19.PreemptionPolicy(
            allow_preempt_self=allocation.allow_preempt_self, allow_preempt_other=allocation.allow_preempt_other
        ),
    )


@given(st.lists(allocations, max_size=5))
def test_asks_survive_the_wire(expected: list[m.Allocation]) -> None:
    text = msgspec.json.encode(asks(*map(on_the_wire, expected)))
    result = inputs_from_allocation_request(msgspec.json.decode(text, type=v19.AllocationRequest))
    assert result.inputs == expected


junk = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), labels, st.lists(names))


@given(st.lists(st.dictionaries(st.sampled_from(v19.Allocation.__struct_fields__), junk | amounts), max_size=4))
def test_each_ask_is_read_or_refused_and_the_fast_path_agrees_with_the_slow_path(changes: list[dict[str, Any]]) -> None:
    given_asks = [v19.Allocation(**change) for change in changes]
    result = inputs_from_allocation_request(asks(*given_asks))
    assert len(result.inputs) + len(result.outputs) == len(given_asks)
    slowly = inputs_from_allocation_request(asks(*given_asks, None))
    assert (slowly.inputs, slowly.outputs[:-1]) == (result.inputs, result.outputs)
    msgspec.json.encode(result.inputs)
    msgspec.json.encode(result.outputs)


# -- answers

NEW = m.NewAllocation(
    key="k",
    application_id="a",
    node_id="n",
    resource={"vcore": 1},
    partition="gpu",
    queue="root.q",
    priority=5,
    tags={"a": "b"},
    task_group="t",
    placeholder=True,
    originator=True,
    allow_preempt_self=True,
    uuid="u",
)


def test_a_decision_has_the_fields_that_the_spec_lists_and_no_others() -> None:
    ((kind, response),) = responses([NEW], "rm")
    assert kind == "allocation"
    assert msgspec.to_builtins(response) == {
        "new": [
            {
                "allocationKey": "k",
                "resourcePerAlloc": {"vcore": 1},
                "nodeID": "n",
                "applicationID": "a",
                "taskGroupName": "t",
                "placeholder": True,
                "originator": True,
                "preemptionPolicy": {"allowPreemptSelf": True},
            }
        ]
    }


def test_the_other_answers() -> None:
    outputs: list[m.Output] = [
        m.Released("k", "a", Termination.TIMEOUT, "late", partition="gpu", uuid="u", ask=True),
        m.UpdatedApplication("a", "Running", 12, "runApplication"),
        m.WaitingForResources("k", "a"),
        m.RejectedAllocation("k", "a", "why"),
    ]
    assert list(responses(outputs, "rm")) == [
        (
            "allocation",
            v19.AllocationResponse(
                released=[
                    v19.AllocationRelease(
                        partition_name="[rm]gpu",
                        application_id="a",
                        termination_type=v19.TerminationType.TIMEOUT,
                        message="late",
                        allocation_key="k",
                    )
                ]
            ),
        ),
        (
            "application",
            v19.ApplicationResponse(
                updated=[
                    v19.UpdatedApplication(
                        application_id="a", state="Running", state_transition_timestamp=12, message="runApplication"
                    )
                ]
            ),
        ),
        (
            "state",
            v19.UpdateContainerSchedulingStateRequest(
                application_id="a",
                allocation_key="k",
                state=v19.SchedulingState.FAILED,
                reason="request is waiting for cluster resources become available",
            ),
        ),
        (
            "allocation",
            v19.AllocationResponse(
                rejected_allocations=[v19.RejectedAllocation(allocation_key="k", application_id="a", reason="why")]
            ),
        ),
    ]


def shape(outputs: list[m.Output]) -> list[str]:
    """The lists of each response that are not empty, with their lengths."""
    return [
        f"{kind}:"
        + ",".join(f"{name}{len(items)}" for name, items in msgspec.structs.asdict(response).items() if items)
        for kind, response in responses(outputs, "rm")
        if kind != "state"
    ]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("", []),
        ("nnn", ["allocation:new3"]),
        ("nrn", ["allocation:new1", "allocation:released1", "allocation:new1"]),
        ("+-+", ["application:rejected1,accepted2"]),
        ("+u", ["application:accepted1", "application:updated1"]),
        ("un+", ["application:updated1", "allocation:new1", "application:accepted1"]),
        ("uunu", ["application:updated2", "allocation:new1", "application:updated1"]),
        ("NMN", ["node:rejected1,accepted2"]),
        ("+N+", ["application:accepted1", "node:accepted1", "application:accepted1"]),
    ],
)
def test_grouping(letters: str, expected: list[str]) -> None:
    by_letter: dict[str, m.Output] = {
        "n": NEW,
        "r": m.Released("k", "a", Termination.STOPPED_BY_RM),
        "+": m.AcceptedApplication("a"),
        "-": m.RejectedApplication("a", "why"),
        "u": m.UpdatedApplication("a", "Accepted", 1),
        "N": m.AcceptedNode("n"),
        "M": m.RejectedNode("n", "why"),
    }
    assert shape([by_letter[letter] for letter in letters]) == expected


@given(st.lists(st.integers(0, 2)))
def test_the_order_of_decisions_ends_and_refusals_is_kept(kinds: list[int]) -> None:
    outputs: list[m.Output] = []
    for index, kind in enumerate(kinds):
        outputs.append(
            m.NewAllocation(f"k{index}", "a", "n", {})
            if kind == 0
            else m.Released(f"k{index}", "a", Termination.TIMEOUT)
            if kind == 1
            else m.RejectedAllocation(f"k{index}", "a", "why")
        )
    seen: list[str] = []
    for _, response in responses(outputs, "rm"):
        assert isinstance(response, v19.AllocationResponse)
        seen += [item.allocation_key for item in response.new]
        seen += [item.allocation_key for item in response.released]
        seen += [item.allocation_key for item in response.rejected_allocations]
    assert seen == [f"k{index}" for index in range(len(kinds))]
