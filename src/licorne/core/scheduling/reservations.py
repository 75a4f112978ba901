"""Reservations tie an ask to a node until it has room, so that small asks cannot starve a large one.

Source: docs/spec/scheduling.md, sections 7.1.3, 7.3, 7.4 and 16.8.

A node takes either one ordinary reservation, or any number of reservations of asks that require this node or that have
a claim to it (`licorne.core.preemption.claims`). A reserved node is closed to all other asks.

An ordinary reservation is cancelled when it is 120 minutes old, in any case, and its ask does not reserve the same node
again before it has reserved another. The reservation of an ask that has preempted is cancelled 120 minutes after the
eviction, and with it ends the claim of the ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from licorne.core.base.states import SECOND_NS
from licorne.core.nodes.node import best_to_reserve
from licorne.core.preemption import required_node
from licorne.core.preemption.evictions import Outcome

if TYPE_CHECKING:
    from licorne.core.amounts.vectors import Vec
    from licorne.core.base.timers import Timer
    from licorne.core.nodes.node import Need, Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

RESERVATION_MAX_AGE_NS = 120 * 60 * SECOND_NS
"""Age at which an ordinary reservation is cancelled (ns)."""

NEEDS_MAX = 1000
"""How many needs (what asks demand of nodes besides amounts) have remembered searches without a result, at most."""
AMOUNTS_MAX = 30
"""How many amounts for which no node could be reserved are remembered for one need, at most: the least ones."""


class Reservations:
    """All reservations of one partition."""

    TRANSIENT = ("_nowhere", "_generation")  # a cache of searches without a result

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self._timers: dict[Ask, Timer | None] = {}
        self._refused: dict[Ask, None] = {}  # asks that a predicate kept from reserving a node
        self._nowhere: dict[Need, list[Vec]] = {}  # the least amounts of each need that found no node to reserve
        self._generation: int = 0  # of the node index, when these were noted

    def __len__(self) -> int:
        return len(self._timers)

    def node_to_reserve(self, ask: Ask) -> Node | None:
        """Return the node that an ask which fits nowhere should reserve; None if there is none."""
        partition = self._partition
        need, amounts = ask.shape.need, ask.shape.amounts
        if self._generation != partition.index.generation:
            self._nowhere.clear()
            self._generation = partition.index.generation
        # A node that is too small for less is too small for more. Where all pods differ, and tens of thousands of them
        # wait while each node is reserved, this saves a search through all nodes for each of them.
        nowhere = self._nowhere.get(need, ())
        for least in nowhere:
            if amounts.covers(least):
                return None
        node: Node | None = best_to_reserve(partition.index.ordered(), amounts, need.of_empty(), ask.expired_node)
        if node is None:
            if ask.expired_node is None:
                self._note_nowhere(need, amounts, nowhere)
            return None
        if partition.predicates is not None and not partition.predicate_allows(ask, node, False):
            self._refused[ask] = None
            return None
        return node

    def _note_nowhere(self, need: Need, amounts: Vec, nowhere: Iterable[Vec]) -> None:
        if len(self._nowhere) >= NEEDS_MAX:
            self._nowhere.clear()
        self._nowhere[need] = [amounts, *(other for other in nowhere if not other.covers(amounts))][:AMOUNTS_MAX]

    def retry_refused(self) -> None:
        """Retry what predicates refused in an earlier call of `schedule`, for their answers may have changed unseen."""
        partition = self._partition
        partition.wakeups.predicates_may_differ(list(self._refused))
        partition.atomic.retry_refused()
        self._refused.clear()

    def reserve(self, ask: Ask, node: Node) -> None:
        """Tie the ask to the node, which closes for other asks; an earlier reservation of the ask is cancelled."""
        if ask.reserved is not None:
            self.cancel(ask)
        partition = self._partition
        partition.generation += 1
        app: Application = ask.app
        ask.attempted = True
        ask.reserved = node
        ask.reserved_ns = partition.now
        ask.expired_node = None
        node.reservations[ask] = None
        app.reservations[ask.key] = ask
        app.queue.reserved[app] = app.queue.reserved.get(app, 0) + 1
        due = None
        if not ask.required:
            due = partition.timers.add(partition.now + RESERVATION_MAX_AGE_NS + 1, "reservation", ask)
        self._timers[ask] = due
        partition.wakeups.reservations = len(self._timers)
        self.mend_open(node)
        # A node that is reserved takes less than before, and the ask itself has just been tried on every node. So only one
        # that requires its node has something to do there: evict; and a predicate may answer otherwise when asked again.
        if ask.required or partition.predicates is not None:
            partition.wakeups.reservation_made()
        if partition.events is not None:
            partition.events.reservation(ask, node, made=True)

    def last_anew(self, ask: Ask) -> None:
        """Restart the 120 minutes of a reservation, because allocations were evicted for its ask."""
        partition = self._partition
        partition.timers.cancel(self._timers[ask])
        self._timers[ask] = partition.timers.add(partition.now + RESERVATION_MAX_AGE_NS + 1, "reservation", ask)

    def ends(self, ask: Ask) -> bool:
        """Tell whether a timer cancels the reservation; one of a required node has none unless the ask preempted."""
        return self._timers[ask] is not None

    def cancel(self, ask: Ask, outcome: Outcome | None = None) -> None:
        """Untie the ask from its node, which opens when no other ask reserves it.

        `outcome`: how the claim of the ask ends, required if it has one.
        """
        partition = self._partition
        app: Application = ask.app
        node = ask.reserved
        assert node is not None, f"{ask.key}: cancels a reservation that it does not hold"
        partition.generation += 1
        ask.reserved = None
        del node.reservations[ask]
        del app.reservations[ask.key]
        left = app.queue.reserved[app] - 1
        if left:
            app.queue.reserved[app] = left
        else:
            del app.queue.reserved[app]
        partition.timers.cancel(self._timers.pop(ask))
        partition.wakeups.reservations = len(self._timers)
        if node.block is not None:
            self.mend_open(node)
        partition.wakeups.reservation_gone(node)
        if ask in partition.claims.by_ask:
            assert outcome is not None, f"{ask.key}: loses what it claims for no reason"
            partition.claims.close(ask, outcome)
        if partition.events is not None:
            partition.events.reservation(ask, node, made=False)

    def mend_open(self, node: Node) -> None:
        """Recompute whether the node is open: schedulable, not reserved, and not held for a gang."""
        hold = self._partition.atomic.backfill.hold
        node.open = node.schedulable and not node.reservations and (hold is None or node not in hold.nodes)
        self._partition.index.mend(node)

    def cancel_ordinary(self, node: Node) -> None:
        """Cancel the ordinary reservations of a node that an ask requires (section 7.4)."""
        self._cancel_each([a for a in node.reservations if not a.required], Outcome.REQUIRED_NODE)

    def cancel_all(self, node: Node) -> None:
        """Cancel every reservation of a node that is being removed."""
        self._cancel_each(list(node.reservations), Outcome.NODE)

    def _cancel_each(self, asks: list[Ask], outcome: Outcome) -> None:
        for ask in asks:
            if ask.reserved is not None:  # else it has lost it with another member of its gang
                self.cancel(ask, outcome)
                self._partition.wakeups.reservation_lost(ask)

    def too_old(self, ask: Ask) -> None:
        """Cancel a reservation that is 120 minutes old (section 16.8); its ask must reserve another node next."""
        if ask.reserved is None:
            return
        node = ask.reserved
        self.cancel(ask, Outcome.AGE)
        ask.expired_node = node
        self._partition.wakeups.reservation_lost(ask)

    # -- the reserved pass (section 7.3) ---------------------------------------------------------------

    def try_all(self) -> int:
        """Try to allocate one reserved ask, or a gang of them, in the order of queues; return how many were allocated."""
        self._partition.wakeups.reserved_due = False
        return self._try_queue(self._partition.tree.root)

    def _try_queue(self, queue: Queue) -> int:
        if queue.is_leaf:
            tried = (self._try_app(app) for app in sorted(queue.reserved, key=lambda a: a.seq))
        else:
            tried = (self._try_queue(child) for child in queue.in_order(None))
        return next((made for made in tried if made), 0)

    def _try_app(self, app: Application) -> int:
        partition = self._partition
        descent = partition.descent
        if not app.group_chosen:
            partition.limits.attach(app)
        if not partition.lifecycle.may_be_tried(app):
            return 0
        if app.atomic is not None:
            return partition.atomic.start_on_claims(app)
        reserved = sorted(app.reservations.values(), key=lambda a: a.seq)
        for ask in reserved:
            if not descent.has_headroom(app, ask):
                continue
            node = ask.reserved
            if node is None:
                continue  # the loop has cancelled it: its claim was given up for an ask tried before it
            if ask.triggered:
                partition.claims.give_up_if_shut(ask)
                if ask.reserved is None:
                    continue
            if ask.required and not (node.free.covers(ask.shape.amounts) and ask.shape.need.matches(node)):
                if not ask.triggered:
                    required_node.make_room_on_required_node(partition, ask, node)
                continue
            if not node.schedulable and not ask.required:
                continue  # drained: nothing new is placed there (docs/spec/states.md, section 3, Q)
            if descent.try_node(app, ask, node):
                return 1
        # No ask got its reserved node. An ordinary reservation does not bind the ask: any other node will do.
        partition.wakeups.apply_node_events()  # a reservation that was given up has opened its node
        for ask in reserved:
            if ask.required or ask.reserved is None or not descent.has_headroom(app, ask):
                continue
            other = descent.first_node(ask)
            if other is not None:
                descent.allocate(app, ask, other)
                return 1
        return 0
