"""Event records: how each kind is made, and the store in which they wait (docs/spec/events.md, sections 1, 2 and 4).

The store is bounded, so that a resource manager that does not fetch its events cannot exhaust the memory. Which record
is made when, and so their order, is decided in `licorne.core.events.partition_events`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from licorne.core.base.states import SECOND_NS
from licorne.si.events import Event
from licorne.si.messages import NodeAction, NodeUpdate, Termination
from licorne.si.v19 import ChangeDetail, ChangeType, EventType

from .runs import RUN_MAX, AskRun, EndedRun, Owner, Record, expand, usage

if TYPE_CHECKING:
    from licorne.core.amounts.vectors import Vec
    from licorne.core.contents import PartitionContents
    from licorne.core.nodes.node import Node
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

INTERVAL_NS = 2 * SECOND_NS
"""The interval at which the store is emptied."""

_ENDS = {
    Termination.UNKNOWN: ChangeDetail.ALLOC_NODEREMOVED,
    Termination.STOPPED_BY_RM: ChangeDetail.ALLOC_CANCEL,
    Termination.TIMEOUT: ChangeDetail.ALLOC_TIMEOUT,
    Termination.PREEMPTED_BY_SCHEDULER: ChangeDetail.ALLOC_PREEMPT,
    Termination.PLACEHOLDER_REPLACED: ChangeDetail.ALLOC_REPLACED,
}
_NO_DETAIL = ChangeDetail.DETAILS_NONE


Recorder = Callable[[str, Record], None]
"""A function that takes each record as it is made, with the id of its resource manager.

