"""Change records of a partition, and the event records that are made of them (`licorne.core.events`).

Source: docs/spec/events.md, sections 1 to 4.

The order within one input follows the reference sequences of section 3, except that the new state of an application
comes before the allocation that led to it, as it does among the responses.

Different from the original: a refused node gives no "Node added"; root's QUEUE_MAX carries the value after the change;
NODE_OCCUPIED is recorded. Starting, a state without a number of its own, is SET without a detail, its name as message.
The ring buffer and the streams (sections 4.4 and 4.5) belong to the host (`Cluster.recorder`; `licorne.host.web.event_ring`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import ApplicationEvent, ApplicationState
from licorne.si.messages import (
    AcceptedApplication,
    NewAllocation,
    RejectedApplication,
    Termination,
    UpdatedApplication,
)
from licorne.si.v19 import ChangeDetail, ChangeType

from .notices import RequestEvents, text
from .queues import QueueEvents
from .records import EventStore, Records
from .runs import RUN_MAX, AllocationRun, Owner
from .users import UserEvents, owner_of

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.preemption.evictions import Eviction
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

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
_TIMEOUT = Termination.TIMEOUT
_APPLICATION = attrgetter("application_id")


class Changes(msgspec.Struct):
    """The change records that wait for the end of a step.

    `ended`: allocations that have ended, each with its owner and its amounts. `dropped`: asks that have ended without an
    allocation. `replaced`: real allocations, by the placeholder that each has replaced. `retired`: applications that have
    completed or failed, by id; their new state is among the outputs. `left`: independent applications that are gone,
    whose states are not among the outputs. `expired`: terminated applications that are kept no longer.
    """

    ended: list[tuple[Ask, Owner, dict[str, int]]] = []
    dropped: list[Ask] = []
    replaced: dict[Ask, Ask] = {}
    retired: dict[str, Application] = {}
    left: list[Application] = []
    expired: list[Application] = []


class PartitionEvents:
    """Makes the records of one partition.

    Parameters:
        announce: whether the queues and limits that are there count as just created.
    """

    def __init__(self, partition: Partition, store: EventStore, *, announce: bool) -> None:
        self.records = Records(partition, store)
        self.partition = partition
        self._descent = partition.descent
        self._told = len(self._descent.out)  # how many of the partition's outputs have been read
        self._inside = False  # an input is being handled
        self.changes = Changes()
        self._in_place: set[str] = set()  # ids of real allocations that replace a placeholder on the same node
        self.request_events = RequestEvents(partition, self.records)
        self.queues = QueueEvents(partition.tree, self.records, tell=announce)
        self.owners = UserEvents(partition, self.records)
        self._readers: dict[type, Callable[[Any], None]] = {
            NewAllocation: lambda output: self._made([output]),
            UpdatedApplication: self._new_state,
            AcceptedApplication: lambda output: self.joined(partition.applications[output.application_id]),
            RejectedApplication: self._rejected,
        }
        partition.limits.regrouped = self._regrouped
        partition.intake.asked = self.records.asked
        partition.accounting.watchers.append(self)
        if announce:
            self.queues_changed()
        else:
            self.owners.look_at_limits(tell=False)

    def stop(self) -> None:
        """Listen no longer."""
        partition = self.partition
        partition.events = partition.limits.regrouped = partition.intake.asked = None
        partition.accounting.watchers.remove(self)

    # -- steps -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a step in which an input, or a run of asks, is handled."""
        self._inside = False
        if self.changes.dropped or self._told != len(self._descent.out):
            self.catch_up()
        self._inside = True

    def end(self, termination: Termination | None = None) -> None:
        """End a step, and make the records of its changes that have not been made; `termination`: that of a release."""
        self._inside = False
        if self.records.asked:
            self.records.tell_asked()
        if termination is not None and (self.changes.ended or self.changes.dropped):
            self._released(termination)
        self._settle()

    def catch_up(self) -> None:
        """Make the records of what timers and decisions have changed since the last call; within a step, none."""
        if self._inside:
            return
        self.read_outputs()
        for ask in self.changes.dropped:
            self.records.ask_off(ask, ChangeDetail.REQUEST_TIMEOUT)
        self._settle()

    def _settle(self) -> None:
        """Make the records that come last in a step, and forget its changes."""
        self.read_outputs()
        if self.owners.unlinked:
            self.owners.settle()
        for app in self.changes.left:
            self.records.left(app)
        for app in self.changes.expired:
            self.records.app(app.id, _SET, ChangeDetail.APP_EXPIRED, group=app.queue.path)
        self.changes = Changes()

    def drained(self) -> None:
        """Read the partition's outputs, which are about to be taken away."""
        self.catch_up()
        self._told = 0

    def look(self) -> bool:
        """Inspect the asks that wait; False if there are more to inspect."""
        self.catch_up()
        return self.request_events.look()

    # -- changes of asks and allocations ---------------------------------------------------------------

    def dropped(self, ask: Ask) -> None:
        """Note that an ask that was pending, or in flight, is gone."""
        self.changes.dropped.append(ask)
        self.request_events.gone(ask.app.id, ask.key)

    def ending(self, app: Application, alloc: Ask) -> None:
        """Note that an allocation is about to end, or to be counted anew (`resized` follows)."""
        self.changes.ended.append((alloc, (app.user, app.group), alloc.shape.resource))

    def resized(self, app: Application, alloc: Ask) -> None:
        """Record the difference in usage after an allocation was counted anew."""
        _, _, before = self.changes.ended.pop()
        if alloc.shape.resource is not before:
            self.owners.resized(app, before, alloc.shape.resource)

    def _released(self, termination: Termination) -> None:
        """Make the records of a release: of each allocation that it ended, and then of the asks that it dropped.

        In the 1.9 interface the ask of an allocation is dropped with it, except when it was timed out.
        """
        changes = self.changes
        cancels = termination is not _TIMEOUT and not self.partition.first_interface
        if len(changes.ended) == 1 and not changes.dropped and not changes.replaced:  # the usual case, in one record
            alloc, owner, _ = changes.ended[0]
            self.records.ended(alloc, termination, owner, cancels=cancels)
            return
        # A real allocation on the node of its placeholder leaves the node's usage as it is: no record of the node.
        self._in_place = {real.id for place, real in changes.replaced.items() if real.node is place.node}
        for alloc, owner, _ in changes.ended:
            real = changes.replaced.get(alloc)
            self.records.ended(alloc, termination, owner, off_node=real is None)
            if real is not None:
                self.read_outputs()
                if real.node is not alloc.node:
                    self.records.allocation_off_node(alloc)
        self._in_place.clear()
        for ask in [*changes.dropped, *(alloc for alloc, _, _ in changes.ended if cancels)]:
            self.records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)

    def reservation(self, ask: Ask, node: Node, *, made: bool) -> None:
        """Record that a node was reserved for an ask (`made`), or is no longer."""
        self.catch_up()
        change = _ADD if made else _REMOVE
        self.records.node(node.id, change, ChangeDetail.NODE_RESERVATION, ask.key, resource=ask.shape.resource)

    # -- changes of applications -----------------------------------------------------------------------

    def joined(self, app: Application) -> None:
        """Record a new application, and that it is in its queue."""
        self.records.app(app.id, _ADD, ChangeDetail.APP_NEW)
        self.queues.look_at_path(app.queue)
        self.records.queue(app.queue.path, _ADD, ChangeDetail.QUEUE_APP, app.id)

    def removed(self, app: Application) -> None:
        """Record the end of an application that was removed, with its asks and allocations."""
        ended = [alloc for alloc, _, _ in self.changes.ended]
        for ask in [*self.changes.dropped, *(() if self.partition.first_interface else ended)]:
            self.records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)
        if not app.independent:  # else it is in `Changes.left`
            self.records.left(app)
        self.request_events.left(app.id)
        for alloc in ended:
            self.records.ended(alloc, Termination.STOPPED_BY_RM, None, off_node=False)
        if ended:
            self.records.usage_off(self.changes.ended[0][1], app.queue.path, ended)
        self.read_outputs()
        for alloc in ended:
            self.records.allocation_off_node(alloc)

    def may_run(self, app: Application, in_queue: bool, within_limits: bool) -> None:
        """Record whether there is a slot for an accepted application that had its turn."""
        self.catch_up()
        self.request_events.may_run(app, in_queue, within_limits)

    def evicted(self, victim: Ask, record: Eviction) -> None:
        """Record that an allocation is evicted, and for what."""
        self.catch_up()
        by = f"{record.ask} from application {record.ask_application} in {record.queue}"
        if record.kind == "quota-change":
            by = f"Quota change enforcement process in {record.queue}"
        self.records.request(victim, f"Preempted by {by}")

    def _regrouped(self, app: Application, old: str | None, new: str | None) -> None:
        """Record that an application counts for another group now, or for none; called by `Limits`."""
        if old is None:
            self.catch_up()
        self.owners.regrouped(app, old, new)

    def misfit(self, ask: Ask, place: Ask) -> None:
        """Record that a placeholder (`place`) is too small for an ask of its task group."""
        self.catch_up()
        message = (
            f"Task group '{place.task_group}' in application '{place.app.id}': allocation resources "
            f"'{text(ask.shape.resource)}' are not matching placeholder '{text(place.shape.resource)}' "
            f"allocation with ID '{place.key}'"
        )
        self.records.request(place, message, ask.shape.resource)

    # -- changes of nodes, queues and the partition ----------------------------------------------------

    def node_added(self, node: Node) -> None:
        """Record a new node."""
        self.records.schedulable(node.id, node.schedulable)
        self.records.root_max()
        amounts = node.capacity.named(self.partition.types)
        self.records.node(node.id, _ADD, message="Node added to the scheduler", resource=amounts)

    def node_updated(self, node: Node, capacity: Vec, occupied: Vec) -> None:
        """Record what an update has changed; `capacity` and `occupied` are what the node itself had before."""
        types = self.partition.types
        if not node.capacity.same(capacity):
            self.records.root_max()
            self.records.node(node.id, _SET, ChangeDetail.NODE_CAPACITY, resource=node.capacity.named(types))
        if not node.base_occupied.same(occupied):
            self.records.node(node.id, _SET, ChangeDetail.NODE_OCCUPIED, resource=node.occupied.named(types))

    def node_removed(self, node: Node) -> None:
        """Record the removal of a node, after that of the allocations on it."""
        for alloc, owner, _ in self.changes.ended:
            self.records.ended(alloc, Termination.UNKNOWN, owner)
        self.records.root_max()
        self.records.node_gone(node)

    def quota_enforced(self, queue: Queue, wanted: Mapping[int, int], victims: list[Ask]) -> None:
        """Record the enforcement of a lowered max: what was wanted (by number of the type), and who gives it back."""
        self.catch_up()
        claimed = Vec()
        for victim in victims:
            claimed.plus(victim.shape.amounts)
        types = self.partition.types
        wanted_text = text({types.names[d]: amount for d, amount in wanted.items()})
        message = (
            f"Quota Preemption results summary: preemptable resources: {wanted_text}, claimed resources: "
            f"{text(claimed.named(types))}, selected victims: {len(victims)}, preempted victims: {len(victims)}"
        )
        limit = queue.max_resource() or {}
        self.records.queue(queue.path, _SET, ChangeDetail.QUEUE_PREEMPTION, message=message, resource=limit)

    def queues_changed(self) -> None:
        """Record the changes of queues and limits, after a configuration was applied."""
        self.queues.look_at_all()
        self.owners.settle()
        self.owners.look_at_limits()

    def partition_removed(self) -> None:
        """Record the removal of nodes and queues, with a partition that was removed and has no applications left."""
        for node in self.partition.nodes.values():
            self.records.schedulable(node.id, False)
            self.records.node_gone(node)
        self.queues.all_removed()

    # -- outputs ---------------------------------------------------------------------------------------

    def read_outputs(self) -> None:
        """Make the records of the partition's outputs since the last call."""
        out = self._descent.out
        unread = out[self._told :]
        if not unread:
            return
        self._told = len(out)
        if len(unread) == 1:  # mostly the echo of a release, which says nothing new
            read = self._readers.get(type(unread[0]))
            if read is not None:
                read(unread[0])
            return
        for kind, outputs in groupby(unread, type):
            if kind is NewAllocation:
                made: Any = list(outputs)
                step = 1 if self._in_place else RUN_MAX
                for at in range(0, len(made), step):
                    self._made(made[at : at + step])
            else:
                read = self._readers.get(kind)
                if read is not None:
                    for output in outputs:
                        read(output)

    def _made(self, outputs: list[NewAllocation]) -> None:
        owners = {app_id: self._owner(app_id) for app_id in set(map(_APPLICATION, outputs))}
        if self.request_events.known:
            for output in outputs:
                self.request_events.placed(output.application_id, output.key, output.uuid or output.key)
        on_node = not self._in_place or (outputs[0].uuid or outputs[0].key) not in self._in_place
        count = len(outputs) * (2 + on_node)
        if any(group is not None for _, group in owners.values()):
            count += sum(owners[output.application_id][1] is not None for output in outputs)
        self.records.add(AllocationRun(count, self.partition.now, outputs, owners, on_node))

    def _owner(self, app_id: str) -> Owner:
        app: Application | None = self.partition.applications.get(app_id) or self.changes.retired.get(app_id)
        return ("", None) if app is None else owner_of(app)

    def _rejected(self, output: RejectedApplication) -> None:
        self.records.app(output.application_id, _ADD, ChangeDetail.APP_NEW)
        self.records.app(output.application_id, _SET, ChangeDetail.APP_REJECT, message=output.reason)

    def _new_state(self, output: UpdatedApplication) -> None:
        app_id, state = output.application_id, output.state
        message = "" if output.message in _PLAIN_MESSAGES else output.message
        if state not in _STATES:
            message = state
        gone = self.changes.retired.pop(app_id, None) if state in _ENDED else None
        path = "" if gone is None else gone.queue.path
        detail = _STATES.get(state, _NO_DETAIL)
        if detail is not ChangeDetail.APP_ACCEPTED:
            self.request_events.runs(app_id)
        self.records.app(app_id, _SET, detail, group=path, message=message, at_ns=output.timestamp_ns)
        if gone is not None:
            self.records.left(gone)
