"""Never try again what cannot have changed: who waits for what, and what wakes them (design, "Speed", point 1).

An application sleeps, which means that it is not in its queue's order, when nothing of it can be placed now. Each of
its asks then waits for one of these, and the event that can help is told to wake it:

* room under a quota or a user's or group's limit, or a slot for a running application: the application is in `blocked` of
  every queue and tracker that may bind it; what gives something back there wakes all of them;
* a node: the ask is parked (`NO_NODE`) with its shape; a node that gained room, opened or came is compared with
  the shapes that failed, and those that fit it now are revived, with their applications;
* its own required node (`AWAITS_NODE`): any event on that node;
* age: an ask that fits no node may reserve one when it is old enough; a timer wakes it;
* a predicate of the resource manager (`REFUSED`), whose answer may change unseen: the next call.

A wake-up too many costs a look; one too few would leave an ask pending that could run, so that every rule here errs
on the side of waking.
"""

from __future__ import annotations

from typing import Any

import cython

from .timers import Timers

if cython.compiled:
    from cython.cimports.licorne.core.application import Application
    from cython.cimports.licorne.core.asks import Ask, Shape
    from cython.cimports.licorne.core.nodes import Node
    from cython.cimports.licorne.core.queue import Queue
    from cython.cimports.licorne.core.usage import Tracker
    from cython.cimports.licorne.core.vectors import Vec
else:
    from .application import Application
    from .asks import Ask, Shape
    from .nodes import Node
    from .queue import Queue
    from .usage import Tracker
    from .vectors import Vec

NEVER = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
# Why an ask is parked, as in `asks`: C constants belong to their module, and Python's are slower to compare with.
NO_NODE = cython.declare(cython.int, 1)
REFUSED = cython.declare(cython.int, 2)
AWAITS_NODE = cython.declare(cython.int, 3)


