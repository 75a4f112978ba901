"""What happened, record by record, for a resource manager that listens (spec events.md, sections 1, 2 and 4).

Nothing in the core knows of events but a few lines in `partition`, `reservations` and `cluster`, and those look at one
attribute: is there a listener? So the hot files have no hooks, and who does not listen pays nothing. Records are *read
off* what passes through anyway. The outputs say what became of applications and allocations; an input is looked at
before and after it is handled (`PartitionEvents.watch`), which shows what it added, changed or ended, and with what
amounts. What neither shows (asks and reservations that go, queues that the cleaner removes) is told by a hook where it
happens. The order within one input follows the reference sequences of events.md, section 3, except that the new state
of an application comes before the allocation that led to it, as it does among the responses.

Records wait in a store of limited size for the resource manager's moment, every two seconds; what does not fit is
counted and lost, for a slow listener must not exhaust the machine.

Different from the original: a refused node gives no "Node added", and root's QUEUE_MAX carries the value after the
change. Starting, a state without a number of its own, is SET without a detail, its name as message.

Not made yet (they come with the REST side of events): all of type REQUEST (headroom, predicates, preemption: one-off
notices that the descent would have to remember); all of type USERGROUP; APP_CANNOTRUN_* and APP_RUNNABLE_*; APP_EXPIRED;
QUEUE_PREEMPTION; what goes with a partition that is not configured any more. Ring buffer and streams (section 4,
items 4 and 5) are those of a host (`Cluster.recorder`; `licorne.service.ring`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import msgspec

from licorne.si.messages import (
    AcceptedApplication,
    AddApplication,
    Allocation,
    Input,
    NewAllocation,
    NodeAction,
    NodeUpdate,
    Output,
    RejectedApplication,
    Release,
    RemoveApplication,
    Termination,
    UpdatedApplication,
)
from licorne.si.v19 import ChangeDetail, ChangeType

from .eventrecords import EventStore, Records
from .states import ApplicationEvent, ApplicationState

if TYPE_CHECKING:
    from .application import Application
    from .asks import Ask
    from .nodes import Node
    from .partition import Partition
    from .queue import Queue

_SET, _ADD, _REMOVE = ChangeType.SET, ChangeType.ADD, ChangeType.REMOVE
_NO_DETAIL = ChangeDetail.DETAILS_NONE
_STATES: dict[str, ChangeDetail] = {
    ApplicationState.ACCEPTED: ChangeDetail.APP_ACCEPTED,
    ApplicationState.RUNNING: ChangeDetail.APP_RUNNING,
    ApplicationState.COMPLETING: ChangeDetail.APP_COMPLETING,
    ApplicationState.COMPLETED: ChangeDetail.APP_COMPLETED,
    ApplicationState.FAILING: ChangeDetail.APP_FAILING,
    ApplicationState.FAILED: ChangeDetail.APP_FAILED,
    ApplicationState.RESUMING: ChangeDetail.APP_RESUMING,
}
_ENDED = (ApplicationState.COMPLETED, ApplicationState.FAILED)
_PLAIN_MESSAGES = frozenset(str(event) for event in ApplicationEvent)
Watcher = Generator[None, None, None]
"""Looks at a partition until its `yield`, while an input is handled, and then again."""


class _QueueFacts(msgspec.Struct, frozen=True):
    """What of a queue has records of its own."""

    managed: bool
    is_leaf: bool
    max: dict[str, int] | None
    guaranteed: dict[str, int] | None


class PartitionEvents:
    """Makes the records of one partition.

    Parameters:
        announce: whether the queues that are there count as just created.
    """

    def __init__(self, partition: Partition, store: EventStore, *, announce: bool) -> None:
        self._records = Records(partition, store)
        self._partition = partition
        self._told = len(partition.out)  # so many of the partition's outputs have been read
        self._inside = False  # an input is being handled
        self._dropped: list[Ask] = []
        self._in_place = ""  # the key of a real ask that takes its placeholder's place on the same node
        self._queues: dict[str, _QueueFacts] = {}
        self._watchers: dict[type, Callable[[Any], Watcher]] = {
            AddApplication: self._watch_new_application,
            RemoveApplication: self._watch_removed_application,
            Allocation: self._watch_allocation,
            Release: self._watch_release,
            NodeUpdate: self._watch_node,
        }
        if announce:
            self.queues_changed()
        else:
            self._queues = {queue.path: _facts(queue) for queue in partition.tree.queues()}

    # -- what the partition tells ----------------------------------------------------------------------

    def watch(self, message: Input, handle: Callable[[Any, Any], object]) -> object:
        """Handle an input, and make the records of what it does; the handler's result."""
        self.catch_up()
        watcher = self._watchers[type(message)](message)
        self._inside = True
        next(watcher)
        try:
            result = handle(self._partition, message)
        finally:
            self._inside = False
        next(watcher, None)
        self._dropped.clear()
        self._read_outputs()
        return result

    def watch_asks(self, messages: list[Any], start: int, handle: Callable[[Any, Any], object]) -> int:
        """Handle asks of one application that follow each other from `start` on; the place of the first other message.

        The records are those, in the order, that `watch` would make of one after the other.
        """
        first = messages[start]
        end = start
        keys: dict[str, Allocation] = {}
        while end < len(messages):
            message = messages[end]
            if (
                type(message) is not Allocation
                or message.application_id != first.application_id
                or message.partition != first.partition
                or message.node_id
                or message.key in keys
            ):
                break
            keys[message.key] = message
            end += 1
        if end <= start + 1:
            self.watch(first, handle)
            return start + 1
        self.catch_up()
        applications = self._partition.applications
        app: Application | None = applications.get(first.application_id)
        if app is not None:
            asks, allocations = app.asks, app.allocations
            for key in [k for k, m in keys.items() if k in asks or (m.uuid or k) in allocations]:
                del keys[key]
        self._inside = True
        try:
            for at in range(start, end):
                handle(self._partition, messages[at])
        finally:
            self._inside = False
        self._read_outputs()
        app = applications.get(first.application_id)
        asks = {} if app is None else app.asks
        group = "" if app is None else app.queue.path
        for key in keys:
            ask: Ask | None = asks.get(key)
            if ask is not None:
                self._records.app(
                    first.application_id, _ADD, ChangeDetail.APP_REQUEST, key, group, resource=ask.shape.resource
                )
        self._dropped.clear()
        return end

    def catch_up(self) -> None:
        """Make the records of what time or decisions did since the last call."""
        if self._inside:
            return
        self._read_outputs()
        for ask in self._dropped:
            self._records.ask_off(ask, ChangeDetail.REQUEST_TIMEOUT)
        self._dropped.clear()

    def taken(self) -> None:
        """The partition's outputs have been taken; to be called after `catch_up`."""
        self._told = 0

    def dropped(self, ask: Ask) -> None:
        """A pending ask is gone without an allocation, or makes way for one that was reported."""
        self._dropped.append(ask)

    def reservation(self, ask: Ask, node: Node, *, made: bool) -> None:
        """A node was reserved for an ask, or is not any more."""
        self.catch_up()
        change = _ADD if made else _REMOVE
        self._records.node(node.id, change, ChangeDetail.NODE_RESERVATION, ask.key, resource=ask.shape.resource)

    def queues_removed(self, paths: list[str]) -> None:
        """The cleaner has removed these."""
        for path in paths:
            facts = self._queues.pop(path, None)
            managed = facts is not None and facts.managed
            self._records.queue(path, _REMOVE, _NO_DETAIL if managed else ChangeDetail.QUEUE_DYNAMIC)

    def quota_enforced(self, queue: Queue, wanted: dict[str, int], claimed: dict[str, int], victims: int) -> None:
        """A queue that uses more than its lowered max has given back what it can."""
        self.catch_up()
        message = (
            f"Quota Preemption results summary: preemptable resources: {_text(wanted)}, "
            f"claimed resources: {_text(claimed)}, selected victims: {victims}, preempted victims: {victims}"
        )
        limit = queue.max_resource() or {}
        self._records.queue(queue.path, _SET, ChangeDetail.QUEUE_PREEMPTION, message=message, resource=limit)

    def queues_changed(self) -> None:
        """The configuration was applied: look at every queue."""
        for queue in self._partition.tree.queues():
            self._look_at(queue)

    # -- inputs ----------------------------------------------------------------------------------------

    def _watch_new_application(self, message: AddApplication) -> Watcher:
        yield
        self._records.app(message.application_id, _ADD, ChangeDetail.APP_NEW)

    def _watch_removed_application(self, message: RemoveApplication) -> Watcher:
        app: Application | None = self._partition.applications.get(message.application_id)
        allocations: list[Ask] = [] if app is None else list(app.allocations.values())
        yield
        if app is None:
            return
        for ask in [*self._dropped, *(() if self._partition.seed_dialect else allocations)]:
            self._records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)
        self._records.left(app)
        for alloc in allocations:
            self._records.allocation_off_application(alloc, Termination.STOPPED_BY_RM)
        self._read_outputs()
        for alloc in allocations:
            self._records.allocation_off_node(alloc)

    def _watch_allocation(self, message: Allocation) -> Watcher:
        applications = self._partition.applications
        app: Application | None = applications.get(message.application_id)
        known = app is not None and (message.key in app.asks or (message.uuid or message.key) in app.allocations)
        yield
        self._read_outputs()
        app = applications.get(message.application_id)
        ask = None if app is None or known else app.asks.get(message.key)
        if ask is not None:
            self._records.app(
                message.application_id, _ADD, ChangeDetail.APP_REQUEST, ask.key, resource=ask.shape.resource
            )

    def _watch_release(self, message: Release) -> Watcher:
        named = self._allocations_named(message)
        taking: dict[Ask, Ask] = {
            a: a.app.gang.replacing[a] for a in named if a.placeholder and a in a.app.gang.replacing
        }
        yield
        for alloc in named:
            if alloc.app.allocations.get(alloc.id) is alloc:
                continue
            self._records.allocation_off_application(alloc, message.termination)
            real: Ask | None = taking.get(alloc)
            if real is not None and alloc.app.allocations.get(real.id) is real:
                self._in_place = real.key if real.node is alloc.node else ""  # then the node keeps what it has
                self._read_outputs()
            if not self._in_place:
                self._records.allocation_off_node(alloc)
            self._in_place = ""
            if message.termination is not Termination.TIMEOUT and not self._partition.seed_dialect:
                self._dropped.append(alloc)  # 1.9's ask lives as long as its allocation
        for ask in self._dropped:
            self._records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)

    def _allocations_named(self, message: Release) -> list[Ask]:
        """The allocations that a release names, each of which may end or not."""
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

    def _watch_node(self, message: NodeUpdate) -> Watcher:
        nodes = self._partition.nodes
        node_id, action = message.node_id, message.action
        before = nodes.get(node_id)
        capacity = None if before is None else before.capacity
        allocations: list[Ask] = []
        if before is not None and action is NodeAction.DECOMISSION:
            allocations = [alloc for alloc in before.allocations if alloc.app.allocations.get(alloc.id) is alloc]
            self._records.schedulable(node_id, False)
        yield
        now = nodes.get(node_id)
        if before is None:
            if now is not None:
                self._records.schedulable(node_id, now.schedulable)
                self._records.root_max()
                amounts = now.capacity.named(self._partition.types)
                self._records.node(node_id, _ADD, message="Node added to the scheduler", resource=amounts)
        elif now is None:
            for alloc in allocations:
                self._records.allocation_off_application(alloc, Termination.UNKNOWN)
                self._records.allocation_off_node(alloc)
            self._records.root_max()
            self._records.node(
                node_id, _REMOVE, ChangeDetail.NODE_DECOMISSION, message="Node removed from the scheduler"
            )
        elif action in (NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE):
            if len(self._partition.out) == self._told:  # not refused
                self._records.schedulable(node_id, now.schedulable)
        elif capacity is not None and now.capacity is not capacity and not now.capacity.same(capacity):
            self._records.root_max()
            self._records.node(
                node_id, _SET, ChangeDetail.NODE_CAPACITY, resource=now.capacity.named(self._partition.types)
            )

    # -- outputs ---------------------------------------------------------------------------------------

    def _read_outputs(self) -> None:
        out = self._partition.out
        for position in range(self._told, len(out)):
            self._read(out[position])
        self._told = len(out)

    def _read(self, output: Output) -> None:
        match output:
            case NewAllocation():
                self._new_allocation(output)
            case UpdatedApplication():
                self._new_state(output)
            case AcceptedApplication():
                app: Application | None = self._partition.applications.get(output.application_id)
                if app is not None:
                    for queue in reversed(app.queue.lineage()):
                        self._look_at(queue)
                    self._records.queue(app.queue.path, _ADD, ChangeDetail.QUEUE_APP, app.id)
            case RejectedApplication():
                self._records.app(output.application_id, _SET, ChangeDetail.APP_REJECT, message=output.reason)

    def _new_allocation(self, output: NewAllocation) -> None:
        key, resource = output.key, output.resource
        if key != self._in_place:
            self._records.node(output.node_id, _ADD, ChangeDetail.NODE_ALLOC, key, resource=resource)
        self._records.app(output.application_id, _ADD, ChangeDetail.APP_ALLOC, key, output.queue, resource=resource)

    def _new_state(self, output: UpdatedApplication) -> None:
        app_id, state = output.application_id, output.state
        message = "" if output.message in _PLAIN_MESSAGES else output.message
        if state not in _STATES:
            message = state
        gone: Application | None = None
        if state in _ENDED:
            gone = next((app for app in reversed(self._partition.terminated) if app.id == app_id), None)
        path = "" if gone is None else gone.queue.path
        detail = _STATES.get(state, _NO_DETAIL)
        self._records.app(app_id, _SET, detail, group=path, message=message, at_ns=output.timestamp_ns)
        if gone is not None:
            self._records.left(gone)

    # -- queues ----------------------------------------------------------------------------------------

    def _look_at(self, queue: Queue) -> None:
        """Record what is new about the queue since it was last looked at."""
        path = queue.path
        old = self._queues.get(path)
        new = _facts(queue)
        if new == old:
            return
        self._queues[path] = new
        if old is None:
            self._records.queue(path, _ADD, _NO_DETAIL if new.managed else ChangeDetail.QUEUE_DYNAMIC)
            old = _QueueFacts(new.managed, new.is_leaf, None, None)
        if new.is_leaf != old.is_leaf:
            text = f"leaf queue: {'true' if new.is_leaf else 'false'}"
            self._records.queue(path, _SET, ChangeDetail.QUEUE_TYPE, message=text)
        if new.max != old.max:
            self._records.queue(path, _SET, ChangeDetail.QUEUE_MAX, resource=new.max or {})
        if new.guaranteed != old.guaranteed:
            self._records.queue(path, _SET, ChangeDetail.QUEUE_GUARANTEED, resource=new.guaranteed or {})


def _facts(queue: Queue) -> _QueueFacts:
    return _QueueFacts(queue.managed, queue.is_leaf, queue.max_config, queue.guaranteed_config)


def _text(amounts: dict[str, int]) -> str:
    """Amounts in a message (spec events.md, section 2)."""
    return f"map[{' '.join(f'{name}:{amounts[name]}' for name in sorted(amounts))}]"
