"""The decisions of a partition, as in docs/spec/scheduling.md: everything is sorted and tried again for each one.

There is no parking, no index, no batch: a decision takes all sums anew (`reference.sums`), walks the sorted queues,
applications, asks and nodes from the beginning, and ends with the first result (sections 3 to 7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from licorne.si.messages import WaitingForResources
from reference import atomic, claims, gangplans, gangs, preempting
from reference.life import RUN, fire, unreserve, watch_timeout
from reference.model import (
    SECOND_NS,
    Amounts,
    App,
    Ask,
    Key,
    Node,
    Partition,
    Queue,
    Reservation,
    fits,
    fits_limit,
    next_uuid,
    plus,
)
from reference.sums import Sums, choose_group, fit_in_score, meets, trackers

ALLOCATED, RESERVED = "allocated", "reserved"
RESERVATION_AGE_NS = 120 * 60 * SECOND_NS
INSPECTION_NS = SECOND_NS


def schedule(partition: Partition, limit: int) -> int:
    """Decide until nothing more is possible, or `limit` allocations are made (section 3)."""
    made = 0
    atomic.begin(partition)
    while made < limit:
        evicted = preempting.evicted(partition)
        turn = Pass(partition)
        result = turn.run()
        made += turn.gang or result == ALLOCATED
        if not result and preempting.evicted(partition) == evicted:
            before = made
            if not gangplans.follow(partition):
                for ask, node in gangplans.in_front(partition):
                    Pass(partition)._allocate(ask, node)
                    made += 1
                    if made >= limit:
                        break
                if made == before:
                    Pass(partition).at_rest()
                    if preempting.evicted(partition) == evicted:
                        break
                    partition.atomic.planned = False  # who is going counts
    if made < limit:  # one that ended at its limit has not tried everything
        inspect(partition)
    return made


class Pass:
    """One pass, which comes to one result at most: first the asks that have reservations, then all."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.now_ns = partition.now_ns
        atomic.watch(partition)
        self.sums = Sums(partition)
        self.gang = 0  # so many members were placed as a whole

    def run(self) -> str:
        """The result: an allocation, a reservation, or nothing."""
        root = self.partition.root
        if not self.sums.asks[root]:
            return ""
        if reserved := self._reserved_pass():
            return reserved
        if gangs.replace_one(self.partition, self.sums):
            return ALLOCATED
        return self._regular_pass(root)

    def at_rest(self) -> None:
        """Act when nothing can be placed: an ask may preempt, and after that others may be placed, or preempt."""
        leaves = self._leaves_in_order(self.partition.root)
        preempting.at_rest(self.partition, leaves, self._reserve)

    def _leaves_in_order(self, queue: Queue) -> Iterator[Queue]:
        """Parent → children in order; an application that stands in a parent is not come to.

        Source: docs/spec/config.md, section 6.3.
        """
        if queue.leaf:
            yield queue
            return
        for child in self.sums.children_in_order(queue):
            yield from self._leaves_in_order(child)

    # -- the reserved pass (section 7.3) -----------------------------------------------------------------

    def _reserved_pass(self) -> str:
        for leaf in self._leaves_in_order(self.partition.root):
            for app in self.partition.apps_of(leaf):
                if any(ask.reservation for ask in app.asks.values()) and self._try_reserved(app):
                    return ALLOCATED
        return ""

    def _try_reserved(self, app: App) -> bool:
        """Each on the node that it reserved; then those that require no node, on any other."""
        choose_group(self.partition, app)
        if not self.sums.may_run(app):
            return False
        if app.atomic is not None:
            placing = atomic.on_claims(self.partition, self.sums, app)
            if placing:
                self._start(app, placing)
            return bool(placing)
        reserved = sorted((ask for ask in app.asks.values() if ask.reservation), key=lambda ask: ask.arrived)
        for ask in reserved:
            if ask.reservation is None or not claims.has_headroom(self.sums, app, ask):
                continue
            node = ask.reservation.node
            if ask.required and not fits(self.sums.free(node), ask.amounts):
                if not ask.triggered:
                    preempting.make_room(self.partition, ask, node)
            elif not ask.required and not node.schedulable:
                continue  # difference 51
            elif self._takes(node, ask):
                self._allocate(ask, node)
                return True
        for ask in reserved:
            if ask.required or ask.reservation is None or not claims.has_headroom(self.sums, app, ask):
                continue
            if (other := self._first_node(ask)) is not None:
                self._allocate(ask, other)
                return True
        return False

    # -- the regular pass (sections 4 to 6) --------------------------------------------------------------

    def _regular_pass(self, root: Queue) -> str:
        for leaf in self._leaves_in_order(root):
            for app in self.sums.apps_in_order(leaf):
                result = self._try_app(app)
                if result:
                    if app.state == "Accepted":
                        app.holds_slot = True
                    return result
        return ""

    def _try_app(self, app: App) -> str:
        """The asks of an application in their order (section 6; difference 53: pending ones alone)."""
        choose_group(self.partition, app)
        if not self.sums.may_run(app) or app.backoff_until_ns > self.now_ns:
            return ""
        if app.atomic is not None:
            placing = atomic.visit(self, app)
            if placing is None:
                return ""
            self._start(app, placing)
            if placing:
                return ALLOCATED
        rooms = {required: self.sums.queue_headroom(app.queue, required=required) for required in (False, True)}
        user_room = self.sums.user_headroom(app)
        unschedulable = 0
        settings = app.queue.settings
        for ask in self.sums.asks_in_order(app):
            if settings.backoff and unschedulable >= settings.backoff:
                app.backoff_until_ns = self.now_ns + settings.backoff_delay_ns
                return ""
            if gangs.waits(ask):
                continue
            if not fits_limit(user_room, ask.amounts) or not fits_limit(rooms[bool(ask.required)], ask.amounts):
                continue
            if not claims.leave(self.sums, app, ask.priority, ask.amounts, cluster=not ask.required):
                continue
            ask.attempted = True
            result = self._try_required(ask) if ask.required else self._try_nodes(ask)
            if result:
                return result
            unschedulable += not ask.required
        # Section 6 marks asks one by one. As in the product, a look at all of them is an attempt at each.
        for ask in [*app.asks.values(), *app.gang.flying]:
            ask.attempted = True
        return ""

    # -- nodes (section 7) -------------------------------------------------------------------------------

    def _try_nodes(self, ask: Ask) -> str:
        node = self._first_node(ask)
        if node is not None:
            self._allocate(ask, node)
            return ALLOCATED
        delay = self.partition.reservation_delay_ns
        if ask.reservation or delay is None or self.now_ns - ask.created_ns <= delay:
            return ""
        node = self._best_to_reserve(ask)
        if node is None:
            return ""
        self._reserve(ask, node)
        return RESERVED

    def _first_node(self, ask: Ask) -> Node | None:
        """The first that is schedulable and not reserved, and takes the ask (section 7.1)."""
        for node in self.sums.nodes_in_order:
            closed = node.reserved_by or atomic.holds(self.partition, node)
            if node.schedulable and not closed and self._takes(node, ask):
                return node
        return None

    def _takes(self, node: Node, ask: Ask) -> bool:
        """tryNode (section 7.2)."""
        if node.reserved_by and ask not in node.reserved_by:
            return False
        if not fits(self.sums.free(node), ask.amounts) or not meets(ask, node):
            return False
        return claims.leave_node(self.sums, ask, node) and self._allows(ask, node, allocate=True)

    def _allows(self, ask: Ask, node: Node, *, allocate: bool) -> bool:
        predicate = self.partition.predicate
        return predicate is None or predicate(ask.key, node.id, allocate)

    def _best_to_reserve(self, ask: Ask) -> Node | None:
        """The smallest FitInScore, the first in order of equals (section 7.1.3; difference 11)."""
        nodes = [
            node
            for node in self.sums.nodes_in_order
            if node.schedulable
            and not node.reserved_by
            and not atomic.holds(self.partition, node)
            and node is not ask.shunned
            and fits(node.capacity, ask.amounts)
            and meets(ask, node)
        ]
        best = min(nodes, key=lambda node: fit_in_score(ask.amounts, self.sums.free(node)), default=None)
        return best if best is not None and self._allows(ask, best, allocate=False) else None

    def _try_required(self, ask: Ask) -> str:
        """An ask that only one node will do for (section 7.4). Difference 12: one that is larger than it waits.

        So does one that the node's labels or taints exclude.
        """
        node = self.partition.nodes.get(ask.required)
        if node is None or not fits(node.capacity, ask.amounts) or not meets(ask, node):
            return ""
        for other in list(node.reserved_by):
            if not other.required and not ask.reservation:
                unreserve(other)
        if self._takes(node, ask):
            self._allocate(ask, node)
            return ALLOCATED
        if ask.reservation:
            return ""
        self._reserve(ask, node)
        return RESERVED

    def _start(self, app: App, placing: atomic.Placing) -> None:
        """A gang, all of it."""
        atomic.give_up(self.partition, app.atomic)
        app.atomic = None
        for ask, node in placing:
            self._allocate(ask, node)
        self.gang = len(placing)

    # -- results -----------------------------------------------------------------------------------------

    def _reserve(self, ask: Ask, node: Node) -> None:
        self.partition.number("reservation")
        reservation = ask.reservation = Reservation(node, self.now_ns)
        ask.shunned = None
        node.reserved_by.append(ask)

        def too_old() -> None:  # difference 11
            if ask.reservation is reservation:
                unreserve(ask)
                ask.shunned = node

        if not ask.required:
            self.partition.at(self.now_ns + RESERVATION_AGE_NS + 1, too_old)

    def _allocate(self, ask: Ask, node: Node) -> None:
        partition, app = self.partition, ask.app
        unreserve(ask, gives_up=False)
        alloc = ask
        if partition.first_interface:  # each allocation has a name of its own (difference 10), the ask counts down
            alloc = replace(ask, id=next_uuid(partition))
            ask.repeats -= 1
            ask.triggered = False  # what is left of it may preempt, too
        if alloc is ask or not ask.repeats:
            del app.asks[ask.key]
        place(partition, alloc, node)
        claims.review(partition, alloc)


