"""The messages of both dialects as the wire's reader and writer want them: fields by tag, and in order.

All of it follows from the declarations (`licorne.si._schema.fields`); nothing about any message is said here.
"""

from __future__ import annotations

from typing import Any

import cython

from licorne.si._common import Resource
from licorne.si._schema import Field, Message, fields

if cython.compiled:
    from cython.cimports.licorne.si.wire_constants import (
        AMOUNTS,
        BOOL,
        ENUM,
        INT32,
        INT64,
        MAP,
        MESSAGE,
        QUANTITIES,
        SPAN,
        STRING,
        VARINT,
    )
else:
    from licorne.si.wire_constants import (
        AMOUNTS,
        BOOL,
        ENUM,
        INT32,
        INT64,
        MAP,
        MESSAGE,
        QUANTITIES,
        SPAN,
        STRING,
        VARINT,
    )

_KINDS = {
    "bool": BOOL,
    "int32": INT32,
    "int64": INT64,
    "enum": ENUM,
    "string": STRING,
    "message": MESSAGE,
    "amounts": AMOUNTS,
    "map": MAP,
    "quantities": QUANTITIES,
}


class WireError(ValueError):
    """Bytes that are no message of the type expected, or a message that has no form on the wire.

    `path` is the field, `offset` the byte where it shows (-1 when a message was to be written), `rule` what is wrong.
    """

    rule: str
    offset: int
    path: str

    def __init__(self, rule: str, offset: int = -1, path: str = "") -> None:
        super().__init__(rule)
        self.rule = rule
        self.offset = offset
        self.path = path

    def inside(self, name: str) -> WireError:
        """The same error, seen from the holder of the field `name`."""
        self.path = f"{name}.{self.path}" if self.path else name
        return self

    def __str__(self) -> str:
        where = f" at byte {self.offset}" if self.offset >= 0 else ""
        return f"{self.path or 'message'}{where}: {self.rule}"


@cython.cclass
class Slot:
    """A field as it is read and written."""

    attribute: str
    name: str
    tag: cython.uint
    kind: cython.int
    repeated: cython.bint
    present: cython.bint  # written whenever it is not None
    members: dict[int, Any] | None
    plan: MessagePlan | None
    others: tuple[str, ...]

    def __init__(self, field: Field, siblings: tuple[Field, ...]) -> None:
        self.attribute = field.attribute
        self.name = field.name
        self.kind = _KINDS[field.kind]
        self.repeated = field.repeated or self.kind >= MAP
        self.present = field.optional
        self.members = None
        self.plan = None
        if field.kind == "enum":
            of: Any = field.type
            self.members = {member.value: member for member in of}
        elif field.type is not None:
            self.plan = plan_of(field.type)
        elif field.kind == "amounts":
            self.plan = plan_of(Resource)
        same = [other.attribute for other in siblings if field.oneof and other.oneof == field.oneof]
        self.others = tuple(name for name in same if name != field.attribute)
        self.tag = field.number << 3 | (VARINT if self.kind <= ENUM else SPAN)


@cython.cclass
class MessagePlan:
    """A message as it is read and written: its fields by tag and in the order of their numbers."""

    message: Any
    name: str
    slots: dict[int, Slot]
    ordered: list[Slot]
    nested: list[Slot]

    def __init__(self, message: type[Message]) -> None:
        self.message = message
        self.name = message.__name__
        declared = fields(message)
        self.ordered = sorted((Slot(field, declared) for field in declared), key=_tag_of)
        self.slots = {_tag_of(slot): slot for slot in self.ordered}
        self.nested = [slot for slot in self.ordered if _is_nested(slot)]


def _tag_of(slot: Slot) -> int:
    return slot.tag


def _is_nested(slot: Slot) -> bool:
    """Does it hold fields of its own that are put together last, when all that there is of them was read?"""
    return slot.kind in (AMOUNTS, QUANTITIES) or (slot.kind == MESSAGE and not slot.repeated)


_PLANS: dict[type[Message], MessagePlan] = {}


def plan_of(message: type[Message]) -> MessagePlan:
    """The plan of a message, made once."""
    plan = _PLANS.get(message)
    if plan is None:
        plan = _PLANS[message] = MessagePlan(message)
    return plan


def tag_of(message: type[Message], attribute: str) -> int:
    """What stands before the value of a field: its number and wire type, in one byte as with all fields asked for."""
    plan: MessagePlan = plan_of(message)
    (tag,) = [_tag_of(slot) for slot in plan.ordered if slot.attribute == attribute]
    assert tag < 128
    return tag
