"""The official protobuf package as the oracle for the wire: descriptors made from our tables, values compared with ours.

No generated file is involved: `descriptor_pb2` takes the fields as data, and `message_factory` makes classes of them.
Dialects are two proto packages, since their messages have the same names.
"""

from __future__ import annotations

from enum import IntEnum
from types import ModuleType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from licorne.si import first, v19
from licorne.si._schema import Field, Message, fields
from si.declared import messages_of

_SCALARS = {"string": "TYPE_STRING", "bool": "TYPE_BOOL", "int32": "TYPE_INT32", "int64": "TYPE_INT64"}
_Proto = descriptor_pb2.FieldDescriptorProto


def _type(name: str) -> Any:
    return getattr(_Proto, name)


def _entry(proto: Any, package: str, name: str, value: str | None) -> str:
    """Add the nested type that a map is on the wire."""
    entry = proto.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_type("TYPE_STRING"), label=_Proto.LABEL_OPTIONAL)
    if value is None:
        entry.field.add(name="value", number=2, type=_type("TYPE_STRING"), label=_Proto.LABEL_OPTIONAL)
    else:
        entry.field.add(
            name="value", number=2, type=_type("TYPE_MESSAGE"), type_name=value, label=_Proto.LABEL_OPTIONAL
        )
    return f".{package}.{proto.name}.{entry.name}"


def _add_field(proto: Any, package: str, field: Field, enums: set[type[IntEnum]]) -> None:
    made = proto.field.add(name=field.name, number=field.number)
    repeated = field.repeated or field.kind in {"map", "quantities"}
    made.label = _Proto.LABEL_REPEATED if repeated else _Proto.LABEL_OPTIONAL
    inner: Any = field.type
    match field.kind:
        case "enum":
            enums.add(inner)
            made.type, made.type_name = _type("TYPE_ENUM"), f".{package}.{inner.__name__}"
        case "message":
            made.type, made.type_name = _type("TYPE_MESSAGE"), f".{package}.{inner.__name__}"
        case "amounts":
            made.type, made.type_name = _type("TYPE_MESSAGE"), f".{package}.Resource"
        case "map":
            made.type, made.type_name = _type("TYPE_MESSAGE"), _entry(proto, package, field.name, None)
        case "quantities":
            name = _entry(proto, package, field.name, f".{package}.{inner.__name__}")
            made.type, made.type_name = _type("TYPE_MESSAGE"), name
        case scalar:
            made.type = _type(_SCALARS[scalar])
    if field.oneof:
        made.oneof_index = next(index for index, one in enumerate(proto.oneof_decl) if one.name == field.oneof)


def _classes(dialect: ModuleType, package: str) -> dict[type[Message], Any]:
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    enums: set[type[IntEnum]] = set()
    messages = messages_of(dialect)
    for message in messages:
        proto = file.message_type.add(name=message.__name__)
        for name in dict.fromkeys(field.oneof for field in fields(message) if field.oneof):
            proto.oneof_decl.add(name=name)
        for field in fields(message):
            _add_field(proto, package, field, enums)
    for enum in enums:
        made = file.enum_type.add(name=enum.__name__)
        for member in enum:
            made.value.add(name=f"{enum.__name__}_{member.name}", number=member.value)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message.__name__}"))
        for message in messages
    }


V19 = _classes(v19, "v19")
FIRST = _classes(first, "seed")
CASES = [(message, V19[message]) for message in V19] + [(message, FIRST[message]) for message in FIRST]
"""Every message of both dialects with the official class for it."""


def _value(field: Field, found: Any) -> Any:
    match field.kind:
        case "enum":
            of: Any = field.type
            return of(found) if found in set(of) else found
        case "message":
            inner: Any = field.type
            return ours(found, inner)
        case "amounts":
            return {name: quantity.value for name, quantity in found.resources.items()}
        case "map":
            return dict(found)
        case "quantities":
            quantity: Any = field.type
            return {name: quantity(value=item.value) for name, item in found.items()}
        case _:
            return found


def ours(proto: Any, message: type[Message]) -> Message:
    """A message of the official class as one of ours."""
    values = {}
    for field in fields(message):
        if field.optional and not proto.HasField(field.name):
            continue
        found = getattr(proto, field.name)
        values[field.attribute] = [_value(field, item) for item in found] if field.repeated else _value(field, found)
    return message(**values)


def theirs(message: Message, to: Any) -> Any:
    """One of our messages as one of the official class, field by field."""
    proto = to()
    _fill(proto, message)
    return proto


def _fill(proto: Any, message: Message) -> None:
    for field in fields(type(message)):
        value = getattr(message, field.attribute)
        if value is None:
            continue
        target = getattr(proto, field.name)
        match field.kind:
            case "message" if field.repeated:
                for item in value:
                    _fill(target.add(), item)
            case "message":
                target.SetInParent()
                _fill(target, value)
            case "amounts":
                target.SetInParent()
                for name, amount in value.items():
                    target.resources[name].value = amount
            case "quantities":
                for name, quantity in value.items():
                    target[name].value = quantity.value
            case "map":
                target.update(value)
            case _ if field.repeated:
                target.extend(value)
            case _:
                setattr(proto, field.name, value)
