"""Asks, which with a node are allocations, and shapes, which equal asks share.

A **shape** is the equivalence class of asks that one search answers. Asks of an application that arrive one after the
other with the same resources and node constraints share a `Shape`: when no node has room for it, the shape has `failed`
and every pending ask of it is *parked*, which means that it is not tried again before something happens to a node that
can change the answer. The rule that wakes parked asks is in `licorne.core.waiting.parking`, the order in which an
application's asks are tried in `licorne.core.queues.requests`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec
from licorne.core.nodes.node import Need, Node

if TYPE_CHECKING:
    # for the type checker alone: these modules import this one
    from licorne.core.base.timers import Timer

    from .application import Application
    from .requests import AskBlock


@cython.cclass
class Shape:
    """The resources and node constraints that equal asks share, and whether a search for them has failed."""

    amounts: Vec
    resource: dict[str, int]  # `amounts` as a map; shared with messages, never changed
    need: Need
    first: Ask | None  # the head of the list of its pending asks
    waiting: cython.int  # number of pending asks
    failed: cython.bint

    def __init__(self, amounts: Vec, resource: dict[str, int], need: Need) -> None:
        self.initialise(amounts, resource, need)

    @cython.cfunc
    @cython.exceptval(check=False)
    def initialise(self, amounts: Vec, resource: dict[str, int], need: Need) -> cython.void:
        """Set the fields of a new shape: `__init__` without the cost of a call from Python."""
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

    `id` names the allocation: in the 1.9 interface, where one ask is one allocation, it is the key; in the first
    interface, where an ask may be repeated, a UUID (`repeats` is what is left of maxAllocations). `created`, `bound_ns`
    and `reserved_ns` are in nanoseconds; so is `replaced_ns`, the creation of the placeholder that it replaced, 0 for
    none. `reserved` is the node that a reservation ties the ask to; `required` the id of the only node that will do,
    empty for any. `parked` is the reason why the ask is not tried, or `LIVE` (`licorne.core.constants`).
    """

    # The fields are laid out in memory in this order: those that a decision reads come first, in three cache lines.
    shape: Shape
    parked: cython.int
    attempted: cython.bint
    block: AskBlock | None
    prior: Ask | None  # `prior` and `next`: neighbours in the list of pending asks of its shape
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
    expired_node: Node | None  # the node on which its last reservation grew too old
    replaced_ns: cython.longlong
    deadline: Timer | None  # pending: when it may reserve a node; allocated: its execution timeout
    outstanding: cython.longlong  # the last inspection in which it waited for nodes and nothing else; 0: it never did
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
        """Set the fields of a new ask: `__init__` without the cost of a call from Python."""
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
        """Return a new ask for the same, to be placed once; it has not been tried yet."""
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
        """Return whether it comes before the other in request order (docs/spec/scheduling.md, section 5.2)."""
        return other.after(self.priority, self.created, self.seq)

    @cython.ccall
    @cython.exceptval(check=False)
    def after(self, priority: cython.longlong, created: cython.longlong, seq: cython.longlong) -> cython.bint:
        """Return whether it comes after an ask with these values in request order."""
        if self.priority != priority:
            return self.priority < priority
        if self.created != created:
            return self.created > created
        return self.seq > seq

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be placed, at least once more."""
        return self.block is not None

    @property
    def reported(self) -> bool:
        """Whether the resource manager was told that it waits for resources."""
        return self.outstanding != 0

    @property
    def may_go(self) -> bool:
        """Whether preemption of any kind may evict it (docs/spec/preemption.md, sections 2.4, 3 and 4.5)."""
        return not (self.required or self.preempted or self.released)


if not cython.compiled:  # defaults of fields that few asks change, or none before it is placed: `initialise` skips them
    Ask.reserved_ns = Ask.bound_ns = Ask.replaced_ns = Ask.outstanding = 0
    Ask.expired_node = Ask.deadline = None
    Ask.attempted = Ask.triggered = Ask.preempted = Ask.released = False


def total_amounts(asks: Iterable[Ask]) -> Vec:
    """Return the sum of the amounts of these asks, a new vector."""
    total = Vec()
    for ask in asks:
        total.plus(ask.shape.amounts)
    return total


def request_order(ask: Ask) -> tuple[int, int, int]:
    """Return a key that sorts as `Ask.before` does."""
    return -ask.priority, ask.created, ask.seq
