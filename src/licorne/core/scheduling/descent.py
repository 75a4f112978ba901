"""One decision: from the root down to a leaf, to an application, to an ask, to a node.

Source: docs/spec/scheduling.md, sections 3 to 7.

The order of siblings is kept (`Queue.before`, `Application.before`), so that a decision walks one path. An application
in which nothing can be placed is put to sleep with what it waits for (`licorne.core.waiting.parking`), and the walk starts
again; what is left awake is exactly what a scan of everything would still find worth trying, in the same order.

Sides of the rule book kept elsewhere: reservations, claims, users and groups (limits), application states (lifecycle).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import cython

from licorne.core.base.states import ApplicationState
from licorne.core.preemption.evictions import Outcome
from licorne.si.messages import Output

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.base.uuids import Uuids
    from cython.cimports.licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
    from cython.cimports.licorne.core.gangs.placeholders import Gangs
    from cython.cimports.licorne.core.nodes.index import NodeIndex
    from cython.cimports.licorne.core.nodes.node import Node
    from cython.cimports.licorne.core.queues.application import Application
    from cython.cimports.licorne.core.queues.ask import Ask, Shape
    from cython.cimports.licorne.core.queues.queue import Queue
    from cython.cimports.licorne.core.queues.usage import Tracker
    from cython.cimports.licorne.core.waiting.accounting import Accounting
    from cython.cimports.licorne.core.waiting.parking import Parking
    from cython.cimports.licorne.si.allocations import NewAllocation
    from cython.cimports.prefetch import prefetch
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec
    from licorne.core.base.uuids import Uuids
    from licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
    from licorne.core.gangs.placeholders import Gangs
    from licorne.core.nodes.index import NodeIndex
    from licorne.core.nodes.node import Node
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask, Shape
    from licorne.core.queues.queue import Queue
    from licorne.core.queues.usage import Tracker
    from licorne.core.waiting.accounting import Accounting
    from licorne.core.waiting.parking import Parking
    from licorne.si.messages import NewAllocation

if TYPE_CHECKING:  # it is built upon this module, which knows it as an object
    from licorne.core.partition import Partition

ACCEPTED = ApplicationState.ACCEPTED
RUNNING = ApplicationState.RUNNING
PLACED = Outcome.PLACED
NOTHING = cython.declare(cython.int, 0)  # what a visit came to
ALLOCATED = cython.declare(cython.int, 1)
RESERVED = cython.declare(cython.int, 2)


@cython.cclass
class Descent:
    """The decision loop of one partition. What is not hot is asked of the partition itself."""

    root: Queue
    accounting: Accounting
    parking: Parking
    index: NodeIndex
    gangs: Gangs
    nodes: dict[str, Node]
    partition: Partition
    partition_name: str
    predicates: Callable[[str, str, bool], bool] | None
    headroom_left: Vec
    out: list[Output]
    first_interface: cython.bint  # every allocation has a UUID
    uuids: Uuids
    visits: cython.longlong  # applications looked at: counted work
    attempts: cython.longlong  # asks tried
    refused: cython.bint  # a predicate kept the last ask off a node that had room
    claims: dict[Any, Any]  # asks for which others were evicted (`licorne.core.preemption.claims`)
    reduced_by_claims: cython.bint  # claims leave less `headroom_left` to the application that is visited
    claims_priority: cython.longlong  # the priority that claims were looked at for; UNLIMITED: none yet
    unplaced: dict[Application, None] | None  # of which nothing could be placed; None: nobody may preempt for them

    def __init__(self, root: Queue, accounting: Accounting, nodes: dict[str, Node], partition: Partition) -> None:
        self.root = root
        self.accounting = accounting
        self.parking = accounting.parking
        self.index = accounting.index
        self.gangs = partition.gangs
        self.nodes = nodes
        self.partition = partition
        self.partition_name = partition.name
        self.predicates = None
        self.headroom_left = Vec(0, UNLIMITED)
        self.out = []
        self.first_interface = partition.first_interface
        self.uuids = Uuids(partition.owner, partition.name)
        self.refused = False
        self.claims = {}
        self.reduced_by_claims = False
        self.claims_priority = UNLIMITED
        self.unplaced = None
        self.visits = 0
        self.attempts = 0

    @cython.ccall
    def decide(self, limit: cython.longlong) -> cython.longlong:
        """Decide until nothing more is possible, or `limit` allocations are made; the number of allocations.

        The decisions are appended to `out`, which the partition takes.
        """
        made: cython.longlong = 0
        result: cython.int
        self.parking.apply_node_changes()
        while made < limit and self.root.asks_pending:
            if not self.parking.enabled:
                self.parking.wake_tree(self.root)
            self.parking.apply_node_changes()
            if self.parking.reserved_stale and self.parking.reservations:
                if self.partition.reservations.try_all():
                    made += 1
                    continue
            if self.gangs.due or self.gangs.stuck:
                made += self.partition.replacement.run(limit - made)
                if made >= limit:
                    break
            result = NOTHING if self.parking.idle() else self.regular_pass()
            if result == ALLOCATED:
                made += 1
            elif result == NOTHING:
                self.parking.release_freed_nodes()
                if not (self.parking.reserved_stale and self.parking.reservations):
                    break
            elif result < 0:  # a gang, all of it
                made -= result
        return made

    @cython.cfunc
    @cython.exceptval(-1)
    def regular_pass(self) -> cython.int:
        """The first application in order that yields a result; those before it go to sleep."""
        queue: Queue
        app: Application
        result: cython.int
        while self.root.awake_count:
            queue = self.root
            while not queue.is_leaf:
                queue = queue.first_child()
            app = cython.cast(Application, queue.order.top())
            result = self.visit(app)
            if result != NOTHING:
                if app.state is ACCEPTED:
                    self.accept(app)
                return result
        return NOTHING

    @cython.ccall
    def accept(self, app: Application) -> cython.void:
        """It has a result but is still Accepted (a reservation, a placeholder): it holds a slot (section 10)."""
        queue: Queue | None = app.queue
        while queue is not None:
            queue.accepted[app] = None
            queue = queue.parent

    # -- one application -------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1)
    def visit(self, app: Application) -> cython.int:
        """Try the application's asks in order (section 6)."""
        ask: Ask | None
        result: cython.int = NOTHING
        self.visits += 1
        if not app.group_chosen:
            self.partition.limits.attach(app)
        if (app.state is not RUNNING and not self.partition.lifecycle.may_be_tried(app)) or (
            app.backoff_until > self.parking.now
        ):
            self.parking.revive_fitting(app)
            self.parking.sleep(app)
            return NOTHING
        if app.atomic is not None:
            return cython.cast(cython.int, self.partition.atomic.visit(app))
        self.headroom(app)
        if app.queue.backoff or not self.parking.enabled:
            self.parking.revive_fitting(app)
            result = self.visit_in_order(app)
        else:
            while result == NOTHING:
                ask = app.requests.next_fit(self.headroom_left, self.parking.freed_nodes)
                if ask is None:
                    app.visited_seq = self.accounting.asks_seen
                    break
                if self.claims:
                    self.subtract_claims(app, ask)
                if (ask.parked or self.reduced_by_claims) and not self.headroom_left.covers(ask.shape.amounts):
                    if ask.parked:
                        self.parking.revive(ask.shape)  # a candidate holds it, and will be forgotten before it may run
                    continue
                result = self.attempt(app, ask)
        if result == NOTHING:
            if self.reduced_by_claims:
                self.partition.claims.wait_for_claims(app)
            self.parking.block(app)
            if self.unplaced is not None:
                self.unplaced[app] = None
        return result

    @cython.cfunc
    def visit_in_order(self, app: Application) -> cython.int:
        """Ask by ask, counting those that fit no node: after `backoff` of them the application is left alone."""
        unschedulable: cython.longlong = 0
        result: cython.int
        ask: Ask
        for ask in app.requests.in_order():
            if app.queue.backoff and unschedulable >= app.queue.backoff:
                self.partition.back_off(app)
                return NOTHING
            if ask.parked >= AWAITS_PLACEHOLDER or not self.headroom_left.covers(ask.shape.amounts):
                continue
            if self.claims and not self.subtract_claims(app, ask):
                continue
            result = self.attempt(app, ask)
            if result != NOTHING:
                return result
            if not ask.required:
                unschedulable += 1
        app.visited_seq = self.accounting.asks_seen
        return NOTHING

    @cython.cfunc
    def headroom(self, app: Application) -> cython.void:
        """`headroom_left` := what its queues, its user and its group leave for it (sections 8.1 and 11.3)."""
        room: Vec = self.headroom_left
        queue: Queue | None = app.queue
        tracker: Tracker
        self.reduced_by_claims = False
        self.claims_priority = UNLIMITED
        room.set_all(UNLIMITED)
        while queue is not None:
            if queue.limit.n:
                room.lower_to_rest(queue.limit, queue.allocated)
            queue = queue.parent
        for tracker in app.trackers:
            if tracker.limit is not None:
                room.lower_to_rest(tracker.limit, tracker.used)

    @cython.cfunc
    @cython.exceptval(-1)
    def subtract_claims(self, app: Application, ask: Ask) -> cython.bint:
        """Lower `headroom_left` to what claims leave to an ask of this priority (and no more to those after it). Does it hold the ask?"""
        if self.claims_priority != ask.priority:
            self.claims_priority = ask.priority
            before: Vec = self.headroom_left.clone()
            for _, limit, planned in self.partition.claims.levels(app, ask.priority):
                self.headroom_left.lower_to_rest(limit, planned)
            self.reduced_by_claims = self.reduced_by_claims or not self.headroom_left.same(before)
        return self.headroom_left.covers(ask.shape.amounts)

    @cython.cfunc
    @cython.exceptval(-1)
    def attempt(self, app: Application, ask: Ask) -> cython.int:
        """An ask that fits the headroom: place it, or reserve a node for it, or park it."""
        node: Node | None
        self.attempts += 1
        ask.attempted = True
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, ask.shape.resource), 1)  # for `announce`
        if ask.required:
            return self.attempt_required(app, ask)
        node = self.first_node(ask)
        if node is not None:
            self.allocate(app, ask, node)
            return ALLOCATED
        if ask.reserved is None and self.parking.is_old(ask):
            node = self.partition.reservations.node_to_reserve(ask)
            if node is not None:
                self.partition.reservations.reserve(ask, node)
                self.parking.park(ask)
                return RESERVED
        if self.refused and self.parking.enabled:
            self.parking.refuse(ask)
        else:
            self.parking.park(ask)
        return NOTHING

    @cython.ccall
    def first_node(self, ask: Ask) -> Node | None:
        """The first node in order that is open, has room, meets the constraints, and that no predicate refuses."""
        shape: Shape = ask.shape
        node: Node | None
        self.refused = False
        if shape.failed or shape.need.failed.any_within(shape.amounts):
            if self.parking.freed_nodes.fit(shape):
                return self.first_freed_node(ask)
            if not shape.failed:
                self.parking.fail(shape)
            return None
        node = self.index.find(shape.amounts, shape.need, None)
        while node is not None:
            if shape.need.exact or shape.need.matches(node):
                if self.predicates is None or self.partition.predicate_allows(ask, node, True):
                    return node
                self.refused = True
            node = self.index.find(shape.amounts, shape.need, node)
        if not self.refused:
            self.parking.fail(shape)
        return None

    @cython.cfunc
    def first_freed_node(self, ask: Ask) -> Node | None:
        """The same for an ask that only a node on which room was freed since can hold (`licorne.core.waiting.parking`)."""
        node: Node
        for node in self.parking.freed_nodes.in_order():
            if node.fits(ask.shape.amounts, ask.shape.need):
                if self.predicates is None or self.partition.predicate_allows(ask, node, True):
                    return node
                self.refused = True
        if ask.shape.failed:
            self.parking.revive(ask.shape)
        return None

    @cython.cfunc
    def attempt_required(self, app: Application, ask: Ask) -> cython.int:
        """An ask that only one node will do for (section 7.4)."""
        node: Node | None = self.nodes.get(ask.required)
        if node is None or not node.capacity.covers(ask.shape.amounts):
            self.parking.await_node(ask)  # section 16.2: one that is larger than its node holds up nobody else
            return NOTHING
        self.partition.cancel_ordinary_reservations(node)
        if self.node_takes(ask, node):
            self.allocate(app, ask, node)
            return ALLOCATED
        self.parking.await_node(ask)
        if ask.reserved is not None:
            return NOTHING
        self.partition.reservations.reserve(ask, node)
        return RESERVED

    @cython.cfunc
    def node_takes(self, ask: Ask, node: Node) -> cython.bint:
        """Would this node do (section 7.2)? Whether it is schedulable is not asked."""
        if node.reservations and ask not in node.reservations:
            return False
        if not node.free.covers(ask.shape.amounts) or not ask.shape.need.matches(node):
            return False
        if self.claims and not self.partition.claims.fits_node(ask, node):
            return False
        return self.predicates is None or self.partition.predicate_allows(ask, node, True)

    # -- the result ------------------------------------------------------------------------------------

    @cython.ccall
    def allocate(self, app: Application, ask: Ask, node: Node) -> cython.void:
        """Make the decision final, everywhere, and announce it."""
        alloc: Ask = ask
        if ask.reserved is not None:
            self.partition.reservations.cancel(ask, PLACED)
        if ask.repeats > 1 or self.first_interface:
            alloc = self.split(ask)
        else:
            self.accounting.unpend(app, ask)
        alloc.bound_ns = self.parking.now
        self.accounting.add_allocation(app, alloc, node)
        if app.state is not RUNNING or alloc.timeout_ns > 0 or alloc.placeholder:
            self.partition.allocated(app, alloc)
        self.announce(app, alloc)
        if self.claims:
            self.partition.claims.placed(alloc)

    @cython.ccall
    def split(self, ask: Ask) -> Ask:
        """The next allocation of an ask of the first interface, with a UUID; the last one uses the ask up."""
        alloc: Ask = ask
        self.accounting.unpend(ask.app, ask)
        if ask.repeats > 1:
            alloc = ask.another()
            ask.repeats -= 1
            self.accounting.pend(ask.app, ask)
        alloc.repeats = 0
        alloc.id = self.uuids.next()
        return alloc

    @cython.ccall
    def announce(self, app: Application, alloc: Ask) -> cython.void:
        """Tell the resource manager of an allocation, made here or elsewhere."""
        message: NewAllocation = NewAllocation.__new__(NewAllocation)
        message.key = alloc.key
        message.application_id = app.id
        message.node_id = cython.cast(Node, alloc.node).id
        message.resource = alloc.shape.resource
        message.partition = self.partition_name
        message.queue = app.queue.path
        message.priority = alloc.priority
        message.tags = alloc.tags
        message.task_group = alloc.task_group
        message.placeholder = alloc.placeholder
        message.originator = alloc.originator
        message.allow_preempt_self = alloc.allow_self
        message.allow_preempt_other = alloc.allow_other
        message.uuid = "" if alloc.id is alloc.key else alloc.id
        self.out.append(message)

    def try_node(self, app: Application, ask: Ask, node: Node) -> bool:
        """Allocate the ask on this node if the node will take it: for the reserved pass, which is not compiled."""
        if not self.node_takes(ask, node):
            return False
        self.allocate(app, ask, node)
        return True

    def has_headroom(self, app: Application, ask: Ask) -> bool:
        """Do the application's queues, user and group leave room for the ask, beside what others claim?"""
        self.headroom(app)
        if self.claims and ask not in self.claims:
            return self.subtract_claims(app, ask)
        return self.headroom_left.covers(ask.shape.amounts)
