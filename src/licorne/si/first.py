"""The first interface: messages and enums of the Scheduler Interface as *Scheduler Interface Spec* prints them.

One stream, `Update`, carries everything in both directions. An ask and an allocation are different messages; an ask may
repeat (`max_allocations`), so an allocation is identified by a UUID, not by its key. Names are those of the document,
including its typing errors: `applicartionID`, `allocationkey`. Sources: *Scheduler Interface Spec* and
docs/spec/scheduler-interface.md, section 3.

Enum fields are declared with their enum, but a peer may send any number. Nothing here checks values; the adapter does.
"""

# ruff: noqa: RUF012 - a struct copies an empty default for each instance; the rule knows only direct subclasses.

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

import msgspec

from licorne.si._common import (
    AcceptedApplication,
    AcceptedNode,
    AddApplicationRequest,
    PredicatesArgs,
    Quantity,
    RegisterResourceManagerResponse,
    RejectedApplication,
    RejectedNode,
    RemoveApplicationRequest,
    Resource,
    UpdatedApplication,
    UserGroupInformation,
)
from licorne.si._fields import document
from licorne.si._schema import Amounts, Int32, Int64, Message

# -- enums -----------------------------------------------------------------------------------------------


class ActionFromScheduler(IntEnum):
    """`UpdateResponse.ActionFromScheduler`: RESYNC tells the resource manager to stop and to register again."""

    NOACTION = 0
    RESYNC = 1


class TerminationType(IntEnum):
    """Why an allocation ends, or ended. The numbers are one less than in 1.9: zero is a reason here."""

    STOPPED_BY_RM = 0
    TIMEOUT = 1
    PREEMPTED_BY_SCHEDULER = 2
    PLACEHOLDER_REPLACED = 3


class ActionFromRM(IntEnum):
    """The action on a known node that the resource manager asks for (`UpdateNodeInfo.ActionFromRM`)."""

    UPDATE = 0
    DRAIN_NODE = 1
    DECOMISSION = 2
    DRAIN_TO_SCHEDULABLE = 3


class SchedulingState(IntEnum):
    """`UpdateContainerSchedulingStateRequest.SchedulingState`."""

    SKIPPED = 0
    SCHEDULED = 1
    RESERVED = 2
    FAILED = 3


class EventType(IntEnum):
    """`EventRecord.Type`: the kind of object that an event is about."""

    REQUEST = 0
    APP = 1
    NODE = 2
    QUEUE = 3


# -- registration and configuration ----------------------------------------------------------------------


class RegisterResourceManagerRequest(Message):
    """The first call of a resource manager. `policy_group` names a configuration of the scheduler's host."""

    rm_id: Annotated[str, 1] = ""
    version: Annotated[str, 2] = ""
    policy_group: Annotated[str, 3] = ""


class UpdateConfigurationRequest(Message):
    """A new configuration that the scheduler asks the resource manager to save (a plugin)."""

    configs: Annotated[str, 1] = ""


class UpdateConfigurationResponse(Message):
    """The answer of a resource manager that was asked to save a configuration, with the one it had before."""

    success: Annotated[bool, 1] = False
    old_config: Annotated[str, 2] = ""
    reason: Annotated[str, 3] = ""


# -- asks and allocations --------------------------------------------------------------------------------


class Priority(Message, gc=False, frozen=True):  # type: ignore[misc]  # a struct may, unlike a dataclass
    """A number, higher is more important, or the name of a class; at most one of the two is set (a oneof).

    The class is frozen, so that many asks and allocations may share one object.
    """

    priority_value: Annotated[Int32 | None, 1, "priority"] = None
    priority_class_name: Annotated[str | None, 2, "priority"] = None


