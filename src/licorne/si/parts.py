"""Long requests in parts, so that a host may read them a little at a time.

A request is a few lists. On the wire a list is a run of equal fields, so a stretch of them, with the fields that are no
lists behind it, is a request of its own. `parts` gives these in the order in which the whole would be read, so that of two
errors the same one is met; what the adapters make of them, in the order of their lists, is what they make of the whole.
Only places have to be mended, in errors and in reasons: `moved`, `moved_text`.

What no client library writes (groups, numbers of more bytes than they need, bytes that are no message at all) is not
divided: `UndividedError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from licorne.si import first, v19
from licorne.si._schema import Message, fields
from licorne.si.wire_constants import FIXED32, FIXED64, SPAN, VARINT
from licorne.si.wire_plan import WireError

PART_BYTES = 32 << 10
PART_ITEMS = 200
"""A part ends behind so many bytes of its list, or so many items."""
LOOK_ITEMS = 2_000
"""Fields that are looked at in one step."""
_LISTS: dict[type[Message], tuple[tuple[str, ...], ...]] = {
    v19.ApplicationRequest: (("new",), ("remove",)),
    v19.AllocationRequest: (("allocations",), ("releases", "allocations_to_release")),
    v19.NodeRequest: (("nodes",),),
    first.UpdateRequest: (
        ("new_schedulable_nodes",),
        ("updated_nodes",),
        ("new_applications",),
        ("asks",),
        ("releases", "allocations_to_release"),
        ("releases", "allocation_asks_to_release"),
        ("remove_applications",),
    ),
}
"""The lists in the order of the adapters, each by its attribute, or by those on the way to it."""
ASKS = ("allocations", "asks")
"""The lists that are read last, when all else is well."""
_NUMBERS = ("bool", "int32", "int64", "enum")


class UndividedError(Exception):
    """From `at` on there is something that is no plain field; `counts` items of the lists stand before it, in `parts`.

    Asks are not in these parts, because where something else is wrong nobody reads them.
    """

    def __init__(self, at: int, counts: Mapping[str, int], parts: Iterator[Part]) -> None:
        super().__init__(f"byte {at}")
        self.at = at
        self.counts = dict(counts)
        self.parts = parts


class _OddError(Exception):
    """Something that is no plain field."""


class Part(NamedTuple):
    """A request that is part of one. Its byte 0 is byte `offset` of the whole, its first item item `first` of `name`.

    What parts mean goes by their `rank`, and then by their order.
    """

    data: bytes
    offset: int
    name: str
    first: int
    rank: int


class _List:
    """Where the items of one list stand."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.stretches: list[tuple[int, int, int]] = []  # (start, end, number of the first item)
        self._items = 0

    def add(self, start: int, end: int) -> None:
        """One more item."""
        last = self.stretches[-1] if self.stretches else None
        if last and last[1] == start and self._items < PART_ITEMS and end - last[0] <= PART_BYTES:
            self.stretches[-1] = (last[0], end, last[2])
            self._items += 1
        else:
            self.stretches.append((start, end, self.count))
            self._items = 1
        self.count += 1


class _Table:
    """What the fields of a message are, by what stands before them on the wire."""

    def __init__(self, message: type[Message]) -> None:
        self.head = bytearray()  # the fields that are no lists
        self.lists: list[tuple[int, _List]] = []  # with what stands before the message that holds the list, or 0
        self.direct: dict[int, _List] = {}
        self.within: dict[int, dict[int, _List]] = {}
        declared = {field.attribute: field for field in fields(message)}
        self.plain = {
            field.number << 3 | (VARINT if field.kind in _NUMBERS else SPAN)
            for field in declared.values()
            if not field.repeated and field.kind != "message"
        }
        for way in _LISTS[message]:
            field = declared[way[0]]
            tag = field.number << 3 | SPAN
            if len(way) == 1:
                found = self.direct[tag] = _List(field.name)
                self.lists.append((0, found))
                continue
            holder: Any = field.type
            (inner,) = [one for one in fields(holder) if one.attribute == way[1]]
            found = _List(f"{field.name}.{inner.name}")
            self.within.setdefault(tag, {})[inner.number << 3 | SPAN] = found
            self.lists.append((tag, found))

    def add(self, tag: int, start: int, value: int, end: int, data: bytes) -> bool:
        """One more field; is it a message that holds lists?"""
        direct = self.direct.get(tag)
        if direct is not None:
            direct.add(start, end)
        elif tag in self.plain:
            try:
                data[value:end].decode()  # a text, unless it is a number, which always can be read
            except UnicodeDecodeError:
                raise _OddError from None
            self.head += data[start:end]
        return tag in self.within

    def add_within(self, holder: int, tag: int, start: int, end: int) -> None:
        """One more field of a message that holds lists."""
        found = self.within[holder].get(tag)
        if found is not None:
            found.add(start, end)

    def is_holder(self, data: bytes, at: int) -> bool:
        """Does a message that holds lists stand there?"""
        return at < len(data) and data[at] in self.within

    def counts(self) -> dict[str, int]:
        """How many items of each list have been found."""
        return {found.name: found.count for _, found in self.lists}


