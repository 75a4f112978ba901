"""Field names, numbers, types and enum values of both dialects, against the spec's tables typed in here."""

from __future__ import annotations

from enum import IntEnum
from types import ModuleType

import msgspec
import pytest

from licorne.si import first, messages, v19
from licorne.si._schema import Field, fields, wire_name
from si.declared import RESERVED, messages_of

COMMON = {
    "RegisterResourceManagerResponse": "",
    "UpdatedApplication": "applicationID#1 string, state#2 string, stateTransitionTimestamp#3 int64, message#4 string",
    "RejectedApplication": "applicationID#1 string, reason#2 string",
    "AcceptedApplication": "applicationID#1 string",
    "RejectedNode": "nodeID#1 string, reason#2 string",
    "AcceptedNode": "nodeID#1 string",
    "Resource": "resources#1 map<string,Quantity>",
    "Quantity": "value#1 int64",
    "AddApplicationRequest": (
        "applicationID#1 string, queueName#2 string, partitionName#3 string, ugi#4 UserGroupInformation, tags#5 map, "
        "executionTimeoutMilliSeconds#6 int64, placeholderAsk#7 Resource, gangSchedulingStyle#8 string"
    ),
    "RemoveApplicationRequest": "applicationID#1 string, partitionName#2 string",
    "UserGroupInformation": "user#1 string, groups#2 repeated string",
    "PredicatesArgs": "allocationKey#1 string, nodeID#2 string, allocate#3 bool",
}

V19 = COMMON | {
    "RegisterResourceManagerRequest": (
        "rmID#1 string, version#2 string, policyGroup#3 string, buildInfo#4 map, config#5 string, extraConfig#6 map"
    ),
    "AllocationRequest": "releases#2 AllocationReleasesRequest, rmID#3 string, allocations#4 repeated Allocation",
    "ApplicationRequest": (
        "new#1 repeated AddApplicationRequest, remove#2 repeated RemoveApplicationRequest, rmID#3 string"
    ),
    "NodeRequest": "nodes#1 repeated NodeInfo, rmID#2 string",
    "AllocationResponse": (
        "new#1 repeated Allocation, released#2 repeated AllocationRelease, "
        "rejectedAllocations#5 repeated RejectedAllocation"
    ),
    "ApplicationResponse": (
        "rejected#1 repeated RejectedApplication, accepted#2 repeated AcceptedApplication, "
        "updated#3 repeated UpdatedApplication"
    ),
    "NodeResponse": "rejected#1 repeated RejectedNode, accepted#2 repeated AcceptedNode",
    "PreemptionPolicy": "allowPreemptSelf#1 bool, allowPreemptOther#2 bool",
    "Allocation": (
        "allocationKey#1 string, allocationTags#2 map, resourcePerAlloc#5 Resource, priority#6 int32, nodeID#8 string, "
        "applicationID#9 string, partitionName#10 string, taskGroupName#11 string, placeholder#12 bool, "
        "originator#14 bool, preemptionPolicy#15 PreemptionPolicy"
    ),
    "AllocationReleasesRequest": "allocationsToRelease#1 repeated AllocationRelease",
    "AllocationRelease": (
        "partitionName#1 string, applicationID#2 string, terminationType#4 TerminationType, message#5 string, "
        "allocationKey#6 string"
    ),
    "NodeInfo": "nodeID#1 string, action#2 ActionFromRM, attributes#3 map, schedulableResource#4 Resource",
    "RejectedAllocation": "allocationKey#1 string, applicationID#2 string, reason#3 string",
    "PreemptionPredicatesArgs": (
        "allocationKey#1 string, nodeID#2 string, preemptAllocationKeys#3 repeated string, startIndex#4 int32"
    ),
    "PreemptionPredicatesResponse": "success#1 bool, index#2 int32",
    "UpdateContainerSchedulingStateRequest": (
        "applicationID#1 string, allocationKey#2 string, state#3 SchedulingState, reason#4 string"
    ),
    "UpdateConfigurationRequest": "rmID#2 string, policyGroup#3 string, config#4 string, extraConfig#5 map",
    "EventRecord": (
        "type#1 EventType, objectID#2 string, message#5 string, timestampNano#6 int64, eventChangeType#7 ChangeType, "
        "eventChangeDetail#8 ChangeDetail, referenceID#9 string, resource#10 Resource"
    ),
}

