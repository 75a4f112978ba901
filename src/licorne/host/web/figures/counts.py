"""Counters of what the scheduler sends to resource managers (docs/spec/metrics.md), taken from its outputs alone.

The core has no hooks for this: each list of outputs passes here once, on its way to a resource manager. What the state can
tell when metrics are read is not counted: the number of allocations released in a queue, for one, is the number made there
less the number still live.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from licorne.si.messages import (
    AcceptedApplication,
    AcceptedNode,
    NewAllocation,
    Output,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
    Released,
    UpdatedApplication,
)

from .histogram import Histogram

if TYPE_CHECKING:
    from licorne.core.cluster import Cluster
    from licorne.core.partition import Partition

NO_PARTITION = "failed to find partition"
"""Beginning of the reason with which a node, or (in any letter case) an ask, of an unknown partition is refused."""
WAIT_BUCKETS_S = (0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0)
_WAIT_BUCKETS_NS = tuple(int(bound * 1e9) for bound in WAIT_BUCKETS_S)

SAMPLE = 32
"""In each batch of outputs, the waiting time of at most this many allocations is looked up; each stands for its neighbours."""
_WHERE = attrgetter("partition", "queue")

QueueKey = tuple[str, str, str]
"""(resource manager, partition, path)."""
Shown = dict[str, dict[tuple[str, str], None]]
"""By queue path, the amounts (state, resource type) that metrics have shown so far; `keep_zeros` limits their number."""


class Counts:
    """The counters. They only rise, except that figures of removed queues are dropped.

    Applications that were counted in a removed queue are dropped with it; its allocations stay part of the queues above.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.allocated = 0
        self.released = 0
        self.rejected = 0  # asks and allocations
        self.submitted = 0
        self.accepted = 0
        self.refused_applications = 0
        self.completed = 0
        self.failed = 0
        self.nodes_accepted = 0
        self.nodes_refused = 0  # only those refused for an unknown partition
        self.by_queue: Counter[QueueKey] = Counter()
        self.waits: defaultdict[QueueKey, Histogram] = defaultdict(lambda: Histogram(_WAIT_BUCKETS_NS))
        """How long asks waited for their allocation, in nanoseconds."""
        self.ended: defaultdict[QueueKey, Counter[str]] = defaultdict(Counter)  # applications by final state
        self.shown: Shown = {}

    def count_outputs(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Count a list of outputs for a resource manager."""
        new = Counter(map(type, outputs))[NewAllocation]
        if new == len(outputs):
            self._allocations(rm_id, outputs)  # type: ignore[arg-type]
            return
        if new:
            self._allocations(rm_id, [output for output in outputs if type(output) is NewAllocation])
        ended: dict[str, str] = {}  # applications with their final states
        refused: set[str] = set()
        for output in outputs:
            if type(output) is NewAllocation:
                continue
            if type(output) is Released:
                self.released += not output.ask
            elif type(output) is RejectedAllocation:
                self.rejected += not output.reason.lower().startswith(NO_PARTITION)
            elif type(output) is UpdatedApplication:
                self._state(output, ended)
            elif type(output) is AcceptedApplication:
                self.submitted += 1
            elif type(output) is RejectedApplication:
                self.refused_applications += 1
                refused.add(output.application_id)
            elif type(output) is AcceptedNode:
                self.nodes_accepted += 1
            elif type(output) is RejectedNode:
                self.nodes_refused += output.reason.startswith(NO_PARTITION)
        if ended:
            self._ended(rm_id, ended)
        if refused:
            self._refused(rm_id, refused)

    def _allocations(self, rm_id: str, made: Sequence[NewAllocation]) -> None:
        """Count new allocations, which come by the thousand: of a large batch, only a sample's waiting times are looked up."""
        number = len(made)
        self.allocated += number
        for (name, path), of_queue in Counter(map(_WHERE, made)).items():
            self.by_queue[rm_id, name, path] += of_queue
        # Every `stride`-th allocation is looked up; its waiting time counts for those up to the next one as well.
        stride = -(-number // SAMPLE) if number else 1
        for at in range(0, number, stride):
            output = made[at]
            home = self._partition(rm_id, output.partition)
            app = None if home is None else home.applications.get(output.application_id)
            alloc = None if app is None else app.allocations.get(output.uuid or output.key)
            if alloc is not None and alloc.attempted:  # not one that the resource manager placed and only reported
                waited = max(0, alloc.bound_ns - alloc.created)
                self.waits[rm_id, output.partition, output.queue].add(waited, min(stride, number - at))

    def _partition(self, rm_id: str, name: str) -> Partition | None:
        manager = self._cluster.managers.get(rm_id)
        return None if manager is None else manager.partitions.get(name)

    def _state(self, output: UpdatedApplication, ended: dict[str, str]) -> None:
        if output.state == "Accepted":
            self.accepted += 1
        elif output.state == "Completed":
            self.completed += 1
            ended[output.application_id] = output.state
        elif output.state == "Failed":
            self.failed += 1
            ended[output.application_id] = output.state

    def _ended(self, rm_id: str, left: dict[str, str]) -> None:
        """Count applications that became Completed or Failed. They are among the last to have ended in one of the partitions."""
        manager = self._cluster.managers.get(rm_id)
        for partition in () if manager is None else manager.ordered:
            for app in reversed(partition.terminated):
                if not left:
                    return
                if left.get(app.id) == str(app.state):
                    self.ended[rm_id, partition.name, app.queue.path][left.pop(app.id).lower()] += 1

    def _refused(self, rm_id: str, left: set[str]) -> None:
        """Count applications that were just refused: at the queue that they asked for, or at root if that does not exist."""
        manager = self._cluster.managers.get(rm_id)
        for partition in () if manager is None else manager.ordered:
            for rejection in reversed(partition.rejected):
                if not left:
                    return
                if rejection.application_id in left:
                    left.remove(rejection.application_id)
                    key = (rm_id, partition.name, rejection.queue or rejection.wanted)
                    self.ended[key if self._exists(key) else (rm_id, partition.name, "root")]["rejected"] += 1

    def forget_removed(self) -> None:
        """Drop the figures of removed queues; allocations counted in them are added to the nearest queue above."""
        for key in [key for key in self.by_queue if not self._exists(key)]:
            self.by_queue[self._above(key)] += self.by_queue.pop(key)
        for kept in (self.ended, self.waits):
            for key in [key for key in kept if not self._exists(key)]:
                del kept[key]
        for key in [key for key in self.by_queue if self._partition(key[0], key[1]) is None]:
            del self.by_queue[key]

    def _above(self, key: QueueKey) -> QueueKey:
        """Return the nearest existing queue above; root, if the partition is removed too."""
        path = key[2]
        while "." in path:
            path = path.rpartition(".")[0]
            if self._exists((key[0], key[1], path)):
                break
        return key[0], key[1], path

    def _exists(self, key: QueueKey) -> bool:
        partition = self._partition(key[0], key[1])
        return partition is not None and partition.tree.find(key[2]) is not None
