"""The base class of all messages of both dialects, and the fields of a message as data.

A message is a struct whose fields carry their number on the wire as an annotation, `Annotated[str, 3]`, so that name,
type and number stand on one line and cannot drift apart. From these lines `fields()` derives the table that drives the
check of untrusted values (`licorne.si._check`) and the wire format (`licorne.si.wire`). A field of a oneof names it
after the number, `Annotated[str | None, 2, "priority"]`.

Two conventions keep the declarations short. A field of type `Amounts`, integers by name, is the protocol's `Resource`
message: in Python a sparse map of resource type to quantity is a plain dict. And the name on the wire follows from the
attribute (`node_id` becomes `nodeID`), unless the field gives another one.
"""

from __future__ import annotations

import types
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
Amounts = dict[str, Int64]

Kind = Literal["string", "bool", "int32", "int64", "enum", "message", "map", "amounts", "quantities"]


def wire_name(attribute: str) -> str:
    """Return the protocol's name of an attribute: camel case, with ID and UUID in capitals."""
    first, *rest = attribute.split("_")
    first = "UUID" if first == "uuid" else first
    return first + "".join("ID" if part == "id" else part.capitalize() for part in rest)


class Message(msgspec.Struct, kw_only=True, omit_defaults=True, rename=wire_name):
    """Base class of all messages of the dialects. Defaults are those of proto3, and JSON leaves them out."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a message.

    `attribute` is the name in Python, `name` the one on the wire and in JSON. `type` is the message or enum class of
    the kinds "message", "enum" and "quantities". `optional` fields may be None, which means that they are absent.
    Of the fields that share a `oneof` at most one is set. The kind "map" is map<string, string>, "amounts" is a
    `Resource` message held as a dict, and "quantities" is the map inside a `Resource` on the wire.
    """

    attribute: str
    name: str
    number: int
    kind: Kind
    repeated: bool = False
    optional: bool = False
    oneof: str = ""
    type: type[Any] | None = None


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether it was optional: `X | None` gives `(X, True)`."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    (present,) = (member for member in get_args(hint) if member is not type(None))
    return present, True


def _kind(hint: Any) -> tuple[Kind, type[Any] | None]:
    """Return the kind of a field, and its message or enum class, from its type with annotations.

    The type is that of one value: neither repeated nor optional.
    """
    plain = {str: "string", bool: "bool", Int32: "int32", Int64: "int64", Amounts: "amounts", dict[str, str]: "map"}
    if hint in plain:
        return plain[hint], None  # type: ignore[return-value]
    if get_origin(hint) is dict:
        return "quantities", get_args(hint)[1]
    return ("enum" if issubclass(hint, IntEnum) else "message"), hint


@cache
def fields(message: type[Message]) -> tuple[Field, ...]:
    """Return the fields of a message in the order of their declaration."""
    hints = get_type_hints(message, include_extras=True)
    result = []
    names = dict(zip(message.__struct_fields__, message.__struct_encode_fields__, strict=True))
    for attribute, name in names.items():
        # Nested Annotated types are flattened, so a bounded integer carries its bounds before the number.
        base, *extra = get_args(hints[attribute])
        oneof = extra.pop() if isinstance(extra[-1], str) else ""
        number = extra.pop()
        hint, optional = _without_none(Annotated[base, *extra] if extra else base)
        repeated = get_origin(hint) is list
        kind, inner = _kind(get_args(hint)[0] if repeated else hint)
        result.append(
            Field(
                attribute=attribute,
                name=name,
                number=number,
                kind=kind,
                repeated=repeated,
                optional=optional,
                oneof=oneof,
                type=inner,
            )
        )
    return tuple(result)
