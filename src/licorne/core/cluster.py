"""All partitions of all resource managers: registration, reload, removal, and the dispatch of messages to partitions.

A cluster takes internal messages with a time stamp and returns internal messages; it reads no clock, and calls no
function outside the scheduler but the predicates of resource managers and the hooks of its host. It is the state
machine of the design; `licorne.core.api` wraps it in the Scheduler Interface. Partitions are visited in the order of
(resource manager, name).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.config import Configuration, load
from licorne.config.model import PartitionConfig
from licorne.core.base.rejections import naming, refused_allocation, refused_application, refused_node
from licorne.core.base.settings import Settings, read_settings
from licorne.core.base.states import ApplicationEvent, ApplicationState
from licorne.core.events.records import Recorder, schedulable
from licorne.core.inputs.admission import add_application, change_application, end_application, remove_application
from licorne.core.inputs.node_changes import change_node
from licorne.core.inspection.validate import validate
from licorne.core.queues.usage_history import UsageHistory
from licorne.core.scheduling.host_orders import HostOrders
from licorne.si.events import Event
from licorne.si.messages import (
    AddApplication,
    Allocation,
    ChangeApplication,
    DisruptionBudgetUpdate,
    Input,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    RemoveApplication,
    Termination,
)
from licorne.si.partitions import qualified_partition, short_partition

from .arguments import refuse_input
from .manager import RegisteredManager
from .partition import Partition, Predicate, PreemptionPredicate

if TYPE_CHECKING:
    from licorne.core.queues.application import Application


@cython.cclass
class Cluster:
    """The scheduler as a pure state machine. `now` (ns) never goes back.

    A host may set four attributes. `watcher` is called with each new partition, before anything happens there.
    `recorder` takes the records of events of all resource managers that register from then on. `read` parses a queue
    configuration; the host's may cache configurations that it has parsed before. `orders` are what the host decides in
    place of the core in partitions that are made from then on; None: nothing. `listening` are the resource managers
    for which records of events are made.
    """

    now: int
    watcher: Callable[[Partition], None] | None
    managers: dict[str, RegisteredManager]
    listening: list[RegisteredManager]
    recorder: Recorder | None
    read: Callable[[str], Configuration]
    orders: HostOrders | None
    _ordered: list[RegisteredManager]  # by id
    _deciding: list[RegisteredManager]  # by id, without those that are paused
    usage_watched: cython.bint
    __weakref__: object

    # Set by the host; the lists follow from `managers`.
    TRANSIENT = ("watcher", "recorder", "orders", "read", "listening", "_ordered", "_deciding")

    def __init__(self) -> None:
        self.now = 0
        self.watcher = None
        self.managers = {}
        self.listening = []
        self.recorder = None
        self.read = load
        self.orders = None
        self._ordered = []
        self._deciding = []
        self.usage_watched = False

    def watch_usage(self) -> None:
        """Record from now on what applications use (`licorne.core.queues.usage_history`)."""
        if not self.usage_watched:
            self.usage_watched = True
            for partition in self.partitions():
                partition.accounting.watchers.append(UsageHistory(partition))

    def partitions(self) -> Iterator[Partition]:
        """Yield all partitions, in the order of (resource manager, name)."""
        for manager in self._ordered:
            yield from manager.ordered

    def partition(self, rm_id: str, name: str = "default") -> Partition:
        """Return one partition of a resource manager.

        Raises:
            KeyError: there is no such resource manager or partition.
        """
        manager = self.managers.get(rm_id)
        if manager is None:
            known = ", ".join(sorted(self.managers)) or "none"
            raise KeyError(f"rm_id: {rm_id!r}: no such resource manager is registered; registered: {known}")
        found = manager.partitions.get(short_partition(name, rm_id))
        if found is None:
            raise KeyError(
                f"name: {name!r}: no such partition of {rm_id!r}; there are: {', '.join(manager.partitions)}"
            )
        return found

    # -- the life of a resource manager ----------------------------------------------------------------

    def register(
        self,
        rm_id: str,
        text: str,
        settings: Mapping[str, str],
        predicates: Predicate | None,
        *,
        first_interface: bool,
        listens: bool = False,
        preemption_predicates: PreemptionPredicate | None = None,
    ) -> RegisteredManager:
        """Register a resource manager; one that registers again loses all its state here, and has to report it anew.

        `listens`: the resource manager wants records of events.

        Raises:
            ConfigError, SettingsError: the configuration or a setting is refused; nothing has changed.
        """
        configuration = self.read(text)
        manager = RegisteredManager(rm_id, configuration, read_settings(settings), first_interface=first_interface)
        manager.predicates = predicates
        manager.preemption_predicates = preemption_predicates
        for config in configuration.partitions:
            self._add_or_reload(manager, config)
        manager.listens = listens
        manager.recorder = self.recorder
        manager.settle_listening(self.now, announce=True)
        self.managers[rm_id] = manager
        self.order_managers()
        return manager

    def take_over(self, other: Cluster) -> None:
        """Take over what the host has set at a cluster that this one, which was restored, is to replace."""
        self.watcher, self.recorder, self.read, self.orders = other.watcher, other.recorder, other.read, other.orders
        if other.usage_watched:
            self.watch_usage()

    def attach(
        self,
        rm_id: str,
        predicates: Predicate | None,
        preemption_predicates: PreemptionPredicate | None,
        *,
        listens: bool,
    ) -> None:
        """Give a resource manager that was restored what belongs to its host; see `register`."""
        manager = self.managers[rm_id]
        manager.predicates, manager.preemption_predicates = predicates, preemption_predicates
        manager.listens, manager.recorder = listens, self.recorder
        for partition in manager.ordered:
            partition.predicates, partition.preemption_predicates = predicates, preemption_predicates
            partition.use_orders(self.orders)
            if self.watcher is not None:
                self.watcher(partition)
        manager.settle_listening(self.now, announce=False)
        self.order_managers()

    def order_managers(self) -> None:
        """Bring up to date what follows from which managers there are, which are paused, and who listens."""
        self._ordered = [self.managers[rm_id] for rm_id in sorted(self.managers)]
        self._deciding = [manager for manager in self._ordered if not manager.paused]
        self.listening = [manager for manager in self._ordered if manager.store is not None]

    def pause(self, rm_id: str, *, paused: bool) -> None:
        """Stop deciding for a resource manager, or resume; an unknown one is ignored."""
        manager = self.managers.get(rm_id)
        if manager is not None and manager.paused != paused:
            manager.paused = paused
            self.order_managers()

    def _add_or_reload(self, manager: RegisteredManager, config: PartitionConfig) -> None:
        name = short_partition(config.name, manager.rm_id)
        known = manager.partitions.get(name)
        if known is not None:  # also `x` and `[rm]x` in one configuration (docs/spec/config.md, section 13)
            known.reload(config)
            return
        partition = Partition(
            config,
            manager.settings,
            self.now,
            first_interface=manager.first_interface,
            owner=manager.rm_id,
            name=name,
            orders=self.orders,
        )
        partition.predicates = manager.predicates
        partition.paused = manager.is_paused
        partition.preemption_predicates = manager.preemption_predicates
        if self.usage_watched:
            partition.accounting.watchers.append(UsageHistory(partition))
        manager.add(name, partition)
        if self.watcher is not None:
            self.watcher(partition)

    def remove(self, rm_id: str) -> None:
        """Remove a resource manager with all its state; an unknown one is ignored."""
        self.managers.pop(rm_id, None)
        self.order_managers()

    def reload(self, rm_id: str, text: str, settings: Mapping[str, str]) -> bool:
        """Apply a configuration to a resource manager's partitions; return False if the one in force is the same.

        The settings replace the old ones (`Settings.reread`), even if the configuration is the same.

        Raises:
            ConfigError, SettingsError, PlacementConfigError: refused; configuration and settings stay as they are.
        """
        configuration, changed = self.check_reload(rm_id, text, settings)
        manager = self.managers[rm_id]
        manager.settings = changed
        for partition in manager.partitions.values():
            partition.settings = changed
        manager.settle_listening(self.now, announce=False)
        self.order_managers()
        if configuration.checksum == manager.configuration.checksum:
            return False
        manager.configuration = configuration
        for config in configuration.partitions:
            self._add_or_reload(manager, config)
        named = {short_partition(config.name, rm_id) for config in configuration.partitions}
        for name in sorted(set(manager.partitions) - named):
            self._drop_partition(manager, manager.drop(name))
        manager.settle_listening(self.now, announce=False)
        self.order_managers()
        return True

    def check_reload(self, rm_id: str, text: str, settings: Mapping[str, str]) -> tuple[Configuration, Settings]:
        """Return the configuration and settings that `reload` would apply, and change nothing.

        Raises:
            ConfigError, SettingsError, PlacementConfigError: `reload` would refuse them.
        """
        manager = self.managers[rm_id]
        known = manager.configuration
        configuration = known if text == known.text else self.read(text)
        changed = manager.settings.reread(settings)
        if configuration.checksum != manager.configuration.checksum:
            present = set(manager.partitions)
            for config in configuration.partitions:
                name = short_partition(config.name, rm_id)
                if name in present:
                    Partition.check_reload(config)
                present.add(name)
        return configuration, changed

    @staticmethod
    def _drop_partition(manager: RegisteredManager, partition: Partition) -> None:
        """End a partition that is no longer configured: its applications fail, and their allocations are released.

        Source: docs/spec/config.md, section 6.5.
        """

        def end(app: Application) -> None:
            # Failing a second time would make it Failed, a state that no application with allocations may be in.
            if app.state is not ApplicationState.FAILING:
                partition.lifecycle.fire(app, ApplicationEvent.FAIL, "PartitionRemoved")
            end_application(partition, app, f"Partition {partition.name} Removed")

        events = partition.events
        for app in list(partition.applications.values()):
            if events is not None:
                events.begin()
            end(app)
            if events is not None:
                events.end()
        if events is not None:
            events.partition_removed()
        manager.out += partition.drain_outputs()

    # -- inputs ----------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Set the time to `now` (ns) and handle what was due; a time before the current one is ignored."""
        if now > self.now:
            self.now = now
            for partition in self.partitions():
                partition.advance(now)

    @cython.ccall
    def submit(self, rm_id: str, inputs: Iterable[Input]) -> cython.void:
        """Take in messages of a resource manager, in order.

        A new node may bring allocations that already run on it. They are taken in after the nodes and applications that
        directly follow the node, because they belong to these applications, and not at all if the node is refused.

        Raises:
            RequestError: an input is no internal message; those before it were taken in.
        """
        manager: RegisteredManager = self.managers[rm_id]
        partition: Partition | None
        running: list[Allocation] = []
        messages: list[Any] = inputs if type(inputs) is list else list(inputs)
        at: cython.Py_ssize_t = 0
        while at < len(messages):
            message = messages[at]
            if type(message) is not Allocation and type(message) is not Release and type(message) not in _HANDLERS:
                refuse_input(at, message, (Allocation, Release, *_HANDLERS))
            at += 1
            if running and type(message) is not NodeUpdate and type(message) is not AddApplication:
                self.submit(rm_id, running)
                running = []
            partition = manager.partitions.get(message.partition)
            if partition is None:
                refused = _unknown_partition(message, rm_id)
                if refused:  # outputs keep the order of inputs, so the partitions' earlier ones are drained first
                    for known in manager.ordered:
                        if known.descent.out:
                            manager.out += known.drain_outputs()
                    manager.out += refused
                if manager.store is not None and type(message) is NodeUpdate and message.action in _NEW_NODE:
                    manager.store.add(schedulable(message, self.now), self.now)
                continue
            partition.changed()
            if partition.events is not None:
                partition.events.begin()
            if type(message) is Allocation:  # one compiled call takes in a run of asks
                at = partition.intake.take_run(messages, at - 1, message.partition)
            elif type(message) is Release:
                partition.releases.take(message)
            elif _HANDLERS[type(message)](partition, message) and type(message) is NodeUpdate:
                running += message.existing
            if partition.events is not None:
                partition.events.end(message.termination if type(message) is Release else None)
        if running:
            self.submit(rm_id, running)

    # -- decisions -------------------------------------------------------------------------------------

    @cython.ccall
    def schedule(self, limit: cython.longlong) -> cython.longlong:
        """Decide until nothing more is possible or `limit` allocations are made in all; return their number."""
        manager: RegisteredManager
        partition: Partition
        made: cython.longlong = 0
        for manager in self._deciding:
            for partition in manager.ordered:
                made += partition.schedule(limit - made)
                if made >= limit:
                    return made
        return made

    def next_deadline_ns(self) -> int | None:
        """Return the next time (ns) at which something may happen without an input; None if there is none."""
        due = []
        for manager in self._ordered:
            for partition in manager.ordered:
                at = partition.timers.next_ns() if manager.paused else partition.next_deadline_ns()
                if at is not None:
                    due.append(at)
        for manager in self.listening:
            if manager.store is not None and manager.store.due_ns is not None:
                due.append(manager.store.due_ns)
        return min(due, default=None)

    @cython.ccall
    def outputs(self) -> list[tuple[str, list[Output]]]:
        """Drain the outputs of all partitions; return them by resource manager, those without any left out."""
        manager: RegisteredManager
        partition: Partition
        found: list[tuple[str, list[Output]]] = []
        for manager in self._ordered:
            out = manager.out
            for partition in manager.ordered:
                if partition.events is not None or partition.descent.out:
                    if out:
                        out += partition.drain_outputs()
                    else:
                        out = partition.drain_outputs()
            if out:
                if manager.out:
                    manager.out = []
                found.append((manager.rm_id, out))
        return found

    def events(self) -> Iterator[tuple[str, list[Event]]]:
        """Drain the records of events that are due, and yield them by resource manager; call it after `outputs`."""
        for manager in self.listening:
            if manager.store is not None and (events := manager.store.drain(self.now)):
                yield manager.rm_id, events

    def validate(self) -> None:
        """Check every invariant that the state can show.

        Raises:
            InvariantError: the state contradicts itself, which means a bug.
        """
        for partition in self.partitions():
            validate(partition)


_NEW_NODE = (NodeAction.CREATE, NodeAction.CREATE_DRAIN)
_HANDLERS: dict[type, Callable[[Partition, Any], object]] = {
    AddApplication: add_application,
    ChangeApplication: change_application,
    RemoveApplication: remove_application,
    NodeUpdate: change_node,
    DisruptionBudgetUpdate: lambda partition, message: partition.disruption_budgets.update(message),
}


def _unknown_partition(message: Input, rm_id: str) -> Sequence[Output]:
    shown = qualified_partition(message.partition, rm_id)
    if type(message) is AddApplication:
        app_id = message.application_id
        return [
            refused_application(
                message, naming("Failed to add application ", app_id, f" to partition {shown}, partition doesn't exist")
            )
        ]
    if type(message) is Allocation:
        ids = (message.application_id, " and allocation ", message.key)
        return [refused_allocation(message, naming(f"Failed to find partition {shown}, for application ", *ids))]
    if type(message) is NodeUpdate and message.action in _NEW_NODE:
        return [refused_node(message, naming(f"failed to find partition {shown} for new node ", message.node_id))]
    return []


__all__ = ["Cluster", "Termination"]
