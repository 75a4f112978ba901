"""Asks, which with a node are allocations, and what equal asks have in common.

**Shapes.** Asks of an application that follow each other with the same resources and node constraints share one `Shape`,
and one answer: when no node has room for it, the shape has `failed` and every pending ask of it is *parked* until
something happens to a node that can change the answer. The rule that wakes them is in `licorne.core.waiting.parking`, the order
in which an application's asks are tried in `licorne.core.queues.requests`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.nodes.node import Need, Node
else:
    from licorne.core.amounts.vectors import Vec
    from licorne.core.nodes.node import Need, Node

if TYPE_CHECKING:  # an application and a block know their asks; they know them as objects
    from licorne.core.base.timers import Timer

    from .application import Application
    from .requests import AskBlock


@cython.cclass
class Shape:
    """What asks have in common: resources and node constraints; and what is known about them."""

    amounts: Vec
    resource: dict[str, int]  # the same as a map; shared with messages, never changed
    need: Need
    first: Ask | None  # the head of the list of its pending asks
    waiting: cython.int  # pending asks
    failed: cython.bint

    def __init__(self, amounts: Vec, resource: dict[str, int], need: Need) -> None:
        self.initialise(amounts, resource, need)

    @cython.cfunc
    @cython.exceptval(check=False)
    def initialise(self, amounts: Vec, resource: dict[str, int], need: Need) -> cython.void:
        """Begin: what `__init__` does, for a shape made without the cost of a call from Python."""
        self.amounts = amounts
        self.resource = resource
        self.need = need
        if not cython.compiled:  # a new C structure is all zeros
            self.failed = False
            self.first = None
            self.waiting = 0


@cython.cclass
class Ask:
    """A pending ask; with a node, an allocation (docs/spec/scheduling.md, section 2).

    `id` names the allocation: the key in the 1.9 interface, where one ask is one allocation; a UUID in the first, where
    an ask may be repeated (`repeats` is what is left of maxAllocations). `created` and `bound_ns` are in nanoseconds; so is
    `replaced_ns`, the creation of the placeholder whose place it took, 0 for none.
    `reserved` is the node that a reservation ties the ask to; `required` the id of the only node that will do.
    """

    # The fields lie in memory as they stand here: what a decision looks at comes first, in three lines of 64 bytes.
    shape: Shape
    parked: cython.int
    attempted: cython.bint
    block: AskBlock | None
    prior: Ask | None  # its neighbours among the pending asks of its shape
    next: Ask | None

    required: str
    reserved: Node | None
    repeats: cython.longlong
    key: str
    id: str
    priority: cython.longlong
    node: Node | None
    bound_ns: cython.longlong

    tags: dict[str, str] | None
    task_group: str
    timeout_ns: cython.longlong
    placeholder: cython.bint
    originator: cython.bint
    allow_self: cython.bint
    allow_other: cython.bint
    app: Application
    created: cython.longlong
    seq: cython.longlong

    reserved_ns: cython.longlong
    expired_node: Node | None  # where its last reservation grew too old
    replaced_ns: cython.longlong
    deadline: Timer | None  # pending: of the age to reserve a node; allocated: of its execution timeout
    reported: cython.bint  # the resource manager has been told that it waits for resources
    triggered: cython.bint  # it has started a preemption
    preempted: cython.bint
    released: cython.bint

    def __init__(self, key: str, app: Application, shape: Shape, priority: int, created: int, seq: int) -> None:
        self.initialise(key, app, shape, priority, created, seq)

    @cython.cfunc
    @cython.exceptval(check=False)
    def initialise(
        self,
        key: str,
        app: Application,
        shape: Shape,
        priority: cython.longlong,
        created: cython.longlong,
        seq: cython.longlong,
    ) -> cython.void:
        """Begin: what `__init__` does, for an ask made without the cost of a call from Python."""
        self.key = key
        self.id = key
        self.app = app
        self.shape = shape
        self.priority = priority
        self.created = created
        self.seq = seq
        self.repeats = 1
        self.required = ""
        self.task_group = ""
        if not cython.compiled:  # a new C structure is all zeros and None
            self.node = None
            self.reserved = None
            self.tags = None
            self.timeout_ns = 0
            self.parked = 0
            self.placeholder = False
            self.originator = False
            self.allow_self = False
            self.allow_other = False
            self.block = None
            self.prior = None
            self.next = None

    @cython.cfunc
    def another(self) -> Ask:
        """Another one that asks for the same, once: nothing has become of it yet."""
        ask: Ask = Ask.__new__(Ask)
        ask.initialise(self.key, self.app, self.shape, self.priority, self.created, self.seq)
        ask.required = self.required
        ask.tags = self.tags
        ask.task_group = self.task_group
        ask.timeout_ns = self.timeout_ns
        ask.placeholder = self.placeholder
        ask.originator = self.originator
        ask.allow_self = self.allow_self
        ask.allow_other = self.allow_other
        return ask

    @cython.cfunc
    @cython.exceptval(check=False)
    def before(self, other: Ask) -> cython.bint:
        """Request order."""
        return other.after(self.priority, self.created, self.seq)

    @cython.ccall
    @cython.exceptval(check=False)
    def after(self, priority: cython.longlong, created: cython.longlong, seq: cython.longlong) -> cython.bint:
        """Does it come after an ask with these, in request order?"""
        if self.priority != priority:
            return self.priority < priority
        if self.created != created:
            return self.created > created
        return self.seq > seq

    @property
    def is_pending(self) -> bool:
        """Is it still to be placed (at least once more)?"""
        return self.block is not None

    @property
    def may_go(self) -> bool:
        """May preemption of any kind evict it (docs/spec/preemption.md, sections 2.4, 3 and 4.5)?"""
        return not (self.required or self.preempted or self.released)


if not cython.compiled:  # few ever have another, or not before they are placed: `open` need not set it
    Ask.reserved_ns = Ask.bound_ns = Ask.replaced_ns = 0
    Ask.expired_node = Ask.deadline = None
    Ask.attempted = Ask.reported = Ask.triggered = Ask.preempted = Ask.released = False


def request_order(ask: Ask) -> tuple[int, int, int]:
    """A key that sorts as `Ask.before` does."""
    return -ask.priority, ask.created, ask.seq


def changing(allocations: Iterable[Ask]) -> list[object]:
    """These allocations, each with all of it that may change as long as it runs: where it is equal, nothing has."""
    found: list[object] = []
    alloc: Ask
    for alloc in allocations:
        found += (alloc, alloc.shape, alloc.bound_ns, alloc.replaced_ns, alloc.preempted)
    return found
