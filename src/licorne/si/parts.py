"""Divides long requests, given as protobuf bytes, so that a host can read them in small steps.

A request consists of a few lists. On the wire a list is a run of fields with the same tag, so a stretch of that run,
followed by the fields that are not lists, is a request of its own. `parts` yields such requests in the order in which
the whole request would be read, so that of two errors the same one is found first. The translations of the parts, in
the order of their lists, add up to the translation of the whole. Only byte offsets and item numbers in errors and
reasons must be corrected: `moved`, `moved_text`.

Bytes that no client library writes (groups, numbers of too many bytes, bytes that are not a message at all) are not
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
"""The most bytes, and the most items, of its list in a part; a single longer item is a part alone."""
LOOK_ITEMS = 2_000
"""The number of fields that are scanned in one step."""
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
"""The lists of each request in the order of its adapter, each as the path of attributes that leads to it."""
ASKS = ("allocations", "asks")
"""The lists of asks, which are read after the rest of a request was read without an error."""
_NUMBERS = ("bool", "int32", "int64", "enum")


class UndividedError(Exception):
    """The request has something at byte `at` that cannot be divided, so the caller must read it as a whole.

    `parts` are the parts before that byte, without asks, which are not read if something else is wrong; `counts` says
    how many items of each list there are before it.
    """

    def __init__(self, at: int, counts: Mapping[str, int], parts: Iterator[Part]) -> None:
        super().__init__(f"byte {at}")
        self.at = at
        self.counts = dict(counts)
        self.parts = parts


class _OddError(Exception):
    """The bytes hold something other than a well-formed field of the wire types that client libraries use."""


class Part(NamedTuple):
    """A request made of one stretch of the list `name`.

    Its byte 0 is byte `offset` of the whole request, and its first item is number `first` of the list. The whole
    request's translation is that of the parts in the order of their `rank` (the place of the list among those of the
    adapter), and within a rank in the order in which they were yielded.
    """

    data: bytes
    offset: int
    name: str
    first: int
    rank: int


class _List:
    """The stretches of bytes that hold the items of one list."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.stretches: list[tuple[int, int, int]] = []  # (start, end, number of the first item)
        self._items = 0

    def add(self, start: int, end: int) -> None:
        """Add an item, to the last stretch if it follows that one and still fits in a part."""
        last = self.stretches[-1] if self.stretches else None
        if last and last[1] == start and self._items < PART_ITEMS and end - last[0] <= PART_BYTES:
            self.stretches[-1] = (last[0], end, last[2])
            self._items += 1
        else:
            self.stretches.append((start, end, self.count))
            self._items = 1
        self.count += 1


class _Table:
    """The fields of a request by their tags, and what the scan has found of them.

    A list is either a repeated field of the request itself (`direct`), or one of an embedded message (`within`, by the
    tag of that message).
    """

    def __init__(self, message: type[Message]) -> None:
        self.head = bytearray()  # the fields that are not lists; each part gets a copy
        self.lists: list[tuple[int, _List]] = []  # with the tag of the message that holds the list, or 0
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
        """Add a field of the request; return whether it is a message that holds lists.

        Raises:
            _OddError: the field is text that is not valid UTF-8.
        """
        direct = self.direct.get(tag)
        if direct is not None:
            direct.add(start, end)
        elif tag in self.plain:
            try:
                data[value:end].decode()  # text (no request has a number here)
            except UnicodeDecodeError:
                raise _OddError from None
            self.head += data[start:end]
        return tag in self.within

    def add_within(self, holder: int, tag: int, start: int, end: int) -> None:
        """Add a field of a message that holds lists."""
        found = self.within[holder].get(tag)
        if found is not None:
            found.add(start, end)

    def is_holder(self, data: bytes, at: int) -> bool:
        """Does a message that holds lists begin at this byte?"""
        return at < len(data) and data[at] in self.within

    def counts(self) -> dict[str, int]:
        """Return how many items of each list have been found."""
        return {found.name: found.count for _, found in self.lists}


def parts(message: type[Message], data: bytes) -> Iterator[Part | None]:
    """Yield the parts of a request; first None after each `LOOK_ITEMS` fields while the request is scanned.

    Raises:
        UndividedError: the request must be read as a whole.
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
        # If the fault lies in a message that holds lists, that message is read again, so its items do not count.
        counts = table.counts() if not table.is_holder(data, at) else before
        raise UndividedError(at, counts, _made(data, table, at, asks=False)) from None
    yield from _made(data, table, len(data), asks=True)


def _made(data: bytes, table: _Table, limit: int, *, asks: bool) -> Iterator[Part]:
    """Yield the parts that begin before byte `limit`, in the order of their bytes, with asks last or left out."""
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
    """Yield (tag, start, start of the value, end) of each field in `data[start:end]`.

    Raises:
        _OddError: there is a group, a number with too many bytes, or a field that does not end in time.
    """
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
    """Read a varint of at most `most` bytes; return it and where it ends, or 0 and -1 if it does not end in time."""
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


# -- offsets and item numbers ----------------------------------------------------------------------------------


def moved(error: WireError, request: str, offset: int, counts: Mapping[str, int]) -> WireError:
    """Turn the error of a part into that of the whole: add `offset` to its byte, and `counts` to the item numbers.

    `request` is the name of the request's message, with which the path of the error begins.
    """
    if error.offset >= 0:
        error.offset += offset
    for name, count in counts.items():
        error.path = _moved(error.path, f"{request}.{name}", count)
    return error


def moved_text(text: str, name: str, index: int) -> str:
    """Turn the reason for refusing an item of a part into that of the whole: add `index` to the item's number."""
    return _moved(text, f"invalid {name}", index)


def _moved(text: str, before: str, index: int) -> str:
    if not index or not text.startswith(before + "["):
        return text
    return re.sub(r"\[(\d+)\]", lambda found: f"[{int(found[1]) + index}]", text, count=1)


__all__ = ["ASKS", "PART_BYTES", "Part", "UndividedError", "moved", "moved_text", "parts"]
