"""Decisions as protobuf bytes: runs of `NewAllocation`, written without a dialect object in between.

Each decision is an `Allocation` in a list of the response. How long it is stands before it and is known behind it, so
room is left for as many bytes as the length of the last one took, and in the rare case that this was wrong it is moved.
A resource was mostly written before, for another decision of the same shape: then these bytes are copied.
"""

from __future__ import annotations

from typing import Annotated, Any

import cython

from licorne.si import seed, v19
from licorne.si._common import Quantity, Resource
from licorne.si.partitions import QualifiedPartitions
from licorne.si.wire_plan import tag_of

if cython.compiled:
    from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize
    from cython.cimports.libc.string import memcpy, memmove
    from cython.cimports.licorne.si.allocations import NewAllocation
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.si.allocations import NewAllocation

# What stands before a value: the number of its field and its wire type, in one byte.
V19_NEW = cython.declare(cython.int, tag_of(v19.AllocationResponse, "new"))
V19_KEY = cython.declare(cython.int, tag_of(v19.Allocation, "allocation_key"))
V19_RESOURCE = cython.declare(cython.int, tag_of(v19.Allocation, "resource_per_alloc"))
V19_NODE = cython.declare(cython.int, tag_of(v19.Allocation, "node_id"))
V19_APPLICATION = cython.declare(cython.int, tag_of(v19.Allocation, "application_id"))
V19_TASK_GROUP = cython.declare(cython.int, tag_of(v19.Allocation, "task_group_name"))
V19_PLACEHOLDER = cython.declare(cython.int, tag_of(v19.Allocation, "placeholder"))
V19_ORIGINATOR = cython.declare(cython.int, tag_of(v19.Allocation, "originator"))
V19_POLICY = cython.declare(cython.int, tag_of(v19.Allocation, "preemption_policy"))
POLICY_SELF = cython.declare(cython.int, tag_of(v19.PreemptionPolicy, "allow_preempt_self"))
POLICY_OTHER = cython.declare(cython.int, tag_of(v19.PreemptionPolicy, "allow_preempt_other"))
SEED_NEW = cython.declare(cython.int, tag_of(seed.UpdateResponse, "new_allocations"))
SEED_KEY = cython.declare(cython.int, tag_of(seed.Allocation, "allocation_key"))
SEED_TAGS = cython.declare(cython.int, tag_of(seed.Allocation, "allocation_tags"))
SEED_UUID = cython.declare(cython.int, tag_of(seed.Allocation, "uuid"))
SEED_RESOURCE = cython.declare(cython.int, tag_of(seed.Allocation, "resource_per_alloc"))
SEED_PRIORITY = cython.declare(cython.int, tag_of(seed.Allocation, "priority"))
SEED_QUEUE = cython.declare(cython.int, tag_of(seed.Allocation, "queue_name"))
SEED_NODE = cython.declare(cython.int, tag_of(seed.Allocation, "node_id"))
SEED_APPLICATION = cython.declare(cython.int, tag_of(seed.Allocation, "application_id"))
SEED_PARTITION = cython.declare(cython.int, tag_of(seed.Allocation, "partition_name"))
SEED_TASK_GROUP = cython.declare(cython.int, tag_of(seed.Allocation, "task_group_name"))
SEED_PLACEHOLDER = cython.declare(cython.int, tag_of(seed.Allocation, "placeholder"))
PRIORITY_VALUE = cython.declare(cython.int, tag_of(seed.Priority, "priority_value"))
RESOURCE_ENTRY = cython.declare(cython.int, tag_of(Resource, "resources"))
QUANTITY_VALUE = cython.declare(cython.int, tag_of(Quantity, "value"))
ENTRY_KEY = cython.declare(cython.int, 1 << 3 | 2)
ENTRY_VALUE = cython.declare(cython.int, 2 << 3 | 2)

PLACES = cython.declare(cython.int, 256)
"""For so many resources it is known where they were written."""
NUMBER_MOST = cython.declare(cython.int, 11)
"""So many bytes a number takes with the byte before it."""


