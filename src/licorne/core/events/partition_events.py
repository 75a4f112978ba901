"""The event records of a partition: which are made, when, and in which order.

Source: docs/spec/events.md, sections 1, 2 and 4.

Little in the core knows of events, and that code checks one attribute: is there a listener? So the hot files have
hardly any hooks, and events cost nothing if nobody listens. Records are *derived* from what passes through anyway. The
outputs say what became of applications and allocations. An input's object is compared before and after it is handled
(`licorne.core.events.inputs`), which shows what the input added, changed or ended, and with what amounts. For what
neither shows (asks and reservations that are removed, queues that the cleaner removes, evictions, groups that count or
no longer do) there is a hook where it happens. Why something waits is inspected once a second
(`licorne.core.events.notices`). The order within one input follows the reference sequences of docs/spec/events.md,
section 3, except that the new state of an application comes before the allocation that led to it, as it does among the
responses.

Records wait in a bounded store, which is emptied for the resource manager every two seconds. What does not fit is
dropped and counted, because a slow listener must not exhaust the machine. Records that come by the thousand are kept as
runs, and expanded into events when they are read (`licorne.core.events.runs`).

Different from the original: a refused node gives no "Node added"; root's QUEUE_MAX carries the value after the change;
NODE_OCCUPIED is recorded. Starting, a state without a number of its own, is SET without a detail, its name as message.
The ring buffer and the streams (docs/spec/events.md, sections 4.4 and 4.5) belong to the host (`Cluster.recorder`;
`licorne.web.event_ring`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from licorne.core.base.states import ApplicationEvent, ApplicationState
from licorne.si.messages import (
    AcceptedApplication,
    Allocation,
    Input,
    NewAllocation,
    RejectedApplication,
    Release,
    RemoveApplication,
    Termination,
    UpdatedApplication,
)
from licorne.si.v19 import ChangeDetail, ChangeType

from .inputs import Watchers
from .notices import RequestEvents, text
from .queues import QueueEvents
from .records import EventStore, Records
from .runs import RUN_MAX, AllocationRun, AskRun, Owner
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


class PartitionEvents:
    """Makes the records of one partition.

    Parameters:
        announce: whether the queues and limits that are there count as just created.
    """

    def __init__(self, partition: Partition, store: EventStore, *, announce: bool) -> None:
        self.records = Records(partition, store)
        self.partition = partition
        self._descent = partition.descent
        self._told = len(partition.out)  # how many of the partition's outputs have been read
        self._inside = False  # an input is being handled
        self.dropped_asks: list[Ask] = []  # asks that have gone, and are not recorded yet; so the next two lists
        self._expired: list[Application] = []
        self._left: list[Application] = []
        self.in_place: set[str] = set()  # ids of real allocations that replace a placeholder on the same node
        self.request_events = RequestEvents(partition, self.records)
        self.queues = QueueEvents(partition.tree, self.records, tell=announce)
        self.owners = UserEvents(partition, self.records)
        self._watchers = Watchers(self).of
        self._readers: dict[type, Callable[[Any], None]] = {
            NewAllocation: lambda output: self._made([output]),
            UpdatedApplication: self._new_state,
            AcceptedApplication: self._accepted,
            RejectedApplication: self._rejected,
        }
        partition.limits.regrouped = self._regrouped
        if announce:
            self.queues_changed()
        else:
            self.owners.look_at_limits(tell=False)

    # -- inputs ----------------------------------------------------------------------------------------

    def watch(self, message: Input, handle: Callable[[Any, Any], object]) -> object:
        """Handle an input, and make the records of its effects; return the handler's result."""
        self.catch_up()
        watcher = self._watchers[type(message)](message)
        self._inside = True
        next(watcher)
        try:
            result = handle(self.partition, message)
        finally:
            self._inside = False
        next(watcher, None)
        self._settle()
        return result

    def watch_asks(self, messages: list[Any], start: int, handle: Callable[[Any, Any], object]) -> int:
        """Handle consecutive asks for this partition from index `start` on; return the index of the next message.

        This is a fast path: the records are the same, in the same order, as if `watch` handled one message after the
        other. If the first message is none for the fast path, `watch` handles that one.
        """
        self.catch_up()
        take, out, told = self.partition.intake.take, self._descent.out, self._told
        name = messages[start].partition
        app_id = ""
        asks: dict[str, Ask] = {}
        allocations: dict[str, Ask] = {}
        new: list[Ask] = []
        at = start
        self._inside = True
        try:
            for message in messages[start : start + RUN_MAX]:
                if type(message) is not Allocation or message.partition != name or message.node_id:
                    break
                if message.application_id != app_id or not asks:
                    app: Application | None = self.partition.applications.get(message.application_id)
                    if app is None:
                        break
                    app_id, asks, allocations = app.id, app.asks, app.allocations
                key = message.key
                if (message.uuid or key) in allocations:
                    break
                known = key in asks
                # A known ask may get other amounts by the message, so those before it are recorded first.
                if known and new:
                    self._asked(new)
                take(message)
                if told != len(out):  # an output, which is a new state or a refusal, has its record after those asks
                    self._asked(new)
                    self.read_outputs()
                    told = len(out)
                if not known and key in asks:
                    new.append(asks[key])
                at += 1
        finally:
            self._inside = False
        self._asked(new)
        self.dropped_asks.clear()
        if at > start:
            return at
        self.watch(messages[start], handle)
        return start + 1

    def _asked(self, asks: list[Ask]) -> None:
        """Record these new asks as one run, and empty the list."""
        if asks:
            ids = [ask.app.id for ask in asks]
            paths = [ask.app.queue.path for ask in asks]
            keys = [ask.key for ask in asks]
            resources = [ask.shape.resource for ask in asks]
            self.records.add(AskRun(len(asks), self.partition.now, ids, paths, keys, resources))
            asks.clear()

    def watch_release(self, message: Release, handle: Callable[[Any, Any], object]) -> None:
        """Handle a release as `watch` does, with a fast path for one allocation of an application without a gang."""
        app: Application | None = self.partition.applications.get(message.application_id)
        wanted = message.uuid if message.what == "allocation" else message.key
        alloc: Ask | None = None if app is None else app.allocations.get(wanted)
        if app is None or alloc is None or app.gang is not None or message.what == "ask":
            self.watch(message, handle)
            return
        if self.dropped_asks or self._told != len(self._descent.out):
            self.catch_up()
        owner: Owner = (app.user, app.group)
        self._inside = True
        try:
            handle(self.partition, message)
        finally:
            self._inside = False
        if app.allocations.get(wanted) is not alloc:
            cancels = message.termination is not _TIMEOUT and not self.partition.first_interface
            # An ask of the same key that is dropped too is recorded first, as in `watch`.
            self.records.ended(alloc, message.termination, owner, cancels=cancels and not self.dropped_asks)
            if cancels and self.dropped_asks:
                self.dropped_asks.append(alloc)
        for ask in self.dropped_asks:
            self.records.ask_off(ask, ChangeDetail.REQUEST_CANCEL)
        if self._told != len(self._descent.out) or self.dropped_asks or self.owners.unlinked:
            self._settle()

    def catch_up(self) -> None:
        """Make the records of what timers and decisions have changed since the last call.

        Nothing happens while an input is handled: its watcher decides on the order then.
        """
        if self._inside:
            return
        self.read_outputs()
        for ask in self.dropped_asks:
            self.records.ask_off(ask, ChangeDetail.REQUEST_TIMEOUT)
        self._settle()

    def _settle(self) -> None:
        """Make the records that come last in a step."""
        self.dropped_asks.clear()
        self.read_outputs()
        if self.owners.unlinked:
            self.owners.settle()
        if self._left:
            for app in self._left:
                self.records.left(app)
            self._left.clear()
        if self._expired:
            for app in self._expired:
                self.records.app(app.id, _SET, ChangeDetail.APP_EXPIRED, group=app.queue.path)
            self._expired.clear()

    def taken(self) -> None:
        """Note that the partition's outputs were drained; to be called after `catch_up`."""
        self._told = 0

    def unread(self) -> int:
        """The number of outputs that have not been read."""
        return len(self.partition.out) - self._told

    def look(self) -> bool:
        """Inspect the asks that wait; False if there are more to inspect."""
        self.catch_up()
        return self.request_events.look()

    # -- hooks -----------------------------------------------------------------------------------------

    def dropped(self, ask: Ask) -> None:
        """Note that a pending ask is gone: without an allocation, or replaced by an allocation that was reported."""
        self.dropped_asks.append(ask)
        self.request_events.gone(ask.app.id, ask.key)

    def reservation(self, ask: Ask, node: Node, *, made: bool) -> None:
        """Record that a node was reserved for an ask (`made`), or is no longer."""
        self.catch_up()
        change = _ADD if made else _REMOVE
        self.records.node(node.id, change, ChangeDetail.NODE_RESERVATION, ask.key, resource=ask.shape.resource)

    def independent(self, app: Application) -> None:
        """Record the application that an ask without one was given, of which its resource manager is not notified."""
        self.records.app(app.id, _ADD, ChangeDetail.APP_NEW)
        self._joined(app)

    def independent_left(self, app: Application) -> None:
        """Note that the application of an ask without one is gone, together with the ask."""
        self._left.append(app)

    def expired(self, app: Application) -> None:
        """Note that an ended application was dropped from the partition's memory."""
        self._expired.append(app)

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

    def quota_enforced(self, queue: Queue, wanted: dict[str, int], claimed: dict[str, int], victims: int) -> None:
        """Record the enforcement of a lowered max: what was wanted, what victims give back, and their number."""
        self.catch_up()
        message = (
            f"Quota Preemption results summary: preemptable resources: {text(wanted)}, "
            f"claimed resources: {text(claimed)}, selected victims: {victims}, preempted victims: {victims}"
        )
        limit = queue.max_resource() or {}
        self.records.queue(queue.path, _SET, ChangeDetail.QUEUE_PREEMPTION, message=message, resource=limit)

    def queues_changed(self) -> None:
        """Record the changes of queues and limits, after a configuration was applied."""
        self.queues.look_at_all()
        self.owners.settle()
        self.owners.look_at_limits()

    def application_ends(self, app: Application, end: Callable[[], None]) -> None:
        """Record the end of an application that goes with its partition; `end` ends it."""
        self.watch(RemoveApplication(application_id=app.id, partition=self.partition.name), lambda *_: end())

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
                step = 1 if self.in_place else RUN_MAX
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
        on_node = not self.in_place or (outputs[0].uuid or outputs[0].key) not in self.in_place
        count = len(outputs) * (2 + on_node)
        if any(group is not None for _, group in owners.values()):
            count += sum(owners[output.application_id][1] is not None for output in outputs)
        self.records.add(AllocationRun(count, self.partition.now, outputs, owners, on_node))

    def _owner(self, app_id: str) -> Owner:
        app: Application | None = self.partition.applications.get(app_id)
        if app is None:
            app = self._ended(app_id)
        return ("", None) if app is None else owner_of(app)

    def _ended(self, app_id: str) -> Application | None:
        return next((app for app in reversed(self.partition.terminated) if app.id == app_id), None)

    def _accepted(self, output: AcceptedApplication) -> None:
        app: Application | None = self.partition.applications.get(output.application_id)
        if app is not None:
            self._joined(app)

    def _joined(self, app: Application) -> None:
        self.queues.look_at_path(app.queue)
        self.records.queue(app.queue.path, _ADD, ChangeDetail.QUEUE_APP, app.id)

    def _rejected(self, output: RejectedApplication) -> None:
        self.records.app(output.application_id, _SET, ChangeDetail.APP_REJECT, message=output.reason)

    def _new_state(self, output: UpdatedApplication) -> None:
        app_id, state = output.application_id, output.state
        message = "" if output.message in _PLAIN_MESSAGES else output.message
        if state not in _STATES:
            message = state
        gone: Application | None = None
        if state in _ENDED:
            gone = self._ended(app_id)
        path = "" if gone is None else gone.queue.path
        detail = _STATES.get(state, _NO_DETAIL)
        if detail is not ChangeDetail.APP_ACCEPTED:
            self.request_events.runs(app_id)
        self.records.app(app_id, _SET, detail, group=path, message=message, at_ns=output.timestamp_ns)
        if gone is not None:
            self.records.left(gone)