@cython.cclass
class Parking:
    """The waiting asks and applications of one partition.

    `reserve_after_ns` is the age from which on an ask may reserve a node, NEVER when reservations are off.
    `reserved_stale`: something has happened that may let a reserved ask run.
    """

    now: cython.longlong
    reserve_after_ns: cython.longlong
    timers: Timers
    failed: dict[Shape, None]
    freed: dict[Node, None]  # since the last `settle`; so `opened`
    opened: dict[Node, None]
    refused: dict[Ask, None]
    on_node: dict[str, dict[Ask, None]]  # who awaits a node, by its id
    reserved_stale: cython.bint
    reservations: cython.longlong  # how many there are
    enabled: cython.bint
    wakeups: cython.longlong

    def __init__(self, timers: Timers, reserve_after_ns: int) -> None:
        self.now = 0
        self.timers = timers
        self.reserve_after_ns = reserve_after_ns
        self.failed = {}
        self.freed = {}
        self.opened = {}
        self.refused = {}
        self.on_node = {}
        self.reserved_stale = True
        self.reservations = 0
        self.wakeups = 0
        self.enabled = True

    # -- applications ----------------------------------------------------------------------------------

    @cython.ccall
    def wake(self, app: Application) -> cython.void:
        """Put the application, and the queues above it, back into their orders."""
        leaf: Queue = app.queue
        queue: Queue | None = leaf
        if app.place >= 0 or app.asks_pending == 0 or not leaf.serves:
            return
        self.wakeups += 1
        leaf.order.push(app)
        while queue is not None:
            queue.active += 1
            if queue.active == 1 and queue.parent is not None:
                queue.parent.order.push(queue)
            queue = queue.parent

    @cython.ccall
    def sleep(self, app: Application) -> cython.void:
        """Take the application out of its queue's order, and queues without active applications out of theirs."""
        queue: Queue | None = app.queue
        if app.place < 0:
            return
        app.queue.order.drop(app)
        while queue is not None:
            queue.active -= 1
            if queue.active == 0 and queue.parent is not None:
                queue.parent.order.drop(queue)
            queue = queue.parent

    @cython.cfunc
    def block(self, app: Application) -> cython.void:
        """Nothing of it can run now: leave it with every quota and limit that may be the cause, and let it sleep."""
        queue: Queue | None = app.queue
        tracker: Tracker
        i: cython.Py_ssize_t
        while queue is not None:
            if queue.limit.binds(queue.allocated, app.high):
                queue.blocked[app] = None
            queue = queue.parent
        for i in range(len(app.trackers)):
            tracker = cython.cast(Tracker, app.trackers[i])
            if tracker.limit is not None and tracker.limit.binds(tracker.used, app.high):
                tracker.blocked[app] = None
        self.sleep(app)

    @cython.ccall
    def wake_blocked(self, blocked: dict[Any, Any]) -> cython.void:
        """A slot, or room, has come where these wait; asks that hold a reservation may have waited for it too."""
        self.reserved_stale = True
        if blocked:
            for app in list(blocked):
                self.wake(app)
            blocked.clear()

    def wake_tree(self, queue: Queue) -> None:
        """Something changed that may matter to every application in this subtree (a reload, another cluster size)."""
        child: Queue
        for child in queue.children.values():
            self.wake_tree(child)
        for app in queue.apps.values():
            self.wake(app)
        queue.blocked.clear()
        self.reserved_stale = True

    # -- asks ------------------------------------------------------------------------------------------

    @cython.cfunc
    def park(self, ask: Ask) -> cython.void:
        """No node has room for the ask, and it cannot reserve one now: wait for a node, or for age."""
        app: Application = cython.cast(Application, ask.app)
        app.requests.park(ask, NO_NODE)
        self._await_age(ask)

    @cython.cfunc
    def _await_age(self, ask: Ask) -> cython.void:
        """Set the timer for the age at which it may reserve a node, unless that has passed or it holds one."""
        if self.reserve_after_ns != NEVER and ask.reserved is None and not ask.aging and not self.is_old(ask):
            ask.aging = True
            self.timers.add(ask.created + self.reserve_after_ns + 1, "aged", ask)

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_old(self, ask: Ask) -> cython.bint:
        """Is it old enough to reserve a node (spec section 7.1: its age exceeds the delay)?"""
        return self.reserve_after_ns != NEVER and self.now - ask.created > self.reserve_after_ns

    @cython.cfunc
    def joined(self, ask: Ask) -> cython.void:
        """A new pending ask: if its shape is known to fit no node it need not be tried, unless it may reserve one."""
        if self.enabled and ask.shape.failed and not self.is_old(ask):
            self.park(ask)

    @cython.cfunc
    def fail(self, shape: Shape) -> cython.void:
        """No node has room for this shape: park its asks, but for those that are old enough to reserve a node."""
        ask: Ask | None = shape.first
        if not self.enabled:
            return
        shape.failed = True
        self.failed[shape] = None
        while ask is not None:
            if not ask.parked and not ask.required and (ask.reserved is not None or not self.is_old(ask)):
                self.park(ask)
            ask = ask.next

    @cython.cfunc
    def revive(self, shape: Shape) -> cython.void:
        """A node may have room for it now."""
        ask: Ask | None = shape.first
        shape.failed = False
        self.failed.pop(shape, None)
        while ask is not None:
            if ask.parked == NO_NODE:
                self.retry(ask)
            ask = ask.next

    @cython.ccall
    def retry(self, ask: Ask) -> cython.void:
        """Try this ask again."""
        app: Application = cython.cast(Application, ask.app)
        if ask.block is None:
            return
        app.requests.unpark(ask)
        self.wake(app)

    def aged(self, ask: Ask) -> None:
        """The ask is old enough now to reserve a node."""
        ask.aging = False
        if ask.parked in (NO_NODE, REFUSED) and ask.reserved is None:
            self.retry(ask)

    @cython.cfunc
    def refuse(self, ask: Ask) -> cython.void:
        """A predicate of the resource manager kept it off a node that had room."""
        cython.cast(Application, ask.app).requests.park(ask, REFUSED)
        self.refused[ask] = None
        self._await_age(ask)

    @cython.cfunc
    def await_node(self, ask: Ask) -> cython.void:
        """It waits for its required node."""
        cython.cast(Application, ask.app).requests.park(ask, AWAITS_NODE)
        self.on_node.setdefault(ask.required, {})[ask] = None

    # -- events on nodes -------------------------------------------------------------------------------

    @cython.ccall
    def node_freed(self, node: Node) -> cython.void:
        """Room was freed on the node."""
        self.freed[node] = None
        self.reserved_stale = True

    def node_opened(self, node: Node) -> None:
        """The node is new, may be used again, or has other capacity or attributes: a candidate for reservations too."""
        self.opened[node] = None
        self.reserved_stale = True

    def node_gone(self, node: Node) -> None:
        """The node has been removed."""
        self.freed.pop(node, None)
        self.opened.pop(node, None)
        self.reserved_stale = True
        self._wake_required(node)

    def settle(self) -> None:
        """Before decisions: compare what failed with the nodes that changed, and wake what they may hold."""
        shape: Shape
        node: Node
        for node in self.freed:
            self._wake_required(node)
        for node in self.opened:
            self._wake_required(node)
        if self.failed and (self.freed or self.opened):
            self._revive_fitting()
        if self.refused and (self.freed or self.opened):  # its shape has not failed: it is not among those
            self.retry_refused()
        self.freed.clear()
        self.opened.clear()

    def retry_refused(self) -> None:
        """A new call, or a node that changed: ask the predicates again."""
        ask: Ask
        refused = list(self.refused)
        self.refused.clear()
        for ask in refused:
            if ask.parked == REFUSED:
                self.retry(ask)

    def _wake_required(self, node: Node) -> None:
        ask: Ask
        for ask in self.on_node.pop(node.id, {}):
            if ask.parked == AWAITS_NODE:
                self.retry(ask)

    @cython.cfunc
    def _revive_fitting(self) -> cython.void:
        """Revive every failed shape that fits on a node that changed."""
        most: Vec = Vec()
        nodes: list[Any] = []
        rooms: list[Any] = []
        node: Node
        shape: Shape
        room: Vec
        i: cython.Py_ssize_t
        for changed in self.freed:
            node = changed
            nodes.append(node)
            rooms.append(node.free)
        for changed in self.opened:  # a node that opened may also be reserved: what counts is its size
            node = changed
            nodes.append(node)
            rooms.append(node.free if self.reserve_after_ns == NEVER else node.capacity)
        for i in range(len(rooms)):
            most.raise_to(cython.cast(Vec, rooms[i]))
        for failed in list(self.failed):
            shape = failed
            if not most.holds(shape.amounts):
                continue
            for i in range(len(nodes)):
                node = cython.cast(Node, nodes[i])
                room = cython.cast(Vec, rooms[i])
                if (node.bits & shape.need.mask) == shape.need.mask and room.holds(shape.amounts):
                    self.revive(shape)
                    break