A host sets it if it keeps records for other listeners.
"""


class EventStore:
    """The records that wait for a resource manager, of at most `capacity` events.

    `dropped` counts the events that did not fit, since the beginning. `keeps` is False if only a recorder listens: no
    record waits then. `len()` is the number of events that wait.
    """

    def __init__(self, capacity: int, now: int, owner: str = "", recorder: Recorder | None = None) -> None:
        self.capacity = capacity
        self.keeps = True
        self._owner = owner
        self._recorder = recorder
        self.dropped = 0
        self.due_ns: int | None = None
        """When the store is emptied next; None while it is empty."""
        self._start = now
        self._records: list[Record] = []
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def add(self, record: Record, now: int) -> None:
        """Keep the record; events of it that do not fit are dropped and counted."""
        if self._recorder is not None:
            self._recorder(self._owner, record)
        if self.keeps:
            self._keep(record, now)

    def _keep(self, record: Record, now: int) -> None:
        room = max(0, self.capacity - self._held)
        if record.count <= room:
            self._records.append(record)
        else:
            self.dropped += record.count - room
            self._records += islice(expand([record]), room)
        self._held += min(record.count, room)
        if self.due_ns is None and self._held:
            self.due_ns = self._start + ((now - self._start) // INTERVAL_NS + 1) * INTERVAL_NS

    def drain(self, now: int) -> list[Event]:
        """Remove and return all events, in order, if they are due by `now` (ns); else an empty list."""
        if self.due_ns is None or now < self.due_ns:
            return []
        records, self._records = self._records, []
        self._held = 0
        self.due_ns = None
        return list(expand(records))


def schedulable(message: NodeUpdate, now: int) -> Event:
    """The only event of a new node whose partition does not exist."""
    text = f"schedulable: {'true' if message.action is NodeAction.CREATE else 'false'}"
    return Event(EventType.NODE, message.node_id, now, ChangeType.SET, ChangeDetail.NODE_SCHEDULABLE, message=text)


class Records:
    """Makes the records of one partition, with the partition's time, and adds them to its store.

    `asked`: new asks with their amounts, which become a run as soon as another record is made.
    """

    def __init__(self, partition: PartitionContents, store: EventStore) -> None:
        self._partition = partition
        self._store = store
        self.asked: list[tuple[Ask, dict[str, int]]] = []

    def app(
        self,
        id: str,
        change: ChangeType,
        detail: ChangeDetail = _NO_DETAIL,
        reference: str = "",
        group: str = "",
        *,
        message: str = "",
        resource: dict[str, int] | None = None,
        at_ns: int | None = None,
    ) -> None:
        """Record a change of an application; `group` is its queue, if the partition no longer knows the application."""
        if not group:
            app = self._partition.applications.get(id)
            group = "" if app is None else app.queue.path
        now = self._partition.now
        at_ns = now if at_ns is None else at_ns
        self.add(Event(EventType.APP, id, at_ns, change, detail, reference, message, resource, group))

    def node(
        self,
        id: str,
        change: ChangeType,
        detail: ChangeDetail = _NO_DETAIL,
        reference: str = "",
        *,
        message: str = "",
        resource: dict[str, int] | None = None,
    ) -> None:
        """Record a change of a node."""
        now = self._partition.now
        self.add(Event(EventType.NODE, id, now, change, detail, reference, message, resource))

    def schedulable(self, id: str, schedulable: bool) -> None:
        """Record that a node became schedulable or unschedulable."""
        message = f"schedulable: {'true' if schedulable else 'false'}"
        self.node(id, ChangeType.SET, ChangeDetail.NODE_SCHEDULABLE, message=message)

    def queue(
        self,
        path: str,
        change: ChangeType,
        detail: ChangeDetail,
        reference: str = "",
        *,
        message: str = "",
        resource: dict[str, int] | None = None,
    ) -> None:
        """Record a change of a queue."""
        now = self._partition.now
        self.add(Event(EventType.QUEUE, path, now, change, detail, reference, message, resource))

    def root_max(self) -> None:
        """Record the maximum of the root queue after the cluster's size has changed."""
        total = self._partition.total.named(self._partition.types)
        self.queue("root", ChangeType.SET, ChangeDetail.QUEUE_MAX, resource=total)

    def left(self, app: Application) -> None:
        """Record that an application has left its queue."""
        self.queue(app.queue.path, ChangeType.REMOVE, ChangeDetail.QUEUE_APP, app.id)
        self.app(app.id, ChangeType.REMOVE, group=app.queue.path)

    def ask_off(self, ask: Ask, detail: ChangeDetail) -> None:
        """Record that an ask was removed from its application."""
        app: Application = ask.app
        self.app(app.id, ChangeType.REMOVE, detail, ask.key, app.queue.path, resource=ask.shape.resource)

    def request(self, ask: Ask, message: str, resource: dict[str, int] | None = None) -> None:
        """Record a message about an ask, for people to read; `resource` replaces the ask's own."""
        app: Application = ask.app
        now = self._partition.now
        what = ask.shape.resource if resource is None else resource
        self.add(Event(EventType.REQUEST, ask.key, now, ChangeType.NONE, _NO_DETAIL, app.id, message, what, app.id))

    def owner(
        self,
        name: str,
        change: ChangeType,
        detail: ChangeDetail,
        reference: str,
        resource: dict[str, int] | None = None,
    ) -> None:
        """Record a change of a user or a group."""
        now = self._partition.now
        self.add(Event(EventType.USERGROUP, name, now, change, detail, reference, "", resource))

    def ended(
        self, alloc: Ask, termination: Termination, owner: Owner | None, *, off_node: bool = True, cancels: bool = False
    ) -> None:
        """Record that an allocation has ended: for its user and group, its application, and its node (`off_node`).

        `cancels`: its ask is removed too. `owner` is None if the usage of several allocations is recorded together
        (`usage_off`).
        """
        app: Application = alloc.app
        node = alloc.node
        assert node is not None, f"{alloc.key}: an allocation without a node"
        now = self._partition.now
        count = 1 + (0 if owner is None else 1 + (owner[1] is not None)) + off_node + cancels
        node_id = node.id if off_node else ""
        resource, detail = alloc.shape.resource, _ENDS[termination]
        path = app.queue.path
        self.add(EndedRun(count, now, app.id, path, owner, alloc.key, resource, detail, node_id, cancels))

    def usage_off(self, owner: Owner, path: str, allocations: list[Ask]) -> None:
        """Record that a user, and the group that counts, uses less by the sum of these allocations."""
        sum_: dict[str, int] = {}
        for alloc in allocations:
            for name, amount in alloc.shape.resource.items():
                sum_[name] = sum_.get(name, 0) + amount
        for event in usage(self._partition.now, ChangeType.REMOVE, owner, path, sum_):
            self.add(event)

    def foreign(self, key: str, node: Node, change: ChangeType) -> None:
        """Record that a foreign allocation was added to a node or removed from it."""
        amounts: Vec = node.foreign[key]
        resource = amounts.named(self._partition.types)
        self.node(node.id, change, ChangeDetail.NODE_ALLOC, key, resource=resource)

    def node_gone(self, node: Node) -> None:
        """Record that a node was removed, and with it the foreign allocations that were on it."""
        for key in node.foreign:
            self.foreign(key, node, ChangeType.REMOVE)
        self.node(node.id, ChangeType.REMOVE, ChangeDetail.NODE_DECOMISSION, message="Node removed from the scheduler")

    def allocation_off_node(self, alloc: Ask) -> None:
        """Record that an allocation was removed from its node."""
        node = alloc.node
        assert node is not None, f"{alloc.key}: an allocation without a node"
        self.node(node.id, ChangeType.REMOVE, ChangeDetail.NODE_ALLOC, alloc.key, resource=alloc.shape.resource)

    def tell_asked(self) -> None:
        """Record the new asks."""
        while self.asked:
            some = self.asked[:RUN_MAX]
            del self.asked[:RUN_MAX]
            ids = [ask.app.id for ask, _ in some]
            paths = [ask.app.queue.path for ask, _ in some]
            keys = [ask.key for ask, _ in some]
            resources = [resource for _, resource in some]
            self._store.add(AskRun(len(some), self._partition.now, ids, paths, keys, resources), self._partition.now)

    def add(self, record: Record) -> None:
        """Add a record that is already made."""
        if self.asked:
            self.tell_asked()
        self._store.add(record, self._partition.now)
