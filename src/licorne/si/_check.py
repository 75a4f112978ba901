"""The check between untrusted peers and the core: do the values of a message have the types that it declares?

A message may come from a decoder, which has checked it, or from a Python program, which may have put anything into it:
a quantity as text, a float, an integer beyond 64 bits, None for a struct. The core relies on exact types (its compiled
form more than its source), so each message is checked here first. The result is a copy that consists of exact `str`,
`int`, `bool`, `dict` and `list` alone; a value that has no such copy raises `Fault`, which names the field, the value
and the rule.

`plain` checks field by field and words the error; at five microseconds a message (`python -m bench codec`) it serves
nodes and applications. Asks come by the hundred thousand, so `licorne.si.reading` checks and copies them in compiled
code. That fast path cannot say what is wrong, only that something is; `plain` then checks the ask in question.

`msgspec.convert(value, message, from_attributes=True)` is no substitute: it returns a struct of the right class as it
is, neither checked nor copied, and after a detour by `msgspec.to_builtins` it accepts lone surrogates, refuses None for
a list, and leaves out the key of the map entry in error.

Harmless deviations are mended rather than refused: None for a list or a map (empty, as a nil map in Go), a tuple for a
list, a subclass of str or int for its base. A bool is not taken for a number, although Python would. Text must be
valid Unicode, as on the wire: a lone surrogate would else fail only later, when a decision that holds it is encoded.
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
"""The most characters of a refused value that a reason shows, so that a huge value does not make a huge answer."""


def shown(value: object) -> str:
    """Describe a value for a reason: cut to `VALUE_LENGTH_MAX`, and without fail even if its `repr` raises."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a peer's object, or an integer of more digits than Python prints
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 3] + "..."


class Fault(Exception):  # noqa: N818 - not an error of ours: it becomes the reason of an answer
    """A value that breaks the rule of its field. The path grows from the inside out while the exception propagates."""

    def __init__(self, value: object, rule: str, path: str = "") -> None:
        super().__init__(rule)
        self.value = value
        self.rule = rule
        self.path = path

    def inside(self, name: str) -> Fault:
        """Prepend `name`, the field that holds the value, to the path; return this fault."""
        separator = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{name}{separator}{self.path}"
        return self

    def __str__(self) -> str:
        return f"invalid {self.path or 'message'} {shown(self.value)}: {self.rule}"


class Mistyped(Fault):
    """A value that does not have the type its field declares, so that no peer could have sent it as bytes.

    Such a message is the mistake of a Python program, whose call therefore fails at once (`licorne.core.calls`). Any
    other `Fault` is a value of the right type without a meaning, and is answered as a refusal.
    """


def text(value: object) -> str:
    """Return a string as an exact `str` that can be encoded."""
    if not isinstance(value, str):
        raise Mistyped(value, "must be a string")
    if not encodable(value):
        raise Mistyped(value, "must be valid Unicode")
    return value if type(value) is str else str.__str__(value)


def encodable(value: str) -> bool:
    """Return whether a string is valid Unicode, that is without lone surrogates."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def flag(value: object) -> bool:
    """Return a value that is a bool; no number counts as one."""
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
    """Return an integer as an exact `int` within 32 bits with sign."""
    return _integer(value, INT32_MIN, INT32_MAX, 32)


def int64(value: object) -> int:
    """Return an integer as an exact `int` within 64 bits with sign."""
    return _integer(value, INT64_MIN, INT64_MAX, 64)


def mapping(value: object, of: Callable[[object], Any]) -> dict[str, Any]:
    """Copy a dict whose keys are strings, each item as `of` returns it."""
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
    """Copy a map of strings; None is an empty one."""
    return {} if value is None else mapping(value, text)


def amounts(value: object) -> dict[str, int]:
    """Copy a map of 64-bit integers by resource type."""
    return mapping(value, int64)


def items(value: object) -> list[Any] | tuple[Any, ...]:
    """Return the elements of a repeated field, unchecked; none for None."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise Mistyped(value, "must be a list")
    return value


def member(value: object, of: type[E]) -> E:
    """Return the member of an enum with this number."""
    number = int32(value)
    try:
        return of(number)
    except ValueError:
        known = ", ".join(f"{item.value} {item.name}" for item in of)
        raise Mistyped(value, f"must be one of {known}") from None


_PLAIN: dict[str, Callable[[object], Any]] = {
    "string": text,
    "bool": flag,
    "int32": int32,
    "int64": int64,
    "map": tags,
    "amounts": amounts,
}


def _single(field: Field) -> Callable[[object], Any]:
    """Return the check of a single value of a field, be it repeated or not."""
    inner: Any = field.type
    match field.kind:
        case "enum":
            return lambda value: member(value, inner)
        case "message":
            return lambda value: plain(value, inner)
        case "quantities":
            return lambda value: mapping(value, lambda item: plain(item, inner))
    return _PLAIN[field.kind]


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
    """Copy a message so that every value in it, at any depth, has exactly its declared type.

    Raises:
        Fault: a value cannot be mended; the first such one is reported.
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
    """Return the name by which to address a refusal: the attribute if it is valid text, else empty."""
    found = getattr(value, attribute, "")
    return found if type(found) is str and encodable(found) else ""
