"""Sleeping applications: those that are not in their queue's order, because nothing of them can be placed now.

A queue without awake applications is not in its parent's order either, so the descent does not visit it. A sleeping
application is noted wherever something may happen that helps it, and is woken then (`licorne.core.waiting.parking`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec, new_vec
    from cython.cimports.licorne.core.nodes.node import Node
    from cython.cimports.licorne.core.queues.application import Application
    from cython.cimports.licorne.core.queues.freed_nodes import FreedNodes
    from cython.cimports.licorne.core.queues.queue import Queue
    from cython.cimports.licorne.core.queues.usage import Tracker
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec, new_vec
    from licorne.core.nodes.node import Node
    from licorne.core.queues.application import Application
    from licorne.core.queues.freed_nodes import FreedNodes
    from licorne.core.queues.queue import Queue
    from licorne.core.queues.usage import Tracker


@cython.cclass
class SleepingApplications:
    """The applications of one partition, asleep and awake.

    `active_count` is the number of active applications: awake, and woken by something other than a freed node.
    An application that a freed node woke may stay awake when that node has no more room; it is not active by that.
    """

    freed_nodes: FreedNodes
    active_count: cython.longlong
    maybe_inactive: dict[Application, None]  # awake, since a freed node woke them; some are active by now
    waiting: dict[Application, None]  # asleep, with asks that wait for a node; some may no longer be
    waiting_for_claims: dict[Application, None]  # asleep, because claims of others take what they need
    newly_freed: dict[Node, None]  # nodes on which room was freed since the last `apply_node_changes`
    reserved_stale: cython.bint  # something has happened that may let an ask with a reservation run
    may_preempt: cython.bint  # an application of which nothing was placed is noted for preemption for guarantees
    wakeups: cython.longlong  # counted work

    def __init__(self) -> None:
        self.freed_nodes = FreedNodes()
        self.active_count = 0
        self.maybe_inactive = {}
        self.waiting = {}
        self.waiting_for_claims = {}
        self.newly_freed = {}
        self.reserved_stale = True
        self.may_preempt = False
        self.wakeups = 0

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
        """Forget an application that has left its queue."""
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
                if queue.limit.binds(queue.allocated, least):
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

    @cython.ccall
    def wake_blocked(self, blocked: dict[Any, Any]) -> cython.void:
        """Wake all of these blocked applications, as there may be a slot or room for them now."""
        self.reserved_stale = True  # asks that hold a reservation may have waited for it too
        if blocked:
            for app in list(blocked):
                self.wake(app)
            blocked.clear()

    @cython.cfunc
    def wake_slots(self, blocked: dict[Any, Any]) -> cython.void:
        """Wake the blocked applications that do not wait for room alone, as a slot to run, or a turn, has come."""
        app: Application
        woken: list[Any] = []
        self.reserved_stale = True
        for app, least in blocked.items():
            if least is None:
                woken.append(app)
        self._wake_some(blocked, woken)

    def tree_changed(self, root: Queue, apps: Iterable[Application]) -> None:
        """Wake everything, after queues have come, gone or changed, or the descent reaches other ones."""
        app: Application
        self.active_count = 0
        for app in apps:
            app.active = app.active and app.heap_index >= 0
            self.active_count += app.active
            if app.heap_index < 0:  # the reload may have put it to sleep, where the descent no longer reaches its queue
                self.maybe_inactive.pop(app, None)
                if app.requests.waiting_count:
                    self.waiting[app] = None
        # Freed nodes count as freed only now: those awake for them may be others than should be.
        for node in self.freed_nodes.nodes:
            self.newly_freed[node] = None
        self.freed_nodes.clear()
        self.wake_tree(root)

    def wake_tree(self, queue: Queue) -> None:
        """Wake every application in this subtree, after a reload or a change of the cluster's size."""
        child: Queue
        for child in queue.children.values():
            self.wake_tree(child)
        for app in queue.apps.values():
            self.wake(app)
        queue.blocked.clear()
        self.reserved_stale = True