def parts(message: type[Message], data: bytes) -> Iterator[Part | None]:
    """The parts of a request; None now and then while it is looked through.

    Raises:
        UndividedError: it has to be read as a whole.
    """
    table = _Table(message)
    looked = 0
    at, before = 0, table.counts()
    try:
        for tag, start, value, end in _fields(data, 0, len(data)):
            at = start
            if table.add(tag, start, value, end, data):
                before = table.counts()
                for inner, inner_start, _, inner_end in _fields(data, value, end):
                    table.add_within(tag, inner, inner_start, inner_end)
                    looked += 1
                    if looked % LOOK_ITEMS == 0:
                        yield None
            at = end
            looked += 1
            if looked % LOOK_ITEMS == 0:
                yield None
    except _OddError:
        counts = table.counts() if not table.is_holder(data, at) else before
        raise UndividedError(at, counts, _made(data, table, at, asks=False)) from None
    yield from _made(data, table, len(data), asks=True)


def _made(data: bytes, table: _Table, limit: int, *, asks: bool) -> Iterator[Part]:
    """The parts that begin before `limit`, in the order in which they stand there, asks last; or none of these."""
    found = [
        (one.name in ASKS, stretch, rank)
        for rank, (_, one) in enumerate(table.lists)
        if asks or one.name not in ASKS
        for stretch in one.stretches
        if stretch[0] < limit
    ]
    for _, (start, end, index), rank in sorted(found):
        tag, one = table.lists[rank]
        before = b"" if not tag else bytes((tag,)) + _number(end - start)
        yield Part(before + data[start:end] + table.head, start - len(before), one.name, index, rank)
    if asks and not found:
        yield Part(bytes(table.head), 0, "", 0, 0)


def _number(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(what stands before it, its start, the start of its value, its end) of each field."""
    at = start
    while at < end:
        begins = at
        tag, at = _varint(data, at, end, 5)
        value = at
        kind = tag & 7
        if kind == SPAN:
            length, value = _varint(data, at, end, 5)
            at = value + length if value > 0 else end + 1
        elif kind == VARINT:
            _, at = _varint(data, at, end, 10)
        elif kind == FIXED64:
            at += 8
        elif kind == FIXED32:
            at += 4
        else:
            at = -1
        if not 0 < at <= end or not 8 <= tag <= 0xFFFFFFFF or value < 0:
            raise _OddError
        yield tag, begins, value, at


def _varint(data: bytes, at: int, end: int, most: int) -> tuple[int, int]:
    """A number, and where it ends; -1 if it does not."""
    if at < 0:
        return 0, -1
    value = shift = 0
    for place in range(at, min(end, at + most)):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place + 1
        shift += 7
    return 0, -1


# -- places --------------------------------------------------------------------------------------------------


def moved(error: WireError, request: str, offset: int, counts: Mapping[str, int]) -> WireError:
    """The error of a part as that of the whole, which is a `request`."""
    if error.offset >= 0:
        error.offset += offset
    for name, count in counts.items():
        error.path = _moved(error.path, f"{request}.{name}", count)
    return error


def moved_text(text: str, name: str, index: int) -> str:
    """The reason that names an item of a part, as that of the whole."""
    return _moved(text, f"invalid {name}", index)


def _moved(text: str, before: str, index: int) -> str:
    if not index or not text.startswith(before + "["):
        return text
    return re.sub(r"\[(\d+)\]", lambda found: f"[{int(found[1]) + index}]", text, count=1)


__all__ = ["ASKS", "PART_BYTES", "Part", "UndividedError", "moved", "moved_text", "parts"]
