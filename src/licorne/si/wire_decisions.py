"""The fast path for decisions as protobuf bytes: runs of `NewAllocation`, without a dialect object in between.

Each decision is an embedded `Allocation` in a list of the response. Its length prefix comes first but is known only
after the body, so as many bytes are reserved as the previous length needed; in the rare case that this was wrong, the
body is moved. A resource has mostly been written before, for another decision of the same shape: its bytes are copied.
"""

from __future__ import annotations

from typing import Annotated, Any

from licorne._plain import cython
from licorne.si import first, v19
from licorne.si.allocations import NewAllocation
from licorne.si.partitions import QualifiedPartitions
from licorne.si.wire_constants import BITS_64, ENTRY_KEY, ENTRY_VALUE, QUANTITY_VALUE, RESOURCE_ENTRY
from licorne.si.wire_plan import tag_of

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize
    from cython.cimports.libc.string import memcpy, memmove

# Tags: the field number and the wire type, in one byte.
V19_NEW = cython.declare(cython.int, tag_of(v19.AllocationResponse, "new"))
V19_KEY = cython.declare(cython.int, tag_of(v19.Allocation, "allocation_key"))
V19_RESOURCE = cython.declare(cython.int, tag_of(v19.Allocation, "resource_per_alloc"))
V19_NODE = cython.declare(cython.int, tag_of(v19.Allocation, "node_id"))
V19_APPLICATION = cython.declare(cython.int, tag_of(v19.Allocation, "application_id"))
V19_TASK_GROUP = cython.declare(cython.int, tag_of(v19.Allocation, "task_group_name"))
V19_PLACEHOLDER = cython.declare(cython.int, tag_of(v19.Allocation, "placeholder"))
V19_ORIGINATOR = cython.declare(cython.int, tag_of(v19.Allocation, "originator"))
V19_POLICY = cython.declare(cython.int, tag_of(v19.Allocation, "preemption_policy"))
SELF_FLAG = cython.declare(cython.int, tag_of(v19.PreemptionPolicy, "allow_preempt_self"))
OTHER_FLAG = cython.declare(cython.int, tag_of(v19.PreemptionPolicy, "allow_preempt_other"))
FIRST_NEW = cython.declare(cython.int, tag_of(first.UpdateResponse, "new_allocations"))
FIRST_KEY = cython.declare(cython.int, tag_of(first.Allocation, "allocation_key"))
FIRST_TAGS = cython.declare(cython.int, tag_of(first.Allocation, "allocation_tags"))
FIRST_UUID = cython.declare(cython.int, tag_of(first.Allocation, "uuid"))
FIRST_RESOURCE = cython.declare(cython.int, tag_of(first.Allocation, "resource_per_alloc"))
FIRST_PRIORITY = cython.declare(cython.int, tag_of(first.Allocation, "priority"))
FIRST_QUEUE = cython.declare(cython.int, tag_of(first.Allocation, "queue_name"))
FIRST_NODE = cython.declare(cython.int, tag_of(first.Allocation, "node_id"))
FIRST_APPLICATION = cython.declare(cython.int, tag_of(first.Allocation, "application_id"))
FIRST_PARTITION = cython.declare(cython.int, tag_of(first.Allocation, "partition_name"))
FIRST_TASK_GROUP = cython.declare(cython.int, tag_of(first.Allocation, "task_group_name"))
FIRST_PLACEHOLDER = cython.declare(cython.int, tag_of(first.Allocation, "placeholder"))
PRIORITY_VALUE = cython.declare(cython.int, tag_of(first.Priority, "priority_value"))

PLACES = cython.declare(cython.int, 256)
"""The number of resources for which the writer remembers where they were written."""
NUMBER_MOST = cython.declare(cython.int, 11)
"""The most bytes that a tag and a varint take: one byte and ten."""
EXPECTED = 160
"""The bytes allocated in advance for each decision; most take less."""


