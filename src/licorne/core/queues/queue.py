"""A queue: what is counted in it, its share, its priority, and its order among its siblings.

Source: docs/spec/scheduling.md, sections 2, 4 and 8. Siblings are kept in their parent's heap `order` while something
below them can be tried; a queue is moved in it when its share or priority changes, and the name is the last tie-break.
"Larger pending", which is no total order, is applied where a child is picked (`Queue.first_child`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.config.acl import ACL
from licorne.config.model import TemplateConfig
from licorne.config.properties import QueueProperties, parse_properties
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.base.order import Order, Ranked, any_two_compare, sorted_by_insertion
from licorne.core.base.states import ObjectState
from licorne.core.constants import PRIORITY_HIGHEST, PRIORITY_LOWEST, UNLIMITED
from licorne.core.placement.rules import RECOVERY_PATH
from licorne.core.queues.priorities import PriorityBag

if TYPE_CHECKING:
    from .application import Application  # which imports this module


STOPPED = ObjectState.STOPPED


@cython.cclass
class Queue(Ranked):
    """A queue of the tree of a partition.

    `allocated`, `pending` and `preempting` are sums over the subtree. `limit` is the queue's own max, `UNLIMITED` where
    none is set; of root, `size` is the size of the cluster, and `limit` may exceed it (`Tree.bound_root`).
    `guaranteed` is -1 for a type that is not listed; `weights` is what
    `share` divides by: the guaranteed amount, else the fair maximum, -1 for neither. `asks_pending` counts the pending
    asks below, `awake_count` the applications below that are awake. `running` and `accepted` are the applications that
    count against `max_apps` (section 10). `blocked` applications wait for room here.
    """

    # The fields are laid out in memory in this order: those that decisions read come first.
    priority: cython.longlong
    share: cython.double
    parent: Queue | None
    allocated: Vec
    weights: Vec
    limit: Vec
    pending: Vec
    order: Order
    asks_pending: cython.longlong
    awake_count: cython.longlong
    backoff_after: cython.longlong  # after so many asks that fit no node an application is passed over; 0: never
    is_leaf: cython.bint
    by_priority: cython.bint
    fair: cython.bint
    stateaware: cython.bint
    tied: list[Queue]  # children of equal rank in the order of their turns, made by `in_order`
    tied_priority: cython.longlong  # the priority of these when `tied` was made; `tied_share` likewise
    tied_share: cython.double
    next_turn: cython.Py_ssize_t  # position in `tied`: those before it sleep, or tie no more
    last_turn: Queue | None  # the child that had the last turn; None: `tied` is not valid
    skipped_sleeping: cython.bint  # before `last_turn` stands a child that ties but sleeps
    last_changed: cython.bint  # `last_turn` has changed since its turn
    tie_sorts: cython.longlong  # how often `tied` was made: counted work

    name: str
    path: str
    children: dict[str, Queue]
    apps: dict[str, Application]
    reachable: cython.bint  # decisions reach its applications: it is a leaf, and no ancestor is one
    managed: cython.bint
    state: ObjectState
    preempting: Vec
    size: Vec | None  # None: it is not root, or there was no node yet
    guaranteed: Vec
    max_config: dict[str, int] | None
    guaranteed_config: dict[str, int] | None
    max_apps: cython.longlong
    running: cython.longlong
    accepted: dict[Application, None]
    bag: PriorityBag
    offset: cython.longlong
    fence: cython.bint
    settings: QueueProperties
    properties: dict[str, str]
    submit_acl: ACL
    admin_acl: ACL
    template: TemplateConfig | None
    inherited_template: cython.bint
    with_pending: cython.longlong  # number of children that have pending asks
    blocked: dict[Application, Vec | None]  # with the least that it asks for; None: any room wakes it
    reserved: dict[Application, int]  # application -> number of its reservations (leaf)
    by_name: list[Queue] | None  # children in name order, built when needed
    types: Types

    TRANSIENT = ("by_name",)  # a cache

    def __init__(self, name: str, parent: Queue | None, is_leaf: bool, managed: bool, types: Types) -> None:
        self.heap_index = -1
        self.name = name
        self.parent = parent
        self.path = name if parent is None else f"{parent.path}.{name}"
        self.is_leaf = is_leaf
        self.reachable = is_leaf
        self.managed = managed
        self.state = ObjectState.ACTIVE
        self.types = types
        self.children = {}
        self.apps = {}
        self.allocated = new_sum()
        self.pending = new_sum()
        self.preempting = new_sum()
        self.limit = Vec(0, UNLIMITED)
        self.size = None
        self.guaranteed = Vec(0, -1)
        self.weights = Vec(0, -1)
        self.max_config = None
        self.guaranteed_config = None
        self.max_apps = 0
        self.running = 0
        self.accepted = {}
        self.share = 0.0
        self.bag = PriorityBag()
        self.priority = PRIORITY_LOWEST
        self.order = Order()
        self.asks_pending = 0
        self.with_pending = 0
        self.awake_count = 0
        self.tied = []
        self.tied_priority = 0
        self.tied_share = 0.0
        self.next_turn = 0
        self.skipped_sleeping = False
        self.last_turn = None
        self.last_changed = False
        self.tie_sorts = 0
        self.blocked = {}
        self.reserved = {}
        self.submit_acl = ACL.parse("")
        self.admin_acl = ACL.parse("")
        self.template = None
        self.inherited_template = False
        self.by_name = None
        self.set_properties({})
        if parent is not None:
            parent.children[name] = self
            parent.children_changed()

    # -- configuration ---------------------------------------------------------------------------------

    def set_properties(self, properties: dict[str, str]) -> None:
        """Replace the properties (docs/spec/config.md, section 7); one that is gone has its default again."""
        settings: QueueProperties = parse_properties(properties)
        self.properties = properties
        self.settings = settings
        self.offset = settings.priority_offset
        self.fence = settings.priority_fence
        self.by_priority = settings.sort_by_priority
        self.fair = settings.sort_policy == "fair"
        self.stateaware = settings.sort_policy == "stateaware"
        self.backoff_after = min(settings.backoff, UNLIMITED)

    def set_resources(self, maximum: dict[str, int] | None, guaranteed: dict[str, int] | None) -> None:
        """Set max and guaranteed, None for "not set"; a type without a number is left out: nothing can use it."""
        self.max_config = maximum
        self.guaranteed_config = guaranteed
        self.limit = self.types.known(self.max_config, UNLIMITED)
        self.guaranteed = self.types.known(self.guaranteed_config, -1)

    def set_weights(self, fair_max: Vec) -> None:
        """Recompute the weights and shares of this queue and its descendants.

        The weight of a type is the guarantee, else the fair maximum, else -1. The fair maximum is the queue's own max, and
        for types that this does not list `fair_max`, the parent's (docs/spec/scheduling.md, section 4.1).
        """
        own: Vec = fair_max.clone()
        child: Queue
        d: cython.Py_ssize_t
        if self.parent is not None and self.max_config and fair_max.n:
            own.grow(self.limit.n)
            for d in range(self.limit.n):
                if self.limit.v[d] != UNLIMITED:
                    own.v[d] = self.limit.v[d]
        self.weights = own.clone()
        self.weights.grow(self.guaranteed.n)
        for d in range(self.guaranteed.n):
            if self.guaranteed.v[d] >= 0:
                self.weights.v[d] = self.guaranteed.v[d]
        self.reshare()
        self.changed()
        if self.heap_index >= 0:
            cython.cast(Queue, self.parent).order.mend(self)
        for child in self.children.values():
            child.set_weights(own)

    # -- order -----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def same_rank(self, other: Queue) -> cython.bint:
        """Return whether two siblings have equal priority and share."""
        return self.priority == other.priority and self.share == other.share

    @cython.cfunc
    @cython.exceptval(check=False)
    def before(self, other: Ranked) -> cython.bint:
        """Compare siblings by a total order: priority and share, in the order of the parent's policy, then the name."""
        q: Queue = cython.cast(Queue, other)
        differ: cython.bint = self.priority != q.priority
        if differ and cython.cast(Queue, self.parent).by_priority:
            return self.priority > q.priority
        if self.share != q.share:
            return self.share < q.share
        if differ:
            return self.priority > q.priority
        return self.name < q.name

    @cython.cfunc
    @cython.exceptval(check=False)
    def reshare(self) -> cython.void:
        """Recompute share = max over the types of allocated / weight; for weight 0 it is 1 if anything is allocated."""
        allocated: Vec = self.allocated
        weights: Vec = self.weights
        share: cython.double = 0.0
        x: cython.double
        weight: cython.longlong
        d: cython.Py_ssize_t
        n: cython.Py_ssize_t = weights.n
        if n > allocated.n:
            n = allocated.n
        for d in range(n):
            weight = weights.v[d]
            if weight > 0:
                x = float(allocated.v[d]) / float(weight)
                if x > share:
                    share = x
            elif weight == 0 and allocated.v[d] > 0 and share < 1.0:
                share = 1.0
        self.share = share

    @cython.cfunc
    @cython.exceptval(check=False)
    def exported(self) -> cython.longlong:
        """Return the priority that the parent sees, with the offset; of a fence, its offset (section 4.2)."""
        if self.bag.top == PRIORITY_LOWEST:
            return PRIORITY_LOWEST
        if self.fence:
            return self.offset
        return max(PRIORITY_LOWEST, min(PRIORITY_HIGHEST, self.bag.top + self.offset))

    def refresh_priority(self) -> None:
        """Recompute `bag` and `priority` from the applications and children; the heaps are not updated."""
        child: Queue
        priorities: list[int] = [app.bag.top for app in self.apps.values()]
        for child in self.children.values():
            priorities.append(child.priority)
        self.bag.refill(priorities)
        self.priority = self.exported()

    # -- whose turn it is ------------------------------------------------------------------------------

    @cython.cfunc
    def first_child(self) -> Queue:
        """Return the child whose turn it is: by priority and share, ties by "larger pending" (section 4.1)."""
        items: list[Any] = self.order.items
        first: Queue = cython.cast(Queue, items[0])
        if (len(items) > 1 and first.same_rank(cython.cast(Queue, items[1]))) or (
            len(items) > 2 and first.same_rank(cython.cast(Queue, items[2]))
        ):
            return self._break_tie(first)
        return first

    @cython.cfunc
    def _break_tie(self, first: Queue) -> Queue:
        """Return the first awake child, in the order of turns, of those that tie with `first`.

        The list of those that tie, `tied`, is kept while they take their turns, because sorting them after each turn would
        cost the square of their number. A child that only falls asleep or wakes up keeps its position. A child that
        leaves the tie is skipped. The order of the others can then be another than sorting would give, because
        `precedes` is a partial order; it is the same if that child was the first, or if any two of the others compare.
        """
        child: Queue
        i: cython.Py_ssize_t
        last: Queue | None = self.last_turn
        if (
            last is None
            or first.share != self.tied_share
            or first.priority != self.tied_priority
            or (
                self.last_changed
                and (last.ties(first) or (self.skipped_sleeping and not any_two_compare(self.still_tied())))
            )
        ):
            self.tied = self.in_order(first)
            self.tied_share, self.tied_priority = first.share, first.priority
            self.tie_sorts += 1
            self.next_turn = 0
        if self.next_turn == 0:
            self.skipped_sleeping = False
        for i in range(self.next_turn, len(self.tied)):
            child = cython.cast(Queue, self.tied[i])
            if child.ties(first):
                if child.heap_index >= 0:
                    self.next_turn, self.last_turn, self.last_changed = i, child, False
                    return child
                self.skipped_sleeping = True
        self.last_turn = None
        return first

    @cython.ccall
    def still_tied(self) -> list[Any]:
        """Return the children in `tied` that still tie."""
        child: Queue
        found: list[Any] = []
        for child in self.tied:
            if child.has_turns() and child.priority == self.tied_priority and child.share == self.tied_share:
                found.append(child)
        return found

    @cython.cfunc
    @cython.exceptval(check=False)
    def has_turns(self) -> cython.bint:
        """Return whether it is considered when its parent picks a child: it has pending asks and is not stopped."""
        return self.asks_pending != 0 and self.state is not STOPPED

    @cython.cfunc
    @cython.exceptval(check=False)
    def precedes(self, other: Ranked) -> cython.bint:
        """Compare siblings by all rules but the name; this is only a partial order."""
        q: Queue = cython.cast(Queue, other)
        return self.pending.above(q.pending) if self.same_rank(q) else self.before(q)

    @cython.cfunc
    @cython.exceptval(check=False)
    def equals(self, other: Ranked) -> cython.bint:
        """Return whether no rule but the name orders two siblings."""
        q: Queue = cython.cast(Queue, other)
        return self.same_rank(q) and self.pending.same(q.pending)

    @cython.ccall
    @cython.exceptval(check=False)
    def ties(self, other: Queue) -> cython.bint:
        """Return whether it is considered when a child is picked, and has the rank of this sibling."""
        return self.has_turns() and self.same_rank(other)

    @cython.ccall
    def changed(self) -> cython.void:
        """Note that what siblings compare has changed, or may have: pending resources, share, priority or state."""
        parent: Queue | None = self.parent
        if parent is not None:
            if parent.last_turn is not self:
                parent.last_turn = None
            parent.last_changed = True

    @cython.ccall
    def children_changed(self) -> cython.void:
        """Note that a child was added or removed."""
        self.by_name = None
        self.last_turn = None
        self.tied = []  # else a removed child would be kept alive here

    # -- reading ---------------------------------------------------------------------------------------

    @cython.cfunc
    def children_by_name(self) -> list[Any]:
        """Return the children in name order; the list must not be changed."""
        if self.by_name is None or len(self.by_name) != len(self.children):
            self.by_name = [self.children[name] for name in sorted(self.children)]
        return self.by_name

    @cython.ccall
    def in_order(self, rank_of: Queue | None) -> list[Any]:
        """Return the children with turns, in the order of section 4.1; with `rank_of` only those of that child's rank.

        "Larger pending" is a partial order, so the outcome depends on how one sorts: a stable insertion sort that
        starts from name order (section 16.6), over all of them, also those that cannot run now.
        """
        found: list[Any] = []
        child: Queue
        for child in self.children_by_name():
            if child.has_turns() and (rank_of is None or child.same_rank(rank_of)):
                found.append(child)
        return sorted_by_insertion(found)

    def leaves_in_order(self) -> Iterator[Queue]:
        """Iterate over the leaves below (or this queue, if a leaf) with pending asks, in the order of decisions."""
        if self.is_leaf:
            yield self
            return
        for child in self.in_order(None):
            yield from child.leaves_in_order()

    @property
    def draining(self) -> bool:
        """Whether it takes no new applications, and is removed when it is empty."""
        return self.state is ObjectState.DRAINING

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether the user has submit or admin access here or at an ancestor; never for the recovery queue.

        Source: docs/spec/config.md, section 8.
        """
        if self.path == RECOVERY_PATH:
            return False
        return any(q.submit_acl.allows(user, groups) or q.admin_acl.allows(user, groups) for q in self.lineage())

    def lineage(self) -> list[Queue]:
        """Return this queue and its ancestors, up to root."""
        found = []
        queue: Queue | None = self
        while queue is not None:
            found.append(queue)
            queue = queue.parent
        return found

    def walk(self) -> Iterator[Queue]:
        """Iterate over this queue and all below it, parents first, siblings by name."""
        yield self
        for name in sorted(self.children):
            yield from self.children[name].walk()

    def allocated_resource(self) -> dict[str, int]:
        """Return what is allocated in the subtree; zeros left out."""
        return self.allocated.named(self.types)

    def pending_resource(self) -> dict[str, int]:
        """Return what pending asks in the subtree want; zeros left out."""
        return self.pending.named(self.types)

    def preempting_resource(self) -> dict[str, int]:
        """Return what is allocated to victims of preemption in the subtree that have not ended yet; zeros left out."""
        return self.preempting.named(self.types)

    def max_resource(self) -> dict[str, int] | None:
        """Return the queue's own max (root: the cluster's size); None where nothing is set."""
        if self.parent is None:
            return None if self.size is None else self.size.named(self.types) or None
        return self.max_config

    def guaranteed_resource(self) -> dict[str, int] | None:
        """Return the queue's own guaranteed resources; None where nothing is set."""
        return self.guaranteed_config