FIRST = COMMON | {
    "RegisterResourceManagerRequest": "rmID#1 string, version#2 string, policyGroup#3 string",
    "UpdateRequest": (
        "asks#1 repeated AllocationAsk, releases#2 AllocationReleasesRequest, "
        "newSchedulableNodes#3 repeated NewNodeInfo, updatedNodes#4 repeated UpdateNodeInfo, rmID#5 string, "
        "newApplications#6 repeated AddApplicationRequest, removeApplications#7 repeated RemoveApplicationRequest"
    ),
    "UpdateResponse": (
        "action#1 ActionFromScheduler, newAllocations#2 repeated Allocation, "
        "releasedAllocations#3 repeated AllocationRelease, releasedAllocationAsks#4 repeated AllocationAskRelease, "
        "rejectedAllocations#5 repeated RejectedAllocationAsk, rejectedApplications#6 repeated RejectedApplication, "
        "acceptedApplications#7 repeated AcceptedApplication, updatedApplications#8 repeated UpdatedApplication, "
        "rejectedNodes#9 repeated RejectedNode, acceptedNodes#10 repeated AcceptedNode"
    ),
    "Priority": "priorityValue#1 int32, priorityClassName#2 string",
    "AllocationAsk": (
        "allocationKey#1 string, applicationID#2 string, partitionName#3 string, resourceAsk#4 Resource, "
        "maxAllocations#5 int32, priority#6 Priority, executionTimeoutMilliSeconds#7 int64, tags#8 map, "
        "taskGroupName#9 string, placeholder#10 bool"
    ),
    "Allocation": (
        "allocationKey#1 string, allocationTags#2 map, UUID#3 string, resourcePerAlloc#5 Resource, "
        "priority#6 Priority, queueName#7 string, nodeID#8 string, applicationID#9 string, partitionName#10 string, "
        "taskGroupName#11 string, placeholder#12 bool"
    ),
    "AllocationReleasesRequest": (
        "allocationsToRelease#1 repeated AllocationRelease, allocationAsksToRelease#2 repeated AllocationAskRelease"
    ),
    "AllocationRelease": (
        "partitionName#1 string, applicationID#2 string, UUID#3 string, terminationType#4 TerminationType, "
        "message#5 string"
    ),
    "AllocationAskRelease": (
        "partitionName#1 string, applicationID#2 string, allocationkey#3 string, terminationType#4 TerminationType, "
        "message#5 string"
    ),
    "NewNodeInfo": (
        "nodeID#1 string, attributes#2 map, schedulableResource#3 Resource, occupiedResource#4 Resource, "
        "existingAllocations#5 repeated Allocation"
    ),
    "UpdateNodeInfo": (
        "nodeID#1 string, attributes#2 map, schedulableResource#3 Resource, occupiedResource#4 Resource, "
        "action#5 ActionFromRM"
    ),
    "RejectedAllocationAsk": "allocationKey#1 string, applicationID#2 string, reason#3 string",
    "ReSyncSchedulerCacheArgs": (
        "assumedAllocations#1 repeated AssumedAllocation, forgetAllocations#2 repeated ForgotAllocation"
    ),
    "AssumedAllocation": "allocationKey#1 string, nodeID#2 string",
    "ForgotAllocation": "allocationKey#1 string",
    "UpdateContainerSchedulingStateRequest": (
        "applicartionID#1 string, allocationKey#2 string, state#3 SchedulingState, reason#4 string"
    ),
    "UpdateConfigurationRequest": "configs#1 string",
    "UpdateConfigurationResponse": "success#1 bool, oldConfig#2 string, reason#3 string",
    "EventRecord": (
        "type#1 EventType, objectID#2 string, groupID#3 string, reason#4 string, message#5 string, "
        "timestampNano#6 int64"
    ),
}

KINDS = {"map": "map", "amounts": "Resource", "quantities": "map<string,Quantity>"}


def spelled(field: Field) -> str:
    """A field in the notation of the spec's tables."""
    kind = field.type.__name__ if field.kind in {"message", "enum"} and field.type else field.kind
    repeated = "repeated " if field.repeated else ""
    return f"{field.name}#{field.number} {repeated}{KINDS.get(kind, kind)}"


@pytest.mark.parametrize(("dialect", "table"), [(v19, V19), (first, FIRST)], ids=["1.9", "first"])
def test_every_message_exists_and_no_other(dialect: ModuleType, table: dict[str, str]) -> None:
    assert {message.__name__ for message in messages_of(dialect)} == set(table)


@pytest.mark.parametrize(
    ("dialect", "name", "row"),
    [
        pytest.param(dialect, name, row, id=f"{label}-{name}")
        for label, dialect, table in (("1.9", v19, V19), ("first", first, FIRST))
        for name, row in table.items()
    ],
)
def test_fields(dialect: ModuleType, name: str, row: str) -> None:
    message = getattr(dialect, name)
    assert ", ".join(spelled(field) for field in fields(message)) == row
    message()  # everything has a default, as in proto3


def test_reserved_numbers_are_not_used() -> None:
    for message, reserved in RESERVED.items():
        assert not set(reserved) & {field.number for field in fields(message)}
        assert not set(reserved.values()) & {field.name for field in fields(message)}


