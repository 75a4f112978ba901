"""Decisions as protobuf bytes: runs of `NewAllocation`, written without a dialect object in between.

Each decision is an `Allocation` in a list of the response. How long it is stands before it and is known behind it, so
room is left for as many bytes as the length of the last one took, and in the rare case that this was wrong it is moved.
A resource was mostly written before, for another decision of the same shape: then these bytes are copied.
"""

from __future__ import annotations

from typing import Annotated, Any

import cython

from licorne.si import first, v19
from licorne.si.partitions import QualifiedPartitions
from licorne.si.wire_plan import tag_of

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize
    from cython.cimports.libc.string import memcpy, memmove
    from cython.cimports.licorne.si.allocations import NewAllocation
    from cython.cimports.licorne.si.wire_constants import (
        BITS_64,
        ENTRY_KEY,
        ENTRY_VALUE,
        QUANTITY_VALUE,
        RESOURCE_ENTRY,
    )
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.si.allocations import NewAllocation
    from licorne.si.wire_constants import BITS_64, ENTRY_KEY, ENTRY_VALUE, QUANTITY_VALUE, RESOURCE_ENTRY

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
"""For so many resources it is known where they were written."""
NUMBER_MOST = cython.declare(cython.int, 11)
"""So many bytes a number takes with the byte before it."""
EXPECTED = 160
"""So many bytes are at hand for each decision; most take less."""


def write_v19(outputs: list[Any], start: int, end: int) -> bytes:
    """An `AllocationResponse` of decisions. They hold no partition, no tags and no priority.

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
        at = writer.number(at, V19_POLICY, 2 * output.allow_preempt_self + 2 * output.allow_preempt_other)
        at = writer.flag(at, SELF_FLAG, output.allow_preempt_self)
        at = writer.flag(at, OTHER_FLAG, output.allow_preempt_other)
        stop = writer.finish(body, at, room)
        room += stop - at
        at = stop
    return writer.written(at)


def write_first(outputs: list[Any], start: int, end: int, qualified: QualifiedPartitions) -> bytes:
    """The part of an `UpdateResponse` that is decisions; `qualified` knows, or finds out, full names of partitions."""
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
    """Bytes that grow. A method writes from the place that it is given, makes room for that, and returns where it ends.

    Of the last resource that was written it is known which `names` it had, in which `order` they are written, and the
    bytes that begin their entries (`heads`, in that order): the next one mostly has the same.
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
        """All that was written up to there."""
        return bytes(memoryview(self.data)[:end])

    @cython.cfunc
    def make_room(self, at: cython.Py_ssize_t, more: cython.Py_ssize_t) -> cython.void:
        """Have room for so many bytes from there on: it is asked for where there is less."""
        assert self.size - at < more
        self.data += bytes(self.size + more)
        self.out = self.data
        self.size = len(self.data)

    @cython.cfunc
    @cython.exceptval(-1)
    def number(self, at: cython.Py_ssize_t, tag: cython.int, value: cython.ulonglong) -> cython.Py_ssize_t:
        """A field that is a number, or the beginning of one that has a length."""
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
        """A field that is true or false, if it is true."""
        return self.number(at, tag, 1) if value else at

    @cython.cfunc
    @cython.exceptval(-1)
    def text(self, at: cython.Py_ssize_t, tag: cython.int, value: str) -> cython.Py_ssize_t:
        """A field that is text, if there is any."""
        return self.entry_text(at, tag, value) if value else at

    @cython.cfunc
    @cython.exceptval(-1)
    def entry_text(self, at: cython.Py_ssize_t, tag: cython.int, value: str) -> cython.Py_ssize_t:
        """A field that is text, be it empty."""
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
        """These bytes."""
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
        """Begin a message, with so much room for its length; its content begins where this ends."""
        if self.size - at < NUMBER_MOST:
            self.make_room(at, NUMBER_MOST)
        self.out[at] = tag
        return at + 1 + length_bytes

    @cython.cfunc
    @cython.exceptval(-1)
    def finish(
        self, body: cython.Py_ssize_t, end: cython.Py_ssize_t, length_bytes: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """End the message whose content is from `body` to `end`, behind this room; where it ends now."""
        length: cython.Py_ssize_t = end - body
        more: cython.Py_ssize_t = _length(length) - length_bytes
        at: cython.Py_ssize_t = body - length_bytes
        if more:
            if self.size - end < NUMBER_MOST:
                self.make_room(end, NUMBER_MOST)
            self.move(body, body + more, length)
            i: cython.int
            for i in range(PLACES):  # a resource may have moved with it
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
        """Copy what was written within the same bytes; there must be room."""
        if cython.compiled:
            memmove(self.out + to, self.out + start, length)
        else:
            self.data[to : to + length] = self.data[start : start + length]

    @cython.cfunc
    @cython.exceptval(-1)
    def priority(self, at: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
        """A priority of the first interface: a message of one number, which is written even if it is zero."""
        at = self.number(at, FIRST_PRIORITY, 1 + _length(_unsigned(value)))
        return self.number(at, PRIORITY_VALUE, _unsigned(value))

    @cython.cfunc
    @cython.exceptval(-1)
    def tags(self, at: cython.Py_ssize_t, tag: cython.int, value: dict[str, str]) -> cython.Py_ssize_t:
        """A field that is a map of texts."""
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
        """A field that is a resource: as it was written before, where this is known."""
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
        """Take the amounts of a resource, if it has the names of the last one; has it?"""
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
        """Learn the names of a resource, and take its amounts; what is written from this place on is lost."""
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
        return cython.cast(cython.ulonglong, -1 - value) ^ BITS_64
    return value