class AllocationAsk(Message, gc=False):
    """A request for up to `max_allocations` equal allocations; a known key changes the ask.

    An allocation expires after `execution_timeout_milli_seconds`; zero or less means never. The garbage collector does
    not track these objects: they hold strings, numbers and dicts of these, so they are never in a cycle.
    """

    allocation_key: Annotated[str, 1] = ""
    application_id: Annotated[str, 2] = ""
    partition_name: Annotated[str, 3] = ""
    resource_ask: Annotated[Amounts | None, 4] = None
    max_allocations: Annotated[Int32, 5] = 0
    priority: Annotated[Priority | None, 6] = None
    execution_timeout_milli_seconds: Annotated[Int64, 7] = 0
    tags: Annotated[dict[str, str], 8] = {}
    task_group_name: Annotated[str, 9] = ""
    placeholder: Annotated[bool, 10] = False


class Allocation(Message, gc=False):
    """A decision of the scheduler, or, as part of a new node, an allocation that already exists there."""

    allocation_key: Annotated[str, 1] = ""
    allocation_tags: Annotated[dict[str, str], 2] = {}
    uuid: Annotated[str, 3] = ""
    resource_per_alloc: Annotated[Amounts | None, 5] = None
    priority: Annotated[Priority | None, 6] = None
    queue_name: Annotated[str, 7] = ""
    node_id: Annotated[str, 8] = ""
    application_id: Annotated[str, 9] = ""
    partition_name: Annotated[str, 10] = ""
    task_group_name: Annotated[str, 11] = ""
    placeholder: Annotated[bool, 12] = False


class AllocationRelease(Message):
    """The end of an allocation, requested, reported or confirmed. Without a UUID: all of the application's."""

    partition_name: Annotated[str, 1] = ""
    application_id: Annotated[str, 2] = ""
    uuid: Annotated[str, 3] = ""
    termination_type: Annotated[TerminationType, 4] = TerminationType.STOPPED_BY_RM
    message: Annotated[str, 5] = ""


class AllocationAskRelease(Message):
    """The end of an ask. Without a key: all asks of the application. Without an application: the ask with this key."""

    partition_name: Annotated[str, 1] = ""
    application_id: Annotated[str, 2] = ""
    allocation_key: Annotated[str, 3] = msgspec.field(default="", name="allocationkey")
    termination_type: Annotated[TerminationType, 4] = TerminationType.STOPPED_BY_RM
    message: Annotated[str, 5] = ""


class AllocationReleasesRequest(Message):
    """Releases of allocations and of asks."""

    allocations_to_release: Annotated[list[AllocationRelease], 1] = []
    allocation_asks_to_release: Annotated[list[AllocationAskRelease], 2] = []


class RejectedAllocationAsk(Message):
    """The scheduler refused an ask."""

    allocation_key: Annotated[str, 1] = ""
    application_id: Annotated[str, 2] = ""
    reason: Annotated[str, 3] = ""


# -- nodes -----------------------------------------------------------------------------------------------


class NewNodeInfo(Message):
    """A new node, with the resources that other schedulers occupy on it and the allocations that exist there."""

    node_id: Annotated[str, 1] = ""
    attributes: Annotated[dict[str, str], 2] = {}
    schedulable_resource: Annotated[Amounts | None, 3] = None
    occupied_resource: Annotated[Amounts | None, 4] = None
    existing_allocations: Annotated[list[Allocation], 5] = []


class UpdateNodeInfo(Message):
    """A change to a known node, or its removal."""

    node_id: Annotated[str, 1] = ""
    attributes: Annotated[dict[str, str], 2] = {}
    schedulable_resource: Annotated[Amounts | None, 3] = None
    occupied_resource: Annotated[Amounts | None, 4] = None
    action: Annotated[ActionFromRM, 5] = ActionFromRM.UPDATE


# -- the stream ------------------------------------------------------------------------------------------


