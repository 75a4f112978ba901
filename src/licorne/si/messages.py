"""The one internal set of messages: what the core takes in and gives out, whatever dialect its peer speaks.

Two dialects of the Scheduler Interface exist, the first interface (*Scheduler Interface Spec*) and the 1.9 interface,
and no decoder can serve both (docs/spec/scheduler-interface.md, section 4). So neither is the core's own language:
`licorne.si.first` and `licorne.si.v19` describe what is on the wire, an adapter for each turns it into the messages
below, and the core knows nothing else. The set is a superset: a field that one dialect lacks has the value that means
"not said" there.

Resources are plain dicts from resource type to an integer (vcore in milli, memory in bytes, others as
counted). Times are integers in nanoseconds. Names of partitions are short (`default`) in inputs and outputs
alike; an adapter qualifies them as `[rmID]name` where its dialect wants that.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from licorne.si.allocations import Allocation, NewAllocation, Release, Released, Termination


class NodeAction(IntEnum):
    """What a resource manager wants done with a node (numbers of 1.9)."""

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
    the adapter says which by `timeout_is_running_time`. `groups_fault`: why the host could not find out the groups of a
    user that came without any (docs/spec/config.md, section 12.1); empty if it did not try, or found them.
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


class RemoveApplication(msgspec.Struct, kw_only=True):
    """The end of an application and of all that it has."""

    application_id: str
    partition: str = "default"


class NodeUpdate(msgspec.Struct, kw_only=True):
    """A node is new, changes or goes. `capacity`, `attributes`, `occupied`: None leaves them as they are.

    `strict`: the rule of the first interface that an unknown node, or DRAIN_TO_SCHEDULABLE without a drain, is an
    error.
    """

    node_id: str
    action: NodeAction
    partition: str = "default"
    attributes: dict[str, str] | None = None
    capacity: dict[str, int] | None = None
    occupied: dict[str, int] | None = None
    existing: tuple[Allocation, ...] = ()
    strict: bool = False


Input = AddApplication | RemoveApplication | Allocation | Release | NodeUpdate


# -- outputs ---------------------------------------------------------------------------------------------


class RejectedAllocation(msgspec.Struct):
    """An ask or an allocation was refused, and why.

    `template`: the reason with `…` in place of each name that is the message's own (key, application), so that equal
    reasons can be told without looking for names in sentences; empty where it is the same as the reason.
    """

    key: str
    application_id: str
    reason: str
    template: str = ""


class AcceptedApplication(msgspec.Struct):
    """An application was taken."""

    application_id: str


class RejectedApplication(msgspec.Struct):
    """An application was refused, and why; `template` as of an allocation, without the application's name."""

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
    """A node was taken."""

    node_id: str


class RejectedNode(msgspec.Struct):
    """A node, or a change to one, was refused, and why; `template` as of an allocation, without the node's name."""

    node_id: str
    reason: str
    template: str = ""


class WaitingForResources(msgspec.Struct):
    """An ask was tried and fits its quotas, but no node has room (docs/spec/scheduler-interface.md, section 7.4)."""

    key: str
    application_id: str
    reason: str = "request is waiting for cluster resources become available"


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
    "AcceptedApplication",
    "AcceptedNode",
    "AddApplication",
    "Allocation",
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
