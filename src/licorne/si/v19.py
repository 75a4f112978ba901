"""The 1.9 interface: messages and enums of the Scheduler Interface as shim and core 1.9.x exchange them.

There are three streams (applications, allocations, nodes) with a request and a response each. One message,
`Allocation`, is an ask, an existing allocation or a decision, depending on the message that holds it and on its fields.
That is how the dialect has it, and so does this module; `licorne.si.adapt_v19` tells them apart. Sources:
docs/spec/scheduler-interface.md, section 2, and docs/spec/events.md, section 1.

Enum fields are declared with their enum, but a peer may send any number. Nothing here checks values; the adapter does.
"""

# ruff: noqa: RUF012 - a struct copies an empty default for each instance; the rule knows only direct subclasses.

from __future__ import annotations

from enum import IntEnum
from typing import Annotated

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


class TerminationType(IntEnum):
    """Why an allocation ends, or ended."""

    UNKNOWN_TERMINATION_TYPE = 0
    STOPPED_BY_RM = 1
    TIMEOUT = 2
    PREEMPTED_BY_SCHEDULER = 3
    PLACEHOLDER_REPLACED = 4


class ActionFromRM(IntEnum):
    """The action on a node that the resource manager asks for (`NodeInfo.ActionFromRM`; the protocol's spelling)."""

    UNKNOWN_ACTION_FROM_RM = 0
    CREATE = 1
    UPDATE = 2
    DRAIN_NODE = 3
    DECOMISSION = 4
    DRAIN_TO_SCHEDULABLE = 5
    CREATE_DRAIN = 6


class SchedulingState(IntEnum):
    """`UpdateContainerSchedulingStateRequest.SchedulingState`; only FAILED is ever sent."""

    UNKNOWN_SCHEDULING_STATE = 0
    SKIPPED = 1
    SCHEDULED = 2
    RESERVED = 3
    FAILED = 4


class EventType(IntEnum):
    """`EventRecord.Type`: the kind of object that an event is about."""

    UNKNOWN_EVENTRECORD_TYPE = 0
    REQUEST = 1
    APP = 2
    NODE = 3
    QUEUE = 4
    USERGROUP = 5


class ChangeType(IntEnum):
    """`EventRecord.ChangeType`."""

    NONE = 0
    SET = 1
    ADD = 2
    REMOVE = 3


class ChangeDetail(IntEnum):
    """`EventRecord.ChangeDetail`; each kind of object has a hundred numbers. 205 and 301 are reserved."""

    DETAILS_NONE = 0
    REQUEST_CANCEL = 100
    REQUEST_ALLOC = 101
    REQUEST_TIMEOUT = 102
    APP_ALLOC = 200
    APP_REQUEST = 201
    APP_REJECT = 202
    APP_NEW = 203
    APP_ACCEPTED = 204
    APP_RUNNING = 206
    APP_COMPLETING = 207
    APP_COMPLETED = 208
    APP_FAILING = 209
    APP_FAILED = 210
    APP_RESUMING = 211
    APP_EXPIRED = 212
    APP_CANNOTRUN_QUEUE = 213
    APP_RUNNABLE_QUEUE = 214
    APP_CANNOTRUN_QUOTA = 215
    APP_RUNNABLE_QUOTA = 216
    NODE_DECOMISSION = 300
    NODE_SCHEDULABLE = 302
    NODE_ALLOC = 303
    NODE_CAPACITY = 304
    NODE_OCCUPIED = 305
    NODE_RESERVATION = 306
    QUEUE_CONFIG = 400
    QUEUE_DYNAMIC = 401
    QUEUE_TYPE = 402
    QUEUE_MAX = 403
    QUEUE_GUARANTEED = 404
    QUEUE_APP = 405
    QUEUE_ALLOC = 406
    QUEUE_PREEMPTION = 407
    ALLOC_CANCEL = 500
    ALLOC_PREEMPT = 501
    ALLOC_TIMEOUT = 502
    ALLOC_REPLACED = 503
    ALLOC_NODEREMOVED = 504
    UG_USER_LIMIT = 600
    UG_GROUP_LIMIT = 601
    UG_APP_LINK = 602
    UG_USER_RESOURCE = 603
    UG_GROUP_RESOURCE = 604


