"""Never try again what cannot have changed: who waits for what, and what wakes them.

Source: docs/spec/design.md, "Speed is designed in", point 1.

An application sleeps, which means that it is not in its queue's order, when nothing of it can be placed now. Each of
its asks then waits for one of these, and the event that can help is told to wake it:

* room under a quota or a user's or group's limit, or a slot for a running application: the application is in `blocked` of
  every queue and tracker that may bind it; what gives something back there wakes all of them;
* a node: the ask is parked (`NO_NODE`), its shape has failed, and whatever is no smaller fails with it unseen
  (`Need.failed`). A node that opened or came is compared with the shapes that failed, and those that fit it now are
  revived, with their applications. A node that only gained room becomes a *candidate*: what is parked stays so, and is
  tried on the candidates alone, in the order in which everything is tried, until nothing is left that one of them holds;
* its own required node (`AWAITS_NODE`): any event on that node;
* age: when it is old enough it may reserve one, and a timer wakes it; a predicate (`REFUSED`): the next call.

A wake-up too many costs a look; one too few would leave an ask pending that could run: in doubt, rules wake.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cython

from .timers import Timers

if cython.compiled:
    from cython.cimports.licorne.core.application import Application
    from cython.cimports.licorne.core.asks import Ask, Shape
    from cython.cimports.licorne.core.constants import AWAITS_NODE, NEVER, NO_NODE, REFUSED
    from cython.cimports.licorne.core.minima import Minima
    from cython.cimports.licorne.core.nodes import Need, Node
    from cython.cimports.licorne.core.sleepers import Sleepers
    from cython.cimports.licorne.core.vectors import Vec
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .application import Application
    from .asks import Ask, Shape
    from .constants import AWAITS_NODE, NEVER, NO_NODE, REFUSED
    from .minima import Minima
    from .nodes import Need, Node
    from .sleepers import Sleepers
    from .vectors import Vec

CANDIDATES_MAX = cython.declare(cython.Py_ssize_t, 16)  # with more of them a search of all nodes is quicker


@cython.cclass
class Parking(Sleepers):
    """The waiting asks and applications of one partition.

    `reserve_after_ns` is the age from which on an ask may reserve a node, NEVER when reservations are off. `stirred`:
    something has happened that may let a stuck replacement run. What has failed, shapes and `Need.failed`, has no room on
    any node but the candidates, and those that are `freed` or `opened`.

    An ask that waits for a node is reached by three minima: of its block, of its application, and `least`, where there
    may be candidates. `park` alone lets an ask begin to wait, and adds it to all of them, each time. None of them says
    anything about the others: each may hold asks that are gone, or lower bounds of several, and is tightened by itself.
    """

    now: cython.longlong
    reserve_after_ns: cython.longlong
    timers: Timers
    failed: dict[Shape, None]
    failed_needs: dict[Need, None]  # whose `failed` is not empty; somebody waits with each of them
    least: Minima  # of all asks that wait for a node; perhaps of some that did
    in_vain: cython.longlong  # applications looked at since it was made, because it says yes where all of them say no
    opened: dict[Node, None]  # since the last `settle`; so `freed`
    refused: dict[Ask, None]
    on_node: dict[str, dict[Ask, None]]  # who awaits a node, by its id
    gangs: dict[Application, None]  # those that wait for nodes as a whole
    stirred: cython.bint
    reservations: cython.longlong  # how many there are
    enabled: cython.bint

    def __init__(self, timers: Timers, reserve_after_ns: int) -> None:
        Sleepers.__init__(self)
        self.now = 0
        self.timers = timers
        self.reserve_after_ns = reserve_after_ns
        self.failed = {}
        self.failed_needs = {}
        self.least = Minima(False)
        self.in_vain = 0
        self.opened = {}
        self.refused = {}
        self.on_node = {}
        self.gangs = {}
        self.stirred = False
        self.reservations = 0
        self.enabled = True

    # -- asks ------------------------------------------------------------------------------------------

    @cython.cfunc
    def park(self, ask: Ask) -> cython.void:
        """No node has room for the ask, and it cannot reserve one now: wait for a node, or for age."""
        app: Application = cython.cast(Application, ask.app)
        if app.place < 0:
            self.waiting[app] = None
        app.requests.park(ask, NO_NODE)
        if self.reserve_after_ns == NEVER:  # else there are no candidates
            self.least.add(ask.shape.amounts)
        else:
            self._await_age(ask)

    @cython.cfunc
    def _await_age(self, ask: Ask) -> cython.void:
        """Set the timer for the age at which it may reserve a node, unless that has passed or it holds one."""
        if self.reserve_after_ns != NEVER and ask.reserved is None and ask.deadline is None and not self.is_old(ask):
            ask.deadline = self.timers.add(ask.created + self.reserve_after_ns + 1, "aged", ask)

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_old(self, ask: Ask) -> cython.bint:
        """Is it old enough to reserve a node (docs/spec/scheduling.md, section 7.1: its age exceeds the delay)?"""
        return self.reserve_after_ns != NEVER and self.now - ask.created > self.reserve_after_ns

    @cython.cfunc
    def joined(self, ask: Ask) -> cython.void:
        """A new pending ask: if it is known to fit no node it need not be tried, unless it may reserve one."""
        if not self.enabled or self.is_old(ask):
            return
        if ask.shape.failed:
            self.park(ask)
        elif ask.shape.need.failed.reach(ask.shape.amounts) and not self.candidates.hold(ask.shape):
            self.fail(ask.shape)

    @cython.cfunc
    def fail(self, shape: Shape) -> cython.void:
        """No node has room for this shape: park its asks, but for those that are old enough to reserve a node."""
        ask: Ask | None = shape.first
        if not self.enabled:
            return
        shape.failed = True
        self.failed[shape] = None
        shape.need.failed.add(shape.amounts)
        self.failed_needs[shape.need] = None
        while ask is not None:
            if not ask.parked and not ask.required and (ask.reserved is not None or not self.is_old(ask)):
                self.park(ask)
            elif ask.parked != NO_NODE:
                self.candidates.strays[shape] = None
            ask = ask.next

    @cython.cfunc
    def revive(self, shape: Shape) -> cython.void:
        """A node may have room for it now."""
        ask: Ask | None = shape.first
        self.not_failed(shape)
        while ask is not None:
            if ask.parked == NO_NODE:
                self.retry(ask)
            ask = ask.next

    @cython.cfunc
    def not_failed(self, shape: Shape) -> cython.void:
        """It has not failed, or nobody waits with it any longer."""
        shape.failed = False
        self.failed.pop(shape, None)
        self.candidates.strays.pop(shape, None)

    @cython.cfunc
    def forget_need(self, need: Need) -> cython.void:
        """Nobody waits with this need any longer: what failed with it is not compared with nodes that change."""
        if need.failed.count:
            need.failed.clear()
            del self.failed_needs[need]

    @cython.ccall
    def retry(self, ask: Ask) -> cython.void:
        """Try this ask again, unless it waits for the members of its gang."""
        app: Application = cython.cast(Application, ask.app)
        if ask.shape.failed:
            self.candidates.strays[ask.shape] = None
        if ask.block is not None and ask.parked <= AWAITS_NODE:
            app.requests.unpark(ask)
            self.wake(app)

    def aged(self, ask: Ask) -> None:
        """The ask is old enough now to reserve a node."""
        ask.deadline = None
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
        self.candidates.drop(node)
        self.reserved_stale = True
        self._wake_required(node)

    @cython.ccall
    def settle(self) -> cython.void:
        """Before decisions: compare what failed with the nodes that changed, and wake what they may hold."""
        node: Node
        if not self.freed and not self.opened:
            return
        self.stirred = True
        for app in self.gangs:
            assert app.atomic is not None, "a gang that waits has not started"
            app.atomic.stale = True
            self.wake(app)
        if self.on_node:
            for node in [*self.freed, *self.opened]:
                self._wake_required(node)
        if self.failed:
            if (
                self.reserve_after_ns == NEVER  # else some that are old are live although their shape has failed
                and not self.opened
                and len(self.freed) + len(self.candidates.nodes) <= CANDIDATES_MAX
            ):
                for node in self.freed:
                    self.candidates.add(node)
                self._rouse_waiting()
            else:
                self._revive_fitting()
        else:
            for node in [*self.freed, *self.opened]:
                self._fits(node.free)
        if self.refused:  # its shape has not failed: it is not among those
            self.retry_refused()
        self.freed.clear()
        self.opened.clear()

    # -- candidates ------------------------------------------------------------------------------------

    @cython.cfunc
    def _rouse_waiting(self) -> cython.void:
        """Wake the applications of which a candidate may hold something."""
        app: Application
        gone: cython.bint = False
        if not self.least.reach(self.candidates.most):
            return
        self.in_vain += len(self.waiting)
        for app in self.waiting:
            if app.place < 0 and app.requests.waits and app.requests.waiting.reach(self.candidates.most):
                self.rouse(app)
                if app.place < 0:  # its queue serves nobody
                    self.surrender(app)
            gone = gone or app.place >= 0 or app.requests.waits == 0
        if gone:
            self.waiting = {app: None for app in self.waiting if app.place < 0 and app.requests.waits}

    @cython.cfunc
    @cython.exceptval(-1)
    def idle(self) -> cython.bint:
        """Is nothing to be tried, because nobody is awake but for candidates, and they hold nothing more?"""
        app: Application
        if self.restless:
            return False
        if self.candidates.nodes:
            self.candidates.measure()
            if self.least.reach(self.candidates.most):
                for app in self.roused:
                    if app.requests.waits and app.requests.waiting.reach(self.candidates.most):
                        return False
                self.in_vain += len(self.roused)
                self._tighten()
        return True

    @cython.cfunc
    def _tighten(self) -> cython.void:
        """Make `least` exact, once as much has been looked at in vain as that costs. Nobody is restless now."""
        app: Application
        if self.in_vain <= 16 * (len(self.waiting) + len(self.roused)):
            return
        self.in_vain = 0
        self.least.clear()
        for app in [*self.waiting, *self.roused]:
            if app.requests.waits:
                self.least.add_all(app.requests.waiting)

    @cython.cfunc
    def dismiss(self) -> cython.void:
        """Nothing that waits for a node is held by a candidate: they are nodes like any other again."""
        node: Node
        shape: Shape
        if self.candidates.nodes:
            for node in self.candidates.nodes:
                self._fits(node.free)
            if self.candidates.strays:  # as seldom
                for shape in list(self.candidates.strays):
                    if self.candidates.hold(shape):
                        self.revive(shape)
            self.candidates.clear()

    @cython.cfunc
    def surrender(self, app: Application) -> cython.void:
        """The application can't be tried: what a candidate holds of it must not count as failed when that is over."""
        ask: Ask
        if self.candidates.nodes and app.requests.waits and app.requests.waiting.reach(self.candidates.most):
            for ask in app.requests.in_order():
                if ask.parked == NO_NODE and self.candidates.hold(ask.shape):
                    self.revive(ask.shape)

    @cython.cfunc
    def _fits(self, room: Vec) -> cython.void:
        """There is a node with this room: what fits in it has not failed."""
        need: Need
        emptied: list[Any] = []
        for need in self.failed_needs:
            need.failed.forget_below(room)
            if need.failed.count == 0:
                emptied.append(need)
        for need in emptied:
            del self.failed_needs[need]

    def retry_refused(self) -> None:
        """A new call, or a node that changed: ask the predicates again."""
        ask: Ask
        refused, self.refused = self.refused, {}
        for ask in refused:
            if ask.parked == REFUSED:
                self.retry(ask)

    def validate(self, apps: Iterable[Application]) -> None:
        """Prove that all who wait can be found by what is to wake them."""
        app: Application
        ask: Ask
        for app in self.roused:
            assert app.place >= 0, f"application {app.id} is asleep, but counts as awake for a candidate"
        for app in apps:
            if app.requests.waits:
                if app.place < 0:
                    assert app in self.waiting, f"application {app.id} sleeps"
                else:
                    assert app.restless or app in self.roused, f"application {app.id} is awake"
            for ask in app.requests.in_order():
                if self.reserve_after_ns != NEVER:
                    pass  # there are no candidates
                elif ask.parked == NO_NODE:
                    assert self.least.reach(ask.shape.amounts), f"minima of the partition at {ask.key}"
                elif ask.shape.failed:
                    assert ask.shape in self.candidates.strays, f"{ask.key} does not wait for a node: a stray"
                if ask.parked == REFUSED:
                    assert ask in self.refused, f"a predicate refused {ask.key}, and is not asked again"
                elif ask.parked == AWAITS_NODE:
                    assert ask in self.on_node.get(ask.required, {}), f"{ask.key} awaits its node"
                elif not ask.parked and app.place < 0:
                    assert self._is_found(app), f"application {app.id} sleeps, and nothing wakes it for {ask.key}"

    def _is_found(self, app: Application) -> bool:
        """Will something wake the application, which sleeps with an ask that waits for no node?"""
        blocked = [tracker.blocked for tracker in app.trackers]
        blocked += [queue.blocked for queue in app.queue.lineage()]
        return not app.queue.serves or app.backoff_until > self.now or any(app in those for those in blocked)

    def _wake_required(self, node: Node) -> None:
        ask: Ask
        for ask in self.on_node.pop(node.id, {}):
            if ask.parked == AWAITS_NODE:
                self.retry(ask)

    @cython.cfunc
    def _revive_fitting(self) -> cython.void:
        """Revive every failed shape that fits on a node that changed."""
        most: Vec = Vec()
        nodes: list[Any] = [*self.freed, *self.opened]
        rooms: list[Any] = []
        node: Node
        shape: Shape
        i: cython.Py_ssize_t
        for i in range(len(nodes)):
            node = cython.cast(Node, nodes[i])
            by_size: cython.bint = self.reserve_after_ns != NEVER and node in self.opened  # it may be reserved
            rooms.append(node.capacity if by_size else node.free)
            most.raise_to(cython.cast(Vec, rooms[i]))
            self._fits(cython.cast(Vec, rooms[i]))
        for shape in list(self.failed):
            if not most.holds(shape.amounts):
                continue
            for i in range(len(nodes)):
                node = cython.cast(Node, nodes[i])
                if node.meets(shape.need) and cython.cast(Vec, rooms[i]).holds(shape.amounts):
                    self.revive(shape)
                    break