class UpdateRequest(Message):
    """The one message of a resource manager: nodes, applications, asks, releases and removals."""

    asks: Annotated[list[AllocationAsk], 1] = []
    releases: Annotated[AllocationReleasesRequest | None, 2] = None
    new_schedulable_nodes: Annotated[list[NewNodeInfo], 3] = []
    updated_nodes: Annotated[list[UpdateNodeInfo], 4] = []
    rm_id: Annotated[str, 5] = ""
    new_applications: Annotated[list[AddApplicationRequest], 6] = []
    remove_applications: Annotated[list[RemoveApplicationRequest], 7] = []


class UpdateResponse(Message):
    """The one message of the scheduler: decisions, releases, verdicts and new states of applications."""

    action: Annotated[ActionFromScheduler, 1] = ActionFromScheduler.NOACTION
    new_allocations: Annotated[list[Allocation], 2] = []
    released_allocations: Annotated[list[AllocationRelease], 3] = []
    released_allocation_asks: Annotated[list[AllocationAskRelease], 4] = []
    rejected_allocations: Annotated[list[RejectedAllocationAsk], 5] = []
    rejected_applications: Annotated[list[RejectedApplication], 6] = []
    accepted_applications: Annotated[list[AcceptedApplication], 7] = []
    updated_applications: Annotated[list[UpdatedApplication], 8] = []
    rejected_nodes: Annotated[list[RejectedNode], 9] = []
    accepted_nodes: Annotated[list[AcceptedNode], 10] = []


# -- plugins ---------------------------------------------------------------------------------------------


class AssumedAllocation(Message):
    """An allocation that the resource manager's cache should assume to be on a node."""

    allocation_key: Annotated[str, 1] = ""
    node_id: Annotated[str, 2] = ""


class ForgotAllocation(Message):
    """An allocation that the cache should forget."""

    allocation_key: Annotated[str, 1] = ""


class ReSyncSchedulerCacheArgs(Message):
    """Changes that the resource manager's scheduler cache must take over before predicates are asked."""

    assumed_allocations: Annotated[list[AssumedAllocation], 1] = []
    forget_allocations: Annotated[list[ForgotAllocation], 2] = []


class UpdateContainerSchedulingStateRequest(Message):
    """The result of trying a pending ask."""

    application_id: Annotated[str, 1] = msgspec.field(default="", name="applicartionID")
    allocation_key: Annotated[str, 2] = ""
    state: Annotated[SchedulingState, 3] = SchedulingState.SKIPPED
    reason: Annotated[str, 4] = ""


class EventRecord(Message):
    """Something that happened to an object; the time is in nanoseconds.

    `group_id` is the application of a request, the queue of an application.
    """

    type: Annotated[EventType, 1] = EventType.REQUEST
    object_id: Annotated[str, 2] = ""
    group_id: Annotated[str, 3] = ""
    reason: Annotated[str, 4] = ""
    message: Annotated[str, 5] = ""
    timestamp_nano: Annotated[Int64, 6] = 0


document(globals())

__all__ = [
    "AcceptedApplication",
    "AcceptedNode",
    "ActionFromRM",
    "ActionFromScheduler",
    "AddApplicationRequest",
    "Allocation",
    "AllocationAsk",
    "AllocationAskRelease",
    "AllocationRelease",
    "AllocationReleasesRequest",
    "AssumedAllocation",
    "EventRecord",
    "EventType",
    "ForgotAllocation",
    "NewNodeInfo",
    "PredicatesArgs",
    "Priority",
    "Quantity",
    "ReSyncSchedulerCacheArgs",
    "RegisterResourceManagerRequest",
    "RegisterResourceManagerResponse",
    "RejectedAllocationAsk",
    "RejectedApplication",
    "RejectedNode",
    "RemoveApplicationRequest",
    "Resource",
    "SchedulingState",
    "TerminationType",
    "UpdateConfigurationRequest",
    "UpdateConfigurationResponse",
    "UpdateContainerSchedulingStateRequest",
    "UpdateNodeInfo",
    "UpdateRequest",
    "UpdateResponse",
    "UpdatedApplication",
    "UserGroupInformation",
]