def write_v19(outputs: list[Any], start: int, end: int) -> bytes:
    """An `AllocationResponse` of decisions. They hold no partition, no tags and no priority (spec section 7.3)."""
    writer: Writer = Writer()
    index: cython.Py_ssize_t
    body: cython.Py_ssize_t
    room: cython.Py_ssize_t = 1
    output: NewAllocation
    for index in range(start, end):
        output = outputs[index]
        body = writer.begin(V19_NEW, room)
        writer.text(V19_KEY, output.key)
        writer.resource(V19_RESOURCE, output.resource)
        writer.text(V19_NODE, output.node_id)
        writer.text(V19_APPLICATION, output.application_id)
        writer.text(V19_TASK_GROUP, output.task_group)
        writer.flag(V19_PLACEHOLDER, output.placeholder)
        writer.flag(V19_ORIGINATOR, output.originator)
        writer.number(V19_POLICY, 2 * output.allow_preempt_self + 2 * output.allow_preempt_other)
        writer.flag(POLICY_SELF, output.allow_preempt_self)
        writer.flag(POLICY_OTHER, output.allow_preempt_other)
        room = writer.finish(body, room)
    return writer.written()


def write_seed(outputs: list[Any], start: int, end: int, qualified: QualifiedPartitions) -> bytes:
    """The part of an `UpdateResponse` that is decisions; `qualified` knows, or finds out, full names of partitions."""
    writer: Writer = Writer()
    index: cython.Py_ssize_t
    body: cython.Py_ssize_t
    room: cython.Py_ssize_t = 1
    output: NewAllocation
    name: object = None
    full: str = ""
    for index in range(start, end):
        output = outputs[index]
        if output.partition is not name:
            name = output.partition
            full = qualified[output.partition]
        body = writer.begin(SEED_NEW, room)
        writer.text(SEED_KEY, output.key)
        if output.tags is not None:
            writer.tags(SEED_TAGS, output.tags)
        writer.text(SEED_UUID, output.uuid)
        writer.resource(SEED_RESOURCE, output.resource)
        writer.priority(output.priority)
        writer.text(SEED_QUEUE, output.queue)
        writer.text(SEED_NODE, output.node_id)
        writer.text(SEED_APPLICATION, output.application_id)
        writer.text(SEED_PARTITION, full)
        writer.text(SEED_TASK_GROUP, output.task_group)
        writer.flag(SEED_PLACEHOLDER, output.placeholder)
        room = writer.finish(body, room)
    return writer.written()