ENUMS = [
    (
        v19.TerminationType,
        "UNKNOWN_TERMINATION_TYPE 0, STOPPED_BY_RM 1, TIMEOUT 2, PREEMPTED_BY_SCHEDULER 3, PLACEHOLDER_REPLACED 4",
    ),
    (
        v19.ActionFromRM,
        (
            "UNKNOWN_ACTION_FROM_RM 0, CREATE 1, UPDATE 2, DRAIN_NODE 3, DECOMISSION 4, DRAIN_TO_SCHEDULABLE 5, "
            "CREATE_DRAIN 6"
        ),
    ),
    (v19.SchedulingState, "UNKNOWN_SCHEDULING_STATE 0, SKIPPED 1, SCHEDULED 2, RESERVED 3, FAILED 4"),
    (v19.EventType, "UNKNOWN_EVENTRECORD_TYPE 0, REQUEST 1, APP 2, NODE 3, QUEUE 4, USERGROUP 5"),
    (v19.ChangeType, "NONE 0, SET 1, ADD 2, REMOVE 3"),
    (
        v19.ChangeDetail,
        (
            "DETAILS_NONE 0, REQUEST_CANCEL 100, REQUEST_ALLOC 101, REQUEST_TIMEOUT 102, APP_ALLOC 200, APP_REQUEST 201, "
            "APP_REJECT 202, APP_NEW 203, APP_ACCEPTED 204, APP_RUNNING 206, APP_COMPLETING 207, APP_COMPLETED 208, "
            "APP_FAILING 209, APP_FAILED 210, APP_RESUMING 211, APP_EXPIRED 212, APP_CANNOTRUN_QUEUE 213, "
            "APP_RUNNABLE_QUEUE 214, APP_CANNOTRUN_QUOTA 215, APP_RUNNABLE_QUOTA 216, NODE_DECOMISSION 300, "
            "NODE_SCHEDULABLE 302, NODE_ALLOC 303, NODE_CAPACITY 304, NODE_OCCUPIED 305, NODE_RESERVATION 306, "
            "QUEUE_CONFIG 400, QUEUE_DYNAMIC 401, QUEUE_TYPE 402, QUEUE_MAX 403, QUEUE_GUARANTEED 404, QUEUE_APP 405, "
            "QUEUE_ALLOC 406, QUEUE_PREEMPTION 407, ALLOC_CANCEL 500, ALLOC_PREEMPT 501, ALLOC_TIMEOUT 502, "
            "ALLOC_REPLACED 503, ALLOC_NODEREMOVED 504, UG_USER_LIMIT 600, UG_GROUP_LIMIT 601, UG_APP_LINK 602, "
            "UG_USER_RESOURCE 603, UG_GROUP_RESOURCE 604"
        ),
    ),
    (first.ActionFromScheduler, "NOACTION 0, RESYNC 1"),
    (first.TerminationType, "STOPPED_BY_RM 0, TIMEOUT 1, PREEMPTED_BY_SCHEDULER 2, PLACEHOLDER_REPLACED 3"),
    (first.ActionFromRM, "UPDATE 0, DRAIN_NODE 1, DECOMISSION 2, DRAIN_TO_SCHEDULABLE 3"),
    (first.SchedulingState, "SKIPPED 0, SCHEDULED 1, RESERVED 2, FAILED 3"),
    (first.EventType, "REQUEST 0, APP 1, NODE 2, QUEUE 3"),
    (messages.Termination, "UNKNOWN 0, STOPPED_BY_RM 1, TIMEOUT 2, PREEMPTED_BY_SCHEDULER 3, PLACEHOLDER_REPLACED 4"),
]


@pytest.mark.parametrize(("enum", "row"), [pytest.param(*case, id=case[0].__qualname__) for case in ENUMS])
def test_enums(enum: type[IntEnum], row: str) -> None:
    assert ", ".join(f"{member.name} {member.value}" for member in enum) == row


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("rm_id", "rmID"), ("uuid", "UUID"), ("execution_timeout_milli_seconds", "executionTimeoutMilliSeconds")],
)
def test_names_on_the_wire(attribute: str, name: str) -> None:
    assert wire_name(attribute) == name


def test_a_resource_is_a_plain_dict_with_the_bounds_of_the_wire() -> None:
    text = b'{"allocationKey":"k","resourcePerAlloc":{"vcore":100},"priority":-5}'
    allocation = msgspec.json.decode(text, type=v19.Allocation)
    assert allocation == v19.Allocation(allocation_key="k", resource_per_alloc={"vcore": 100}, priority=-5)
    assert msgspec.json.encode(allocation) == text  # defaults are left out
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"priority":2147483648}', type=v19.Allocation)