def write_v19(outputs: list[Any], start: int, end: int) -> bytes:
    """Encode `outputs[start:end]`, all decisions, as an `AllocationResponse`, without partition, tags and priority.

    Source: docs/spec/scheduler-interface.md, section 7.3.
    """
    writer: Writer = Writer(end - start)
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    body: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    room: cython.Py_ssize_t = 1
    output: NewAllocation
    for index in range(start, end):
        output = outputs[index]
        body = at = writer.begin(at, V19_NEW, room)
        at = writer.text(at, V19_KEY, output.key)
        at = writer.resource(at, V19_RESOURCE, output.resource)
        at = writer.text(at, V19_NODE, output.node_id)
        at = writer.text(at, V19_APPLICATION, output.application_id)
        at = writer.text(at, V19_TASK_GROUP, output.task_group)
        at = writer.flag(at, V19_PLACEHOLDER, output.placeholder)
        at = writer.flag(at, V19_ORIGINATOR, output.originator)
        # The policy's length: a flag that is true takes two bytes, one that is false none.
        at = writer.number(at, V19_POLICY, 2 * output.allow_preempt_self + 2 * output.allow_preempt_other)
        at = writer.flag(at, SELF_FLAG, output.allow_preempt_self)
        at = writer.flag(at, OTHER_FLAG, output.allow_preempt_other)
        stop = writer.finish(body, at, room)
        room += stop - at
        at = stop
    return writer.written(at)


def write_first(outputs: list[Any], start: int, end: int, qualified: QualifiedPartitions) -> bytes:
    """Encode `outputs[start:end]`, all decisions, as a part of an `UpdateResponse`.

    `qualified` maps the names of partitions to their qualified ones.
    """
    writer: Writer = Writer(end - start)
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    body: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    room: cython.Py_ssize_t = 1
    output: NewAllocation
    name: object = None
    full: str = ""
    for index in range(start, end):
        output = outputs[index]
        if output.partition is not name:
            name = output.partition
            full = qualified[output.partition]
        body = at = writer.begin(at, FIRST_NEW, room)
        at = writer.text(at, FIRST_KEY, output.key)
        if output.tags is not None:
            at = writer.tags(at, FIRST_TAGS, output.tags)
        at = writer.text(at, FIRST_UUID, output.uuid)
        at = writer.resource(at, FIRST_RESOURCE, output.resource)
        at = writer.priority(at, output.priority)
        at = writer.text(at, FIRST_QUEUE, output.queue)
        at = writer.text(at, FIRST_NODE, output.node_id)
        at = writer.text(at, FIRST_APPLICATION, output.application_id)
        at = writer.text(at, FIRST_PARTITION, full)
        at = writer.text(at, FIRST_TASK_GROUP, output.task_group)
        at = writer.flag(at, FIRST_PLACEHOLDER, output.placeholder)
        stop = writer.finish(body, at, room)
        room += stop - at
        at = stop
    return writer.written(at)


