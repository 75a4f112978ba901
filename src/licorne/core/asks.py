"""Asks, which with a node are allocations, and the order in which an application's pending asks are tried.

**Shapes.** Asks of the same resources and node constraints share one `Shape`, and one answer: when no node has
room for it, the shape has `failed` and every pending ask of it is *parked* until something happens to a node that
can change the answer. The rule that wakes them is in `licorne.core.parking`.

**Request order** (spec scheduling.md, section 5.2): higher priority first, then older create time, then arrival.
`Requests` keeps it in blocks of up to 128 asks. A block knows how many of its asks are live (not parked) and a lower
bound of what they ask for, so that a search under a small quota, or among parked asks, skips whole blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.nodes import Need, Node
    from cython.cimports.licorne.core.vectors import Vec
else:
    from .nodes import Need, Node
    from .vectors import Vec

if TYPE_CHECKING:  # an application knows its asks; they know it as an object
    from .application import Application

NO_PRIORITY: int = -0x80000000
"""The priority of an application or queue in which nothing is pending (spec section 4.2: MIN)."""
NONE = cython.declare(cython.longlong, -0x80000000)

# Why an ask is parked. LIVE: it is not, and will be tried when its application is looked at.
LIVE = 0
NO_NODE = 1  # its shape fits no node; woken by an event on a node, or by its age (a reservation)
REFUSED = 2  # a predicate said no; tried again at the next call, for its answer may change unseen
AWAITS_NODE = 3  # its required node has no room, or is not there; woken by an event on that node


@cython.cclass
class Shape:
    """What asks have in common: resources and node constraints; and what is known about them."""

    amounts: Vec
    resource: dict[str, int]  # the same as a map; shared with messages, never changed
    need: Need
    failed: cython.bint
    first: Ask | None  # the head of the list of its pending asks
    waiting: cython.Py_ssize_t  # pending asks
    ident: object  # its key among the shapes of its need

    def __init__(self, amounts: Vec, resource: dict[str, int], need: Need, ident: object) -> None:
        self.amounts = amounts
        self.resource = resource
        self.need = need
        self.ident = ident
        self.failed = False
        self.first = None
        self.waiting = 0


@cython.cclass
class Ask:
    """A pending ask; with a node, an allocation (spec scheduling.md, section 2).

    `id` names the allocation: the key in 1.9's dialect, where one ask is one allocation; a UUID in the seed's, where
    an ask may be repeated (`repeats` is what is left of maxAllocations). `created` and `bound_ns` are in nanoseconds.
    `reserved` is the node that a reservation ties the ask to; `required` the id of the only node that will do.
    """

    key: str
    id: str
    app: Application
    shape: Shape
    priority: cython.longlong
    created: cython.longlong
    seq: cython.longlong
    repeats: cython.longlong
    node: Node | None
    reserved: Node | None
    reserved_ns: cython.longlong
    shunned: Node | None  # where its last reservation grew too old
    required: str
    tags: dict[str, str] | None
    task_group: str
    timeout_ns: cython.longlong
    bound_ns: cython.longlong
    parked: cython.int
    aging: cython.bint  # a timer will wake it when it is old enough to reserve a node
    attempted: cython.bint
    reported: cython.bint  # the resource manager has been told that it waits for resources
    triggered: cython.bint  # it has started a preemption
    placeholder: cython.bint
    originator: cython.bint
    allow_self: cython.bint
    allow_other: cython.bint
    preempted: cython.bint
    released: cython.bint
    block: AskBlock | None
    prior: Ask | None  # its neighbours among the pending asks of its shape
    next: Ask | None

    def __init__(self, key: str, app: Application, shape: Shape, priority: int, created: int, seq: int) -> None:
        self.key = key
        self.id = key
        self.app = app
        self.shape = shape
        self.priority = priority
        self.created = created
        self.seq = seq
        self.repeats = 1
        self.node = None
        self.reserved = None
        self.reserved_ns = 0
        self.shunned = None
        self.required = ""
        self.tags = None
        self.task_group = ""
        self.timeout_ns = 0
        self.bound_ns = 0
        self.parked = 0
        self.aging = False
        self.attempted = False
        self.reported = False
        self.triggered = False
        self.placeholder = False
        self.originator = False
        self.allow_self = False
        self.allow_other = False
        self.preempted = False
        self.released = False
        self.block = None
        self.prior = None
        self.next = None

    @cython.cfunc
    @cython.exceptval(check=False)
    def before(self, other: Ask) -> cython.bint:
        """Request order."""
        if self.priority != other.priority:
            return self.priority > other.priority
        if self.created != other.created:
            return self.created < other.created
        return self.seq < other.seq

    @property
    def is_pending(self) -> bool:
        """Is it still to be placed (at least once more)?"""
        return self.block is not None


@cython.cclass
class AskBlock:
    """Up to 128 pending asks in request order; no live ask in it asks for less than `low`."""

    items: list[Any]  # Ask
    low: Vec
    live: cython.Py_ssize_t
    place: cython.Py_ssize_t

    def __init__(self) -> None:
        self.items = []
        self.low = Vec()
        self.live = 0
        self.place = 0

    @cython.cfunc
    def count_in(self, ask: Ask) -> cython.void:
        """The ask is in this block: if it is live, count it and lower the bound to it."""
        d: cython.Py_ssize_t
        amounts: Vec = ask.shape.amounts
        ask.block = self
        if ask.parked:
            return
        if self.live == 0:
            self.low.copy_from(amounts)
        else:
            for d in range(self.low.n):  # what the bound does not hold is 0
                self.low.v[d] = min(self.low.v[d], amounts.at(d))
        self.live += 1

    @cython.cfunc
    def recount(self) -> cython.void:
        """Make the count and the bound exact."""
        i: cython.Py_ssize_t
        self.live = 0
        for i in range(len(self.items)):
            self.count_in(cython.cast(Ask, self.items[i]))

    @cython.cfunc
    def where(self, ask: Ask) -> cython.Py_ssize_t:
        """The place of an ask that is in this block, or that belongs there."""
        lo: cython.Py_ssize_t = 0
        hi: cython.Py_ssize_t = len(self.items)
        mid: cython.Py_ssize_t
        while lo < hi:
            mid = (lo + hi) >> 1
            if cython.cast(Ask, self.items[mid]).before(ask):
                lo = mid + 1
            else:
                hi = mid
        return lo


@cython.cclass
class Requests:
    """The pending asks of one application in request order."""

    blocks: list[Any]  # AskBlock

    def __init__(self) -> None:
        self.blocks = []

    @cython.cfunc
    def insert(self, ask: Ask) -> cython.void:
        """Put in a pending ask; it must be in no block."""
        count: cython.Py_ssize_t = len(self.blocks)
        block: AskBlock
        lo: cython.Py_ssize_t
        hi: cython.Py_ssize_t
        mid: cython.Py_ssize_t
        if count == 0:
            block = AskBlock()
            self.blocks.append(block)
            block.items.append(ask)
            block.count_in(ask)
            return
        block = cython.cast(AskBlock, self.blocks[count - 1])
        if cython.cast(Ask, block.items[len(block.items) - 1]).before(ask):  # the common case: it is the last
            if len(block.items) >= 64:
                block = AskBlock()
                block.place = count
                self.blocks.append(block)
            block.items.append(ask)
            block.count_in(ask)
            return
        lo = 0
        hi = count
        while hi - lo > 1:
            mid = (lo + hi) >> 1
            if cython.cast(Ask, cython.cast(AskBlock, self.blocks[mid]).items[0]).before(ask):
                lo = mid
            else:
                hi = mid
        block = cython.cast(AskBlock, self.blocks[lo])
        block.items.insert(block.where(ask), ask)
        block.count_in(ask)
        if len(block.items) >= 128:
            self._split(block)

    @cython.cfunc
    def remove(self, ask: Ask) -> cython.void:
        """Take out an ask: it is not pending any longer."""
        block: AskBlock = cython.cast(AskBlock, ask.block)
        del block.items[block.where(ask)]
        if not ask.parked:
            block.live -= 1
        ask.block = None
        if not block.items:
            del self.blocks[block.place]
            self._place_from(block.place)

    @cython.cfunc
    def park(self, ask: Ask, why: cython.int) -> cython.void:
        """Take the ask out of the search."""
        if not ask.parked:
            cython.cast(AskBlock, ask.block).live -= 1
        ask.parked = why

    @cython.cfunc
    def unpark(self, ask: Ask) -> cython.void:
        """Let the search see the ask again."""
        if ask.parked:
            ask.parked = 0
            cython.cast(AskBlock, ask.block).count_in(ask)

    @cython.cfunc
    def next_fit(self, room: Vec) -> Ask | None:
        """The first live ask that fits in the room, or None."""
        p: cython.Py_ssize_t
        i: cython.Py_ssize_t
        block: AskBlock
        ask: Ask
        for p in range(len(self.blocks)):
            block = cython.cast(AskBlock, self.blocks[p])
            if block.live == 0 or not room.holds(block.low):
                continue
            for i in range(len(block.items)):
                ask = cython.cast(Ask, block.items[i])
                if not ask.parked and room.holds(ask.shape.amounts):
                    return ask
            block.recount()
        return None

    def in_order(self) -> list[Ask]:
        """All pending asks in request order."""
        block: AskBlock
        found: list[Ask] = []
        for block in self.blocks:
            found += block.items
        return found

    @cython.cfunc
    def _split(self, block: AskBlock) -> cython.void:
        new: AskBlock = AskBlock()
        new.items = block.items[64:]
        del block.items[64:]
        block.recount()
        new.recount()
        self.blocks.insert(block.place + 1, new)
        self._place_from(block.place + 1)

    @cython.cfunc
    def _place_from(self, start: cython.Py_ssize_t) -> cython.void:
        i: cython.Py_ssize_t
        for i in range(start, len(self.blocks)):
            cython.cast(AskBlock, self.blocks[i]).place = i

    def validate(self) -> None:
        """Prove order, places, counts and bounds."""
        block: AskBlock
        ask: Ask
        last: Ask | None = None
        d: cython.Py_ssize_t
        for p, b in enumerate(self.blocks):
            block = b
            live = 0
            assert block.place == p and block.items, "block of asks"
            for a in block.items:
                ask = a
                assert ask.block is block, f"block of ask {ask.key}"
                assert last is None or last.before(ask), f"request order at {ask.key}"
                last = ask
                if not ask.parked:
                    live += 1
                    for d in range(block.low.n):
                        assert block.low.v[d] <= ask.shape.amounts.at(d), f"bound below ask {ask.key}"
            assert live == block.live, "live asks of a block"


@cython.cclass
class PriorityBag:
    """A multiset of priorities with its maximum at hand; NO_PRIORITY does not count."""

    top: cython.longlong
    count: cython.longlong
    rest: dict[int, int]  # how often each lower priority occurs

    def __init__(self) -> None:
        self.top = NONE
        self.count = 0
        self.rest = {}

    @cython.cfunc
    def add(self, priority: cython.longlong) -> cython.bint:
        """Put one in; did the maximum change?"""
        if priority == NONE:
            return False
        if self.count and priority == self.top:
            self.count += 1
            return False
        if self.count == 0 or priority > self.top:
            if self.count:
                self.rest[self.top] = self.count
            self.top = priority
            self.count = 1
            return True
        self.rest[priority] = self.rest.get(priority, 0) + 1
        return False

    @cython.cfunc
    def remove(self, priority: cython.longlong) -> cython.bint:
        """Take one out; did the maximum change?"""
        if priority == NONE:
            return False
        if priority == self.top:
            self.count -= 1
            if self.count:
                return False
            if self.rest:
                self.top = max(self.rest)
                self.count = self.rest.pop(self.top)
            else:
                self.top = NONE
            return True
        left: cython.longlong = self.rest[priority] - 1
        if left:
            self.rest[priority] = left
        else:
            del self.rest[priority]
        return False

    def refill(self, priorities: list[int]) -> None:
        """Hold these and no others, whatever was in it."""
        self.top = NONE
        self.count = 0
        self.rest = {}
        for priority in priorities:
            self.add(priority)
