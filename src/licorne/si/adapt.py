"""What the adapters of both dialects share: their result, the names of partitions, and how a list is read.

An adapter never raises and keeps no state. What it cannot read becomes a refusal in the outputs, addressed to the ask,
application or node in question; the unit is one item of a request, checked whole, so that one bad ask doesn't take the
thousand beside it along. What the protocol has no refusal for (releases and removals) is left out, and said in
`ignored` for a log.

What is *meant* by a well-formed message is the core's matter: unknown partitions, negative quantities, duplicates and
empty names pass through here and meet their reasons there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import astuple

from licorne.si import _common, messages
from licorne.si._check import Fault, Mistyped, items, plain, salvaged
from licorne.si._schema import Message
from licorne.si.constants import NODE_PARTITION
from licorne.si.messages import Input, Output
from licorne.si.partitions import ShortPartitions, qualified_partition, short_partition
from licorne.si.wire_read import decode_part


class Translation(msgspec.Struct, kw_only=True):
    """A request in the core's terms.

    `inputs` are to be handed to the core in this order. `outputs` are refusals of what could not be read, in the order
    of its appearance; they go back to the sender before the core's answers. `ignored` says, in words for a log, what
    was dropped without an answer because the protocol has none. `mistyped` repeats, of all these reasons, those that
    tell of a value of the wrong type (`licorne.si._check.Mistyped`): mistakes of a program that made the message.
    """

    inputs: list[Input] = []
    outputs: list[Output] = []
    ignored: list[str] = []
    mistyped: list[str] = []

    def reason(self, fault: Fault) -> str:
        """The words for a fault of the request; noted, if it is a value of the wrong type."""
        words = str(fault)
        if isinstance(fault, Mistyped):
            self.mistyped.append(words)
        return words


def node_attributes(attributes: dict[str, str], rm_id: str) -> tuple[str, dict[str, str]]:
    """The partition that a node's attributes name (short), and the attributes with that name qualified.

    The attribute `si/node-partition` is added where it is missing, as docs/spec/scheduler-interface.md, section 6, says
    and the REST API shows.
    """
    partition = short_partition(attributes.get(NODE_PARTITION, ""), rm_id)
    return partition, attributes | {NODE_PARTITION: qualified_partition(partition, rm_id)}


def changed_attributes(attributes: dict[str, str], qualified: dict[str, str]) -> dict[str, str] | None:
    """The attributes that an update replaces a node's with, or None where it replaces none.

    A map that holds nothing, or nothing but the partition, cannot mean "forget all attributes": on the wire an empty
    map is the same as none at all, the Kubernetes resource manager sends one with each change of capacity, and the
    partition must be there to address a node outside of the default one.
    """
    return qualified if attributes.keys() - {NODE_PARTITION} else None


def readable(translation: Translation, name: str, values: object) -> list[Any] | tuple[Any, ...]:
    """The items of the repeated field `name`, not checked yet; none, and a note, if it is not a list at all."""
    try:
        return items(values)
    except Fault as fault:
        translation.ignored.append(translation.reason(fault.inside(name)))
        return ()


def each(
    translation: Translation,
    name: str,
    values: object,
    read: Callable[[object], None],
    refuse: Callable[[object, str], Output] | None,
) -> None:
    """Read the items of the repeated field `name` one by one.

    `read` adds what an item means to the translation, or raises `Fault` before it adds anything; then `refuse`
    gives the answer for that item and its reason. Without `refuse` the protocol has no answer, and a note is left.
    """
    for index, value in enumerate(readable(translation, name, values)):
        try:
            read(value)
        except Fault as fault:
            reason = translation.reason(fault.inside(f"{name}[{index}]"))
            if refuse is None:
                translation.ignored.append(reason)
            else:
                translation.outputs.append(refuse(value, reason))


def each_ask(
    translation: Translation,
    name: str,
    values: object,
    message: type[Message],
    read_many: Callable[..., list[messages.Allocation]],
    read_one: Callable[..., messages.Allocation],
    partitions: ShortPartitions,
) -> None:
    """As `each`, for the messages that come in great numbers: `read_many` (`licorne.si.reading`) takes them all.

    It leaves those that are not as declared to `read_one`, which gets the values of an item's fields one by one, in the
    order of their declaration and with exact types, and gives the input that they mean, or raises `Fault`.
    """

    def slow_path(index: int, value: object) -> messages.Allocation | None:
        try:
            return read_one(*astuple(plain(value, message)))
        except Fault as fault:
            reason = translation.reason(fault.inside(f"{name}[{index}]"))
            translation.outputs.append(refused_allocation(value, reason))
            return None

    translation.inputs += read_many(readable(translation, name, values), partitions, slow_path)


def each_ask_on_wire(
    translation: Translation,
    request: str,
    name: str,
    data: bytes,
    lengths: list[int],
    message: type[Message],
    read_many: Callable[..., list[messages.Allocation]],
    read_one: Callable[..., messages.Allocation],
    partitions: ShortPartitions,
) -> None:
    """As `each_ask`, of asks in `data`, where `lengths` says (`licorne.si.wire_asks`).

    Raises:
        WireError: one of them is no such message; the path begins with the name of the `request`.
    """

    def slow_path(index: int, start: int, end: int) -> messages.Allocation | None:
        value = decode_part(message, data, start, end, f"{request}.{name}[{index}]")
        try:
            return read_one(*astuple(plain(value, message)))
        except Fault as fault:
            translation.outputs.append(refused_allocation(value, str(fault.inside(f"{name}[{index}]"))))
            return None

    translation.inputs += read_many(data, lengths, partitions, slow_path)


# -- in: messages that are alike in both dialects --------------------------------------------------------


def application_input(
    app: _common.AddApplicationRequest, rm_id: str, *, timeout_is_running_time: bool
) -> messages.AddApplication:
    """A well-typed request for a new application in the core's terms (the message is the same in both dialects)."""
    ugi = app.ugi or _common.UserGroupInformation()
    return messages.AddApplication(
        application_id=app.application_id,
        partition=short_partition(app.partition_name, rm_id),
        queue=app.queue_name,
        user=ugi.user,
        groups=tuple(ugi.groups),
        tags=app.tags,
        execution_timeout_ms=app.execution_timeout_milli_seconds,
        timeout_is_running_time=timeout_is_running_time,
        placeholder_ask=app.placeholder_ask or {},
        gang_style=app.gang_scheduling_style,
    )


