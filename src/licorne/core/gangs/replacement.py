"""The replacement pass: real asks take over the resources that placeholders of their task group keep.

Source: docs/spec/scheduling.md, section 9.4.

A replacement uses nothing that is not used already, so neither quotas nor limits nor the maximum of applications are
checked. A real ask replaces the first placeholder that is no smaller and whose node it may run on, even if that node
is draining or reserved, because the placeholder occupies the room already. If no placeholder's node will do, the ask
is placed on an open node with room for all of it, and still replaces a placeholder, wherever that is.

Between the decision and the resource manager's confirmation that the placeholder has ended, the real ask is *in
flight*: neither pending nor an allocation. The placeholder is counted until then. An ask in flight to another node is
counted too, on that node alone. Its flag `released` is set meanwhile, so that it is not evicted before it runs.

Applications are tried in the order of their arrival, asks in request order, placeholders in the order of placement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import ApplicationEvent, ApplicationState
from licorne.core.nodes.domains import PodClass
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import Need, Node
from licorne.core.preemption.evictions import Outcome
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape, request_order
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps
from licorne.si.messages import Release, Termination

from .placeholders import Gangs, PlaceholderGang, TaskGroup

if TYPE_CHECKING:
    # partition imports this module; here, compiled, it is an untyped object
    from licorne.core.partition import Partition


COMPLETING = ApplicationState.COMPLETING
RESUMING = ApplicationState.RESUMING
RUN = ApplicationEvent.RUN
COMPLETE = ApplicationEvent.COMPLETE
REPLACED = Termination.PLACEHOLDER_REPLACED
TIMEOUT = Termination.TIMEOUT
STOPPED_BY_RM = Termination.STOPPED_BY_RM
CONFIRMATIONS = (TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, REPLACED)
INCOMPATIBLE = "cancel placeholder: resource incompatible"


@cython.cclass
class Replacement:
    """The replacement pass of one partition, and the handling of real asks in flight."""

    partition: Partition
    accounting: Accounting
    parking: Parking
    wakeups: WakeUps
    index: NodeIndex
    gangs: Gangs
    fits: cython.bint  # the last search met a placeholder of sufficient size

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.accounting = partition.accounting
        self.parking = partition.parking
        self.wakeups = partition.wakeups
        self.index = partition.index
        self.gangs = partition.gangs
        self.fits = False

    # -- the pass --------------------------------------------------------------------------------------

    @cython.ccall
    def run(self, limit: cython.longlong) -> cython.longlong:
        """Replace as many placeholders as possible, at most `limit`; return their number."""
        gangs: Gangs = self.gangs
        app: Application
        made: cython.longlong = 0
        if self.wakeups.replacements_due:
            self.wakeups.replacements_due = False
            gangs.due.update(gangs.stuck)
            gangs.stuck.clear()
        if not gangs.due:
            return 0
        apps = list(gangs.due)
        if len(apps) > 1:
            apps.sort(key=_arrival)
        for app in apps:
            if not app.queue.reachable:
                continue
            made += self._run_in(app, limit - made)
            if made >= limit:
                break
            del gangs.due[app]
            if gangs.has_more(app):
                gangs.note_stuck(app)
        return made

    @cython.cfunc
    def _run_in(self, app: Application, limit: cython.longlong) -> cython.longlong:
        """Replace placeholders of one application; return their number.

        All replacements on the placeholder's own node come first, then those on another node.
        """
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        ask: Ask
        place: Ask | None
        node: Node | None
        failed: Shape | None = None  # the shape that has just failed: the next asks of that shape would fail too
        failed_group: str = ""
        made: cython.longlong = 0
        units: cython.longlong
        rest: list[Any] = []
        for ask in self._asks(gang):
            if ask.shape is failed and ask.task_group == failed_group and not ask.required:
                rest.append(ask)
                continue
            units = ask.repeats
            while units > 0:
                place = self._place_for(gang.groups[ask.task_group], ask, True)
                if place is None:
                    break
                self._link(app, gang, ask, place, cython.cast(Node, place.node))
                made += 1
                units -= 1
                if made >= limit:
                    return made
            if units > 0 and self.fits:
                rest.append(ask)
                if not ask.required and self.partition.predicates is None:
                    failed, failed_group = ask.shape, ask.task_group
        failed = None
        for ask in rest:
            if ask.shape is failed and ask.task_group == failed_group and not ask.required:
                continue
            units = ask.repeats
            while units > 0:
                place = self._place_for(gang.groups[ask.task_group], ask, False)
                node = None if place is None else self._other_node(ask, place)
                if place is None or node is None:
                    if not ask.required and self.partition.predicates is None:
                        failed, failed_group = ask.shape, ask.task_group
                    break
                self._link(app, gang, ask, place, node)
                made += 1
                units -= 1
                if made >= limit:
                    return made
        return made

    @cython.cfunc
    def _asks(self, gang: PlaceholderGang) -> list[Any]:
        """Return the waiting real asks of task groups that have a placeholder to replace, in request order."""
        group: TaskGroup
        found: list[Any] = []
        for group in gang.groups.values():
            if group.waiting and group.has_placeholder():
                found += group.waiting
        return sorted(found, key=request_order)

    @cython.cfunc
    def _place_for(self, group: TaskGroup, ask: Ask, own_node: cython.bint) -> Ask | None:
        """Return the first placeholder that the ask may replace, and release those before it that are too small.

        `own_node`: only a placeholder whose node the ask may run on. Sets `fits` if any placeholder is large enough.
        """
        place: Ask
        i: cython.Py_ssize_t
        self.fits = False
        if not group.has_placeholder():
            return None
        i = group.start
        while i < len(group.held):
            place = cython.cast(Ask, group.held[i])
            i += 1
            if place.released or place.preempted:
                continue
            if not place.shape.amounts.covers(ask.shape.amounts):
                place.released = True
                self.accounting.asked_to_end += 1
                self.partition.notify_released(place, TIMEOUT, INCOMPATIBLE)
                if self.partition.events is not None:
                    self.partition.events.misfit(ask, place)
                continue
            self.fits = True
            if not own_node or self._may_stay(ask, place):
                return place
        return None

    @cython.cfunc
    def _may_stay(self, ask: Ask, place: Ask) -> cython.bint:
        """Tell whether the ask may run on the node of a placeholder; its room there is not checked, but for devices."""
        node: Node = cython.cast(Node, place.node)
        if ask.required and ask.required != node.id:
            return False
        if not self._may_follow(ask, place, node):
            return False
        return self.partition.predicates is None or self.partition.predicate_allows(ask, node, False)

    @cython.cfunc
    def _may_follow(self, ask: Ask, place: Ask, node: Node) -> cython.bint:
        """Tell whether the ask matches the node of a placeholder, whose devices it gets, and which no longer counts as a pod."""
        need: Need = ask.shape.need
        pods: PodClass | None = place.shape.need.pods if need.pods is not None else None
        if pods is not None:
            self.accounting.topology.attempt(node.slot, pods, -1)
        may: cython.bint = (
            self.partition.needs.may_succeed(node, place, ask) if need.demand is not None else need.matches(node)
        )
        if pods is not None:
            self.accounting.topology.attempt(node.slot, pods, 1)
        return may

    @cython.cfunc
    def _other_node(self, ask: Ask, place: Ask) -> Node | None:
        """Return the first open node in order, or the best, other than the placeholder's, that has room for all of the ask."""
        shape: Shape = ask.shape
        node: Node | None = None
        if shape.need.prefers and not ask.required:
            node = self.partition.descent.preferred_node(ask, place.node)
        if node is not None:
            return node
        node = self.index.find(shape.amounts, shape.need, None)
        while node is not None:
            if node is not place.node and shape.need.matches(node) and (not ask.required or ask.required == node.id):
                if self.partition.predicates is None or self.partition.predicate_allows(ask, node, True):
                    return node
            node = self.index.find(shape.amounts, shape.need, node)
        return None

    @cython.cfunc
    def _link(self, app: Application, gang: PlaceholderGang, ask: Ask, place: Ask, node: Node) -> cython.void:
        """Start a replacement: ask for the end of the placeholder, and put the real ask in flight."""
        real: Ask = self.partition.descent.split(ask)
        real.attempted = ask.attempted  # it is pending again if the replacement fails
        real.outstanding = ask.outstanding
        self.accounting.retain_need(real.shape.need)
        real.node = node
        real.bound_ns = self.parking.now
        real.released = True
        place.released = True
        self.accounting.asked_to_end += 1
        gang.replacing[place] = real
        gang.arriving[real.id] = place
        self._to_node(real, place)
        self.partition.notify_released(place, REPLACED, f"replacing allocationKey: {ask.key}")

    @cython.cfunc
    def _to_node(self, real: Ask, place: Ask) -> cython.void:
        """Count an ask in flight on its node; on the placeholder's own node only its host ports, which that one lacks."""
        node: Node = cython.cast(Node, real.node)
        if node is not place.node:
            self._on_node(real, node)
        elif real.shape.need.ports:
            self.partition.needs.take_ports(node, real.shape.need.ports)
            self.index.mend(node)

    @cython.cfunc
    def _on_node(self, real: Ask, node: Node) -> cython.void:
        node.allocations[real] = None
        node.allocated.plus(real.shape.amounts)
        node.free.minus(real.shape.amounts)
        if real.shape.need.counted:
            self.partition.needs.take(node, real)
        if real.shape.need.pods is not None:
            self.accounting.topology.begin(node.slot, real.shape.need.pods)
        self.index.mend(node)

    @cython.cfunc
    def _off_node(self, real: Ask) -> cython.void:
        """Take an ask in flight off its node. On the placeholder's own node nothing but its host ports is counted."""
        node: Node = cython.cast(Node, real.node)
        amounts: Vec = real.shape.amounts
        counted: cython.bint = real in node.allocations
        if not counted and not real.shape.need.ports:
            return
        if counted:
            del node.allocations[real]
            node.allocated.minus(amounts)
            node.free.plus(amounts)
            if real.shape.need.pods is not None:
                self.accounting.topology.end(node.slot, real.shape.need.pods)
        if real.shape.need.counted:
            self.partition.needs.give_back(node, real)
        if node.block is not None:
            self.index.mend(node)
            self.wakeups.node_freed(node)
            if real.shape.need.counted:
                self.wakeups.node_opened(node)

    # -- the end of a placeholder, or of an ask in flight ----------------------------------------------

    @cython.ccall
    def ended(self, app: Application, alloc: Ask, termination: Termination) -> cython.void:
        """Handle the end of an allocation of a gang, which the resource manager has decided on or confirms."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        real: Ask | None = gang.replacing.get(alloc)
        if real is not None and termination is REPLACED:
            self._confirm(app, gang, alloc, real)
            return
        self._end(app, gang, alloc, real, "" if termination in CONFIRMATIONS else "allocation remove as per RM request")
        self._follow(app, gang, alloc, termination is TIMEOUT)

    @cython.ccall
    def node_lost(self, app: Application, alloc: Ask, message: str) -> cython.void:
        """Handle the removal of the node of an allocation, or of a real ask in flight (section 14)."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        place: Ask | None = gang.arriving.get(alloc.id)
        real: Ask | None = gang.replacing.get(alloc)
        if place is not None and gang.replacing[place] is alloc:
            self._unlink(app, gang, place, alloc)
        elif real is not None and real.node is not alloc.node:
            self.partition.notify_released(alloc, STOPPED_BY_RM, message)
            self._confirm(app, gang, alloc, real)
        else:
            self._end(app, gang, alloc, real, message)
            self._follow(app, gang, alloc, False)

    @cython.cfunc
    def _end(self, app: Application, gang: PlaceholderGang, alloc: Ask, real: Ask | None, message: str) -> cython.void:
        self.accounting.remove_allocation(app, alloc)
        if message:
            self.partition.notify_released(alloc, STOPPED_BY_RM, message)
        if real is not None:
            self._unlink(app, gang, alloc, real)

    @cython.cfunc
    def _follow(self, app: Application, gang: PlaceholderGang, alloc: Ask, timed_out: cython.bint) -> cython.void:
        """Update the application's state: without real asks and allocations it completes, placeholders or not."""
        if alloc.placeholder:
            self.gangs.ended(app, alloc, timed_out)
            return
        if app.allocations and not app.asks_pending and app.allocated.zero() and not gang.replacing:
            if app.state is not COMPLETING:
                self.partition.lifecycle.fire(app, COMPLETE)
        self.partition.lifecycle.emptied(app)

    @cython.cfunc
    def _confirm(self, app: Application, gang: PlaceholderGang, place: Ask, real: Ask) -> cython.void:
        """Finish a replacement whose placeholder has ended: the real ask becomes an allocation and is announced."""
        node: Node = cython.cast(Node, real.node)
        group: TaskGroup = gang.groups[place.task_group]
        first: cython.bint = app.allocated.zero()
        del gang.replacing[place]
        del gang.arriving[real.id]
        self.accounting.release_need(real.shape.need)
        real.released = False
        real.attempted = True  # not before: an ask that returns from flight to pending has not been attempted
        real.replaced_ns = place.created
        if node is place.node and place.shape.amounts.same(real.shape.amounts):
            self._swap(app, node, place, real)
            # Unlike the placeholder, the real allocation may be evicted: for a required node, and for a guarantee.
            self.wakeups.victim_appeared(node)
        else:
            self._off_node(real)
            if node is place.node:
                self.partition.needs.hand_over(node, place, real)
            self.accounting.remove_allocation(app, place)
            self.accounting.add_allocation(app, real, node)
            self.accounting.may_be_overused(node)  # the real ask may have been resized in flight
        if self.partition.events is not None:
            self.partition.events.changes.replaced[place] = real
        group.replaced += 1
        gang.gained.plus(place.shape.amounts)
        if app.state is COMPLETING or (not first and app.state is not RESUMING):
            self.partition.lifecycle.fire(app, RUN)
        if real.timeout_ns > 0:
            real.deadline = self.partition.timers.add(self.parking.now + real.timeout_ns, "timeout", real)
        self.partition.descent.announce(app, real)
        self.gangs.gone(app, group)
        self.partition.claims.review(Outcome.FORCED)  # the real ask may have been resized in flight

    @cython.cfunc
    def _swap(self, app: Application, node: Node, place: Ask, real: Ask) -> cython.void:
        """Replace a placeholder by a real ask of the same size on the same node.

        Only the application's own sums change, and nothing needs to be woken, unless the placeholder gives ports or devices
        back that the real ask does not take.
        """
        for watcher in self.accounting.watchers:
            watcher.ending(app, place)
        self.partition.timers.cancel(place.deadline)
        del node.allocations[place]
        node.allocations[real] = None
        if real.shape.need.pods is not None:
            self.accounting.topology.begin(node.slot, real.shape.need.pods)
        if place.shape.need.pods is not None:
            self.accounting.topology.end(node.slot, place.shape.need.pods)
        if place.shape.need.counted:
            self.partition.needs.hand_over(node, place, real)
            self.partition.needs.give_back(node, place)
            self.index.mend(node)
            self.wakeups.node_opened(node)
        del app.allocations[place.id]
        app.allocations[real.id] = real
        app.placeholders.minus(place.shape.amounts)
        app.allocated.plus(real.shape.amounts)
        if app.queue.fair:
            app.recompute_usage()
            if app.heap_index >= 0:
                app.queue.order.mend(app)

    @cython.cfunc
    def _unlink(self, app: Application, gang: PlaceholderGang, place: Ask, real: Ask) -> cython.void:
        """Make the real ask pending again; its placeholder, if it still runs, ends without being replaced."""
        ask: Ask | None = app.asks.get(real.key)
        self._withdraw(gang, place, real)
        if ask is None:
            if real.key not in app.allocations and real.key not in gang.arriving:
                real.id = real.key  # unless another allocation of an ask that repeats is known by it
            real.repeats = 1
            self.accounting.pend(app, real)
        else:  # the ask repeats, and more of it is still pending (first interface)
            self.accounting.unpend(app, ask)
            ask.repeats += 1
            self.accounting.pend(app, ask)

    @cython.cfunc
    def _withdraw(self, gang: PlaceholderGang, place: Ask, real: Ask) -> cython.void:
        del gang.replacing[place]
        del gang.arriving[real.id]
        self.accounting.release_need(real.shape.need)
        self.accounting.asked_to_end += 1  # plans are made anew: the placeholder's end frees room now
        self._off_node(real)
        real.node = None
        real.bound_ns = 0
        real.released = False

    # -- messages about what is in flight --------------------------------------------------------------

    def withdraw(self, app: Application, message: Release) -> None:
        """Drop the real asks in flight that a release names, or all of them; they were never announced."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        if message.what == "allocation" or (message.what == "both" and message.termination is TIMEOUT):
            return
        for place, real in list(gang.replacing.items()):
            if not message.key or message.key == real.key:
                self._forget(gang, place, real)

    def placed_outside(self, app: Application, key: str) -> None:
        """Take an ask out of flight that the resource manager has placed itself."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        place: Ask | None = gang.arriving.get(key)
        if place is not None:
            self._withdraw(gang, place, gang.replacing[place])

    def abandon(self, app: Application) -> list[Ask]:
        """Drop all real asks of an application that are in flight; return them."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        found = list(gang.replacing.items())
        for place, real in found:
            self._forget(gang, place, real)
        return [real for _, real in found]

    @cython.cfunc
    def _forget(self, gang: PlaceholderGang, place: Ask, real: Ask) -> cython.void:
        self._withdraw(gang, place, real)
        if self.partition.events is not None:
            self.partition.events.dropped(real)

    def resize(self, app: Application, key: str, amounts: Vec, resource: dict[str, int] | None) -> bool:
        """Change the amounts of an ask in flight, without checking any limit; return False if none has this key."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        place: Ask | None = gang.arriving.get(key)
        if place is None:
            return False
        real: Ask = gang.replacing[place]
        if self.accounting.describes(real.shape, amounts, resource):
            return True
        self._off_node(real)
        real.shape = self.accounting.shape(amounts, resource, real.shape.need)
        self._to_node(real, place)
        self.accounting.may_be_overused(cython.cast(Node, real.node))
        self.partition.claims.review(Outcome.FORCED)
        return True


def _arrival(app: Application) -> int:
    return app.seq
