"""The fast path for asks as protobuf bytes: read into the core's `Allocation`, without a dialect object in between.

What a client library writes is regular: each field once, the entries of a map one after the other, every entry with a
key and a value. Such an ask is read here in one pass. At the first irregularity the fast path gives up, and `slow_path`
reads the whole ask by the plan of its message (`licorne.si.wire_read`). So this module need not report errors; but
where it succeeds, its result must be the one that the slow path would give.

The asks of a request resemble each other: applications and partitions recur, and mostly resources and tags too. A cache
of fixed size remembers where the bytes of a value stood and what they meant, so that equal bytes cost one comparison.
Asks with equal bytes for a map share one dict, which belongs to the core. Every read is checked against the end of the
ask, and bytes are indexed, never accessed by pointer: the build with bounds checks then finds a check that is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import Annotated, Any

from licorne._plain import cython
from licorne.si import wire_roles
from licorne.si.allocations import Allocation
from licorne.si.partitions import ShortPartitions
from licorne.si.wire_constants import (
    APPLICATION,
    ENTRY_KEY,
    ENTRY_VALUE,
    KEY,
    NODE,
    ORIGINATOR,
    PARTITION,
    PLACEHOLDER,
    POLICY_SELF,
    PRIORITY,
    PRIORITY_CLASS,
    QUANTITY_VALUE,
    REPEATS,
    RESOURCE,
    RESOURCE_ENTRY,
    TAGS,
    TASK_GROUP,
    TIMEOUT,
    UNKNOWN,
)
from licorne.si.wire_plan import WireError
from licorne.si.wire_read import WireReader, as_signed

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.libc.string import memcmp

SlowPath = Callable[[int, int, int], "Allocation | None"]
"""Reads the ask with this index, start and end, whatever it holds; None if it was refused, which is then reported."""

# The slots of a request's cache: 128 for texts, 64 each for resources and tag maps; one each for the last partition,
# task group and tag name, which have few different values; the rest for the first type names of the last resource.
TEXTS = cython.declare(cython.int, 0)
RESOURCES = cython.declare(cython.int, 128)
TAG_MAPS = cython.declare(cython.int, 192)
LAST_PARTITION = cython.declare(cython.int, 256)
LAST_GROUP = cython.declare(cython.int, 257)
LAST_TAG = cython.declare(cython.int, 258)
NAMES = cython.declare(cython.int, 259)
MEMORY = cython.declare(cython.int, 272)


@cython.cfunc
def _blank() -> Allocation:
    """Make an ask with the default value in each field."""
    ask: Allocation = Allocation.__new__(Allocation)
    ask.key = ask.application_id = ask.partition = ask.node_id = ""
    ask.priority_class = ask.task_group = ask.uuid = ""
    ask.resource = ask.tags = None
    ask.priority = ask.timeout_ms = 0
    ask.max_allocations = 1
    ask.placeholder = ask.originator = ask.independent = False
    ask.allow_preempt_self = ask.allow_preempt_other = False
    return ask


@cython.cfunc
def _finish_first(ask: Allocation) -> cython.bint:
    """Apply the defaults of the first interface; false if `max_allocations` is negative and the ask must be refused."""
    if ask.max_allocations == 0:
        ask.max_allocations = 1
    if not ask.application_id:
        ask.application_id = ask.key
        ask.independent = True
    return ask.max_allocations > 0


@cython.cclass
class AskReader:
    """The bytes of a request, the offset `at` up to which they are read, and a cache of values read before.

    `lengths` are the offsets of the asks' length prefixes in `data`, as `licorne.si.wire_read` finds them. `roles` and
    `inner_roles` give the meaning of each tag in an ask, and in the message embedded in it; `dialect` is both,
    `licorne.si.wire_roles.V19` or `FIRST`. `known`, `starts` and `ends` are the cache: slot for slot a value, and where
    its bytes stand in `data`. At an irregularity the methods below `read` return false or None, or raise the error of
    `wire`, which reads what is longer than a byte.
    """

    data: bytes
    lengths: list[int]
    roles: bytes
    inner_roles: bytes
    first_interface: cython.bint
    partitions: Any
    slow_path: Any
    partition: str
    short: str
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    wire: WireReader
    cache_credit: cython.int
    known: list[Any]
    starts: Annotated[list[int], cython.Py_ssize_t[272]]
    ends: Annotated[list[int], cython.Py_ssize_t[272]]

    def __init__(
        self,
        data: bytes,
        lengths: list[int],
        dialect: tuple[Any, ...],
        partitions: ShortPartitions,
        slow_path: SlowPath,
    ) -> None:
        self.data = data
        self.lengths = lengths
        self.roles, self.inner_roles = dialect
        self.first_interface = dialect is wire_roles.FIRST
        self.partitions = partitions
        self.slow_path = slow_path
        self.partition = ""
        self.short = partitions[""]
        self.at = self.stop = 0
        self.wire = WireReader(data)
        self.cache_credit = 64  # hits minus misses of the cache of resources: at zero it is no longer consulted
        self.known = [None] * MEMORY
        if not cython.compiled:
            self.starts, self.ends = [0] * MEMORY, [0] * MEMORY

    def read(self, begin: int, beyond: int) -> list[Allocation]:
        """Read the asks `lengths[begin:beyond]`; the index of an ask in `lengths` is its number in the request."""
        made: list[Allocation] = []
        lengths: list[int] = self.lengths
        index: cython.Py_ssize_t
        regular: cython.bint
        for index in range(begin, min(beyond, len(lengths))):
            place: cython.Py_ssize_t = lengths[index]
            assert 0 < place < len(self.data)
            self.at = place - 1  # `span` skips the tag, which ends one byte before the length
            end: cython.Py_ssize_t = self.span(len(self.data))
            start: cython.Py_ssize_t = self.at
            new: Allocation = _blank()
            ask: Allocation | None = new
            try:
                regular = self.ask(new, start, end) and not (self.first_interface and not _finish_first(new))
            except (UnicodeDecodeError, WireError):
                regular = False
            if not regular:
                ask = self.slow_path(index, start, end)
            if ask is not None:
                made.append(ask)
        return made

    @cython.cfunc
    @cython.exceptval(-1)
    def ask(self, ask: Allocation, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Read the ask in `data[start:end]` into `ask`; false if it is irregular."""
        role: cython.int
        stop: cython.Py_ssize_t
        self.at = start
        while self.at < end:
            role = self.roles[self.data[self.at]]
            if role < KEY:  # a number, or unknown; the roles from KEY on have a length
                if role == UNKNOWN or not self.take_number(ask, role, end):
                    return False
                continue
            start = self.at
            stop = self.span(end)
            if role == KEY:
                ask.key = self.data[self.at : stop].decode("utf-8")
            elif role == APPLICATION:
                ask.application_id = self.text(stop)
            elif role == RESOURCE:
                if ask.resource is not None:  # a second occurrence must be merged: left to the slow path
                    return False
                ask.resource = self.resource(stop)
                if ask.resource is None:
                    return False
            elif role == TAGS:
                if ask.tags is not None:
                    return False
                ask.tags = self.tags(start, end)
                if ask.tags is None:
                    return False
                continue
            elif role == PARTITION:
                ask.partition = self.known_text(LAST_PARTITION, self.at, stop)
            elif role == NODE:
                ask.node_id = self.text(stop)
            elif role == TASK_GROUP:
                ask.task_group = self.known_text(LAST_GROUP, self.at, stop)
            else:
                while self.at < stop:
                    role = self.inner_roles[self.data[self.at]]
                    if role == UNKNOWN or not self.take_number(ask, role, stop):
                        return False
            self.at = stop
        # Identity is enough: the cache gives equal names of consecutive asks as one object, and else a lookup follows.
        if ask.partition is not self.partition:
            self.partition = ask.partition
            self.short = self.partitions[ask.partition]
        ask.partition = self.short
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def take_number(self, ask: Allocation, role: cython.int, end: cython.Py_ssize_t) -> cython.bint:
        """Read a field that is a varint into `ask`, from its tag on."""
        self.at += 1
        if role == PRIORITY_CLASS:
            return False
        number: cython.ulonglong = self.varint(end)
        if role == PRIORITY:
            ask.priority = as_signed(number, 32)
        elif role == PLACEHOLDER:
            ask.placeholder = number != 0
        elif role == ORIGINATOR:
            ask.originator = number != 0
        elif role == REPEATS:
            ask.max_allocations = as_signed(number, 32)
        elif role == TIMEOUT:
            ask.timeout_ms = as_signed(number, 64)
        elif role == POLICY_SELF:
            ask.allow_preempt_self = number != 0
        else:
            ask.allow_preempt_other = number != 0
        return True

    @cython.cfunc
    @cython.exceptval(-1)
    def varint(self, end: cython.Py_ssize_t) -> cython.ulonglong:
        """Read a varint."""
        self.wire.at = self.at
        number: cython.ulonglong = self.wire.varint(end, 10)
        self.at = self.wire.at
        return number

    @cython.cfunc
    @cython.exceptval(-1)
    def span(self, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Skip a tag of one byte and read the length after it; return the offset where the value ends.

        Seven of the eight lengths in a usual ask take one byte. These are read here, because a call of another module
        is never inlined (docs/understand/compiled.md).
        """
        stop: cython.Py_ssize_t
        self.at += 1
        if self.at < end and self.data[self.at] < 128:
            stop = self.at + 1 + self.data[self.at]
            if stop <= end:
                self.at += 1
                return stop
        self.wire.at = self.at
        stop = self.wire.span(end)
        self.at = self.wire.at
        return stop

    # -- the cache of values that recur ----------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1)
    def place(
        self, start: cython.Py_ssize_t, end: cython.Py_ssize_t, first: cython.int, places: cython.int
    ) -> cython.int:
        """Hash `data[start:end]` to a slot of the cache, one of `places` slots from `first` on."""
        mixed: cython.uint = end - start & 0xFFFF
        i: cython.Py_ssize_t
        for i in range(start, end):
            mixed = (mixed * 31 + self.data[i]) & 0xFFFFFF
        return first + (mixed ^ mixed >> 12) % places

    @cython.cfunc
    @cython.exceptval(-1)
    def remembers(self, place: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Are the bytes whose meaning this slot remembers equal to `data[start:end]`?"""
        other: cython.Py_ssize_t = self.starts[place]
        if self.ends[place] - other != end - start:
            return False
        if cython.compiled:
            bytes_: cython.p_char = PyBytes_AS_STRING(self.data)
            return memcmp(bytes_ + other, bytes_ + start, end - start) == 0
        return self.data[other : self.ends[place]] == self.data[start:end]

    @cython.cfunc
    def remember(
        self, place: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t, value: object
    ) -> cython.void:
        """Store in a slot that `data[start:end]` means `value`."""
        self.starts[place] = start
        self.ends[place] = end
        self.known[place] = value

    @cython.cfunc
    def text(self, end: cython.Py_ssize_t) -> str:
        """Decode the bytes from `at` to `end` as text, by the cache."""
        start: cython.Py_ssize_t = self.at
        # The last 8 bytes alone choose the slot; the comparison then is of all bytes.
        return self.known_text(self.place(start if end - start < 8 else end - 8, end, TEXTS, 128), start, end)

    @cython.cfunc
    def known_text(self, place: cython.int, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> str:
        """Decode `data[start:end]` as text, by this slot of the cache."""
        if start == end:
            return ""
        if not self.remembers(place, start, end):
            self.remember(place, start, end, self.data[start:end].decode("utf-8"))
        return cython.cast(str, self.known[place])

    @cython.cfunc
    def resource(self, end: cython.Py_ssize_t) -> dict[str, int] | None:
        """Read the resource from `at` to `end`, by the cache while that is worth its while."""
        start: cython.Py_ssize_t = self.at
        if start == end:
            return {}
        if self.cache_credit == 0:
            return self.read_resource(end)
        place: cython.int = self.place(start, end, RESOURCES, 64)
        if self.remembers(place, start, end):
            self.cache_credit += 1
            return cython.cast(dict, self.known[place])
        self.cache_credit -= 1
        found = self.read_resource(end)
        if found is not None:
            self.remember(place, start, end, found)
        return found

    @cython.cfunc
    def read_resource(self, end: cython.Py_ssize_t) -> dict[str, int] | None:
        """Read the resource from `at` to `end`, without the cache."""
        amounts: dict[str, int] = {}
        place: cython.int = NAMES
        while self.at < end:
            name = self.entry(end, place) if self.data[self.at] == RESOURCE_ENTRY else None
            if name is None:
                return None
            amount: cython.longlong = 0
            if self.at < self.stop:
                if self.data[self.at] != QUANTITY_VALUE:
                    return None
                self.at += 1
                amount = as_signed(self.varint(self.stop), 64)
                if self.at != self.stop:
                    return None
            amounts[name] = amount
            if place < MEMORY - 1:  # names beyond the last slot share it
                place += 1
        return amounts

    @cython.cfunc
    def tags(self, start: cython.Py_ssize_t, limit: cython.Py_ssize_t) -> dict[str, str] | None:
        """Read tags, by the cache: all entries with the tag at `start` that follow each other without a gap."""
        tag: cython.int = self.data[start]
        end: cython.Py_ssize_t = start
        while end < limit and self.data[end] == tag:
            self.at = end
            end = self.span(limit)
        place: cython.int = self.place(start if end - start < 64 else end - 64, end, TAG_MAPS, 64)
        if not self.remembers(place, start, end):
            self.at = start
            found = self.read_tags(end)
            if found is None:
                return None
            self.remember(place, start, end, found)
        self.at = end
        return cython.cast(dict, self.known[place])

    @cython.cfunc
    def read_tags(self, end: cython.Py_ssize_t) -> dict[str, str] | None:
        """Read the entries of tags from `at` to `end`, without the cache."""
        found: dict[str, str] = {}
        while self.at < end:
            name = self.entry(end, LAST_TAG)
            if name is None:
                return None
            found[name] = self.data[self.at : self.stop].decode("utf-8")
            self.at = self.stop
        return found

    @cython.cfunc
    def entry(self, end: cython.Py_ssize_t, place: cython.int) -> str | None:
        """Read the key of the map entry that begins at `at`; its value is then `data[at:stop]`. None: irregular.

        The slot `place` remembers the key at the same position of the last map, which mostly is the same. Keys are
        interned: equal keys are one object in all requests, so that later comparisons end at its identity.
        """
        start: cython.Py_ssize_t
        key_end: cython.Py_ssize_t
        self.stop = self.span(end)
        start = self.at
        key_end = start + self.ends[place] - self.starts[place]
        if key_end == start or key_end >= self.stop or not self.remembers(place, start, key_end):
            if self.stop <= start or self.data[start] != ENTRY_KEY:
                return None
            key_end = self.span(self.stop)
            if key_end >= self.stop:
                return None
            self.remember(place, start, key_end, intern(self.text(key_end)))
        if self.data[key_end] != ENTRY_VALUE:
            return None
        self.at = key_end
        return cython.cast(str, self.known[place]) if self.span(self.stop) == self.stop else None
