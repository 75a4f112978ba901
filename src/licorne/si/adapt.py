"""What the adapters of both dialects share: their result, the reading of lists, and the messages that are alike.

An adapter keeps no state, and does not raise for a request given as an object. An item that cannot be read becomes a
refusal in the outputs, addressed to the ask, application or node in question. The unit of refusal is one item of a
request, checked as a whole, so that one bad ask does not cost the thousand others. Items for which the protocol has no
refusal (releases and removals) are left out, and noted in `ignored` for a log.

Adapters check types alone. Whether a well-formed message makes sense is for the core to decide: unknown partitions,
negative quantities, duplicates and empty names pass through here and are refused there.

A request that is given as bytes (`Reading`) is read in two passes. The decoder (`licorne.si.wire_read`) decodes
everything but the asks, and notes where these are. It comes first because no item can be translated without the id of
the resource manager, by which partitions are named, and that may stand after the items. In the second pass
`licorne.si.wire_asks` reads the asks from the same bytes, without making an object of the dialect for each. Only an ask
on which this fast path gives up goes back to the decoder, alone (`ask_slow_path_on_wire`).

A host can read a long request in steps, between which it does other work. Both passes pause between items, so the item
numbers and byte offsets of errors, and their order, are the same in steps and at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from licorne.si import _common, messages
from licorne.si._check import Fault, Mistyped, items, plain, salvaged
from licorne.si._schema import Message
from licorne.si.constants import NODE_PARTITION
from licorne.si.messages import Input, Output
from licorne.si.partitions import qualified_partition, short_partition
from licorne.si.wire_read import STEP_ITEMS, decode_apart, decode_in_steps, decode_part

STEP_ASKS = 200
"""The most asks that are read in one step."""


class Part(NamedTuple):
    """Which part of a request as bytes the inputs and outputs of a translation are.

    `at`: the number of the first input in the request. The outputs of the request belong to its first part. The request
    is one of asks and releases (1.9), and the translation is what reading these bytes gives, with nothing changed.
    """

    data: bytes
    at: int


class Translation(msgspec.Struct, kw_only=True):
    """A request in the core's terms.

    `inputs` are to be handed to the core in this order. `outputs` are refusals of items that could not be read, in the
    order of the items; they go back to the sender before the core's answers. `ignored` says, in words for a log, which
    items were dropped because the protocol has no answer for them. `mistyped` repeats, of all these reasons, those of
    values of the wrong type (`licorne.si._check.Mistyped`): mistakes of the program that made the message. `part` is set
    by a host that keeps the bytes.
    """

    inputs: list[Input] = []
    outputs: list[Output] = []
    ignored: list[str] = []
    mistyped: list[str] = []
    part: Part | None = None

    def reason(self, fault: Fault) -> str:
        """Return the reason for a fault, noted in `mistyped` too if the fault is a value of the wrong type."""
        words = str(fault)
        if isinstance(fault, Mistyped):
            self.mistyped.append(words)
        return words


class Reading(NamedTuple):
    """How the requests of one kind are read from protobuf bytes.

    `asks` is the attribute that holds the asks, empty if there are none. `translate` adds a request's meaning to a
    translation, in steps (it yields between them). Its arguments are the translation, the request without its asks, the
    bytes, and the offsets of the asks' length prefixes.
    """

    message: type[Message]
    asks: str
    translate: Callable[[Translation, Any, bytes, list[int]], Iterable[None]]

    def at_once(self, data: bytes) -> tuple[str, Translation]:
        """Read a request: return the id of its resource manager, and its translation.

        Raises:
            WireError: the bytes are not such a request; nothing of it takes effect.
        """
        req: Any
        req, lengths = decode_apart(self.message, data, self.asks)
        result = Translation()
        finish(self.translate(result, req, data, lengths))
        return req.rm_id, result

    def in_steps(self, data: bytes) -> Iterator[tuple[str, Translation] | None]:
        """Read a request in steps, of which the last one yields what `at_once` returns, the others None.

        Raises:
            WireError: the bytes are not such a request; nothing of it takes effect.
        """
        req: Any
        req, lengths = yield from decode_in_steps(self.message, data, self.asks)
        result = Translation()
        yield from self.translate(result, req, data, lengths)
        yield req.rm_id, result


def finish(steps: Iterable[None]) -> None:
    """Carry out all steps at once."""
    for _ in steps:
        pass


def translated(
    req: object, message: type[Message], translate: Callable[[Translation, Any, str], Iterable[None]]
) -> Translation:
    """Translate a request given as an object, by the steps of `translate`; one of another type is noted in `ignored`."""
    result = Translation()
    if isinstance(req, message):
        finish(translate(result, req, salvaged(req, "rm_id")))
    else:
        result.ignored.append(result.reason(Mistyped(req, f"must be {message.__name__}")))
    return result


def node_attributes(attributes: dict[str, str], rm_id: str) -> tuple[str, dict[str, str]]:
    """Return the short name of the partition that a node's attributes name, and the attributes with it qualified.

    The attribute `si/node-partition` is added where it is missing, as docs/spec/scheduler-interface.md, section 6, says
    and the REST API shows.
    """
    partition = short_partition(attributes.get(NODE_PARTITION, ""), rm_id)
    return partition, attributes | {NODE_PARTITION: qualified_partition(partition, rm_id)}


def changed_attributes(attributes: dict[str, str], qualified: dict[str, str]) -> dict[str, str] | None:
    """Return the attributes with which an update replaces a node's, or None if the update leaves them as they are.

    A map that is empty, or holds the partition alone, cannot mean "forget all attributes": on the wire an empty map is
    the same as none, the Kubernetes resource manager sends one with each change of capacity, and an update must name
    the partition to address a node outside of the default one.
    """
    return qualified if attributes.keys() - {NODE_PARTITION} else None


def readable(translation: Translation, name: str, values: object) -> list[Any] | tuple[Any, ...]:
    """Return the items of the repeated field `name`, unchecked; if it is not a list, note that and return none."""
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
) -> Iterable[None]:
    """Read the items of the repeated field `name` one by one, `STEP_ITEMS` in a step.

    `read` adds the meaning of an item to the translation, or raises `Fault` before it adds anything; `refuse` then
    makes the answer from the item and the reason. `refuse` is None where the protocol has no answer: the reason is
    then noted in `ignored`.
    """
    found = readable(translation, name, values)
    return _each(translation, name, found, read, refuse) if found else ()


def _each(
    translation: Translation,
    name: str,
    values: Iterable[object],
    read: Callable[[object], None],
    refuse: Callable[[object, str], Output] | None,
) -> Iterator[None]:
    for index, value in enumerate(values):
        try:
            read(value)
        except Fault as fault:
            reason = translation.reason(fault.inside(f"{name}[{index}]"))
            if refuse is None:
                translation.ignored.append(reason)
            else:
                translation.outputs.append(refuse(value, reason))
        if index % STEP_ITEMS == STEP_ITEMS - 1:
            yield


def ask_slow_path(
    translation: Translation, name: str, message: type[Message], read_one: Callable[..., messages.Allocation]
) -> Callable[[int, object], messages.Allocation | None]:
    """Return the slow path for asks in the repeated field `name`, given as objects, for `licorne.si.reading`.

    It checks one ask and hands the values of its fields, in the order of their declaration and with exact types, to
    `read_one`. That returns the input they mean or raises `Fault`; an ask with a fault is refused.
    """

    def slow_path(index: int, value: object) -> messages.Allocation | None:
        try:
            return read_one(*astuple(plain(value, message)))
        except Fault as fault:
            reason = translation.reason(fault.inside(f"{name}[{index}]"))
            translation.outputs.append(refused_allocation(value, reason))
            return None

    return slow_path


def ask_slow_path_on_wire(
    translation: Translation,
    request: str,
    name: str,
    data: bytes,
    message: type[Message],
    read_one: Callable[..., messages.Allocation],
) -> Callable[[int, int, int], messages.Allocation | None]:
    """Return the slow path for asks in the repeated field `name` of a `request` in `data`, for `licorne.si.wire_asks`.

    It decodes one ask and then treats it like one given as an object. For bytes that are no such message it raises
    `WireError`, with a path that begins with the name of the `request`.
    """
    slow_path = ask_slow_path(translation, name, message, read_one)

    def slow_path_on_wire(index: int, start: int, end: int) -> messages.Allocation | None:
        return slow_path(index, decode_part(message, data, start, end, f"{request}.{name}[{index}]"))

    return slow_path_on_wire


# -- in: messages that are alike in both dialects --------------------------------------------------------


def application_input(
    app: _common.AddApplicationRequest, rm_id: str, *, timeout_is_running_time: bool
) -> messages.AddApplication:
    """Translate a well-typed request for a new application."""
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
    """Translate a well-typed request to remove an application."""
    return messages.RemoveApplication(
        application_id=app.application_id, partition=short_partition(app.partition_name, rm_id)
    )


# -- refusals of items that could not be read ------------------------------------------------------------


def refused_application(value: object, reason: str) -> messages.RejectedApplication:
    """Refuse an application that could not be read."""
    return messages.RejectedApplication(salvaged(value, "application_id"), reason)


def refused_allocation(value: object, reason: str) -> messages.RejectedAllocation:
    """Refuse an ask or allocation that could not be read."""
    return messages.RejectedAllocation(salvaged(value, "allocation_key"), salvaged(value, "application_id"), reason)


def refused_node(value: object, reason: str) -> messages.RejectedNode:
    """Refuse a node that could not be read."""
    return messages.RejectedNode(salvaged(value, "node_id"), reason)


# -- out: messages that are alike in both dialects -------------------------------------------------------


def verdict(output: Output) -> Message:
    """Make the message for a verdict on an application or a node, or for an application's new state."""
    match output:
        case messages.AcceptedApplication():
            return _common.AcceptedApplication(application_id=output.application_id)
        case messages.RejectedApplication():
            return _common.RejectedApplication(application_id=output.application_id, reason=output.reason)
        case messages.UpdatedApplication():
            return _common.UpdatedApplication(
                application_id=output.application_id,
                state=output.state,
                state_transition_timestamp=output.timestamp_ns,
                message=output.message,
            )
        case messages.AcceptedNode():
            return _common.AcceptedNode(node_id=output.node_id)
        case messages.RejectedNode():
            return _common.RejectedNode(node_id=output.node_id, reason=output.reason)
    raise AssertionError(f"{type(output).__name__} is not alike in both dialects")