# -- registration and configuration ----------------------------------------------------------------------


class RegisterResourceManagerRequest(Message):
    """The first call of a resource manager.

    `config` is the text of queues.yaml (empty: the built-in default), `extra_config` the settings.
    """

    rm_id: Annotated[str, 1] = ""
    version: Annotated[str, 2] = ""
    policy_group: Annotated[str, 3] = ""
    build_info: Annotated[dict[str, str], 4] = {}
    config: Annotated[str, 5] = ""
    extra_config: Annotated[dict[str, str], 6] = {}


class UpdateConfigurationRequest(Message):
    """A new configuration for a running scheduler.

    `config` is the text of queues.yaml, `extra_config` the settings.
    """

    rm_id: Annotated[str, 2] = ""
    policy_group: Annotated[str, 3] = ""
    config: Annotated[str, 4] = ""
    extra_config: Annotated[dict[str, str], 5] = {}


# -- applications ----------------------------------------------------------------------------------------


class ApplicationRequest(Message):
    """New applications, and removals of applications."""

    new: Annotated[list[AddApplicationRequest], 1] = []
    remove: Annotated[list[RemoveApplicationRequest], 2] = []
    rm_id: Annotated[str, 3] = ""


class ApplicationResponse(Message):
    """Verdicts on new applications, and applications that entered another state."""

    rejected: Annotated[list[RejectedApplication], 1] = []
    accepted: Annotated[list[AcceptedApplication], 2] = []
    updated: Annotated[list[UpdatedApplication], 3] = []


# -- asks and allocations --------------------------------------------------------------------------------


class PreemptionPolicy(Message, gc=False, frozen=True):  # type: ignore[misc]  # a struct may, unlike a dataclass
    """Whether an allocation may be evicted readily (`self`), and whether the ask may preempt others (`other`).

    An absent policy means neither: the allocation is a reluctant candidate. The class is frozen, so that all
    allocations may share the four possible objects.
    """

    allow_preempt_self: Annotated[bool, 1] = False
    allow_preempt_other: Annotated[bool, 2] = False


class Allocation(Message, gc=False):
    """An ask (no `node_id`), an existing allocation (`node_id`), or a decision of the scheduler.

    The garbage collector does not track these objects: they hold strings, numbers and dicts of these, so they are never
    in a cycle, and it would otherwise traverse a million of them at each collection.
    """

    allocation_key: Annotated[str, 1] = ""
    allocation_tags: Annotated[dict[str, str], 2] = {}
    resource_per_alloc: Annotated[Amounts | None, 5] = None
    priority: Annotated[Int32, 6] = 0
    node_id: Annotated[str, 8] = ""
    application_id: Annotated[str, 9] = ""
    partition_name: Annotated[str, 10] = ""
    task_group_name: Annotated[str, 11] = ""
    placeholder: Annotated[bool, 12] = False
    originator: Annotated[bool, 14] = False
    preemption_policy: Annotated[PreemptionPolicy | None, 15] = None


class AllocationRelease(Message):
    """The end of an ask or allocation, requested, reported or confirmed.

    Without `allocation_key` it names all asks and allocations of the application.
    """

    partition_name: Annotated[str, 1] = ""
    application_id: Annotated[str, 2] = ""
    termination_type: Annotated[TerminationType, 4] = TerminationType.UNKNOWN_TERMINATION_TYPE
    message: Annotated[str, 5] = ""
    allocation_key: Annotated[str, 6] = ""


class AllocationReleasesRequest(Message):
    """A list of releases."""

    allocations_to_release: Annotated[list[AllocationRelease], 1] = []


class RejectedAllocation(Message):
    """The scheduler refused an ask or an allocation."""

    allocation_key: Annotated[str, 1] = ""
    application_id: Annotated[str, 2] = ""
    reason: Annotated[str, 3] = ""


class AllocationRequest(Message):
    """Asks and existing allocations, then releases."""

    releases: Annotated[AllocationReleasesRequest | None, 2] = None
    rm_id: Annotated[str, 3] = ""
    allocations: Annotated[list[Allocation], 4] = []


