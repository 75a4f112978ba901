"""Reservations tie an ask to a node until it has room, so that small asks cannot starve a large one.

Source: docs/spec/scheduling.md, sections 7.1.3, 7.3, 7.4 and 16.8.

A node takes one ordinary reservation; asks that require the
node may share it with each other, not with an ordinary one. A reserved node is closed to all other asks. An ordinary
reservation older than 120 minutes is cancelled in any case, and its ask does not reserve that node again before it
has reserved another. So is one of an ask for which others were evicted, 120 minutes after that, and with it goes what the ask
claims (`licorne.core.preemption.claims`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.base.states import SECOND_NS
from licorne.core.nodes.node import best_to_reserve
from licorne.core.preemption import required_node
from licorne.core.preemption.evictions import Outcome

if TYPE_CHECKING:
    from licorne.core.base.timers import Timer
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

RESERVATION_MAX_AGE_NS = 120 * 60 * SECOND_NS
"""After this long an ordinary reservation is cancelled."""


class Reservations:
    """All reservations of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._timers: dict[Ask, Timer | None] = {}
        self._refused: dict[Ask, None] = {}  # a predicate kept them from reserving a node

    def __len__(self) -> int:
        return len(self._timers)

    def node_to_reserve(self, ask: Ask) -> Node | None:
        """The node that an ask which fits nowhere should reserve, None if there is none."""
        partition = self._partition
        shape = ask.shape
        node: Node | None = best_to_reserve(partition.index.ordered(), shape.amounts, shape.need, ask.expired_node)
        if node is None:
            return None
        if partition.predicates is not None and not partition.predicate_allows(ask, node, False):
            self._refused[ask] = None
            return None
        return node

    def retry_refused(self) -> None:
        """A new call: predicates may say something else now, of reservations and of what is reserved."""
        partition = self._partition
        partition.parking.reserved_stale = True
        partition.parking.dirty = True
        partition.atomic.retry_refused()
        refused = list(self._refused)
        self._refused.clear()
        for ask in refused:
            partition.parking.retry(ask)

    def reserve(self, ask: Ask, node: Node) -> None:
        """Tie the ask to the node."""
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
        partition.parking.reservations = len(self._timers)
        self.mend_open(node)
        partition.parking.reserved_stale = True
        if partition.events is not None:
            partition.events.reservation(ask, node, made=True)

    def last_anew(self, ask: Ask) -> None:
        """Others were evicted for the ask: its reservation lasts for 120 minutes from now on."""
        partition = self._partition
        partition.timers.cancel(self._timers[ask])
        self._timers[ask] = partition.timers.add(partition.now + RESERVATION_MAX_AGE_NS + 1, "reservation", ask)

    def ends(self, ask: Ask) -> bool:
        """Is there a moment at which the reservation is too old?"""
        return self._timers[ask] is not None

    def cancel(self, ask: Ask, outcome: Outcome | None = None) -> None:
        """Untie the ask; the node is open again when nobody else reserves it. `outcome`: what becomes of what it claims."""
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
        partition.parking.reservations = len(self._timers)
        if node.block is not None and not node.reservations:
            self.mend_open(node)
            partition.parking.node_opened(node)
        partition.parking.reserved_stale = True
        if ask in partition.claims.by_ask:
            assert outcome is not None, f"{ask.key}: loses what it claims for no reason"
            partition.claims.close(ask, outcome)
        if partition.events is not None:
            partition.events.reservation(ask, node, made=False)

    def mend_open(self, node: Node) -> None:
        """Whether asks in general may use the node: it is schedulable and neither reserved nor held for a gang."""
        hold = self._partition.atomic.backfill.hold
        node.open = node.schedulable and not node.reservations and (hold is None or node not in hold.nodes)
        self._partition.index.mend(node)

    def cancel_ordinary(self, node: Node) -> None:
        """An ask that requires the node displaces the others' reservations (section 7.4)."""
        for ask in [a for a in node.reservations if not a.required]:
            self.cancel(ask, Outcome.REQUIRED_NODE)
            self._partition.parking.retry(ask)

    def cancel_all(self, node: Node) -> None:
        """The node goes."""
        for ask in list(node.reservations):
            self.cancel(ask, Outcome.NODE)
            self._partition.parking.retry(ask)

    def too_old(self, ask: Ask) -> None:
        """120 minutes have passed (section 16.8)."""
        if ask.reserved is None:
            return
        node = ask.reserved
        self.cancel(ask, Outcome.AGE)
        ask.expired_node = node
        self._partition.parking.retry(ask)

    # -- the reserved pass (section 7.3) ---------------------------------------------------------------

    def try_all(self) -> bool:
        """Try to allocate one reserved ask; was one allocated?"""
        self._partition.parking.reserved_stale = False
        return self._try_queue(self._partition.tree.root)

    def _try_queue(self, queue: Queue) -> bool:
        if queue.is_leaf:
            return any(self._try_app(app) for app in sorted(queue.reserved, key=lambda a: a.seq))
        return any(self._try_queue(child) for child in queue.in_order(None))

    def _try_app(self, app: Application) -> bool:
        partition = self._partition
        descent = partition.descent
        if not app.group_chosen:
            partition.limits.attach(app)
        if not partition.lifecycle.may_be_tried(app):
            return False
        reserved = sorted(app.reservations.values(), key=lambda a: a.seq)
        for ask in reserved:
            if not descent.has_headroom(app, ask):
                continue
            node = ask.reserved
            if node is None:
                continue  # it gave up what it claimed, for one before it
            if ask.required and not node.free.covers(ask.shape.amounts):
                if not ask.triggered:
                    required_node.make_room_on_required_node(partition, ask, node)
                continue
            if not node.schedulable and not ask.required:
                continue  # drained: nothing new is placed there (docs/spec/states.md, section 3, Q)
            if descent.try_node(app, ask, node):
                return True
        for ask in reserved:
            if ask.required or ask.reserved is None or not descent.has_headroom(app, ask):
                continue
            other = descent.first_node(ask)
            if other is not None:
                descent.allocate(app, ask, other)
                return True
        return False
