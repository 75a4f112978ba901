"""One decision, from the root queue down to a leaf queue, an application, an ask and a node.

Source: docs/spec/scheduling.md, sections 3 to 7.

Siblings stand in a kept order (`Queue.before`, `Application.before`), so a decision walks one path and sorts nothing.
An application in which nothing can be placed is put to sleep, with a note of what it waits for
(`licorne.core.waiting.parking`), and the walk starts again at the root. The applications that remain awake are exactly
those that a scan of everything would still find worth trying, in the same order.

Other modules hold the rules for reservations, claims, limits of users and groups (`limits`) and application states
(`lifecycle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import ApplicationState
from licorne.core.base.uuids import Uuids
from licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
from licorne.core.gangs.placeholders import Gangs
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import Node
from licorne.core.nodes.preferences import in_order_of_points, ranked
from licorne.core.preemption.evictions import Outcome
from licorne.core.preemption.required_node import victims_on
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage import Tracker
from licorne.core.scheduling.host_orders import GivenOrders
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps
from licorne.si.allocations import NewAllocation
from licorne.si.messages import Output

if TYPE_CHECKING:
    # partition imports this module; here, compiled, it is an untyped object
    from licorne.core.partition import Partition
    from licorne.core.preemption.claims import Claim

if cython.compiled:
    from cython.cimports.prefetch import prefetch

ACCEPTED = ApplicationState.ACCEPTED
RUNNING = ApplicationState.RUNNING
PLACED = Outcome.PLACED
NOTHING = cython.declare(cython.int, 0)  # results of a visit; a negative one is an atomic gang of that many members
ALLOCATED = cython.declare(cython.int, 1)
RESERVED = cython.declare(cython.int, 2)


@cython.cclass
class Descent:
    """The decision loop of one partition; cold operations are delegated to the partition."""

    root: Queue
    accounting: Accounting
    parking: Parking
    wakeups: WakeUps
    index: NodeIndex
    gangs: Gangs
    nodes: dict[str, Node]
    partition: Partition
    partition_name: str
    predicates: Callable[[str, str, bool], bool] | None
    headroom_left: Vec
    quotas_left: Vec  # the same for asks that require their node, where the application has any: root does not count
    out: list[Output]
    first_interface: cython.bint  # every allocation has a UUID
    uuids: Uuids
    visits: cython.longlong  # number of applications visited: counted work
    attempts: cython.longlong  # number of asks tried: counted work
    refused: cython.bint  # a predicate refused the last ask a node that had room
    claims: dict[Ask, Claim]  # by the ask that has preempted
    reduced_by_claims: cython.bint  # claims have lowered `headroom_left` of the application being visited
    claims_priority: cython.longlong  # ask priority for which claims were subtracted last; UNLIMITED: none yet
    unplaced: dict[Application, None] | None  # applications with nothing placed; None if preemption is disabled
    orders: GivenOrders | None  # orders of the host program in place of those of the core

    TRANSIENT = ("predicates", "orders", "out")  # set by the host; `out` is empty between two calls

    def __init__(self, root: Queue, accounting: Accounting, nodes: dict[str, Node], partition: Partition) -> None:
        self.root = root
        self.accounting = accounting
        self.parking = accounting.parking
        self.wakeups = accounting.wakeups
        self.index = accounting.index
        self.gangs = partition.gangs
        self.nodes = nodes
        self.partition = partition
        self.partition_name = partition.name
        self.predicates = None
        self.headroom_left = Vec(0, UNLIMITED)
        self.quotas_left = Vec(0, UNLIMITED)
        self.out = []
        self.first_interface = partition.first_interface
        self.uuids = Uuids(partition.owner, partition.name)
        self.refused = False
        self.claims = {}
        self.reduced_by_claims = False
        self.claims_priority = UNLIMITED
        self.unplaced = None
        self.orders = None
        self.visits = 0
        self.attempts = 0

    @cython.ccall
    def decide(self, limit: cython.longlong) -> cython.longlong:
        """Decide until nothing more is possible or `limit` allocations are made; return the number of allocations.

        The decisions are appended to `out`, which the partition drains.
        """
        made: cython.longlong = 0
        placed: cython.longlong
        result: cython.int
        if self.accounting.topology.unused:
            self.accounting.topology.sweep()
        self.wakeups.apply_node_events()
        while made < limit and self.root.asks_pending:
            self.wakeups.apply_node_events()
            if not self.parking.enabled:
                self.wakeups.retry_everything(self.root)
            # The order of section 3: reserved asks, replacements of placeholders, ordinary asks.
            if self.wakeups.must_try_reserved():
                placed = self.partition.reservations.try_all()
                if placed:
                    made += placed
                    continue
                self.wakeups.apply_node_events()  # an eviction may have opened nodes that others had reserved
            if self.gangs.due or self.gangs.stuck:
                made += self.partition.replacement.run(limit - made)
                if made >= limit:
                    break
                self.wakeups.apply_node_events()  # as after any decision
            result = NOTHING if self.parking.idle() else self.regular_pass()
            if result == ALLOCATED:
                made += 1
            elif result == NOTHING:
                self.parking.release_freed_nodes()  # no parked ask that may run now fits one of them
                if not self.wakeups.must_try_reserved():
                    break
            elif result < 0:  # an atomic gang was placed: minus the number of its members
                made -= result
        return made

    @cython.cfunc
    @cython.exceptval(-1)
    def regular_pass(self) -> cython.int:
        """Visit applications in order until one yields a result, and return that; the fruitless ones go to sleep."""
        queue: Queue
        app: Application
        result: cython.int
        while self.root.awake_count:
            if self.orders is None:
                queue = self.root
                while not queue.is_leaf:
                    queue = queue.first_child()
                app = cython.cast(Application, queue.order.top())
            else:
                app = self.orders.next_application(self.root)
            result = self.visit(app)
            if result != NOTHING:
                if app.state is ACCEPTED:
                    self.accept(app)
                return result
        return NOTHING

    @cython.ccall
    def accept(self, app: Application) -> cython.void:
        """Give an application that has a result but is still Accepted its slot in every queue (section 10).

        A reservation or a placeholder is such a result: it does not make the application Running.
        """
        queue: Queue | None = app.queue
        while queue is not None:
            queue.accepted[app] = None
            queue = queue.parent

    # -- one application -------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1)
    def visit(self, app: Application) -> cython.int:
        """Try the application's asks in order (section 6); return the result, or NOTHING and put it to sleep."""
        ask: Ask | None
        result: cython.int = NOTHING
        self.visits += 1
        if not app.group_chosen:
            self.partition.limits.attach(app)
        if (app.state is not RUNNING and not self.partition.lifecycle.may_be_tried(app)) or (
            app.backoff_until > self.parking.now
        ):
            self.parking.revive_on_freed_nodes(app)  # the freed nodes will have been dropped when it may be tried
            self.parking.sleep(app)
            return NOTHING
        if app.atomic is not None:
            return cython.cast(cython.int, self.partition.atomic.visit(app))
        self.headroom(app)
        if app.queue.backoff_after or not self.parking.enabled:
            self.parking.revive_on_freed_nodes(app)
            result = self.visit_in_order(app)
        else:
            while result == NOTHING:
                ask = app.requests.next_fit(
                    self.headroom_left,
                    self.quotas_left if app.requires_nodes else self.headroom_left,
                    self.parking.freed_nodes,
                )
                if ask is None:
                    app.visited_seq = self.accounting.asks_seen
                    break
                if self.claims:
                    self.subtract_claims(app, ask)
                if (ask.parked or self.reduced_by_claims) and not self.fits_headroom(ask):
                    if ask.parked:
                        # A freed node has room for it, but headroom is lacking: that node will have been dropped from
                        # the freed nodes when the headroom is back, so the shape must not count as failed then.
                        self.parking.revive(ask.shape)
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
        """Try ask by ask; after `backoff_after` asks that fit no node, those with a required node not counted, back off."""
        unschedulable: cython.longlong = 0
        result: cython.int
        ask: Ask
        for ask in app.requests.in_order():
            if app.queue.backoff_after and unschedulable >= app.queue.backoff_after:
                self.partition.back_off(app)
                return NOTHING
            if ask.parked >= AWAITS_PLACEHOLDER or not self.fits_headroom(ask):
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
        """Set `headroom_left` to what the application's queues, user and group leave for it (sections 8.1 and 11.3).

        An ask that requires its node needs no room on other nodes. So it is not compared with root, whose limit is the
        size of the cluster: where that is full, victims on its own node make room (`quotas_left`).
        Claims are not subtracted here, as they depend on an ask's priority (`subtract_claims`).
        """
        room: Vec = self.headroom_left
        queue: Queue = app.queue
        tracker: Tracker
        self.reduced_by_claims = False
        self.claims_priority = UNLIMITED
        room.set_all(UNLIMITED)
        while queue.parent is not None:
            if queue.limit.n:
                room.lower_to_rest(queue.limit, queue.allocated)
            queue = queue.parent
        for tracker in app.trackers:
            if tracker.limit is not None:
                room.lower_to_rest(tracker.limit, tracker.used)
        if app.requires_nodes:
            self.quotas_left.copy_from(room)
        room.lower_to_rest(queue.limit, queue.allocated)

    @cython.cfunc
    @cython.exceptval(check=False)
    def fits_headroom(self, ask: Ask) -> cython.bint:
        """Return whether the ask of the application being visited fits what its queues, user and group leave."""
        room: Vec = self.quotas_left if ask.required else self.headroom_left
        return room.covers(ask.shape.amounts)

    @cython.cfunc
    @cython.exceptval(-1)
    def subtract_claims(self, app: Application, ask: Ask) -> cython.bint:
        """Lower the headroom to what claims leave for asks of this priority; return whether the ask fits it.

        The asks after this one get no more than this: `headroom_left` only ever shrinks during a visit.
        """
        if self.claims_priority != ask.priority:
            self.claims_priority = ask.priority
            before: Vec = self.headroom_left.clone()
            for level, limit, planned in self.partition.claims.levels(app, ask.priority):
                self.headroom_left.lower_to_rest(limit, planned)
                if app.requires_nodes and level is not self.root:
                    self.quotas_left.lower_to_rest(limit, planned)
            if app.requires_nodes or not self.headroom_left.same(before):
                self.reduced_by_claims = True
        return self.fits_headroom(ask)

    @cython.cfunc
    @cython.exceptval(-1)
    def attempt(self, app: Application, ask: Ask) -> cython.int:
        """Place an ask that fits the headroom, or reserve a node for it, or park it."""
        node: Node | None
        self.attempts += 1
        ask.attempted = True
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, ask.shape.resource), 1)  # `announce` reads it after the node search
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
        """Return the first open node in order that has room, meets the constraints, and is not refused by a predicate.

        An ask with preferences gets the best of the nodes that are compared, if these tell any apart. A shape that has failed,
        or is no smaller than one that has, is tried on freed nodes only.
        """
        shape: Shape = ask.shape
        node: Node | None
        if self.orders is not None and self.orders.choose_node is not None:
            return self.chosen_node(ask)
        self.refused = False
        if shape.failed or shape.need.failed.any_within(shape.amounts):
            if self.parking.freed_nodes.fit(shape):
                return self.first_freed_node(ask)
            if not shape.failed:
                self.parking.fail(shape)
            return None
        if self.claims and shape.need.pods is not None and self.partition.claims.keep_off_all(ask):
            self.refused = True
            return None
        if shape.need.prefers:
            node = self.preferred_node(ask, None)
            if node is not None:
                return node
        node = self.index.find(shape.amounts, shape.need, None)
        while node is not None:
            if shape.need.exact or shape.need.matches(node):
                if (self.predicates is None and not self.claims) or self.allowed(ask, node):
                    return node
            node = self.index.find(shape.amounts, shape.need, node)
        if not self.refused:  # a predicate may answer otherwise for the next ask of this shape
            self.parking.fail(shape)
        elif self.predicates is None:
            self.partition.claims.note_kept_off(ask)
        return None

    @cython.ccall
    def preferred_node(self, ask: Ask, other: Node | None) -> Node | None:
        """Return the best of the nodes that are compared, but not `other`, and that no predicate refuses.

        None: there is none, or no preference tells nodes apart.
        """
        node: Node
        for node in ranked(self.accounting.topology, self.index, ask.shape.amounts, ask.shape.need):
            if node is not other and self.allowed(ask, node):
                return node
        return None

    @cython.cfunc
    def first_freed_node(self, ask: Ask) -> Node | None:
        """Return the first freed node, in order, that takes the ask, or the best, for one that no other node has room for.

        Source of the rule: `licorne.core.waiting.parking`.
        """
        node: Node
        nodes: list[Node] = self.parking.freed_nodes.in_order()
        if ask.shape.need.prefers:
            nodes = [node for node in nodes if node.fits(ask.shape.amounts, ask.shape.need)]
            nodes = in_order_of_points(self.accounting.topology, ask.shape.need, nodes)
        for node in nodes:
            if node.fits(ask.shape.amounts, ask.shape.need):
                if self.allowed(ask, node):
                    return node
        if ask.shape.failed:
            self.parking.revive(ask.shape)
        return None

    @cython.cfunc
    def chosen_node(self, ask: Ask) -> Node | None:
        """Return the node of the host's choice among all that `first_node` might return.

        `refused`: the host has chosen none although there is one, or a predicate has said no.
        """
        shape: Shape = ask.shape
        known: cython.bint = shape.failed or shape.need.failed.any_within(shape.amounts)
        node: Node | None
        self.refused = False
        if known and not self.parking.freed_nodes.fit(shape):
            if not shape.failed:
                self.parking.fail(shape)
            return None
        node = cython.cast(GivenOrders, self.orders).choose_node(ask, self.fitting(ask, known))
        if node is not None:
            if not node.fits(shape.amounts, shape.need):
                raise ValueError(f"node {node.id} was chosen for ask {ask.key}, which does not fit it")
            return node
        self.refused = self.refused or next(self.fitting(ask, known), None) is not None
        if known:
            if shape.failed:
                self.parking.revive(shape)
        elif not self.refused:
            self.parking.fail(shape)
        return None

    def fitting(self, ask: Ask, only_freed: bool) -> Iterator[Node]:
        """Yield the open nodes that have room, meet the constraints, and that no predicate refuses, in order.

        `only_freed`: of the freed nodes.
        """
        shape: Shape = ask.shape
        node: Node | None
        if only_freed:
            for node in self.parking.freed_nodes.in_order():
                if node.fits(shape.amounts, shape.need) and self.allowed(ask, node):
                    yield node
            return
        node = self.index.find(shape.amounts, shape.need, None)
        while node is not None:
            if (shape.need.exact or shape.need.matches(node)) and self.allowed(ask, node):
                yield node
            node = self.index.find(shape.amounts, shape.need, node)

    @cython.cfunc
    @cython.exceptval(-1)
    def allowed(self, ask: Ask, node: Node) -> cython.bint:
        """Return whether no predicate refuses the node, nor any claim for terms of pods; one that does is noted in `refused`."""
        if self.claims and ask.shape.need.pods is not None and self.partition.claims.keep_off(ask, node):
            self.refused = True
            return False
        if self.predicates is None or self.partition.predicate_allows(ask, node, True):
            return True
        self.refused = True
        return False

    @cython.cfunc
    def attempt_required(self, app: Application, ask: Ask) -> cython.int:
        """Place an ask on its required node, or reserve that node and wait for it (section 7.4)."""
        node: Node | None = self.nodes.get(ask.required)
        if node is None or not node.capacity.covers(ask.shape.amounts):
            # Section 16.2: an ask that is larger than its node reserves nothing, so that others go on.
            self.parking.await_node(ask)
            return NOTHING
        if not ask.shape.need.of_empty().matches(node) and not victims_on(self.partition, ask, node):
            # Nor does one that its node excludes, perhaps for as long as what runs there has its host port, or is in its
            # domain, unless that can be evicted. Devices in use do not exclude it: they are freed as amounts are.
            self.parking.await_node(ask)
            return NOTHING
        if ask.reserved is None:
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
        """Tell whether the node takes the ask (section 7.2); whether the node is schedulable is not checked."""
        if node.reservations and ask not in node.reservations:
            return False
        if not node.free.covers(ask.shape.amounts) or not ask.shape.need.matches(node):
            return False
        if self.claims and not self.partition.claims.fits_node(ask, node):
            return False
        return self.allowed(ask, node)

    # -- the result ------------------------------------------------------------------------------------

    @cython.ccall
    def allocate(self, app: Application, ask: Ask, node: Node) -> cython.void:
        """Allocate the ask on the node: count it everywhere and announce it. The decision is final."""
        if ask.reserved is not None:
            self.partition.reservations.cancel(ask, PLACED)
        alloc: Ask = self.split(ask)
        alloc.bound_ns = self.parking.now
        self.accounting.add_allocation(app, alloc, node)
        if app.state is not RUNNING or alloc.timeout_ns > 0 or alloc.placeholder:
            self.partition.allocated(app, alloc)
        self.announce(app, alloc)
        if self.claims:
            self.partition.claims.placed(alloc)

    @cython.ccall
    def split(self, ask: Ask) -> Ask:
        """Return the next allocation of a pending ask, which stays pending if it stands for more.

        The last allocation is the ask itself. Before it each is a copy, with a UUID; in the first interface all have one.
        """
        alloc: Ask = ask
        self.accounting.unpend(ask.app, ask)
        if ask.repeats == 1 and not self.first_interface:
            return ask
        if ask.repeats > 1:
            alloc = ask.another()
            ask.repeats -= 1
            self.accounting.pend(ask.app, ask)
        alloc.repeats = 0
        alloc.id = self.uuids.next()
        return alloc

    @cython.ccall
    def announce(self, app: Application, alloc: Ask) -> cython.void:
        """Append the message that announces an allocation, made by the scheduler or brought by the resource manager."""
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
        """Allocate the ask on this node if the node takes it; return whether it did.

        For the reserved pass, which is not compiled and cannot call `node_takes`.
        """
        if not self.node_takes(ask, node):
            return False
        self.allocate(app, ask, node)
        return True

    def has_headroom(self, app: Application, ask: Ask) -> bool:
        """Tell whether the application's queues, user and group leave room for the ask, less what other asks claim."""
        self.headroom(app)
        if self.claims and ask not in self.claims:
            return self.subtract_claims(app, ask)
        return self.fits_headroom(ask)