class AllocationResponse(Message):
    """Decisions, releases and refusals."""

    new: Annotated[list[Allocation], 1] = []
    released: Annotated[list[AllocationRelease], 2] = []
    rejected_allocations: Annotated[list[RejectedAllocation], 5] = []


# -- nodes -----------------------------------------------------------------------------------------------


class NodeInfo(Message):
    """A new node, a change to a node, or its removal. Its partition is the attribute `si/node-partition`."""

    node_id: Annotated[str, 1] = ""
    action: Annotated[ActionFromRM, 2] = ActionFromRM.UNKNOWN_ACTION_FROM_RM
    attributes: Annotated[dict[str, str], 3] = {}
    schedulable_resource: Annotated[Amounts | None, 4] = None


class NodeRequest(Message):
    """A list of new nodes, changes and removals."""

    nodes: Annotated[list[NodeInfo], 1] = []
    rm_id: Annotated[str, 2] = ""


class NodeResponse(Message):
    """The verdicts on new nodes."""

    rejected: Annotated[list[RejectedNode], 1] = []
    accepted: Annotated[list[AcceptedNode], 2] = []


# -- callbacks -------------------------------------------------------------------------------------------


class PreemptionPredicatesArgs(Message):
    """Would the ask fit on the node without the victims 0 to i? See docs/spec/scheduler-interface.md, section 5."""

    allocation_key: Annotated[str, 1] = ""
    node_id: Annotated[str, 2] = ""
    preempt_allocation_keys: Annotated[list[str], 3] = []
    start_index: Annotated[Int32, 4] = 0


class PreemptionPredicatesResponse(Message):
    """The answer to `PreemptionPredicatesArgs`: `index` is the victim at which the ask fits.

    Without `success` the index has no meaning.
    """

    success: Annotated[bool, 1] = False
    index: Annotated[Int32, 2] = 0


class UpdateContainerSchedulingStateRequest(Message):
    """A pending ask was tried and no node has room for it, so the resource manager may want to add nodes.

    Source: docs/spec/scheduler-interface.md, section 7.4.
    """

    application_id: Annotated[str, 1] = ""
    allocation_key: Annotated[str, 2] = ""
    state: Annotated[SchedulingState, 3] = SchedulingState.UNKNOWN_SCHEDULING_STATE
    reason: Annotated[str, 4] = ""


class EventRecord(Message):
    """Something that happened to an object (docs/spec/events.md, section 1). The time is in nanoseconds."""

    type: Annotated[EventType, 1] = EventType.UNKNOWN_EVENTRECORD_TYPE
    object_id: Annotated[str, 2] = ""
    message: Annotated[str, 5] = ""
    timestamp_nano: Annotated[Int64, 6] = 0
    event_change_type: Annotated[ChangeType, 7] = ChangeType.NONE
    event_change_detail: Annotated[ChangeDetail, 8] = ChangeDetail.DETAILS_NONE
    reference_id: Annotated[str, 9] = ""
    resource: Annotated[Amounts | None, 10] = None


document(globals())

__all__ = [
    "AcceptedApplication",
    "AcceptedNode",
    "ActionFromRM",
    "AddApplicationRequest",
    "Allocation",
    "AllocationRelease",
    "AllocationReleasesRequest",
    "AllocationRequest",
    "AllocationResponse",
    "ApplicationRequest",
    "ApplicationResponse",
    "ChangeDetail",
    "ChangeType",
    "EventRecord",
    "EventType",
    "NodeInfo",
    "NodeRequest",
    "NodeResponse",
    "PredicatesArgs",
    "PreemptionPolicy",
    "PreemptionPredicatesArgs",
    "PreemptionPredicatesResponse",
    "Quantity",
    "RegisterResourceManagerRequest",
    "RegisterResourceManagerResponse",
    "RejectedAllocation",
    "RejectedApplication",
    "RejectedNode",
    "RemoveApplicationRequest",
    "Resource",
    "SchedulingState",
    "TerminationType",
    "UpdateConfigurationRequest",
    "UpdateContainerSchedulingStateRequest",
    "UpdatedApplication",
    "UserGroupInformation",
]
