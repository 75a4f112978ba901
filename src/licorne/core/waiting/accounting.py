"""Accounting: every sum that an ask or an allocation is part of is changed here, and nowhere else.

An ask counts as pending in its application and in every queue above it; an allocation counts as allocated there, on
its node, and with its user and group at every level (docs/spec/scheduling.md, sections 2, 8.2 and 11.1). With one
writer, the kept orders that depend on a sum are updated in the same step, and whatever is given back wakes the
applications that wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec
from licorne.core.constants import AWAITS_GANG, AWAITS_PLACEHOLDER
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import Need, Node
from licorne.core.nodes.topology import Topology
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage import Tracker

from .parking import Parking
from .wakeups import WakeUps

if TYPE_CHECKING:
    from licorne.core.gangs.placeholders import Gangs
    from licorne.core.nodes.needs import Needs


@cython.cclass
class Accounting:
    """The sums of one partition, and the methods that change them."""

    parking: Parking
    wakeups: WakeUps
    index: NodeIndex
    types: Types
    needs: Needs
    topology: Topology  # of `needs`
    gangs: Gangs  # set by the partition later, as gangs are built upon this module
    watchers: list[Any]  # of the ends of allocations: objects with the methods `ending` and `resized`
    asks_seen: cython.longlong  # the number of the newest ask: asks are numbered in the order of their arrival
    overused: dict[Node, None]  # of these nodes more may be allocated than they have
    victims: dict[Ask, None]  # allocations that were evicted, and have not ended
    overdue: dict[Ask, None]  # likewise, and are not expected to end any more
    asked_to_end: cython.longlong  # allocations that the scheduler has asked the resource manager to end

    TRANSIENT = ("watchers", "topology")  # the usage history, if it is recorded, others are the host's; of `needs`

    def __init__(self, parking: Parking, index: NodeIndex, types: Types, needs: Needs) -> None:
        self.parking = parking
        self.needs = needs
        self.topology = needs.topology
        self.wakeups = WakeUps(parking, index, needs.topology.eased)
        self.index = index
        self.types = types
        self.watchers = []
        self.overused = {}
        self.victims = {}
        self.overdue = {}
        self.asks_seen = 0
        self.asked_to_end = 0

    @cython.ccall
    def shape(self, amounts: Vec, resource: dict[str, int] | None, need: Need) -> Shape:
        """A new shape for asks of this resource, given as a vector (copied) and as a map, with these constraints."""
        return Shape(amounts.clone(), {} if resource is None else resource, need)

    @cython.ccall
    def describes(self, shape: Shape, amounts: Vec, resource: dict[str, int] | None) -> cython.bint:
        """Has the shape these amounts?

        Types without a number of their own share one entry of a vector, so vectors may be equal where maps are not.
        """
        if not shape.amounts.same(amounts):
            return False
        other: cython.Py_ssize_t = self.types.other
        return other < 0 or amounts.at(other) == 0 or shape.resource == resource

    @cython.cfunc
    def shape_for(self, app: Application, amounts: Vec, resource: dict[str, int] | None, need: Need) -> Shape:
        """The shape for an ask of this application: that of the application's last ask if it is equal, else a new one.

        A new shape keeps the vector `amounts`, without a copy.

        A register of all shapes would find more equal ones, at the price of an entry for each that is not. It is not
        needed: `Need.failed` already lets a failed ask of one application answer for equal asks of others.
        """
        shape: Shape | None = app.last_shape
        if shape is None or shape.need is not need or not self.describes(shape, amounts, resource):
            shape = Shape.__new__(Shape)
            shape.initialise(amounts, {} if resource is None else resource, need)
            app.last_shape = shape
        return shape

    # -- pending ---------------------------------------------------------------------------------------

    @cython.ccall
    def pend(self, app: Application, ask: Ask) -> cython.void:
        """Enter an ask that is to be placed: count it as pending, `repeats` times, and wake its application."""
        shape: Shape = ask.shape
        amounts: Vec = shape.amounts
        app.requests.insert(ask)
        app.asks[ask.key] = ask
        if ask.seq < self.asks_seen:
            app.ask_reentered = True
        ask.prior = None
        ask.next = shape.first
        if ask.next is not None:
            ask.next.prior = ask
        shape.first = ask
        if shape.waiting == 0:
            self.retain_need(shape.need)
        shape.waiting += 1
        if app.atomic is not None:
            app.requests.park(ask, AWAITS_GANG)
            app.atomic.changed()
        elif not ask.required:
            self.parking.ask_added(ask)
        elif shape.failed:
            self.parking.freed_nodes.partly_parked[shape] = None
        if ask.task_group:
            self.gangs.joined(ask)
        app.high.raise_to(amounts)
        self._count(app, ask, 1)
        self._add_priority(app, ask.priority)
        self.wakeups.ask_pending(app, ask)

    @cython.ccall
    def unpend(self, app: Application, ask: Ask) -> cython.void:
        """Remove an ask that is no longer to be placed: it was allocated for the last time, or withdrawn."""
        shape: Shape = ask.shape
        app.requests.remove(ask)
        del app.asks[ask.key]
        if ask.prior is not None:
            ask.prior.next = ask.next
        else:
            shape.first = ask.next
        if ask.next is not None:
            ask.next.prior = ask.prior
        ask.prior = None
        ask.next = None
        shape.waiting -= 1
        if shape.waiting == 0:
            self._forget_shape(shape)
        if ask.parked:
            self._forget_parked(ask)
        if ask.deadline is not None:
            self._forget_deadline(ask)
        self._count(app, ask, -1)
        self._remove_priority(app, ask.priority)
        if app.asks_pending == 0:
            app.high.set_all(0)
            self.parking.sleep(app)

    @cython.cfunc
    def _forget_shape(self, shape: Shape) -> cython.void:
        if shape.failed:
            self.parking.clear_failed(shape)
        self.release_need(shape.need)

    @cython.ccall
    def retain_need(self, need: Need) -> cython.void:
        """Keep a need in use: for a shape of pending asks, or for an ask in flight that may become pending again.

        A need in use keeps its bit of the constraint bitmaps.
        """
        need.waiting += 1
        if need.pods is not None and need.waiting == 1:
            self.topology.open(need)

    @cython.ccall
    def release_need(self, need: Need) -> cython.void:
        """Undo `retain_need`."""
        need.waiting -= 1
        if need.waiting == 0:
            self.parking.forget_need(need)
            if need.pods is not None:
                self.topology.close(need)
                self._forget_bases(need)

    @cython.cfunc
    def _forget_bases(self, need: Need) -> cython.void:
        """Forget the failures of the needs whose bits this one shared, if nothing else uses them."""
        base: Need = cython.cast(Need, need.base)
        if base.waiting == 0:
            self.parking.forget_need(base)
        if need.empty is not None:
            self._forget_bases(cython.cast(Need, need.empty))

    @cython.cfunc
    def _forget_deadline(self, ask: Ask) -> cython.void:
        self.parking.timers.cancel(ask.deadline)
        ask.deadline = None

    @cython.cfunc
    def _forget_parked(self, ask: Ask) -> cython.void:
        if ask.parked == AWAITS_PLACEHOLDER:
            self.gangs.left(ask)
        if ask.parked == AWAITS_GANG:
            self.wakeups.gang_changed(ask.app)
            self.wakeups.may_run(ask.app)  # the members that are left may fit together
        self.parking.forget_parked(ask)

    @cython.cfunc
    def _count(self, app: Application, ask: Ask, change: cython.int) -> cython.void:
        """Count one ask more (`change` is 1) or less (-1) as pending in its application and the queues above."""
        queue: Queue | None = app.queue
        parent: Queue | None
        amounts: Vec = ask.shape.amounts
        times: cython.longlong = change * ask.repeats
        more: cython.bint = change > 0
        turn: cython.longlong = 1 if more else 0  # at this count a queue has just begun, or ceased, to have any
        app.asks_pending += change
        if times == 1:
            app.pending.plus(amounts)
        elif times == -1:
            app.pending.minus(amounts)
        else:
            app.pending.add_times(amounts, times)
        while queue is not None:
            parent = queue.parent
            if times == 1:
                queue.pending.plus(amounts)
            elif times == -1:
                queue.pending.minus(amounts)
            else:
                queue.pending.add_times(amounts, times)
            queue.asks_pending += change
            if parent is not None:
                if queue.asks_pending == turn:
                    parent.with_pending += change
                if parent.last_turn is not None:
                    queue.changed()
            queue = parent

    # -- priorities (docs/spec/scheduling.md, section 4.2) ---------------------------------------------

    @cython.cfunc
    def _add_priority(self, app: Application, priority: cython.longlong) -> cython.void:
        old: cython.longlong = app.bag.top
        if app.bag.add(priority):
            self._export(app, old)

    @cython.cfunc
    def _remove_priority(self, app: Application, priority: cython.longlong) -> cython.void:
        old: cython.longlong = app.bag.top
        if app.bag.remove(priority):
            self._export(app, old)

    @cython.cfunc
    def _export(self, app: Application, old: cython.longlong) -> cython.void:
        """Carry a changed priority of the application up its queues, as far as it changes theirs."""
        queue: Queue | None = app.queue
        new: cython.longlong = app.bag.top
        changed: cython.bint
        if app.heap_index >= 0:
            app.queue.order.mend(app)
        while queue is not None:
            changed = queue.bag.add(new)
            changed = queue.bag.remove(old) or changed
            if not changed:
                return
            old = queue.priority
            new = queue.exported()
            if new == old:
                return
            queue.priority = new
            queue.changed()
            if queue.heap_index >= 0:
                cython.cast(Queue, queue.parent).order.mend(queue)
            queue = queue.parent

    # -- allocated -------------------------------------------------------------------------------------

    @cython.ccall
    def add_allocation(self, app: Application, alloc: Ask, node: Node) -> cython.void:
        """Count an allocation on its node, in its queues, and with its user and its group."""
        amounts: Vec = alloc.shape.amounts
        tracker: Tracker
        first: cython.bint = not app.allocations
        node.free.minus(amounts)
        if cython.compiled:  # prefetches for `mend` below, early enough to arrive while the sums are changed
            self.index.aim(node)
        alloc.node = node
        node.allocations[alloc] = None
        node.allocated.plus(amounts)
        if alloc.shape.need.counted:
            self.needs.take(node, alloc)
        if alloc.shape.need.pods is not None:
            self.topology.begin(node.slot, alloc.shape.need.pods)
        if self.parking.awaiting_node:
            self.wakeups.room_taken(node)
        if cython.compiled:
            self.index.prefetch_target()
        app.allocations[alloc.id] = alloc
        if app.lasting is not None:
            app.lasting.count(alloc, 1)
        for tracker in app.trackers:
            tracker.used.plus(amounts)
            if first:
                tracker.apps[app] = None
        if alloc.placeholder:
            app.placeholders.plus(amounts)
        else:
            app.allocated.plus(amounts)
        self._use(app, amounts, True)
        self.index.mend(node)

    @cython.ccall
    def remove_allocation(self, app: Application, alloc: Ask) -> cython.void:
        """Undo `add_allocation` for an allocation that has ended, and wake the applications that may use its room."""
        amounts: Vec = alloc.shape.amounts
        node: Node = cython.cast(Node, alloc.node)
        for watcher in self.watchers:
            watcher.ending(app, alloc)
        if cython.compiled:
            node.prefetch_fields()
        del app.allocations[alloc.id]
        if app.lasting is not None:
            app.lasting.count(alloc, -1)
        node.free.plus(amounts)
        if cython.compiled:
            self.index.aim(node)
        del node.allocations[alloc]
        node.allocated.minus(amounts)
        if alloc.shape.need.counted:
            self.needs.give_back(node, alloc)
        if alloc.shape.need.pods is not None:
            self.topology.end(node.slot, alloc.shape.need.pods)
        if cython.compiled:
            self.index.prefetch_target()
        if alloc.preempted:
            del self.victims[alloc]
            self._unpreempt(app.queue, amounts)
        elif self.overdue:
            self.overdue.pop(alloc, None)
        if alloc.deadline is not None:
            self._forget_deadline(alloc)
        if alloc.placeholder:
            app.placeholders.minus(amounts)
        else:
            app.allocated.minus(amounts)
        self._return_use(app, amounts)
        self.wakeups.gang_changed(app)  # the allocation may have been a member that ran already
        if node.block is not None:  # else the node has been removed from the index
            self.index.mend(node)
            self.wakeups.node_freed(node)
            if alloc.shape.need.counted:
                self.wakeups.node_opened(node)

    @cython.cfunc
    def _return_use(self, app: Application, amounts: Vec) -> cython.void:
        tracker: Tracker
        for tracker in app.trackers:
            tracker.used.minus(amounts)
        self._use(app, amounts, False)
        self.wakeups.room_returned(app)

    @cython.cfunc
    def _use(self, app: Application, amounts: Vec, more: cython.bint) -> cython.void:
        """Change the allocated amounts of the application's queues, with their shares and kept orders."""
        queue: Queue | None = app.queue
        parent: Queue | None
        if app.queue.fair:
            app.recompute_usage()
            if app.heap_index >= 0:
                app.queue.order.mend(app)
        while queue is not None:
            parent = queue.parent
            if more:
                queue.allocated.plus(amounts)
            else:
                queue.allocated.minus(amounts)
            if parent is not None:  # root has no siblings to share with
                queue.reshare()
                if parent.last_turn is not None:
                    queue.changed()
                if queue.heap_index >= 0:
                    parent.order.mend(queue)
            queue = parent

    @cython.cfunc
    def _unpreempt(self, queue: Queue | None, amounts: Vec) -> cython.void:
        while queue is not None:
            queue.preempting.minus(amounts)
            queue = queue.parent

    # -- nodes that have less than is allocated there --------------------------------------------------

    @cython.ccall
    def may_be_overused(self, node: Node) -> cython.void:
        """Note a node that has shrunk, or on which something was allocated without a look at what it has left."""
        self.overused[node] = None

    def overuse(self) -> Vec:
        """Return what more is allocated on nodes than they have, added up over the nodes; others no longer count as overused."""
        node: Node
        beyond: Vec
        total: Vec = Vec()
        nothing: Vec = Vec()
        for node in list(self.overused):
            beyond = node.allocated.clone()
            beyond.minus(node.capacity)
            beyond.raise_to(nothing)
            if beyond.zero():
                del self.overused[node]
            total.plus(beyond)
        return total

    # -- victims ---------------------------------------------------------------------------------------

    def preempting(self, app: Application, alloc: Ask) -> None:
        """Count the allocation as a victim, until it ends."""
        queue: Queue | None = app.queue
        alloc.preempted = True
        self.victims[alloc] = None
        self.topology.changes += 1  # for claims it has ended
        self.asked_to_end += 1
        while queue is not None:
            queue.preempting.plus(alloc.shape.amounts)
            queue = queue.parent

    def stop_expecting(self, alloc: Ask) -> None:
        """Count a victim that does not end as an allocation that was asked to end, but whose room nobody waits for."""
        del self.victims[alloc]
        self.overdue[alloc] = None
        self.topology.changes += 1
        self._unpreempt(alloc.app.queue, alloc.shape.amounts)
        alloc.preempted = False
        alloc.released = True
