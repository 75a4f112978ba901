"""The slow path for protobuf bytes out: writes any message of both dialects (see `licorne.si.wire` for the rules).

A message is checked while it is written, by the functions of `licorne.si._check`: the error for a value of a wrong
type names the field.
"""

from __future__ import annotations

from licorne._plain import cython
from licorne.si._check import Fault, amounts, flag, int32, int64, items, mapping, plain, tags, text
from licorne.si._common import Quantity
from licorne.si._schema import Message
from licorne.si.wire_constants import (
    AMOUNTS,
    BITS_64,
    BOOL,
    ENTRY_KEY,
    ENTRY_VALUE,
    ENUM,
    INT64,
    MAP,
    MESSAGE,
    QUANTITY_VALUE,
    RESOURCE_ENTRY,
    STRING,
)
from licorne.si.wire_plan import MessagePlan, Slot, WireError, plan_of


def encode(message: Message) -> bytes:
    """Encode a message.

    Raises:
        WireError: a value cannot be encoded: it has another type than declared, or is too large.
    """
    out = bytearray()
    try:
        _write_message(out, plan_of(type(message)), message)
    except Fault as fault:
        raise WireError(str(fault)) from None
    return bytes(out)


@cython.cfunc
def _write_message(out: bytearray, plan: MessagePlan, message: object) -> cython.void:
    slot: Slot
    for slot in plan.ordered:
        value = getattr(message, slot.attribute)
        try:
            if slot.repeated and slot.kind < MAP:
                for item in items(value):
                    _write_field(out, slot, item)
            elif value is not None:
                _write_field(out, slot, value)
        except Fault as fault:
            raise fault.inside(slot.name) from None
    others = [slot for slot in plan.ordered if slot.others and getattr(message, slot.attribute) is not None]
    if len(others) > 1:
        raise Fault(message, f"only one may be set of {', '.join([slot.name for slot in others])}")


@cython.cfunc
def _write_field(out: bytearray, slot: Slot, value: object) -> cython.void:
    """Write a field, unless it has the default value and its presence carries no meaning."""
    always: cython.bint = slot.present or slot.repeated
    part: bytearray
    if slot.kind <= ENUM:
        number = flag(value) if slot.kind == BOOL else int64(value) if slot.kind == INT64 else int32(value)
        if number or always:
            _write_varint(out, slot.tag)
            _write_varint(out, number & BITS_64)
    elif slot.kind == STRING:
        content = text(value)
        if content or always:
            _write_text(out, slot.tag, content)
    elif slot.kind == MESSAGE:
        plan: MessagePlan = cython.cast(MessagePlan, slot.plan)
        if type(value) is not plan.message:
            raise Fault(value, f"must be {plan.name}")
        part = bytearray()
        _write_message(part, plan, value)
        _write_part(out, slot.tag, part)
    elif slot.kind == AMOUNTS:
        part = bytearray()
        for name, amount in sorted(amounts(value).items()):
            _write_quantity(part, RESOURCE_ENTRY, name, amount)
        _write_part(out, slot.tag, part)
    elif slot.kind == MAP:
        for name, content in sorted(tags(value).items()):
            part = bytearray()
            _write_text(part, ENTRY_KEY, name)
            _write_text(part, ENTRY_VALUE, content)
            _write_part(out, slot.tag, part)
    else:
        for name, quantity in sorted(mapping(value, _quantity).items()):
            _write_quantity(out, slot.tag, name, quantity)


def _quantity(value: object) -> int:
    return plain(value, Quantity).value


@cython.cfunc
def _write_quantity(out: bytearray, tag: cython.uint, name: str, amount: cython.longlong) -> cython.void:
    """Write an entry of a resource: the name of the type, and the amount, in an embedded `Quantity`."""
    value: bytearray = bytearray()
    if amount:
        _write_varint(value, QUANTITY_VALUE)
        _write_varint(value, amount & BITS_64)
    part: bytearray = bytearray()
    _write_text(part, ENTRY_KEY, name)
    _write_part(part, ENTRY_VALUE, value)
    _write_part(out, tag, part)


@cython.cfunc
def _write_varint(out: bytearray, value: cython.ulonglong) -> cython.void:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


@cython.cfunc
def _write_text(out: bytearray, tag: cython.uint, value: str) -> cython.void:
    content = value.encode()
    _write_varint(out, tag)
    _write_varint(out, len(content))
    out += content


@cython.cfunc
def _write_part(out: bytearray, tag: cython.uint, part: bytearray) -> cython.void:
    _write_varint(out, tag)
    _write_varint(out, len(part))
    out += part
