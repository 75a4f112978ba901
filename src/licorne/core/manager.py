"""The cluster's view of one registered resource manager: its configuration, settings and partitions.

Compiled, because every call passes through it; `licorne.core.connection` is the API's view of the same.
"""

from __future__ import annotations

from licorne._plain import cython
from licorne.config import Configuration
from licorne.core.base.settings import Settings
from licorne.core.events.partition_events import PartitionEvents
from licorne.core.events.records import EventStore, Recorder
from licorne.si.messages import Output

from .partition import Partition, Predicate, PreemptionPredicate


@cython.cclass
class RegisteredManager:
    """One registered resource manager, until it registers again or stops.

    `out`: the outputs to deliver before those that the partitions hold.
    """

    rm_id: str
    configuration: Configuration
    settings: Settings
    first_interface: cython.bint
    predicates: Predicate | None
    preemption_predicates: PreemptionPredicate | None
    partitions: dict[str, Partition]
    ordered: list[Partition]  # by name
    out: list[Output]
    listens: cython.bint  # it wants records of events
    store: EventStore | None
    recorder: Recorder | None  # the host's, which takes records of all resource managers
    paused: cython.bint  # no decisions are made for it
    __weakref__: object

    # `configuration` is saved as its text, `ordered` follows from `partitions`, `out` is empty between two calls. The host sets
    # the rest; records of events decide nothing, and those that wait to be sent are lost.
    TRANSIENT = (
        "configuration",
        "predicates",
        "preemption_predicates",
        "listens",
        "recorder",
        "ordered",
        "out",
        "store",
    )

    def __init__(self, rm_id: str, configuration: Configuration, settings: Settings, *, first_interface: bool) -> None:
        self.rm_id = rm_id
        self.configuration = configuration
        self.settings = settings
        self.first_interface = first_interface
        self.predicates = None
        self.preemption_predicates = None
        self.partitions = {}
        self.ordered = []
        self.out = []
        self.listens = False
        self.store = None
        self.recorder = None
        self.paused = False

    def is_paused(self) -> bool:
        """Tell whether the resource manager is paused, so that no decisions are made for it."""
        return self.paused

    def settle_listening(self, now: int, *, announce: bool) -> None:
        """Start or stop making records of events, after the settings, the listeners or the partitions have changed.

        A partition that comes when a store exists begins with records of its queues. The partitions for which the store
        is made begin so only with `announce`.
        """
        if not ((self.listens or self.recorder is not None) and self.settings.event_tracking):
            self.store = None
            for partition in self.partitions.values():
                if partition.events is not None:
                    partition.events.stop()
            return
        announce = announce or self.store is not None
        if self.store is None:
            self.store = EventStore(self.settings.event_capacity, now, self.rm_id, self.recorder)
            self.store.keeps = self.listens
        self.store.capacity = self.settings.event_capacity
        for partition in self.ordered:
            if partition.events is None:
                partition.events = PartitionEvents(partition, self.store, announce=announce)

    def refused(self, key: str, node_id: str, why: str) -> None:
        """Record that a predicate of the resource manager has refused a node for an ask, with the reason `why`."""
        for partition in self.ordered:
            if partition.events is not None and node_id in partition.nodes:
                partition.events.request_events.refused(key, node_id, why)

    def add(self, name: str, partition: Partition) -> None:
        """Add a partition."""
        self.partitions[name] = partition
        self.ordered = [self.partitions[name] for name in sorted(self.partitions)]

    def drop(self, name: str) -> Partition:
        """Remove the partition of this name and return it."""
        partition = self.partitions.pop(name)
        self.ordered.remove(partition)
        return partition
