"""The messages that are the same in both dialects, field for field and number for number.

The list is in docs/spec/scheduler-interface.md, section 4. `licorne.si.first` and `licorne.si.v19` re-export these
messages, so that users need not know which ones the dialects share. A message belongs here only while that list says
so: as soon as a dialect adds a field, that dialect gets a class of its own.
"""

# ruff: noqa: RUF012 - a struct copies an empty default for each instance; the rule knows only direct subclasses.

from __future__ import annotations

from typing import Annotated

from licorne.si._schema import Amounts, Int64, Message


class Quantity(Message):
    """One quantity on the wire. In Python a plain int stands for it."""

    value: Annotated[Int64, 1] = 0


class Resource(Message):
    """A sparse map of quantities on the wire. In Python a plain dict stands for it in all other messages."""

    resources: Annotated[dict[str, Quantity], 1] = {}


class UserGroupInformation(Message):
    """The user who owns an application. An empty list of groups asks the scheduler to resolve them."""

    user: Annotated[str, 1] = ""
    groups: Annotated[list[str], 2] = []


class AddApplicationRequest(Message):
    """A new application.

    `execution_timeout_milli_seconds` limits the running time in the first interface and the life of placeholders in the
    1.9 interface; `placeholder_ask` is the sum of all placeholders of a gang.
    """

    application_id: Annotated[str, 1] = ""
    queue_name: Annotated[str, 2] = ""
    partition_name: Annotated[str, 3] = ""
    ugi: Annotated[UserGroupInformation | None, 4] = None
    tags: Annotated[dict[str, str], 5] = {}
    execution_timeout_milli_seconds: Annotated[Int64, 6] = 0
    placeholder_ask: Annotated[Amounts | None, 7] = None
    gang_scheduling_style: Annotated[str, 8] = ""


class RemoveApplicationRequest(Message):
    """The end of an application, its asks and its allocations."""

    application_id: Annotated[str, 1] = ""
    partition_name: Annotated[str, 2] = ""


class AcceptedApplication(Message):
    """The scheduler accepted the application."""

    application_id: Annotated[str, 1] = ""


class RejectedApplication(Message):
    """The scheduler refused the application; nothing of it is kept."""

    application_id: Annotated[str, 1] = ""
    reason: Annotated[str, 2] = ""


class UpdatedApplication(Message):
    """The application entered `state` at `state_transition_timestamp` (nanoseconds)."""

    application_id: Annotated[str, 1] = ""
    state: Annotated[str, 2] = ""
    state_transition_timestamp: Annotated[Int64, 3] = 0
    message: Annotated[str, 4] = ""


class AcceptedNode(Message):
    """The scheduler accepted the node."""

    node_id: Annotated[str, 1] = ""


class RejectedNode(Message):
    """The scheduler refused the node, or in the first interface a change to it."""

    node_id: Annotated[str, 1] = ""
    reason: Annotated[str, 2] = ""


class PredicatesArgs(Message):
    """May this ask run on this node? `allocate` is false for a reservation and for a placeholder's replacement."""

    allocation_key: Annotated[str, 1] = ""
    node_id: Annotated[str, 2] = ""
    allocate: Annotated[bool, 3] = False


class RegisterResourceManagerResponse(Message):
    """Registration succeeded. The message has no fields on purpose."""
