"""Plans of messages for the protobuf reader and writer: the fields of a message by tag, and in the order of the tags.

A plan is derived from the declaration of its message (`licorne.si._schema.fields`); this module knows no message.
"""

from __future__ import annotations

from typing import Any

from licorne._plain import cython
from licorne.si._common import Resource
from licorne.si._schema import Field, Message, fields
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
    """Bytes that are not a message of the expected type, or a message that cannot be encoded.

    `path` is the field, `offset` the byte at which the error was found (-1 when writing), `rule` the rule broken.
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
        """Prepend `name`, the field that holds the message in error, to the path; return this error."""
        self.path = f"{name}.{self.path}" if self.path else name
        return self

    def __str__(self) -> str:
        where = f" at byte {self.offset}" if self.offset >= 0 else ""
        return f"{self.path or 'message'}{where}: {self.rule}"


@cython.cclass
class Slot:
    """A field of a message plan.

    `members` are an enum's members by number, `plan` is the plan of an embedded message, `others` are the attributes
    of the other fields of the same oneof. A map counts as `repeated`.
    """

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
    """The fields of a message: by tag in `slots`, in the order of their numbers in `ordered`.

    `nested` are the fields whose value is assembled after everything else was read (`_is_nested`).
    """

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
    """Has the field a message that may come in several pieces, and is built when all of these were read and merged?"""
    return slot.kind in (AMOUNTS, QUANTITIES) or (slot.kind == MESSAGE and not slot.repeated)


_PLANS: dict[type[Message], MessagePlan] = {}


def plan_of(message: type[Message]) -> MessagePlan:
    """Return the plan of a message, made at the first call."""
    plan = _PLANS.get(message)
    if plan is None:
        plan = _PLANS[message] = MessagePlan(message)
    return plan


def tag_of(message: type[Message], attribute: str) -> int:
    """Return a field's tag, its number and wire type, which must fit in one byte."""
    plan: MessagePlan = plan_of(message)
    (tag,) = [_tag_of(slot) for slot in plan.ordered if slot.attribute == attribute]
    assert tag < 128
    return tag