def removal_input(app: _common.RemoveApplicationRequest, rm_id: str) -> messages.RemoveApplication:
    """A well-typed request to remove an application in the core's terms."""
    return messages.RemoveApplication(
        application_id=app.application_id, partition=short_partition(app.partition_name, rm_id)
    )


# -- refusals of what could not be read ------------------------------------------------------------------


def refused_application(value: object, reason: str) -> messages.RejectedApplication:
    """The refusal of an application that could not be read."""
    return messages.RejectedApplication(salvaged(value, "application_id"), reason)


def refused_allocation(value: object, reason: str) -> messages.RejectedAllocation:
    """The refusal of an ask or allocation that could not be read."""
    return messages.RejectedAllocation(salvaged(value, "allocation_key"), salvaged(value, "application_id"), reason)


def refused_node(value: object, reason: str) -> messages.RejectedNode:
    """The refusal of a node that could not be read."""
    return messages.RejectedNode(salvaged(value, "node_id"), reason)


# -- out: messages that are alike in both dialects -------------------------------------------------------


def accepted_application(output: messages.AcceptedApplication) -> _common.AcceptedApplication:
    """The message for an application that was taken."""
    return _common.AcceptedApplication(application_id=output.application_id)


def rejected_application(output: messages.RejectedApplication) -> _common.RejectedApplication:
    """The message for an application that was refused."""
    return _common.RejectedApplication(application_id=output.application_id, reason=output.reason)


def updated_application(output: messages.UpdatedApplication) -> _common.UpdatedApplication:
    """The message for an application's new state."""
    return _common.UpdatedApplication(
        application_id=output.application_id,
        state=output.state,
        state_transition_timestamp=output.timestamp_ns,
        message=output.message,
    )


def accepted_node(output: messages.AcceptedNode) -> _common.AcceptedNode:
    """The message for a node that was taken."""
    return _common.AcceptedNode(node_id=output.node_id)


def rejected_node(output: messages.RejectedNode) -> _common.RejectedNode:
    """The message for a node that was refused."""
    return _common.RejectedNode(node_id=output.node_id, reason=output.reason)
