"""Parking: which asks and applications wait, and what for.

Source: docs/spec/design.md, "Speed is designed in", point 1.

An ask that could not be placed is not tried again before something has changed that can help it; otherwise each
decision would visit pending asks in vain. An application sleeps, which means that it is not in its queue's order, when
nothing of it can be placed now; a queue without awake applications is not in its parent's order either, so the descent
does not visit it. Each ask of a sleeping application waits for one of these:

* room under a quota or a user's or group's limit, or a slot for a running application: the application is in `blocked`
  of the first queue or tracker that keeps out all of its asks, or else of each that may be the cause, and whatever
  gives something back there wakes it;
* a node: the ask is parked (`NO_NODE`), its shape has failed, and any ask with the same need that is no smaller fails
  without a search (`Need.failed`). When a node comes or opens, failed shapes that fit it are revived, with their
  applications. Where reservations are switched off, a node on which room was only freed becomes a *freed node*: parked
  asks stay parked, and are tried on the few freed nodes alone, in the usual order, until none of them fits any more;
* its own required node (`AWAITS_NODE`): any event on that node wakes it;
* the age from which it may reserve a node: a timer wakes it;
* a predicate (`REFUSED`): the next call tries it again, as does an event on a node.

Which events end the waiting is the subject of `licorne.core.waiting.wakeups`, through which all of them pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from licorne._plain import cython
from licorne.core.amounts.minima import Minima
from licorne.core.amounts.vectors import Vec, new_vec
from licorne.core.base.timers import Timers
from licorne.core.constants import AWAITS_NODE, NEVER, NO_NODE, REFUSED
from licorne.core.nodes.domains import begin_awaiting, end_awaiting
from licorne.core.nodes.node import Need, Node
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.freed_nodes import FreedNodes
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage import Tracker

FREED_NODES_MAX = cython.declare(cython.Py_ssize_t, 16)  # with more freed nodes a search of all nodes is quicker


@cython.cclass
class Parking:
    """The waiting asks and applications of one partition.

    `active_count` is the number of active applications: awake, and woken by something other than a freed node.
    An application that a freed node woke may stay awake when that node has no more room; it is not active by that.

    `reserve_after_ns` is the age from which on an ask may reserve a node, NEVER when reservations are off; only then
    are there freed nodes. The invariant of failures: whatever has failed, a shape or a size in `Need.failed`, fits no
    node except freed nodes and those on which an event was noted that is not applied yet (`WakeUps`).

    An ask that waits for a node is found through three minima: those of its block, of its application, and, if there
    can be freed nodes, `waiting_minima`. Only `park` lets an ask begin to wait, and it adds the ask to all three each
    time. None of them implies anything about the others: each may hold asks that are gone, or lower bounds of several,
    and is made exact by itself.
    """

    now: cython.longlong
    reserve_after_ns: cython.longlong
    timers: Timers
    enabled: cython.bint  # the setting `scheduler.parking`
    may_preempt: cython.bint  # an application of which nothing was placed is noted for preemption for guarantees
    # Applications
    active_count: cython.longlong
    wakeups: cython.longlong  # counted work
    maybe_inactive: dict[Application, None]  # awake, since a freed node woke them; some are active by now
    waiting: dict[Application, None]  # asleep, with asks that wait for a node; some may no longer be
    waiting_for_claims: dict[Application, None]  # asleep, because claims of others take what they need
    gangs: dict[Application, None]  # gangs that start as a whole, and wait for nodes
    # Asks
    failed: dict[Shape, None]
    failed_needs: dict[Need, None]  # needs whose `failed` is not empty; each has pending asks
    waiting_minima: Minima  # of all asks that wait for a node; some may no longer do
    # Applications examined in vain since `waiting_minima` was exact: it reported a fit, and none of them had one.
    failed_looks: cython.longlong
    refused: dict[Ask, None]  # asks that a predicate kept off a node
    awaiting_node: dict[str, dict[Ask, None]]  # asks that wait for their required node, by its id
    freed_nodes: FreedNodes

    def __init__(self, timers: Timers, reserve_after_ns: int) -> None:
        self.now = 0
        self.reserve_after_ns = reserve_after_ns
        self.timers = timers
        self.enabled = True
        self.may_preempt = False
        self.active_count = 0
        self.wakeups = 0
        self.maybe_inactive = {}
        self.waiting = {}
        self.waiting_for_claims = {}
        self.gangs = {}
        self.failed = {}
        self.failed_needs = {}
        self.waiting_minima = Minima(False)
        self.failed_looks = 0
        self.refused = {}
        self.awaiting_node = {}
        self.freed_nodes = FreedNodes()

    # -- applications ----------------------------------------------------------------------------------

    @cython.ccall
    def wake(self, app: Application) -> cython.void:
        """Wake the application: put it, and the queues above it, back into their orders. It is active then."""
        self.wake_for_freed_node(app)
        if app.heap_index >= 0 and not app.active:
            app.active = True
            self.active_count += 1

    @cython.cfunc
    def wake_for_freed_node(self, app: Application) -> cython.void:
        """Put the application, and the queues above it, into their orders, without making it active.

        Nothing happens if it is awake, has no pending asks, or is in a queue that the descent does not reach.
        """
        leaf: Queue = app.queue
        queue: Queue | None = leaf
        if app.heap_index >= 0 or app.asks_pending == 0 or not leaf.reachable:
            return
        self.wakeups += 1
        self.maybe_inactive[app] = None
        leaf.order.push(app)
        while queue is not None:
            queue.awake_count += 1
            if queue.awake_count == 1 and queue.parent is not None:
                queue.parent.order.push(queue)
                queue.parent.next_turn = 0  # the queue may come before the sibling that had the last turn
            queue = queue.parent

    @cython.ccall
    def sleep(self, app: Application) -> cython.void:
        """Take the application out of its queue's order, and queues without awake applications out of theirs."""
        queue: Queue | None = app.queue
        if app.heap_index < 0:
            return
        if app.active:
            app.active = False
            self.active_count -= 1
        self.maybe_inactive.pop(app, None)
        if app.requests.waiting_count:
            self.waiting[app] = None
        app.queue.order.drop(app)
        while queue is not None:
            queue.awake_count -= 1
            if queue.awake_count == 0 and queue.parent is not None:
                queue.parent.order.drop(queue)
            queue = queue.parent

    def forget(self, app: Application) -> None:
        """Remove an application that leaves its queue from all lists of applications that wait."""
        for queue in app.queue.lineage():
            queue.blocked.pop(app, None)
        self.waiting.pop(app, None)
        self.maybe_inactive.pop(app, None)
        self.waiting_for_claims.pop(app, None)

    @cython.cfunc
    def block(self, app: Application) -> cython.void:
        """Let an application sleep, of which nothing can run now, and note it at the quotas and limits that may be why.

        If one of them leaves no room even for the least that a live ask wants, nothing can run before that one gives
        room. So the application is noted there alone: if it waits for its own queue's quota, it must cost nothing when
        others, under another quota, give something back. Otherwise it is noted at every quota and limit that may be the
        cause, and any room there wakes it. Parked asks do not count here, as they wait for something else.

        There are two exceptions, in which any room wakes it. A queue with a back-off counts asks that fit no node, and
        room lets more of them be counted, parked ones too. Where the application may preempt, whatever is given back
        changes what its queue is entitled to.
        """
        queue: Queue | None = app.queue
        tracker: Tracker
        i: cython.Py_ssize_t
        least: Vec = new_vec(0, 0)
        self.sleep(app)
        if not app.queue.backoff_after and not self.may_preempt:
            if not app.requests.least_live(least):
                return
            while queue is not None:
                # Root binds no ask that requires its node, so it is not the only cause where there may be such asks.
                if queue.limit.binds(queue.allocated, least) and not (app.requires_nodes and queue.parent is None):
                    queue.blocked[app] = least
                    return
                queue = queue.parent
            for i in range(len(app.trackers)):
                tracker = cython.cast(Tracker, app.trackers[i])
                if tracker.limit is not None and tracker.limit.binds(tracker.used, least):
                    tracker.blocked[app] = least
                    return
            queue = app.queue
        while queue is not None:
            if queue.limit.binds(queue.allocated, app.high):
                queue.blocked[app] = None
            queue = queue.parent
        for i in range(len(app.trackers)):
            tracker = cython.cast(Tracker, app.trackers[i])
            if tracker.limit is not None and tracker.limit.binds(tracker.used, app.high):
                tracker.blocked[app] = None

    @cython.ccall
    def block_at(self, app: Application, levels: Iterable[Queue | Tracker]) -> cython.void:
        """Record that an application waits for room in these queues, or under these limits of its user and group.

        Amounts that are given back in any of them wake it (`WakeUps.room_returned`).
        """
        for level in levels:
            level.blocked[app] = None

    def block_for_claims(self, app: Application, levels: Iterable[Queue | Tracker]) -> None:
        """Record that an application waits for room that other asks claim after an eviction, in these queues and limits.

        The end of a claim wakes it, as do amounts that are given back in any of them.
        """
        self.block_at(app, levels)
        self.waiting_for_claims[app] = None

    @cython.cfunc
    def wake_fitting(self, blocked: dict[Any, Any], limit: Vec | None, used: Vec) -> cython.void:
        """Wake those applications blocked at a limit of which something may fit now.

        `blocked` maps each to a lower bound of its live asks, or to None if any room is to wake it.
        """
        app: Application
        woken: list[Any] = []
        for app, least in blocked.items():
            if least is None or limit is None or not limit.binds(used, cython.cast(Vec, least)):
                woken.append(app)
        self._wake_some(blocked, woken)

    @cython.cfunc
    def _wake_some(self, blocked: dict[Any, Any], woken: list[Any]) -> cython.void:
        """Wake some of the applications that are blocked at a limit; the others stay blocked there."""
        for app in woken:
            del blocked[app]
            self.wake(app)

    @cython.cfunc
    def wake_blocked(self, blocked: dict[Any, Any]) -> cython.void:
        """Wake all of these blocked applications, as there may be a slot or room for them now."""
        for app in list(blocked):
            self.wake(app)
        blocked.clear()

    @cython.cfunc
    def wake_slots(self, blocked: dict[Any, Any]) -> cython.void:
        """Wake the blocked applications that do not wait for room alone, as a slot to run, or a turn, has come."""
        self._wake_some(blocked, [app for app, least in blocked.items() if least is None])

    @cython.cfunc
    def wake_tree(self, queue: Queue) -> cython.void:
        """Wake every application of a queue and of those below it."""
        child: Queue
        app: Application
        for child in queue.children.values():
            self.wake_tree(child)
        for app in queue.apps.values():
            self.wake(app)
        queue.blocked.clear()

    def recount(self, apps: Iterable[Application]) -> None:
        """Count anew which applications are awake and active, after the queues have changed."""
        app: Application
        self.active_count = 0
        for app in apps:
            app.active = app.active and app.heap_index >= 0
            self.active_count += app.active
            if app.heap_index < 0:  # the reload may have put it to sleep, where the descent no longer reaches its queue
                self.maybe_inactive.pop(app, None)
                if app.requests.waiting_count:
                    self.waiting[app] = None

    # -- asks ------------------------------------------------------------------------------------------

    @cython.cfunc
    def park(self, ask: Ask) -> cython.void:
        """Park an ask for which no node has room and which may not reserve one now: it waits for a node, or for age."""
        app: Application = cython.cast(Application, ask.app)
        if app.heap_index < 0:
            self.waiting[app] = None
        app.requests.park(ask, NO_NODE)
        if self.reserve_after_ns == NEVER:  # with reservations there are no freed nodes, which these minima are for
            self.waiting_minima.add(ask.shape.amounts)
        else:
            self._await_age(ask)

    @cython.cfunc
    def _await_age(self, ask: Ask) -> cython.void:
        """Set the timer for the age at which the ask may reserve a node, unless it is older or has reserved one."""
        if self.reserve_after_ns != NEVER and ask.reserved is None and ask.deadline is None and not self.is_old(ask):
            ask.deadline = self.timers.add(ask.created + self.reserve_after_ns + 1, "aged", ask)

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_old(self, ask: Ask) -> cython.bint:
        """Is the ask old enough to reserve a node (docs/spec/scheduling.md, section 7.1: its age exceeds the delay)?"""
        return self.reserve_after_ns != NEVER and self.now - ask.created > self.reserve_after_ns

    @cython.cfunc
    def ask_added(self, ask: Ask) -> cython.void:
        """Park a new pending ask at once if it is known to fit no node, unless it may reserve one."""
        if not self.enabled or self.is_old(ask):
            return
        if ask.shape.failed:
            self.park(ask)
        elif ask.shape.need.failed.any_within(ask.shape.amounts) and not self.freed_nodes.fit(ask.shape):
            self.fail(ask.shape)

    @cython.cfunc
    def fail(self, shape: Shape) -> cython.void:
        """Note that no node has room for this shape, and park its asks, except those old enough to reserve a node."""
        ask: Ask | None = shape.first
        if not self.enabled:
            return
        shape.failed = True
        self.failed[shape] = None
        if shape.need.pods is not None:
            shape.need.waiters[shape] = None
        shape.need.failed.add(shape.amounts)
        self.failed_needs[shape.need] = None
        while ask is not None:
            if not ask.parked and not ask.required and (ask.reserved is not None or not self.is_old(ask)):
                self.park(ask)
            elif ask.parked != NO_NODE:
                self.freed_nodes.partly_parked[shape] = None
            ask = ask.next

    @cython.cfunc
    def revive(self, shape: Shape) -> cython.void:
        """Take back that the shape has failed, as a node may have room for it now; its parked asks are tried again."""
        ask: Ask | None = shape.first
        self.clear_failed(shape)
        while ask is not None:
            if ask.parked == NO_NODE:
                self.retry(ask)
            ask = ask.next

    @cython.cfunc
    def clear_failed(self, shape: Shape) -> cython.void:
        """Forget that the shape has failed: a node may fit it, or it has no pending asks any longer."""
        shape.failed = False
        self.failed.pop(shape, None)
        shape.need.waiters.pop(shape, None)
        self.freed_nodes.partly_parked.pop(shape, None)

    @cython.cfunc
    def forget_need(self, need: Need) -> cython.void:
        """Forget the failures of a need without pending asks, so that nodes that change are not compared with them."""
        if need.failed.count:
            need.failed.clear()
            del self.failed_needs[need]

    @cython.ccall
    def retry(self, ask: Ask) -> cython.void:
        """Unpark an ask, so that it is tried again, unless it waits for placeholders or for its gang to start."""
        app: Application = cython.cast(Application, ask.app)
        if ask.shape.failed:
            self.freed_nodes.partly_parked[ask.shape] = None
        if ask.block is not None and ask.parked <= AWAITS_NODE:
            app.requests.unpark(ask)
            self.wake(app)

    def aged(self, ask: Ask) -> None:
        """Let an ask be tried that has become old enough to reserve a node; called by its timer."""
        ask.deadline = None
        if ask.parked in (NO_NODE, REFUSED) and ask.reserved is None:
            self.retry(ask)

    @cython.cfunc
    def refuse(self, ask: Ask) -> cython.void:
        """Park an ask that a predicate of the resource manager kept off a node with room."""
        cython.cast(Application, ask.app).requests.park(ask, REFUSED)
        self.refused[ask] = None
        self._await_age(ask)

    @cython.cfunc
    def await_node(self, ask: Ask) -> cython.void:
        """Park an ask that waits for its required node."""
        cython.cast(Application, ask.app).requests.park(ask, AWAITS_NODE)
        self.awaiting_node.setdefault(ask.required, {})[ask] = None
        begin_awaiting(ask.shape.need, ask)

    @cython.cfunc
    def forget_parked(self, ask: Ask) -> cython.void:
        """Unmark an ask as parked, and remove it from the lists of parked asks, because it is no longer pending."""
        ask.parked = 0
        self.refused.pop(ask, None)
        if ask.required:
            end_awaiting(ask.shape.need, ask)
            waiting = self.awaiting_node.get(ask.required)
            if waiting is not None:
                waiting.pop(ask, None)
                if not waiting:
                    del self.awaiting_node[ask.required]

    # -- nodes that changed ----------------------------------------------------------------------------

    @cython.cfunc
    def revive_fitting(self, freed: dict[Node, None], opened: dict[Node, None]) -> cython.void:
        """Compare what has failed with nodes that changed, and wake what may fit them; called before decisions.

        On `freed` nodes room has only become free. `opened` nodes may also be such as an old ask can reserve now.
        """
        node: Node
        if self.awaiting_node:
            for node in [*freed, *opened]:
                self.wake_required(node)
        if self.failed:
            if (
                self.reserve_after_ns == NEVER  # else old asks may be live although their shape has failed
                and not opened
                and len(freed) + len(self.freed_nodes.nodes) <= FREED_NODES_MAX
            ):
                for node in freed:
                    self.freed_nodes.add(node)
                self._wake_for_freed_nodes()
            else:
                self._revive_on_changed_nodes([*freed, *opened], opened)
        else:
            for node in [*freed, *opened]:
                self._forget_failures_within(node.free)
        if self.refused:  # the shape of a refused ask has not failed, so the comparisons above do not find it
            self.retry_refused()

    # -- freed nodes -----------------------------------------------------------------------------------

    @cython.cfunc
    def _wake_for_freed_nodes(self) -> cython.void:
        """Wake the applications with a parked ask that may fit a freed node."""
        app: Application
        gone: cython.bint = False
        if not self.waiting_minima.any_within(self.freed_nodes.most):
            return
        self.failed_looks += len(self.waiting)
        for app in self.waiting:
            if (
                app.heap_index < 0
                and app.requests.waiting_count
                and app.requests.waiting_minima.any_within(self.freed_nodes.most)
            ):
                self.wake_for_freed_node(app)
                if app.heap_index < 0:  # not woken, because the descent does not reach its queue
                    self.revive_on_freed_nodes(app)
            gone = gone or app.heap_index >= 0 or app.requests.waiting_count == 0
        if gone:
            self.waiting = {app: None for app in self.waiting if app.heap_index < 0 and app.requests.waiting_count}

    @cython.cfunc
    @cython.exceptval(-1)
    def idle(self) -> cython.bint:
        """Is there nothing to try? So it is if no application is active, and no parked ask may fit a freed node."""
        app: Application
        if self.active_count:
            return False
        if self.freed_nodes.nodes:
            self.freed_nodes.measure()
            if self.waiting_minima.any_within(self.freed_nodes.most):
                for app in self.maybe_inactive:
                    if app.requests.waiting_count and app.requests.waiting_minima.any_within(self.freed_nodes.most):
                        return False
                self.failed_looks += len(self.maybe_inactive)
                self._tighten()
        return True

    @cython.cfunc
    def _tighten(self) -> cython.void:
        """Make `waiting_minima` exact, once examining applications in vain has cost about as much as that does.

        No application is active now, so all that have waiting asks are in the two dicts.
        """
        app: Application
        if self.failed_looks <= 16 * (len(self.waiting) + len(self.maybe_inactive)):
            return
        self.failed_looks = 0
        self.waiting_minima.clear()
        for app in [*self.waiting, *self.maybe_inactive]:
            if app.requests.waiting_count:
                self.waiting_minima.add_all(app.requests.waiting_minima)

    @cython.cfunc
    def release_freed_nodes(self) -> cython.void:
        """Treat freed nodes as ordinary ones again, once no ask that waits for a node fits them.

        What fits a freed node has not failed, so that the invariant of failures holds for all nodes from now on.
        """
        node: Node
        shape: Shape
        if self.freed_nodes.nodes:
            for node in self.freed_nodes.nodes:
                self._forget_failures_within(node.free)
            # Live asks of these failed shapes were not tried on the freed nodes.
            if self.freed_nodes.partly_parked:
                for shape in list(self.freed_nodes.partly_parked):
                    if self.freed_nodes.fit(shape):
                        self.revive(shape)
            self.freed_nodes.clear()

    @cython.cfunc
    def revive_on_freed_nodes(self, app: Application) -> cython.void:
        """Revive the shapes of an application that fit a freed node, because the application cannot be tried now.

        Without that they would still count as failed, although a node has room, when the freed nodes are released.
        """
        ask: Ask
        if (
            self.freed_nodes.nodes
            and app.requests.waiting_count
            and app.requests.waiting_minima.any_within(self.freed_nodes.most)
        ):
            for ask in app.requests.in_order():
                if ask.parked == NO_NODE and self.freed_nodes.fit(ask.shape):
                    self.revive(ask.shape)

    @cython.cfunc
    def _forget_failures_within(self, room: Vec) -> cython.void:
        """Drop the failures of all needs that are no larger than this room, as a node has it."""
        need: Need
        emptied: list[Any] = []
        for need in self.failed_needs:
            need.failed.forget_below(room)
            if need.failed.count == 0:
                emptied.append(need)
        for need in emptied:
            del self.failed_needs[need]

    def retry_refused(self) -> None:
        """Try refused asks again: at a new call, or when a node has changed, a predicate may answer otherwise."""
        ask: Ask
        refused, self.refused = self.refused, {}
        for ask in refused:
            if ask.parked == REFUSED:
                self.retry(ask)

    def validate(self, apps: Iterable[Application]) -> None:
        """Check that every waiting ask and application will be found by what is to wake it; raises AssertionError."""
        app: Application
        ask: Ask
        for app in self.maybe_inactive:
            assert app.heap_index >= 0, f"application {app.id} is asleep, but counts as awake for a candidate"
        for app in apps:
            if app.requests.waiting_count:
                if app.heap_index < 0:
                    assert app in self.waiting, f"application {app.id} sleeps"
                else:
                    assert app.active or app in self.maybe_inactive, f"application {app.id} is awake"
            for ask in app.requests.in_order():
                if self.reserve_after_ns != NEVER:
                    pass  # with reservations there are no freed nodes
                elif ask.parked == NO_NODE:
                    assert self.waiting_minima.any_within(ask.shape.amounts), f"minima of the partition at {ask.key}"
                elif ask.shape.failed:
                    assert ask.shape in self.freed_nodes.partly_parked, f"{ask.key} does not wait for a node: a stray"
                if ask.parked == REFUSED:
                    assert ask in self.refused, f"a predicate refused {ask.key}, and is not asked again"
                elif ask.parked == AWAITS_NODE:
                    assert ask in self.awaiting_node.get(ask.required, {}), f"{ask.key} awaits its node"
                elif not ask.parked and app.heap_index < 0:
                    assert self._is_found(app), f"application {app.id} sleeps, and nothing wakes it for {ask.key}"

    def _is_found(self, app: Application) -> bool:
        """Will something wake this sleeping application, which has an ask that is not parked?"""
        blocked = [tracker.blocked for tracker in app.trackers]
        blocked += [queue.blocked for queue in app.queue.lineage()]
        return not app.queue.reachable or app.backoff_until > self.now or any(app in those for those in blocked)

    def wake_required(self, node: Node) -> None:
        """Let the asks that require this node be tried again."""
        ask: Ask
        for ask in self.awaiting_node.pop(node.id, {}):
            if ask.parked == AWAITS_NODE:
                end_awaiting(ask.shape.need, ask)
                self.retry(ask)

    @cython.cfunc
    def _revive_on_changed_nodes(self, nodes: list[Any], opened: dict[Node, None]) -> cython.void:
        """Revive every failed shape that fits on one of the nodes, some of which have `opened`."""
        most: Vec = Vec()
        rooms: list[Any] = []
        node: Node
        need: Need
        shape: Shape
        i: cython.Py_ssize_t
        for i in range(len(nodes)):
            node = cython.cast(Node, nodes[i])
            # An old ask may reserve a node that opened if its capacity is large enough, whatever is free, of devices too.
            by_size: cython.bint = self.reserve_after_ns != NEVER and node in opened
            rooms.append(node.capacity if by_size else node.free)
            most.raise_to(cython.cast(Vec, rooms[i]))
            self._forget_failures_within(cython.cast(Vec, rooms[i]))
        for shape in list(self.failed):
            if not most.covers(shape.amounts):
                continue
            for i in range(len(nodes)):
                node = cython.cast(Node, nodes[i])
                need = shape.need.of_empty() if rooms[i] is node.capacity else shape.need
                if node.meets(need) and cython.cast(Vec, rooms[i]).covers(shape.amounts):
                    self.revive(shape)
                    break
