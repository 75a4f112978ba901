"""Event records of the effects of an input, found by comparing its object before and after the input is handled.

So the code that handles inputs knows nothing of events. For each kind of input there is a *watcher*, a generator: it
notes the state, yields while the input is handled, and then makes the records of what has changed. The order of records
within one input follows the reference sequences of docs/spec/events.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import (
    AddApplication,
    Allocation,
    NodeAction,
    NodeUpdate,
    Release,
    RemoveApplication,
    Termination,
)
from licorne.si.v19 import ChangeDetail, ChangeType

from .runs import Owner
from .users import owner_of

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

    from .partition_events import PartitionEvents

_SET, _ADD, _REMOVE = ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
Watcher = Generator[None, None, None]
"""A generator that notes the state of a partition, yields while an input is handled, and then records the changes."""


class Watchers:
    """The watchers of one partition, one for each kind of input."""

    def __init__(self, events: PartitionEvents) -> None:
        self._events = events
        self._partition = events.partition
        self._records = events.records
        self.of: dict[type, Callable[[Any], Watcher]] = {
            AddApplication: self._new_application,
            RemoveApplication: self._removed_application,
            Allocation: self._allocation,
            Release: self._release,
            NodeUpdate: self._node,
        }

    def _new_application(self, message: AddApplication) -> Watcher:
        yield
        self._records.app(message.application_id, _ADD, ChangeDetail.APP_NEW)

    def _removed_application(self, message: RemoveApplication) -> Watcher:
        app: Application | None = self._partition.applications.get(message.application_id)
        allocations: list[Ask] = [] if app is None else list(app.allocations.values())
        owner: Owner = ("", None) if app is None else owner_of(app)
        yield
        if app is None:
            return
        events = self._events
        for ask in [*events.dropped_asks, *(() if self._partition.first_interface else allocations)]:
            self._records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)
        if not app.independent:  # else `PartitionEvents.independent_left` has recorded it
            self._records.left(app)
        events.request_events.left(app.id)
        for alloc in allocations:
            self._records.ended(alloc, Termination.STOPPED_BY_RM, None, off_node=False)
        self._records.usage_off(owner, app.queue.path, allocations)
        events.read_outputs()
        for alloc in allocations:
            self._records.allocation_off_node(alloc)

    def _allocation(self, message: Allocation) -> Watcher:
        if message.tags and TAG_FOREIGN in message.tags:
            return self._foreign(message)
        return self._own_allocation(message)

    def _foreign(self, message: Allocation) -> Watcher:
        """Record a foreign allocation when it is new; changes of it have no record."""
        foreign = self._partition.foreign
        known = message.key in foreign
        yield
        if not known and message.key in foreign:
            self._records.foreign(message.key, foreign[message.key].node, ChangeType.ADD)

    def _own_allocation(self, message: Allocation) -> Watcher:
        applications = self._partition.applications
        app: Application | None = applications.get(message.application_id)
        alloc: Ask | None = None if app is None else app.allocations.get(message.uuid or message.key)
        known = app is not None and (message.key in app.asks or alloc is not None)
        before = None if alloc is None else alloc.shape.resource
        yield
        self._events.read_outputs()
        app = applications.get(message.application_id)
        if app is not None and alloc is not None and before is not None and alloc.shape.resource is not before:
            self._events.owners.resized(app, before, alloc.shape.resource)
        ask = None if app is None or known else app.asks.get(message.key)
        if ask is not None:
            self._records.app(
                message.application_id, _ADD, ChangeDetail.APP_REQUEST, ask.key, resource=ask.shape.resource
            )

    # -- releases --------------------------------------------------------------------------------------

    def _release(self, message: Release) -> Watcher:
        foreign = self._partition.foreign
        if not message.application_id and message.what == "both" and message.key in foreign:
            node: Node = foreign[message.key].node
            self._records.foreign(message.key, node, ChangeType.REMOVE)
            yield
            return
        named = self._allocations_named(message)
        owners = [owner_of(alloc.app) for alloc in named]
        taking: dict[Ask, Ask] = {
            a: gang.replacing[a]
            for a in named
            if a.placeholder and (gang := a.app.gang) is not None and a in gang.replacing
        }
        yield
        events = self._events
        taken = {a: real for a, real in taking.items() if a.app.allocations.get(real.id) is real}
        # A real allocation on the node of its placeholder leaves the node's usage as it is: no record of the node.
        events.in_place = {real.id for a, real in taken.items() if real.node is a.node}
        for alloc, owner in zip(named, owners, strict=True):
            if alloc.app.allocations.get(alloc.id) is alloc:
                continue
            real: Ask | None = taken.get(alloc)
            if real is not None:
                self._records.ended(alloc, message.termination, owner, off_node=False)
                events.read_outputs()
                if real.node is not alloc.node:
                    self._records.allocation_off_node(alloc)
            else:
                self._records.ended(alloc, message.termination, owner)
            if message.termination is not Termination.TIMEOUT and not self._partition.first_interface:
                events.dropped_asks.append(alloc)  # in the 1.9 interface an ask lives as long as its allocation
        events.in_place.clear()
        for ask in events.dropped_asks:
            self._records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)

    def _allocations_named(self, message: Release) -> list[Ask]:
        """The allocations that a release names; not all of them need end by it."""
        if message.what == "ask":
            return []
        wanted = message.uuid if message.what == "allocation" else message.key
        applications = self._partition.applications
        app: Application | None = applications.get(message.application_id)
        if app is None and not message.application_id and message.what == "allocation":
            app = next((app for app in applications.values() if wanted in app.allocations), None)
        if app is None:
            return []
        if not wanted:
            return list(app.allocations.values())
        alloc = app.allocations.get(wanted)
        return [] if alloc is None else [alloc]

    # -- nodes -----------------------------------------------------------------------------------------

    def _node(self, message: NodeUpdate) -> Watcher:
        nodes = self._partition.nodes
        node_id, action = message.node_id, message.action
        before: Node | None = nodes.get(node_id)
        capacity = None if before is None else before.capacity
        occupied = None if before is None else before.occupied.clone()
        leaving: list[tuple[Ask, Owner]] = []
        if before is not None and action is NodeAction.DECOMISSION:
            allocations = [alloc for alloc in before.allocations if alloc.app.allocations.get(alloc.id) is alloc]
            leaving = [(alloc, owner_of(alloc.app)) for alloc in allocations]
            self._records.schedulable(node_id, False)
        yield
        now: Node | None = nodes.get(node_id)
        types = self._partition.types
        if now is None:
            if before is not None:
                self._node_gone(before, leaving)
        elif before is None:
            self._records.schedulable(node_id, now.schedulable)
            self._records.root_max()
            amounts = now.capacity.named(types)
            self._records.node(node_id, _ADD, message="Node added to the scheduler", resource=amounts)
        elif action in (NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE):
            if not self._events.unread():  # not refused
                self._records.schedulable(node_id, now.schedulable)
        else:
            if capacity is not None and now.capacity is not capacity and not now.capacity.same(capacity):
                self._records.root_max()
                self._records.node(node_id, _SET, ChangeDetail.NODE_CAPACITY, resource=now.capacity.named(types))
            if occupied is not None and not now.occupied.same(occupied):
                self._records.node(node_id, _SET, ChangeDetail.NODE_OCCUPIED, resource=now.occupied.named(types))

    def _node_gone(self, node: Node, leaving: list[tuple[Ask, Owner]]) -> None:
        for alloc, owner in leaving:
            self._records.ended(alloc, Termination.UNKNOWN, owner)
        self._records.root_max()
        self._records.node_gone(node)
