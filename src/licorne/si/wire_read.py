"""The slow path for protobuf bytes in: reads any message of both dialects (see `licorne.si.wire` for the rules).

The bytes are untrusted, so every read is checked against the end of the message that it belongs to. Bytes are indexed,
never accessed by pointer: the build with Cython's own bounds checks then finds a check that is missing here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from licorne._plain import cython
from licorne.si._schema import Message
from licorne.si.wire_constants import (
    AMOUNTS,
    BITS_64,
    BOOL,
    ENTRY_KEY,
    ENTRY_VALUE,
    ENUM,
    FIXED32,
    FIXED64,
    GROUP,
    GROUP_END,
    INT64,
    MAP,
    MESSAGE,
    SPAN,
    STRING,
    VARINT,
)
from licorne.si.wire_plan import MessagePlan, Slot, WireError, plan_of

M = TypeVar("M", bound=Message)

DEPTH_MAX = 100
"""How deep messages and groups may nest, as in the official implementations."""
STEP_ITEMS = 50
"""The most items of a long request that are read in one step: less than a millisecond of work where compiled."""


# Cython would make a Python object of a literal this long in the text.
BITS_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cclass
class WireReader:
    """Bytes, and the offset `at` up to which they are read.

    Each method gets the end of what it may read and raises `WireError` where it would have to read beyond. The embedded
    messages of the field `apart` are skipped; `lengths` collects the offsets of their length prefixes.

    The message at depth `step_depth` (-1: none) is read in steps: reading stops when `left` more of its fields were
    read, or before an embedded message that is no item of a list; `held` is then its field, `held_end` its end.
    """

    data: bytes
    at: cython.Py_ssize_t
    apart: Slot | None
    lengths: list[int]
    step_depth: cython.int
    left: cython.int
    held: Slot | None
    held_end: cython.Py_ssize_t

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.apart = None
        self.lengths = []
        self.step_depth = -1
        self.left = 0
        self.held = None
        self.held_end = 0

    @cython.cfunc
    @cython.exceptval(-1)
    def varint(self, end: cython.Py_ssize_t, most: cython.int) -> cython.ulonglong:
        """Read a varint of at most `most` bytes. Bits beyond the 64th are dropped."""
        value: cython.ulonglong = 0
        byte: cython.ulonglong
        shift: cython.int = 0
        start: cython.Py_ssize_t = self.at
        if start < end and self.data[start] < 128:  # mostly one byte is enough
            self.at = start + 1
            return self.data[start]
        while True:
            if self.at >= end:
                raise WireError("the message ends within a number", start)
            byte = self.data[self.at]
            self.at += 1
            if shift == 63:
                value |= (byte & 1) << 63
            else:
                value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift == 7 * most:
                raise WireError(f"a number of more than {most} bytes", start)

    @cython.cfunc
    @cython.exceptval(-1)
    def tag(self, end: cython.Py_ssize_t) -> cython.uint:
        """Read a tag: a field's number and wire type."""
        start: cython.Py_ssize_t = self.at
        value: cython.ulonglong = self.varint(end, 5)
        if value > BITS_32 or value < 8:
            raise WireError(f"there is no field of number {value >> 3}", start)
        return value

    @cython.cfunc
    @cython.exceptval(-1)
    def span(self, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a length prefix; return the offset where the text or message after it ends."""
        start: cython.Py_ssize_t = self.at
        length: cython.ulonglong = self.varint(end, 5)
        left: cython.ulonglong = end - self.at
        if length > left:
            raise WireError(f"{length} bytes are announced, and {left} are left", start)
        return self.at + cython.cast(cython.Py_ssize_t, length)

    @cython.cfunc
    def text(self, end: cython.Py_ssize_t) -> str:
        """Read the bytes up to `end` as text."""
        start: cython.Py_ssize_t = self.at
        self.at = end
        try:
            return self.data[start:end].decode("utf-8")
        except UnicodeDecodeError:
            raise WireError("must be valid Unicode", start) from None

    @cython.cfunc
    def skip(self, tag: cython.uint, end: cython.Py_ssize_t, depth: cython.int) -> cython.void:
        """Skip the value of an unknown field, after its tag."""
        start: cython.Py_ssize_t = self.at
        kind: cython.int = tag & 7
        inner: cython.uint
        if kind == VARINT:
            self.varint(end, 10)
        elif kind == SPAN:
            self.at = self.span(end)
        elif kind in (FIXED64, FIXED32):
            self.at += 8 if kind == FIXED64 else 4
            if self.at > end:
                raise WireError("the message ends within a number", start)
        elif kind == GROUP:
            if depth >= DEPTH_MAX:
                raise WireError(f"nested deeper than {DEPTH_MAX} levels", start)
            while True:
                inner = self.tag(end)
                if inner == tag + 1:  # its end
                    return
                self.skip(inner, end, depth + 1)
        else:
            rule = "a group ends that did not begin" if kind == GROUP_END else f"there is no wire type {kind}"
            raise WireError(rule, start)


@cython.cfunc
@cython.exceptval(-1)
def as_signed(value: cython.ulonglong, bits: cython.int) -> cython.longlong:
    """Interpret the low `bits` bits, 32 or 64, as a two's-complement integer."""
    if bits == 32:
        value &= BITS_32
        if value >> 31:
            value |= BITS_64 ^ BITS_32
    if value >> 63:  # -1 minus the complement: each step fits in 64 bits, compiled or interpreted
        return -1 - cython.cast(cython.longlong, value ^ BITS_64)
    return value


@cython.cfunc
def _read_message(
    reader: WireReader, plan: MessagePlan, values: dict[str, Any], end: cython.Py_ssize_t, depth: cython.int
) -> cython.void:
    """Read the fields of a message into `values`, merging them with those of an earlier occurrence."""
    tag: cython.uint
    slot: Slot | None = None
    if depth > DEPTH_MAX:
        raise WireError(f"nested deeper than {DEPTH_MAX} levels", reader.at)
    while reader.at < end:
        if depth == reader.step_depth:
            if reader.left == 0:
                return
            reader.left -= 1
        tag = reader.tag(end)
        if slot is None or tag != slot.tag:  # the items of a repeated field mostly follow each other
            slot = plan.slots.get(tag)
        if slot is None:
            reader.skip(tag, end, depth)
            continue
        try:
            _read_field(reader, slot, values, end, depth)
        except WireError as error:
            if not slot.repeated:
                raise error.inside(slot.name) from None
            index = len(reader.lengths) if slot is reader.apart else len(values.get(slot.attribute, ()))
            raise error.inside(f"{slot.name}[{index}]") from None


@cython.cfunc
def _read_field(
    reader: WireReader, slot: Slot, values: dict[str, Any], end: cython.Py_ssize_t, depth: cython.int
) -> cython.void:
    """Read one field, whose tag was read, into `values`; an embedded message that may recur stays a dict for now."""
    value: Any
    number: cython.ulonglong
    stop: cython.Py_ssize_t
    if slot.kind <= ENUM:
        number = reader.varint(end, 10)
        if slot.kind == BOOL:
            value = number != 0
        elif slot.kind == INT64:
            value = as_signed(number, 64)
        else:
            value = as_signed(number, 32)
            if slot.members is not None:
                value = slot.members.get(value, value)
    else:
        place: cython.Py_ssize_t = reader.at
        stop = reader.span(end)
        if slot.kind == STRING:
            value = reader.text(stop)
        elif slot.kind >= MAP:
            _read_entry(reader, slot, values.setdefault(slot.attribute, {}), stop, depth + 1)
            return
        elif slot is reader.apart:
            reader.lengths.append(place)
            reader.at = stop
            return
        elif slot.repeated:
            inner: dict[str, Any] = {}
            _read_message(reader, cython.cast(MessagePlan, slot.plan), inner, stop, depth + 1)
            value = _build(cython.cast(MessagePlan, slot.plan), inner)
        else:
            value = values.setdefault(slot.attribute, {})  # an earlier occurrence is merged, not replaced
            if depth == reader.step_depth:
                reader.held, reader.held_end, reader.left = slot, stop, 0
            else:
                _read_message(reader, cython.cast(MessagePlan, slot.plan), value, stop, depth + 1)
    if slot.repeated:
        values.setdefault(slot.attribute, []).append(value)
        return
    values[slot.attribute] = value
    for other in slot.others:  # of a oneof the last field wins
        values.pop(other, None)


@cython.cfunc
def _read_entry(
    reader: WireReader, slot: Slot, entries: dict[str, Any], end: cython.Py_ssize_t, depth: cython.int
) -> cython.void:
    """Read an entry of a map: a message of two fields, key and value. The last entry of a key wins."""
    key: str = ""
    value: Any = "" if slot.kind == MAP else {}
    tag: cython.uint
    stop: cython.Py_ssize_t
    while reader.at < end:
        tag = reader.tag(end)
        if tag == ENTRY_KEY:
            key = reader.text(reader.span(end))
        elif tag == ENTRY_VALUE:
            stop = reader.span(end)
            if slot.plan is None:
                value = reader.text(stop)
            else:
                _read_message(reader, slot.plan, value, stop, depth + 1)
        else:
            reader.skip(tag, end, depth)
    entries[key] = value


@cython.cfunc
def _build(plan: MessagePlan, values: dict[str, Any]) -> object:
    """Make the message from the values that were read, embedded messages first."""
    slot: Slot
    for slot in plan.nested:
        found = values.get(slot.attribute)
        if found is None:
            continue
        inner = cython.cast(MessagePlan, slot.plan)
        if slot.kind == MESSAGE:
            values[slot.attribute] = _build(inner, found)
        elif slot.kind == AMOUNTS:
            values[slot.attribute] = {
                name: quantity.get("value", 0) for name, quantity in found.get("resources", {}).items()
            }
        else:
            values[slot.attribute] = {name: _build(inner, quantity) for name, quantity in found.items()}
    return plan.message(**values)


def decode(message: type[M], data: bytes) -> M:
    """Decode a message.

    Raises:
        WireError: the bytes are not such a message.
    """
    return _decoded(message, WireReader(data), len(data), 0, message.__name__)  # type: ignore[return-value]


def decode_apart(message: type[M], data: bytes, attribute: str) -> tuple[M, list[int]]:
    """Decode a message but for one repeated field; return it and the offsets of that field's length prefixes.

    No field is left out if `attribute` is empty.

    Raises:
        WireError: the rest is not such a message. The embedded messages left out are not checked.
    """
    reader: WireReader = _reader_apart(message, data, attribute)
    made = _decoded(message, reader, len(data), 0, message.__name__)
    return made, reader.lengths  # type: ignore[return-value]


def decode_in_steps(message: type[M], data: bytes, attribute: str) -> Generator[None, None, tuple[M, list[int]]]:
    """Decode like `decode_apart`, in steps: yield None after each, and return the result.

    A step reads at most `STEP_ITEMS` fields of the message, or of an embedded message that is no item of a list.

    Raises:
        WireError: the bytes are not such a message.
    """
    reader: WireReader = _reader_apart(message, data, attribute)
    values: dict[str, Any] = {}
    try:
        yield from _message_in_steps(reader, plan_of(message), values, len(data), 0)
    except WireError as error:
        raise error.inside(message.__name__) from None
    return _build(plan_of(message), values), reader.lengths  # type: ignore[return-value]


def _message_in_steps(
    reader: WireReader, plan: MessagePlan, values: dict[str, Any], end: cython.Py_ssize_t, depth: cython.int
) -> Iterator[None]:
    """Read the fields of a message like `_read_message`, in steps."""
    while reader.at < end:
        reader.step_depth = depth
        reader.left = STEP_ITEMS
        _read_message(reader, plan, values, end, depth)
        slot: Slot | None = reader.held
        if slot is not None:
            reader.held = None
            inner = cython.cast(MessagePlan, slot.plan)
            try:
                yield from _message_in_steps(reader, inner, values[slot.attribute], reader.held_end, depth + 1)
            except WireError as error:
                raise error.inside(slot.name) from None
        yield


@cython.cfunc
def _reader_apart(message: type[Message], data: bytes, attribute: str) -> WireReader:
    reader: WireReader = WireReader(data)
    plan: MessagePlan = plan_of(message)
    slot: Slot
    for slot in plan.ordered:
        if slot.attribute == attribute:
            reader.apart = slot
    return reader


def decode_part(message: type[M], data: bytes, start: int, end: int, path: str) -> M:
    """Decode `data[start:end]`, a message that `decode_apart` left out; errors name `path`.

    Raises:
        WireError: the bytes are not such a message.
    """
    assert 0 <= start <= end <= len(data)
    reader: WireReader = WireReader(data)
    reader.at = start
    return _decoded(message, reader, end, 1, path)  # type: ignore[return-value]


@cython.cfunc
def _decoded(
    message: type[Message], reader: WireReader, end: cython.Py_ssize_t, depth: cython.int, path: str
) -> object:
    plan: MessagePlan = plan_of(message)
    values: dict[str, Any] = {}
    try:
        _read_message(reader, plan, values, end, depth)
    except WireError as error:
        raise error.inside(path) from None
    return _build(plan, values)
