"""Wake-ups: every event that can make a waiting ask runnable, and what is tried again because of it.

Each method of `WakeUps` above the heading "what is due" is an event, named for what has happened. Whoever causes one
calls it, and need not know who waits. Only this module knows what has to be looked at again:

* sleeping applications and parked asks (`licorne.core.waiting.parking`);
* asks that hold a reservation (`reserved_due`), which the descent tries before all others;
* replacements of placeholders that found no node (`replacements_due`);
* gangs that are placed as a whole and found no room on nodes (`AtomicGang.stale`).

A search for victims that found none is not woken: it compares. It costs more than anything else that is tried again, so it
is repeated only when nothing more can be placed, and then if the nodes have another generation (`NodeIndex.generation`) than at
the last search. The index raises that whenever a node changes, and the events here do it for what changes without one.

A wake-up too many costs one more visit; one too few would leave an ask pending that could run. In doubt, wake.
A new cause of waiting needs an event here; `tests/parking` drops each event in turn, and must notice.
"""

from __future__ import annotations

from collections.abc import Iterable

from licorne._plain import cython
from licorne.core.constants import AWAITS_NODE
from licorne.core.nodes.domains import end_awaiting
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.node import Need, Node
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage import Tracker

from .parking import Parking


@cython.cclass
class WakeUps:
    """The events of one partition after which waiting asks are tried again."""

    parking: Parking
    index: NodeIndex
    reservations: cython.longlong  # their number, as `Reservations` says
    reserved_due: cython.bint  # something has happened that may let an ask with a reservation run
    replacements_due: cython.bint  # something has happened that may let a stuck replacement run
    gangs_due: cython.bint  # something has happened on nodes since `retry_everything` last tried gangs again
    newly_freed: dict[Node, None]  # nodes on which room was freed since the last `apply_node_events`
    newly_opened: dict[Node, None]  # nodes that came, opened or changed since then
    eased: dict[
        Need, None
    ]  # needs that terms of pods shut out of fewer nodes since then; noted by the checks themselves

    def __init__(self, parking: Parking, index: NodeIndex, eased: dict[Need, None]) -> None:
        self.parking = parking
        self.index = index
        self.reservations = 0
        self.reserved_due = True
        self.replacements_due = False
        self.gangs_due = False
        self.newly_freed = {}
        self.newly_opened = {}
        self.eased = eased

    # -- nodes -----------------------------------------------------------------------------------------

    @cython.ccall
    def node_freed(self, node: Node) -> cython.void:
        """Room was freed on the node. Parked asks hear of it in `apply_node_events`."""
        self.newly_freed[node] = None
        self.reserved_due = True

    def node_opened(self, node: Node) -> None:
        """The node is new, usable again, or has another capacity, other attributes, or more free host ports.

        Unlike a freed node it may also be one that an old ask can reserve now.
        """
        self.newly_opened[node] = None
        self.reserved_due = True

    @cython.ccall
    def room_taken(self, node: Node) -> cython.void:
        """Room was taken on the node: an ask that requires the node, and that terms of pods keep off it, may have to evict for room."""
        self._ease(self.parking.awaiting_node.get(node.id, {}))

    def victim_appeared(self, node: Node) -> None:
        """An allocation on the node may be evicted now: for a guarantee, or for an ask that requires the node."""
        self.index.generation += 1
        if node.reservations:
            self.reserved_due = True

    def victims_changed(self) -> None:
        """Another guarantee, or other devices, may make allocations victims that were none before."""
        self.index.generation += 1

    # -- quotas, limits and slots ----------------------------------------------------------------------

    @cython.cfunc
    def room_returned(self, app: Application) -> cython.void:
        """The application uses less in its queues, and of the limits of its user and group."""
        tracker: Tracker
        queue: Queue | None = app.queue
        i: cython.Py_ssize_t
        for i in range(len(app.trackers)):
            tracker = cython.cast(Tracker, app.trackers[i])
            if tracker.blocked:
                self.parking.wake_fitting(tracker.blocked, tracker.limit, tracker.used)
        while queue is not None:
            if queue.blocked:
                self.parking.wake_fitting(queue.blocked, queue.limit, queue.allocated)
            queue = queue.parent
        self.reserved_due = True

    @cython.ccall
    def slot_freed(self, queue: Queue) -> cython.void:
        """One more application may run in the queue, or, where one runs at a time, another one."""
        self.parking.wake_slots(queue.blocked)
        self.reserved_due = True

    @cython.ccall
    def may_run(self, app: Application) -> cython.void:
        """The application may run now: by its state, its age, its members, or the limits of its user and group."""
        self.parking.wake(app)
        if app.reservations:
            self.reserved_due = True

    @cython.ccall
    def claims_changed(self, node: Node | None) -> cython.void:
        """Claims take less: there may be more for asks that gave way to them, and terms of pods may let others in.

        `node`: where an allocation was evicted, or will not end; None if a claim has ended. What victims there give back may be
        enough for the claims on that node, and then what is free is for others.
        """
        asks: dict[Ask, None]
        if node is not None:
            self.node_freed(node)
        self.parking.wake_blocked(self.parking.waiting_for_claims)
        self.reserved_due = True
        for asks in self.parking.awaiting_node.values():
            self._ease(asks)

    @cython.cfunc
    def _ease(self, asks: dict[Ask, None]) -> cython.void:
        """Have the asks among these that say what they are as pods tried again in `apply_node_events`; each awaits the node that it requires."""
        ask: Ask
        for ask in asks:
            if ask.shape.need.awaiting:
                self.eased[ask.shape.need] = None

    @cython.ccall
    def quota_changed(self, queue: Queue) -> cython.void:
        """The queue has another quota or another guarantee: the root after a change of the cluster's size."""
        self.parking.wake_blocked(queue.blocked)
        self.reserved_due = True

    def configuration_changed(self, root: Queue, apps: Iterable[Application]) -> None:
        """Queues have come, gone or changed, or the descent reaches other ones."""
        self.parking.recount(apps)
        # Freed nodes count as freed only now: those awake for them may be others than should be.
        for node in self.parking.freed_nodes.nodes:
            self.newly_freed[node] = None
        self.parking.freed_nodes.clear()
        self.gangs_due = True
        self.retry_everything(root)

    # -- asks and reservations -------------------------------------------------------------------------

    @cython.cfunc
    def ask_pending(self, app: Application, ask: Ask) -> cython.void:
        """The ask has arrived, or has other amounts, for which a node that it has reserved may have room."""
        self.parking.wake(app)
        if ask.reserved is not None:
            self.reserved_due = True

    def reservation_made(self) -> None:
        """An ask has reserved a node, and may have to evict something there."""
        self.reserved_due = True

    def reservation_gone(self, node: Node) -> None:
        """A reservation of the node has ended; without any other the node is open again, if it still exists."""
        if node.block is not None and not node.reservations:
            self.node_opened(node)
        self.reserved_due = True

    def reservation_lost(self, ask: Ask) -> None:
        """An ask that is still pending has lost its reservation, and is an ordinary ask again."""
        self.parking.retry(ask)

    # -- gangs -----------------------------------------------------------------------------------------

    def gang_may_fit(self, app: Application) -> None:
        """A gang that starts as a whole may find nodes now, because it held them, or by the answer of a predicate."""
        if app.atomic is not None:
            app.atomic.stale = True
        self.parking.wake(app)

    @cython.ccall
    def gang_changed(self, app: Application) -> cython.void:
        """An ask or allocation was added, changed or removed of an application whose gang may start as a whole."""
        if app.atomic is not None:
            app.atomic.changed()

    @cython.ccall
    def members_freed(self, app: Application) -> cython.void:
        """Asks of the application no longer wait for placeholders, or for the start of their gang."""
        self.parking.wake(app)

    # -- time, and answers from outside ----------------------------------------------------------------

    def backoff_over(self, app: Application) -> None:
        """The back-off of the application has ended."""
        self.parking.wake(app)

    def aged(self, ask: Ask) -> None:
        """The ask is old enough to reserve a node."""
        self.parking.aged(ask)

    def predicates_may_differ(self, kept_off: list[Ask]) -> None:
        """A new call has begun, in which predicates may answer otherwise; `kept_off`: from reserving a node."""
        ask: Ask
        self.reserved_due = True
        self.replacements_due = True
        if self.parking.refused:
            self.parking.retry_refused()
        for ask in kept_off:
            self.parking.retry(ask)

    # -- what is due -----------------------------------------------------------------------------------

    @cython.ccall
    @cython.exceptval(check=False)
    def must_try_reserved(self) -> cython.bint:
        """Tell whether asks that hold a reservation are to be tried: there are some, and something has happened."""
        return self.reserved_due and self.reservations > 0

    def forget_node(self, node: Node) -> None:
        """Forget what happened on a node that is gone. No ask can run because of that, so none is woken."""
        self.newly_freed.pop(node, None)
        self.newly_opened.pop(node, None)
        self.parking.freed_nodes.drop(node)

    @cython.ccall
    def apply_node_events(self) -> cython.void:
        """Wake what may fit the nodes that changed; called before decisions, and after each pass that may change nodes."""
        app: Application
        if not self.newly_freed and not self.newly_opened and not self.eased:
            return
        self.replacements_due = True
        self.gangs_due = True
        for app in self.parking.gangs:
            self.gang_may_fit(app)
        if self.newly_freed or self.newly_opened:
            self.parking.revive_fitting(self.newly_freed, self.newly_opened)
            self.newly_freed.clear()
            self.newly_opened.clear()
        if self.eased:
            self.reserved_due = True
            self.index.generation += 1
            self._revive_eased()
            self.eased.clear()

    @cython.cfunc
    def _revive_eased(self) -> cython.void:
        """Try again what is parked of needs that terms of pods shut out of fewer nodes than before."""
        need: Need
        shape: Shape
        ask: Ask
        for need in self.eased:
            self.parking.forget_need(need)
            for shape in list(need.waiters):
                self.parking.revive(shape)
            for ask in list(need.awaiting):
                end_awaiting(need, ask)
                if ask.parked == AWAITS_NODE:
                    self.parking.awaiting_node.get(ask.required, {}).pop(ask, None)
                    self.parking.retry(ask)
        if self.parking.refused:  # a need may be met by a node that no predicate has been asked about
            self.parking.retry_refused()

    @cython.ccall
    def retry_everything(self, root: Queue) -> cython.void:
        """Try everything again, whether or not anything has happened that may help it.

        Two things depend on how often they are tried, and are not repeated without a cause. An ask that found no victims
        pauses for 15 seconds after each search, so a search too many delays the one that would find some. And a gang
        whose packing failed may fit by chance after other asks were placed (`licorne.core.gangs.atomic`).
        """
        app: Application
        self.parking.wake_tree(root)
        self.reserved_due = True
        self.replacements_due = True
        if self.gangs_due:
            self.gangs_due = False
            for app in self.parking.gangs:
                if app.atomic is not None:
                    app.atomic.stale = True
