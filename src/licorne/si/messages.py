"""The one internal set of messages: the inputs and outputs of the core, whatever dialect its peer speaks.

Two dialects of the Scheduler Interface exist, the first interface (*Scheduler Interface Spec*) and the 1.9 interface,
and no decoder can serve both (docs/spec/scheduler-interface.md, section 4). So the core uses neither:
`licorne.si.first` and `licorne.si.v19` describe the messages on the wire, an adapter for each translates them to the
messages below, and the core knows only these. The set is a superset: for a field that one dialect lacks, its adapter
sets the default, which means that the field was not given.

Resources are plain dicts from resource type to an integer (vcore in thousandths, memory in bytes, other types as
counted). Times are integers in nanoseconds. Names of partitions are short (`default`) in inputs and outputs alike; an
adapter qualifies them as `[rmID]name` where its dialect requires that.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from licorne.si.allocations import Allocation, NewAllocation, Release, Released, Termination


class NodeAction(IntEnum):
    """The action on a node that a resource manager asks for (numbers of 1.9)."""

    UNKNOWN = 0
    CREATE = 1
    UPDATE = 2
    DRAIN_NODE = 3
    DECOMISSION = 4
    DRAIN_TO_SCHEDULABLE = 5
    CREATE_DRAIN = 6


# -- inputs ----------------------------------------------------------------------------------------------


class AddApplication(msgspec.Struct, kw_only=True):
    """A new application (*Scheduler Interface Spec*, AddApplicationRequest).

    `execution_timeout_ms` is the running time in the first interface and the placeholder timeout in the 1.9 interface;
    the adapter says which by `timeout_is_running_time`. `groups_fault` is the reason why the host could not resolve the
    groups of a user named without any (docs/spec/config.md, section 12.1); empty if it did not try, or found them.
    `groups_found`: the groups are not the message's own, but found by the host; then any user name is accepted.
    """

    application_id: str
    partition: str = "default"
    queue: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    tags: dict[str, str] = {}
    execution_timeout_ms: int = 0
    timeout_is_running_time: bool = False
    placeholder_ask: dict[str, int] = {}
    gang_style: str = ""
    groups_fault: str = ""
    groups_found: bool = False


class RemoveApplication(msgspec.Struct, kw_only=True):
    """The end of an application, its asks and its allocations."""

    application_id: str
    partition: str = "default"


class ChangeApplication(msgspec.Struct, kw_only=True):
    """Other values of tags of an application that is known; other tags stay.

    They count for its gang (docs/understand/gangs-atomic.md, "Lasting gangs") and for the eviction of its allocations. None
    is taken over if a lasting gang would have no valid task groups.
    """

    application_id: str
    partition: str = "default"
    tags: dict[str, str]


class NodeUpdate(msgspec.Struct, kw_only=True):
    """A new node, a change to a node, or its removal. `capacity`, `attributes`, `occupied`: None means no change.

    `existing` are the allocations that a new node reports. `strict` is the rule of the first interface that an unknown
    node, or DRAIN_TO_SCHEDULABLE without a drain, is an error.
    """

    node_id: str
    action: NodeAction
    partition: str = "default"
    attributes: dict[str, str] | None = None
    capacity: dict[str, int] | None = None
    occupied: dict[str, int] | None = None
    existing: tuple[Allocation, ...] = ()
    strict: bool = False


class DisruptionBudgetUpdate(msgspec.Struct, kw_only=True):
    """A disruption budget that is new, has changed or is gone (docs/understand/preemption.md, "Disruption budgets").

    `allowed` is how many of its members may be evicted; those that the scheduler has evicted count as evicted until they
    leave. None: there is no such budget any more. `joined` and `left` are the ids of allocations (keys, in the 1.9
    interface) that are members from now on, and that no longer are; one that has ended must leave, too.
    """

    name: str
    partition: str = "default"
    allowed: int | None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


Input = (
    AddApplication | ChangeApplication | RemoveApplication | Allocation | Release | NodeUpdate | DisruptionBudgetUpdate
)


# -- outputs ---------------------------------------------------------------------------------------------


class RejectedAllocation(msgspec.Struct):
    """The refusal of an ask or an allocation, with the reason.

    `template` is the reason with `…` in place of each name taken from the message (key, application), so that equal
    reasons can be recognised without searching sentences for names; empty if it is the same as the reason.
    """

    key: str
    application_id: str
    reason: str
    template: str = ""


class AcceptedApplication(msgspec.Struct):
    """A new application was accepted."""

    application_id: str


class RejectedApplication(msgspec.Struct):
    """The refusal of an application, with the reason.

    `template` is the reason with `…` in place of the application's id; empty if it is the same as the reason.
    """

    application_id: str
    reason: str
    template: str = ""


class UpdatedApplication(msgspec.Struct):
    """An application has a new state (name as in docs/spec/states.md); the time is in nanoseconds."""

    application_id: str
    state: str
    timestamp_ns: int
    message: str = ""


class AcceptedNode(msgspec.Struct):
    """A new node was accepted."""

    node_id: str


class RejectedNode(msgspec.Struct):
    """The refusal of a node or of a change to it, with the reason.

    `template` is the reason with `…` in place of the node's id; empty if it is the same as the reason.
    """

    node_id: str
    reason: str
    template: str = ""


class WaitingForResources(msgspec.Struct):
    """An ask was tried and fits its quotas, but no node has room (docs/spec/scheduler-interface.md, section 7.4)."""

    key: str
    application_id: str
    reason: str = "request is waiting for cluster resources become available"


CONFIRMED = frozenset((Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED))
"""Why allocations end that the scheduler releases, and that have ended when the resource manager confirms it."""

Output = (
    NewAllocation
    | Released
    | RejectedAllocation
    | AcceptedApplication
    | RejectedApplication
    | UpdatedApplication
    | AcceptedNode
    | RejectedNode
    | WaitingForResources
)

__all__ = [
    "CONFIRMED",
    "AcceptedApplication",
    "AcceptedNode",
    "AddApplication",
    "Allocation",
    "ChangeApplication",
    "Input",
    "NewAllocation",
    "NodeAction",
    "NodeUpdate",
    "Output",
    "RejectedAllocation",
    "RejectedApplication",
    "RejectedNode",
    "Release",
    "Released",
    "RemoveApplication",
    "Termination",
    "UpdatedApplication",
    "WaitingForResources",
]
