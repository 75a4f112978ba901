"""The expected state of one partition: the machine's own records of the messages to and from the scheduler.

They are dicts, and know nothing of the product's structures. A message of a resource manager is entered when it is sent
(`take`), with the answer that must come; a message of the scheduler is entered when it is received (`hear`). So an
allocation that is made twice, one that is lost, an ask that is forgotten, an end that was not asked for: each is a
difference between these records and the product's state, and `compare` finds it after every step (invariants 6 and 7).
"""

from __future__ import annotations

from typing import Any

from licorne.si import messages
from licorne.si.messages import NodeAction, Termination
from machine import flights
from machine.amounts import TAINT, Amounts, fits, met, plus, pruned, total
from machine.things import MOVES, Alloc, App, Ask, Node

LARGEST = 2**62 - 1
CONFIRMATIONS = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)


class ExpectedState:
    """The expected state of one partition."""

    def __init__(
        self, *, first_interface: bool, starting: bool, classes: dict[str, int], whereabouts: flights.Whereabouts
    ) -> None:
        self.first_interface = first_interface
        self.starting = starting
        self.classes = classes
        self.whereabouts = whereabouts
        self.apps: dict[str, App] = {}
        self.nodes: dict[str, Node] = {}
        self.used: dict[str, Amounts] = {}  # by node
        self.uuids: set[str] = set()
        self.echoes: list[tuple[str, str, str]] = []  # (application, key, id): ends that must be told
        self.announced: list[tuple[str, str, str, Amounts]] = []  # (application, key, node, resource): so too
        self.moved: dict[str, Ask] = {}  # what they were that are announced: asks, by key
        self.untold: list[tuple[str, str]] = []  # (application, key): dropped asks that must be told
        self.gone: set[str] = set()  # applications that ended in this step
        self._seq = 0

    # -- what is sent ----------------------------------------------------------------------------------

    def take(self, message: Any, answers: list[messages.Output], now: int) -> None:
        """Enter a message; `answers` is all that came back, to see which were refused."""
        if isinstance(message, messages.Allocation):
            refused = any(isinstance(a, messages.RejectedAllocation) and a.key == message.key for a in answers)
            if message.tags and "foreign" in message.tags:
                self._foreign(message, refused=refused)
            else:
                self._allocation(message, now, refused=refused)
        elif isinstance(message, messages.Release):
            self._release(message)
        elif isinstance(message, messages.AddApplication):
            self._add_application(message, answers)
        elif isinstance(message, messages.RemoveApplication):
            app = self.apps.get(message.application_id)
            if app is not None:
                self._remove(app)
        elif isinstance(message, messages.NodeUpdate):
            self._node(message, answers, now)

    def _add_application(self, message: messages.AddApplication, answers: list[messages.Output]) -> None:
        accepted = any(
            isinstance(a, messages.AcceptedApplication) and a.application_id == message.application_id for a in answers
        )
        impossible = (
            not message.user
            or not message.application_id
            or message.application_id in self.apps
            or any(amount < 0 or amount > LARGEST for amount in message.placeholder_ask.values())
        )
        assert not (accepted and impossible), f"application {message.application_id!r} was taken"
        refused = any(
            isinstance(a, messages.RejectedApplication) and a.application_id == message.application_id for a in answers
        )
        assert accepted != refused, f"application {message.application_id!r}: taken and refused, or neither"
        if accepted:
            app_id = message.application_id
            self.apps[app_id] = App(app_id, message.user, message.groups or (message.user,))
            self.apps[app_id].gang = flights.gang_of(message)

    def _fault(self, message: messages.Allocation) -> bool | None:
        """Tell whether a message must be refused; None: that depends on state that is not recorded here."""
        app = self.apps.get(message.application_id)
        amounts = message.resource or {}
        if (
            not message.key
            or not any(amounts.values())
            or any(amount < 0 or amount > LARGEST for amount in amounts.values())
            or not 1 <= message.max_allocations < 2**31
            or not -(2**31) <= self.priority(message) < 2**31
        ):
            return True
        if message.tags and "broken" in message.tags.get("licorne/node-constraints", ""):
            return True
        if app is None:
            return None if message.independent else True
        if (message.independent and not app.independent) or app.state == "Failing":
            return True
        if app.state == "Resuming" and message.placeholder:
            return True
        known = (message.uuid or message.key) in app.allocs
        if message.node_id and not known and message.node_id not in self.nodes:
            return True
        return None if max(amounts.values()) > 2**50 else False

    def priority(self, message: messages.Allocation) -> int:
        """The priority that a message means; out of bounds if its class is unknown."""
        return self.classes.get(message.priority_class, 2**40) if message.priority_class else message.priority

    def _allocation(self, message: messages.Allocation, now: int, *, refused: bool) -> None:
        fault = self._fault(message)
        assert fault is None or fault == refused, f"ask {message.key!r}: refused {refused}, expected {fault}"
        if refused:
            return
        app = self.apps.get(message.application_id)
        if app is None:
            app = self.apps[message.key] = App(message.key, "nobody", ("nogroup",), independent=True)
        resource = pruned(message.resource or {})
        pending = app.asks.get(message.key)
        alloc = app.allocs.get(message.uuid or message.key)
        if message.node_id:
            if alloc is not None:
                self._resize(alloc, resource)
                return
            flights.placed_outside(self, app, message.key)
            if pending is not None and pending.left == 1 and not self.first_interface:
                self.moved[message.key] = app.asks.pop(message.key)
            self.announced.append((app.id, message.key, message.node_id, resource))
        elif pending is not None:
            pending.resource = resource
            pending.left = message.max_allocations if self.first_interface else pending.left
        elif alloc is not None:
            self._resize(alloc, resource)
        elif not flights.resized(self, app, message.key, resource):
            self._new_ask(app, message, resource, now)

    def _new_ask(self, app: App, message: messages.Allocation, resource: Amounts, now: int) -> None:
        tags = message.tags or {}
        self._seq += 1
        app.asks[message.key] = Ask(
            message.key,
            resource,
            message.max_allocations,
            self.priority(message),
            int(tags["creationTime"]) * 10**9 if "creationTime" in tags else now,
            self._seq,
            int(tags.get("constraint", "0")),
            tags.get("yunikorn.apache.org/requiredNode", ""),
            timed=message.timeout_ms > 0,
            group=message.task_group,
            placeholder=message.placeholder,
        )

    def _resize(self, alloc: Alloc, resource: Amounts) -> None:
        self.used[alloc.node] = plus(plus(self.used[alloc.node], alloc.resource, -1), resource)
        alloc.resource = resource

    def _release(self, message: messages.Release) -> None:
        if not message.application_id and message.what == "both":
            for node in self.nodes.values():
                node.foreign.pop(message.key, None)
            return
        app = self.apps.get(message.application_id) if message.application_id else self._owner(message)
        if app is None:
            return
        flights.released(self, app, message)
        if message.what != "ask":
            wanted = message.uuid if message.what == "allocation" else message.key
            for alloc in list(app.allocs.values()):
                if not wanted or alloc.id == wanted:
                    self._end(app, alloc)
                    if message.termination not in CONFIRMATIONS:
                        self.echoes.append((app.id, alloc.key, alloc.id))
                    flights.ended(self, app, alloc, message.termination)
        if message.what == "ask" or (message.what == "both" and message.termination is not Termination.TIMEOUT):
            for key in list(app.asks):
                if not message.key or key == message.key:
                    del app.asks[key]
        self._emptied(app)

    def _owner(self, message: messages.Release) -> App | None:
        for app in self.apps.values():
            if (message.what == "ask" and message.key in app.asks) or (message.uuid and message.uuid in app.allocs):
                return app
        return None

    def _remove(self, app: App) -> None:
        flights.abandon(self, app)
        for alloc in list(app.allocs.values()):
            self._end(app, alloc)
            self.echoes.append((app.id, alloc.key, alloc.id))
        del self.apps[app.id]
        self.gone.add(app.id)

    def _end(self, app: App, alloc: Alloc) -> None:
        del app.allocs[alloc.id]
        if alloc.node in self.used:
            self.used[alloc.node] = plus(self.used[alloc.node], alloc.resource, -1)

    def _emptied(self, app: App) -> None:
        if app.asks or app.allocs:
            return
        app.entered = False
        if app.independent:
            self.apps.pop(app.id, None)
            self.gone.add(app.id)

    # -- nodes -----------------------------------------------------------------------------------------

    def _node(self, message: messages.NodeUpdate, answers: list[messages.Output], now: int) -> None:
        node = self.nodes.get(message.node_id)
        amounts = [*(message.capacity or {}).values(), *(message.occupied or {}).values()]
        bad = any(amount < 0 or amount > LARGEST for amount in amounts)
        attributes = message.attributes or {}
        bad = bad or "broken" in attributes.get("taints", "")
        if message.action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN):
            bad = bad or node is not None or not message.node_id
            accepted = any(isinstance(a, messages.AcceptedNode) and a.node_id == message.node_id for a in answers)
            rejected = any(isinstance(a, messages.RejectedNode) and a.node_id == message.node_id for a in answers)
            assert accepted != rejected, f"node {message.node_id!r}: accepted {accepted}, rejected {rejected}"
            assert accepted == (not bad), f"node {message.node_id!r}: accepted {accepted}"
            if accepted:
                self._new_node(message, now, answers)
        elif node is None or (bad and message.action is NodeAction.UPDATE):
            return
        elif message.action is NodeAction.UPDATE:
            if message.capacity is not None:
                node.capacity = pruned(message.capacity)
            if message.occupied is not None:
                node.occupied = pruned(message.occupied)
            if message.attributes is not None:
                node.labels, node.tainted = _labels(attributes), attributes.get("taints") == TAINT
        elif message.action is NodeAction.DRAIN_NODE:
            node.schedulable = False
        elif message.action is NodeAction.DRAIN_TO_SCHEDULABLE:
            node.schedulable = True
        elif message.action is NodeAction.DECOMISSION:
            self._remove_node(node)

    def _new_node(self, message: messages.NodeUpdate, now: int, answers: list[messages.Output]) -> None:
        attributes = message.attributes or {}
        self.nodes[message.node_id] = Node(
            message.node_id,
            pruned(message.capacity or {}),
            pruned(message.occupied or {}),
            _labels(attributes),
            attributes.get("taints") == TAINT,
            schedulable=message.action is NodeAction.CREATE,
        )
        self.used[message.node_id] = {}
        for existing in message.existing:
            self.take(existing, answers, now)

    def _remove_node(self, node: Node) -> None:
        for app in list(self.apps.values()):
            flights.node_lost(self, app, node.id)
            mine = [alloc for alloc in app.allocs.values() if alloc.node == node.id]
            for alloc in mine:
                self._end(app, alloc)
                self.echoes.append((app.id, alloc.key, alloc.id))
            if mine:
                self._emptied(app)
        del self.nodes[node.id], self.used[node.id]

    def _foreign(self, message: messages.Allocation, *, refused: bool) -> None:
        amounts = message.resource or {}
        node = next((n for n in self.nodes.values() if message.key in n.foreign), self.nodes.get(message.node_id))
        bad = not message.node_id or node is None or any(a < 0 or a > LARGEST for a in amounts.values())
        assert bad == refused, f"foreign allocation {message.key!r}: refused {refused}"
        if node is not None and not bad:
            node.foreign[message.key] = pruned(amounts)

    # -- what is said ----------------------------------------------------------------------------------

    def hear(self, output: messages.Output) -> App | None:
        """Enter a message of the scheduler about applications and allocations; return the application, if it lives."""
        if isinstance(output, messages.NewAllocation):
            return self._allocated(output)
        if isinstance(output, messages.Released):
            return self._released(output)
        if isinstance(output, messages.UpdatedApplication):
            return self._moved(output)
        if isinstance(output, messages.WaitingForResources):
            app = self.apps[output.application_id]
            assert output.key in app.asks, f"{output.key} waits for resources, but is not pending"
        return None

    def _allocated(self, output: messages.NewAllocation) -> App:
        app = self.apps.get(output.application_id)
        assert app is not None, f"invariant 6: allocation {output.key} of no application"
        resource = pruned(output.resource)
        outside = (app.id, output.key, output.node_id, resource)
        ask: Ask | None
        if outside in self.announced:
            self.announced.remove(outside)
            ask = self.moved.pop(output.key, None)
        else:
            ask = app.asks.get(output.key)
            assert ask is not None, f"invariant 7: allocation {output.key} without a pending ask"
            assert ask.resource == resource, f"invariant 7: allocation {output.key} is not what was asked for"
            ask.left -= 1
            if ask.left == 0:
                del app.asks[output.key]
        id_ = output.uuid or output.key
        assert id_ not in app.allocs and id_ not in self.uuids, f"invariant 6: {id_} is allocated twice"
        assert bool(output.uuid) == self.first_interface, f"uuid of {output.key}"
        if output.uuid:
            self.uuids.add(id_)
        assert output.node_id in self.nodes, f"invariant 6: allocation {id_} on no node"
        app.allocs[id_] = Alloc(output.key, id_, output.node_id, resource)
        if ask is not None:
            app.allocs[id_].group, app.allocs[id_].placeholder = ask.group, ask.placeholder
        app.entered = True
        self.used[output.node_id] = plus(self.used[output.node_id], resource)
        return app

    def _released(self, output: messages.Released) -> App | None:
        id_ = output.uuid or output.key
        if output.termination is Termination.STOPPED_BY_RM:
            told = (output.application_id, output.key, id_)
            assert told in self.echoes, f"invariant 7: the end of {told}, which nobody asked for"
            self.echoes.remove(told)
            return self.apps.get(output.application_id)
        app = self.apps[output.application_id]
        if output.ask:
            flights.dropped(self, app, output)
            return app
        assert not app.allocs[id_].ending, f"{id_} is to be ended twice"
        app.allocs[id_].ending = True
        if output.termination is Termination.PLACEHOLDER_REPLACED:
            flights.depart(self, app, app.allocs[id_])
        return app

    def _moved(self, output: messages.UpdatedApplication) -> App | None:
        app = self.apps.get(output.application_id)
        if app is None or output.application_id in self.gone:
            assert output.application_id in self.gone, f"state of an unknown application {output.application_id}"
            return None
        move = (app.state, output.state)
        assert move in MOVES[self.starting], f"invariant 8: application {app.id} moved {move}"
        app.state = output.state
        if app.state == "Failing":
            flights.failing(self, app, output.message)
        if app.state in ("Completed", "Failed"):
            assert not app.asks and not app.allocs, f"invariant 8: application {app.id} ended with something left"
            del self.apps[app.id]
            self.gone.add(app.id)
        return app

    def settled(self) -> None:
        """Check at the end of a step that every message that had to come has come."""
        assert not self.echoes, f"invariant 7: ends that were not told: {self.echoes}"
        assert not self.announced, f"invariant 7: allocations that were not announced: {self.announced}"
        self.gone.clear()

    # -- reading ---------------------------------------------------------------------------------------

    def free(self, node: Node) -> Amounts:
        """The free amount of a node."""
        occupied = total([node.occupied, *node.foreign.values(), self.used[node.id]])
        return plus(node.capacity, occupied, -1)

    def meets(self, ask: Ask, node: Node) -> bool:
        """Labels and taints."""
        return met(ask.constraint, node.labels, tainted=node.tainted)

    def has_room(self, ask: Ask, node: Node) -> bool:
        """Amounts."""
        return fits(ask.resource, node.capacity) and fits(ask.resource, self.free(node))


def _labels(attributes: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("label/"): value for name, value in attributes.items() if name.startswith("label/")}