@cython.cclass
class Writer:
    """Bytes that grow. What is written first makes room for itself."""

    data: bytearray
    at: cython.Py_ssize_t
    size: cython.Py_ssize_t
    names: list[Any]  # of the last resource, as it has them, and as they are written
    sorted: list[Any]
    resources: list[Any]
    starts: Annotated[list[int], cython.Py_ssize_t[256]]
    ends: Annotated[list[int], cython.Py_ssize_t[256]]

    def __init__(self) -> None:
        self.size = 1024
        self.data = bytearray(self.size)
        self.at = 0
        self.names = []
        self.sorted = []
        self.resources = [None] * PLACES
        if not cython.compiled:
            self.starts, self.ends = [0] * PLACES, [0] * PLACES

    def written(self) -> bytes:
        """All that was written."""
        return bytes(memoryview(self.data)[: self.at])

    @cython.cfunc
    def make_room(self, more: cython.Py_ssize_t) -> cython.void:
        """There is room for so many bytes more."""
        if self.size - self.at < more:
            self.data += bytes(self.size + more)
            self.size = len(self.data)

    @cython.cfunc
    def number(self, tag: cython.int, value: cython.ulonglong) -> cython.void:
        """A field that is a number, or the beginning of one that has a length."""
        self.make_room(NUMBER_MOST)
        self.data[self.at] = tag
        self.at += 1
        while value > 127:
            self.data[self.at] = value & 127 | 128
            self.at += 1
            value >>= 7
        self.data[self.at] = value
        self.at += 1

    @cython.cfunc
    def flag(self, tag: cython.int, value: cython.bint) -> cython.void:
        """A field that is true or false, if it is true."""
        if value:
            self.number(tag, 1)

    @cython.cfunc
    def text(self, tag: cython.int, value: str) -> cython.void:
        """A field that is text, if there is any."""
        if value:
            self.entry_text(tag, value)

    @cython.cfunc
    def entry_text(self, tag: cython.int, value: str) -> cython.void:
        """A field that is text, be it empty."""
        if cython.compiled:
            size: cython.Py_ssize_t = 0
            content: cython.p_char = cython.cast(cython.p_char, PyUnicode_AsUTF8AndSize(value, cython.address(size)))
            self.number(tag, size)
            self.make_room(size)
            data: cython.p_char = self.data
            memcpy(data + self.at, content, size)
            self.at += size
        else:
            encoded = value.encode()
            self.number(tag, len(encoded))
            self.make_room(len(encoded))
            self.data[self.at : self.at + len(encoded)] = encoded
            self.at += len(encoded)

    @cython.cfunc
    def begin(self, tag: cython.int, room: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Begin a message, with so much room for its length; where its content begins."""
        self.make_room(NUMBER_MOST)
        self.data[self.at] = tag
        self.at += 1 + room
        return self.at

    @cython.cfunc
    def finish(self, body: cython.Py_ssize_t, room: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """End the message that begin began there, with this room; how many bytes its length takes."""
        length: cython.Py_ssize_t = self.at - body
        needed: cython.Py_ssize_t = _length(length)
        at: cython.Py_ssize_t = body - room
        if needed != room:
            self.make_room(NUMBER_MOST)
            self.move(body, at + needed, length)
            self.at += needed - room
            i: cython.int
            for i in range(PLACES):  # a resource may have moved with it
                if self.starts[i] >= body:
                    self.starts[i] += needed - room
                    self.ends[i] += needed - room
        while length > 127:
            self.data[at] = length & 127 | 128
            at += 1
            length >>= 7
        self.data[at] = length
        return needed

    @cython.cfunc
    def move(self, start: cython.Py_ssize_t, to: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.void:
        """Copy what was written within the same bytes; there must be room."""
        if cython.compiled:
            data: cython.p_char = self.data
            memmove(data + to, data + start, length)
        else:
            self.data[to : to + length] = self.data[start : start + length]

    @cython.cfunc
    def priority(self, value: cython.longlong) -> cython.void:
        """A priority of the seed's dialect: a message of one number, which is written even if it is zero."""
        self.number(SEED_PRIORITY, 1 + _length(_unsigned(value)))
        self.number(PRIORITY_VALUE, _unsigned(value))

    @cython.cfunc
    def tags(self, tag: cython.int, value: dict[str, str]) -> cython.void:
        """A field that is a map of texts."""
        body: cython.Py_ssize_t
        for name in sorted(value):
            body = self.begin(tag, 1)
            self.entry_text(ENTRY_KEY, name)
            self.entry_text(ENTRY_VALUE, value[name])
            self.finish(body, 1)

    @cython.cfunc
    def in_order(self, value: dict[str, int]) -> list[Any]:
        """The names in this resource, sorted: mostly those of the last one."""
        i: cython.Py_ssize_t = 0
        if len(value) == len(self.names):
            for name in value:
                if self.names[i] is not name:
                    break
                i += 1
        if i < len(value) or i < len(self.names):
            self.names = list(value)
            self.sorted = sorted(value)
        return self.sorted

    @cython.cfunc
    def resource(self, tag: cython.int, value: dict[str, int]) -> cython.void:
        """A field that is a resource: as it was written before, where this is known."""
        place: cython.size_t
        if cython.compiled:
            place = cython.cast(cython.size_t, cython.cast(cython.p_void, value)) >> 4
        else:
            place = id(value) >> 4
        place %= PLACES
        start: cython.Py_ssize_t
        length: cython.Py_ssize_t
        if self.resources[place] is value:
            start = self.starts[place]
            length = self.ends[place] - start
            self.make_room(length)
            self.move(start, self.at, length)
            self.at += length
            return
        start = self.at
        body: cython.Py_ssize_t = self.begin(tag, 1)
        for name in self.in_order(value):
            entry: cython.Py_ssize_t = self.begin(RESOURCE_ENTRY, 1)
            number: cython.ulonglong = _unsigned(value[name])
            self.entry_text(ENTRY_KEY, name)
            self.number(ENTRY_VALUE, 1 + _length(number) if number else 0)
            if number:
                self.number(QUANTITY_VALUE, number)
            self.finish(entry, 1)
        self.finish(body, 1)
        self.resources[place] = value
        self.starts[place] = start
        self.ends[place] = self.at


@cython.cfunc
def _length(value: cython.ulonglong) -> cython.int:
    """So many bytes a number takes."""
    length: cython.int = 1
    while value > 127:
        value >>= 7
        length += 1
    return length


@cython.cfunc
def _unsigned(value: cython.longlong) -> cython.ulonglong:
    """The number of 64 bits without a sign that has the same bits."""
    if value < 0:
        return cython.cast(cython.ulonglong, -1 - value) ^ 0xFFFFFFFFFFFFFFFF
    return value
