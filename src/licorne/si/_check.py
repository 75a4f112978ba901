"""Are the values of a message what its declaration says? The door between untrusted peers and the core.

A message may come from a decoder, which has checked it, or from a Python program, which may have put anything into it:
a quantity as text, a float, an integer beyond 64 bits, None for a struct. The core relies on exact types (its compiled
form more than its source), so each message passes here first. The result is a copy made of exact `str`, `int`, `bool`,
`dict` and `list` alone; a value that cannot be read so raises `Fault`, which names the field, the value and the rule.

`plain` goes field by field and finds the words; at 4 to 6 microseconds a message it serves nodes and applications. Asks
come by the hundred thousand, so `licorne.si.reading` checks and copies them in compiled code. It cannot say what is
wrong, only that something is, and then `plain` goes over the ask in question.

Harmless deviations are mended rather than refused: None for a list or a map (empty, as a nil map in Go), a tuple for a
list, a subclass of str or int for its base. A bool is not taken for a number, although Python would. Text must be
valid Unicode, as on the wire: a lone surrogate would fail only when the decision that bears it is written down.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, TypeVar

from licorne.si._schema import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Field, Message, fields

M = TypeVar("M", bound=Message)
E = TypeVar("E", bound=IntEnum)

VALUE_LENGTH_MAX = 80
"""Characters of a refused value that a reason shows, so that a huge value doesn't make a huge answer."""


def shown(value: object) -> str:
    """A value as a reason shows it: short, and whatever the value does when it is asked to describe itself."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a peer's object, or an integer of more digits than Python prints
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 3] + "..."


class Fault(Exception):  # noqa: N818 - not an error of ours: it becomes the reason of an answer
    """A value that breaks the rule of its field. The path grows from the inside while the exception travels out."""

    def __init__(self, value: object, rule: str, path: str = "") -> None:
        super().__init__(rule)
        self.value = value
        self.rule = rule
        self.path = path

    def inside(self, name: str) -> Fault:
        """The same fault, seen from the holder of the field `name`."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{name}{separator}{self.path}"
        return self

    def __str__(self) -> str:
        return f"invalid {self.path or 'message'} {shown(self.value)}: {self.rule}"


class Mistyped(Fault):
    """A value that is not of the type that its field declares, so that no peer could have sent it as bytes.

    Only a Python program makes such a message, by mistake; so it is told at once (`licorne.core.calls`). A `Fault` of no
    such kind is a value of the right type that means nothing, and is answered as any refusal is.
    """


def text(value: object) -> str:
    if not isinstance(value, str):
        raise Mistyped(value, "must be a string")
    if not encodable(value):
        raise Mistyped(value, "must be valid Unicode")
    return value if type(value) is str else str.__str__(value)


def encodable(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def flag(value: object) -> bool:
    if type(value) is not bool:
        raise Mistyped(value, "must be true or false")
    return value


def _integer(value: object, least: int, most: int, bits: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mistyped(value, "must be an integer")
    if not least <= value <= most:
        raise Mistyped(value, f"must fit in {bits} bits with sign")
    return value if type(value) is int else int.__int__(value)


def int32(value: object) -> int:
    return _integer(value, INT32_MIN, INT32_MAX, 32)


def int64(value: object) -> int:
    return _integer(value, INT64_MIN, INT64_MAX, 64)


def mapping(value: object, of: Callable[[object], Any]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mistyped(value, "must be a map")
    result = {}
    for key, item in value.items():
        try:
            result[text(key)] = of(item)
        except Fault as fault:
            raise fault.inside(f"[{shown(key)}]") from None
    return result


def tags(value: object) -> dict[str, str]:
    return {} if value is None else mapping(value, text)


def amounts(value: object) -> dict[str, int]:
    return mapping(value, int64)


def items(value: object) -> list[Any] | tuple[Any, ...]:
    """The elements of a repeated field, not checked yet."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise Mistyped(value, "must be a list")
    return value


def member(value: object, of: type[E]) -> E:
    """The member of an enum that a number stands for."""
    number = int32(value)
    try:
        return of(number)
    except ValueError:
        known = ", ".join(f"{item.value} {item.name}" for item in of)
        raise Mistyped(value, f"must be one of {known}") from None


def _single(field: Field) -> Callable[[object], Any]:
    """The check of one value of a field."""
    inner: Any = field.type
    match field.kind:
        case "string":
            return text
        case "bool":
            return flag
        case "int32":
            return int32
        case "int64":
            return int64
        case "map":
            return tags
        case "amounts":
            return amounts
        case "enum":
            return lambda value: member(value, inner)
        case "message":
            return lambda value: plain(value, inner)
        case "quantities":
            return lambda value: mapping(value, lambda item: plain(item, inner))


def _of_field(field: Field) -> Callable[[object], Any]:
    single = _single(field)
    if field.repeated:

        def repeated(value: object) -> list[Any]:
            result = []
            for index, item in enumerate(items(value)):
                try:
                    result.append(single(item))
                except Fault as fault:
                    raise fault.inside(f"[{index}]") from None
            return result

        return repeated
    if field.optional:
        return lambda value: None if value is None else single(value)
    return single


@cache
def _checks(message: type[Message]) -> tuple[tuple[str, str, Callable[[object], Any]], ...]:
    return tuple((field.attribute, field.name, _of_field(field)) for field in fields(message))


def plain(value: object, message: type[M]) -> M:
    """A copy of a message in which every value, however deep, has exactly its declared type.

    Raises `Fault` for the first value that has not.
    """
    if not isinstance(value, message):
        raise Mistyped(value, f"must be {message.__name__}")
    values = {}
    for attribute, name, check in _checks(message):
        try:
            values[attribute] = check(getattr(value, attribute))
        except Fault as fault:
            raise fault.inside(name) from None
    return message(**values)


def salvaged(value: object, attribute: str) -> str:
    """A name to address a refusal with: the attribute if it is usable text, else empty."""
    found = getattr(value, attribute, "")
    return found if type(found) is str and encodable(found) else ""
