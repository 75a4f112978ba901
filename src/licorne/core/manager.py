"""A registered resource manager, as the cluster knows it. Compiled, because every call passes it."""

from __future__ import annotations

import cython

from licorne.config import Configuration
from licorne.core.base.settings import Settings
from licorne.core.events.partition_events import PartitionEvents
from licorne.core.events.records import EventStore, Recorder
from licorne.si.messages import Output

from .partition import Predicate, PreemptionPredicate

if cython.compiled:
    from cython.cimports.licorne.core.partition import Partition
else:
    from .partition import Partition


@cython.cclass
class RegisteredManager:
    """A registered resource manager: its configuration, settings and partitions."""

    rm_id: str
    configuration: Configuration
    settings: Settings
    first_interface: cython.bint
    predicates: Predicate | None
    preemption_predicates: PreemptionPredicate | None
    partitions: dict[str, Partition]
    ordered: list[Partition]  # by name
    out: list[Output]
    listens: cython.bint  # to events
    store: EventStore | None
    recorder: Recorder | None  # of the host, for all resource managers
    paused: cython.bint  # nothing is decided for it
    __weakref__: object

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
        """Is nothing to be decided for it?"""
        return self.paused

    def settle_listening(self, now: int, *, announce: bool) -> None:
        """Make records of events, or none, as the settings and the resource manager have it.

        Partitions that are new to a store begin with records of their queues; with `announce`, so do the first.
        """
        if not ((self.listens or self.recorder is not None) and self.settings.event_tracking):
            self.store = None
            for partition in self.partitions.values():
                partition.events = partition.limits.regrouped = None
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
        """A predicate of the resource manager keeps an ask off a node."""
        for partition in self.ordered:
            if partition.events is not None and node_id in partition.nodes:
                partition.events.request_events.refused(key, node_id, why)

    def add(self, name: str, partition: Partition) -> None:
        """One more partition."""
        self.partitions[name] = partition
        self.ordered = [self.partitions[name] for name in sorted(self.partitions)]

    def drop(self, name: str) -> Partition:
        """One of its partitions goes; returned is which."""
        partition = self.partitions.pop(name)
        self.ordered.remove(partition)
        return partition