@cython.cclass
class Writer:
    """A growing buffer. A method writes at the offset it is given, grows the buffer if needed, and returns the end.

    The writer keeps, of the last resource that it encoded, the `names` of its types, the `order` in which these are
    written, and the bytes with which their entries begin (`heads`, in that order): the next resource mostly has the
    same types. `resources`, `starts` and `ends` are a cache: a resource, and where its bytes stand in the buffer.
    """

    data: bytearray
    out: cython.p_uchar  # the same bytes
    size: cython.Py_ssize_t
    names: list[Any]
    amounts: list[Any]
    order: list[Any]
    heads: list[Any]
    resources: list[Any]
    starts: Annotated[list[int], cython.Py_ssize_t[256]]
    ends: Annotated[list[int], cython.Py_ssize_t[256]]

    def __init__(self, decisions: int) -> None:
        self.data = bytearray(EXPECTED * (decisions + 1))
        self.out = self.data
        self.size = len(self.data)
        self.names = []
        self.amounts = []
        self.order = []
        self.heads = []
        self.resources = [None] * PLACES
        if not cython.compiled:
            self.starts, self.ends = [0] * PLACES, [0] * PLACES

    def written(self, end: int) -> bytes:
        """Return a copy of the first `end` bytes."""
        return bytes(memoryview(self.data)[:end])

    @cython.cfunc
    def make_room(self, at: cython.Py_ssize_t, more: cython.Py_ssize_t) -> cython.void:
        """Grow the buffer, which has fewer than `more` bytes left from `at` on, to more than double its size."""
        assert self.size - at < more
        self.data += bytes(self.size + more)
        self.out = self.data
        self.size = len(self.data)

    @cython.cfunc
    @cython.exceptval(-1)
    def number(self, at: cython.Py_ssize_t, tag: cython.int, value: cython.ulonglong) -> cython.Py_ssize_t:
        """Write a varint field, or the tag and the length with which another field begins."""
        if self.size - at < NUMBER_MOST:
            self.make_room(at, NUMBER_MOST)
        out: cython.p_uchar = self.out
        out[at] = tag
        at += 1
        while value > 127:
            out[at] = value & 127 | 128
            at += 1
            value >>= 7
        out[at] = value
        return at + 1

    @cython.cfunc
    @cython.exceptval(-1)
    def flag(self, at: cython.Py_ssize_t, tag: cython.int, value: cython.bint) -> cython.Py_ssize_t:
        """Write a bool field if it is true; false is the default and is left out."""
        return self.number(at, tag, 1) if value else at

    @cython.cfunc
    @cython.exceptval(-1)
    def text(self, at: cython.Py_ssize_t, tag: cython.int, value: str) -> cython.Py_ssize_t:
        """Write a string field unless it is empty, which is the default."""
        return self.entry_text(at, tag, value) if value else at

    @cython.cfunc
    @cython.exceptval(-1)
    def entry_text(self, at: cython.Py_ssize_t, tag: cython.int, value: str) -> cython.Py_ssize_t:
        """Write a string field, even if it is empty, as the keys and values of map entries are written."""
        size: cython.Py_ssize_t = 0
        if cython.compiled:
            content: cython.p_char = cython.cast(cython.p_char, PyUnicode_AsUTF8AndSize(value, cython.address(size)))
            at = self.number(at, tag, size)
            if self.size - at < size:
                self.make_room(at, size)
            memcpy(self.out + at, content, size)
            return at + size
        encoded = value.encode()
        return self.raw(self.number(at, tag, len(encoded)), encoded)

    @cython.cfunc
    @cython.exceptval(-1)
    def raw(self, at: cython.Py_ssize_t, value: bytes) -> cython.Py_ssize_t:
        """Write bytes as they are."""
        size: cython.Py_ssize_t = len(value)
        if self.size - at < size:
            self.make_room(at, size)
        if cython.compiled:
            memcpy(self.out + at, PyBytes_AS_STRING(value), size)
        else:
            self.data[at : at + size] = value
        return at + size

    @cython.cfunc
    @cython.exceptval(-1)
    def begin(self, at: cython.Py_ssize_t, tag: cython.int, length_bytes: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Begin an embedded message: write its tag and return where its body begins.

        Between them `length_bytes` are reserved for its length, which `finish` writes.
        """
        if self.size - at < NUMBER_MOST:
            self.make_room(at, NUMBER_MOST)
        self.out[at] = tag
        return at + 1 + length_bytes

    @cython.cfunc
    @cython.exceptval(-1)
    def finish(
        self, body: cython.Py_ssize_t, end: cython.Py_ssize_t, length_bytes: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Write the length of the message with this body before it; return where the message ends.

        If the length needs another number of bytes than the `length_bytes` that were reserved, the body is moved.
        """
        length: cython.Py_ssize_t = end - body
        more: cython.Py_ssize_t = _length(length) - length_bytes
        at: cython.Py_ssize_t = body - length_bytes
        if more:
            if self.size - end < NUMBER_MOST:
                self.make_room(end, NUMBER_MOST)
            self.move(body, body + more, length)
            i: cython.int
            for i in range(PLACES):  # resources that were written within the body have moved with it
                if self.starts[i] >= body:
                    self.starts[i] += more
                    self.ends[i] += more
        out: cython.p_uchar = self.out
        while length > 127:
            out[at] = length & 127 | 128
            at += 1
            length >>= 7
        out[at] = length
        return end + more

    @cython.cfunc
    def move(self, start: cython.Py_ssize_t, to: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.void:
        """Copy `length` bytes within the buffer; the ranges may overlap, and there must be room."""
        if cython.compiled:
            memmove(self.out + to, self.out + start, length)
        else:
            self.data[to : to + length] = self.data[start : start + length]

    @cython.cfunc
    @cython.exceptval(-1)
    def priority(self, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
        """Write a priority of the first interface: a message of one varint, which is written even if it is zero."""
        at = self.number(at, FIRST_PRIORITY, 1 + _length(_unsigned(value)))
        return self.number(at, PRIORITY_VALUE, _unsigned(value))

    @cython.cfunc
    @cython.exceptval(-1)
    def tags(self, at: cython.Py_ssize_t, tag: cython.int, value: dict[str, str]) -> cython.Py_ssize_t:
        """Write a map of strings, its entries in the order of their keys."""
        body: cython.Py_ssize_t
        for name in sorted(value):
            body = at = self.begin(at, tag, 1)
            at = self.entry_text(at, ENTRY_KEY, name)
            at = self.entry_text(at, ENTRY_VALUE, value[name])
            at = self.finish(body, at, 1)
        return at

    @cython.cfunc
    @cython.exceptval(-1)
    def resource(self, at: cython.Py_ssize_t, tag: cython.int, value: dict[str, int]) -> cython.Py_ssize_t:
        """Write a resource; if the same dict was written before, copy the bytes from there."""
        # The slot follows from the address, whose low bits are equal for all objects. The cache keeps the dict alive,
        # so a dict that is found by identity is the one that was written.
        place: cython.size_t
        if cython.compiled:
            place = cython.cast(cython.size_t, cython.cast(cython.p_void, value)) >> 4
        else:
            place = id(value) >> 4
        place %= PLACES
        length: cython.Py_ssize_t
        if self.resources[place] is value:
            length = self.ends[place] - self.starts[place]
            if self.size - at < length:
                self.make_room(at, length)
            self.move(self.starts[place], at, length)
            return at + length
        start: cython.Py_ssize_t = at
        if not self.take_amounts(value):
            self.learn_names(at, value)
        body: cython.Py_ssize_t = self.begin(at, tag, 1)
        at = body
        i: cython.Py_ssize_t
        for i in range(len(self.heads)):
            head: bytes = self.heads[i]
            which: cython.Py_ssize_t = self.order[i]
            number: cython.ulonglong = _unsigned(self.amounts[which])
            length = 1 + _length(number) if number else 0
            at = self.number(at, RESOURCE_ENTRY, len(head) + 2 + length)
            at = self.raw(at, head)
            at = self.number(at, ENTRY_VALUE, length)
            if number:
                at = self.number(at, QUANTITY_VALUE, number)
        at = self.finish(body, at, 1)
        self.resources[place] = value
        self.starts[place] = start
        self.ends[place] = at
        return at

    @cython.cfunc
    @cython.exceptval(-1)
    def take_amounts(self, value: dict[str, int]) -> cython.bint:
        """Take a resource's amounts if it has the last one's type names in the same order; return whether it has."""
        i: cython.Py_ssize_t = 0
        if len(value) != len(self.names):
            return False
        for name, amount in value.items():
            if cython.cast(str, self.names[i]) != cython.cast(str, name):
                return False
            self.amounts[i] = amount
            i += 1
        return True

    @cython.cfunc
    def learn_names(self, at: cython.Py_ssize_t, value: dict[str, int]) -> cython.void:
        """Take the type names and the amounts of a resource; the buffer from `at` on serves as scratch space."""
        self.names = list(value)
        self.amounts = list(value.values())
        self.order = sorted(range(len(self.names)), key=self.names.__getitem__)
        self.heads = []
        end: cython.Py_ssize_t
        for name in sorted(self.names):
            end = self.entry_text(at, ENTRY_KEY, name)
            self.heads.append(bytes(memoryview(self.data)[at:end]))


@cython.cfunc
def _length(value: cython.ulonglong) -> cython.int:
    """Return how many bytes a varint takes."""
    length: cython.int = 1
    while value > 127:
        value >>= 7
        length += 1
    return length


@cython.cfunc
def _unsigned(value: cython.longlong) -> cython.ulonglong:
    """Reinterpret a signed integer's 64 bits as an unsigned one."""
    if value < 0:
        return cython.cast(cython.ulonglong, -1 - value) ^ BITS_64
    return value