def place(partition: Partition, alloc: Ask, node: Node) -> None:
    """Add an allocation: it counts everywhere from now on, and states and timeouts follow."""
    app = alloc.app
    alloc.node = node
    alloc.bound_ns = partition.now_ns
    alloc.placed = partition.number("placed")
    app.allocations[alloc.id] = alloc
    app.in_sets = True
    if alloc.placeholder:
        gangs.placed(partition, alloc)
    elif app.state != "Resuming":
        fire(partition, app, RUN)
    if alloc.timeout_ns > 0:
        watch_timeout(partition, alloc)
    gangs.announce(partition, alloc)


# -- the hint for autoscaling (section 13) ---------------------------------------------------------------


def inspect(partition: Partition) -> None:
    """Every second: which asks were attempted, and wait for room on nodes and nothing else?"""
    if partition.now_ns < partition.inspected_ns + INSPECTION_NS:
        return
    sums = Sums(partition)
    more: dict[Queue | Key, Amounts] = {}
    for leaf in Pass(partition)._leaves_in_order(partition.root):
        for app in partition.apps_of(leaf):
            for ask in sums.asks_in_order(app):
                room = sums.queue_headroom(leaf, more=more)
                fit = fits_limit(room, ask.amounts) and fits_limit(sums.user_headroom(app, more=more), ask.amounts)
                if not ask.attempted or not fit or gangs.waits(ask):
                    continue
                owners: list[Queue | Key] = [*leaf.lineage(), *trackers(app)]
                for owner in owners:
                    more[owner] = plus(more.get(owner, {}), ask.amounts)
                if not ask.reported and not ask.required:
                    ask.reported = True
                    partition.inspected_ns = partition.now_ns
                    partition.out.append(WaitingForResources(ask.key, app.id))
