"""Who sleeps: applications that are not in their queue's order, and queues not in their parent's, for nothing is to be tried.

Applications sleep when nothing of them can be placed now, and are left with what can wake them (`licorne.core.waiting.parking`).
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

    `active_count` counts who is awake for another reason than a candidate; who is awake for one may stay so. `newly_freed` are
    nodes, and `reserved_stale` says that something has happened that may let a reserved ask run. `waiting_for_claims` are who waits for
    what others claim (`licorne.core.preemption.claims`).
    """

    freed_nodes: FreedNodes
    active_count: cython.longlong
    woken_by_freed_node: dict[Application, None]  # who is awake for candidates; perhaps some that are restless by now
    waiting: dict[Application, None]  # who is asleep, with asks that wait for a node; perhaps some that were
    waiting_for_claims: dict[Application, None]
    newly_freed: dict[Node, None]  # since the last `settle`
    reserved_stale: cython.bint
    may_preempt: cython.bint  # a visit in vain tells preemption for guarantees of an application
    wakeups: cython.longlong

    def __init__(self) -> None:
        self.freed_nodes = FreedNodes()
        self.active_count = 0
        self.woken_by_freed_node = {}
        self.waiting = {}
        self.waiting_for_claims = {}
        self.newly_freed = {}
        self.reserved_stale = True
        self.may_preempt = False
        self.wakeups = 0

    @cython.ccall
    def wake(self, app: Application) -> cython.void:
        """Put the application, and the queues above it, back into their orders."""
        self.wake_for_freed_node(app)
        if app.heap_index >= 0 and not app.active:
            app.active = True
            self.active_count += 1

    @cython.cfunc
    def wake_for_freed_node(self, app: Application) -> cython.void:
        """The same, but only because of the candidates."""
        leaf: Queue = app.queue
        queue: Queue | None = leaf
        if app.heap_index >= 0 or app.asks_pending == 0 or not leaf.reachable:
            return
        self.wakeups += 1
        self.woken_by_freed_node[app] = None
        leaf.order.push(app)
        while queue is not None:
            queue.awake_count += 1
            if queue.awake_count == 1 and queue.parent is not None:
                queue.parent.order.push(queue)
                queue.parent.next_turn = 0  # it may stand before the one that had the last turn
            queue = queue.parent

    @cython.ccall
    def sleep(self, app: Application) -> cython.void:
        """Take the application out of its queue's order, and queues without active applications out of theirs."""
        queue: Queue | None = app.queue
        if app.heap_index < 0:
            return
        if app.active:
            app.active = False
            self.active_count -= 1
        self.woken_by_freed_node.pop(app, None)
        if app.requests.waiting_count:
            self.waiting[app] = None
        app.queue.order.drop(app)
        while queue is not None:
            queue.awake_count -= 1
            if queue.awake_count == 0 and queue.parent is not None:
                queue.parent.order.drop(queue)
            queue = queue.parent

    def forget(self, app: Application) -> None:
        """The application has gone."""
        self.waiting.pop(app, None)
        self.woken_by_freed_node.pop(app, None)
        self.waiting_for_claims.pop(app, None)

    @cython.cfunc
    def block(self, app: Application) -> cython.void:
        """Nothing of it can run now: leave it with a quota or limit that is the cause, and let it sleep.

        Where one of them leaves no room for the least of its asks, nothing can run before that gives room, so that one
        alone has to wake it: an application that waits for its own queue's quota must cost nothing when others, under
        another quota, give something back. Else it waits with all that may be a cause, and any room there wakes it.
        Asks that are parked wait for something else. Where a back-off counts asks that fit no node, room lets more of
        them be counted, parked ones too: there any room wakes it, and also where it may preempt, for what is given back
        changes what its queue is entitled to.
        """
        queue: Queue | None = app.queue
        tracker: Tracker
        i: cython.Py_ssize_t
        least: Vec = new_vec(0, 0)
        self.sleep(app)
        if not app.queue.backoff and not self.may_preempt:
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
        """Room has come under a limit where these wait: wake those of which it may hold something."""
        app: Application
        woken: list[Any] = []
        for app, least in blocked.items():
            if least is None or limit is None or not limit.binds(used, cython.cast(Vec, least)):
                woken.append(app)
        self._wake_some(blocked, woken)

    @cython.cfunc
    def _wake_some(self, blocked: dict[Any, Any], woken: list[Any]) -> cython.void:
        """Wake these applications, of all that wait at a limit; the others go on waiting there."""
        for app in woken:
            del blocked[app]
            self.wake(app)

    @cython.ccall
    def wake_blocked(self, blocked: dict[Any, Any]) -> cython.void:
        """A slot, or room, has come where these wait; asks that hold a reservation may have waited for it too."""
        self.reserved_stale = True
        if blocked:
            for app in list(blocked):
                self.wake(app)
            blocked.clear()

    @cython.cfunc
    def wake_slots(self, blocked: dict[Any, Any]) -> cython.void:
        """A slot for a running application has come, or a turn: wake those that do not wait for room alone."""
        app: Application
        woken: list[Any] = []
        self.reserved_stale = True
        for app, least in blocked.items():
            if least is None:
                woken.append(app)
        self._wake_some(blocked, woken)

    def tree_changed(self, root: Queue, apps: Iterable[Application]) -> None:
        """Queues have come, gone or changed, or which of them serve: everything may be tried again."""
        app: Application
        self.active_count = 0
        for app in apps:
            app.active = app.active and app.heap_index >= 0
            self.active_count += app.active
            if app.heap_index < 0:  # it may be the tree that has put it to sleep, as nobody serves its queue
                self.woken_by_freed_node.pop(app, None)
                if app.requests.waiting_count:
                    self.waiting[app] = None
        for node in self.freed_nodes.nodes:
            self.newly_freed[node] = None  # as if it were only now: others may be awake for it than should be
        self.freed_nodes.clear()
        self.wake_tree(root)

    def wake_tree(self, queue: Queue) -> None:
        """Something changed that may matter to every application in this subtree (a reload, another cluster size)."""
        child: Queue
        for child in queue.children.values():
            self.wake_tree(child)
        for app in queue.apps.values():
            self.wake(app)
        queue.blocked.clear()
        self.reserved_stale = True
