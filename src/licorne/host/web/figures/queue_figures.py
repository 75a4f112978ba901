"""Figures of queues, computed when the metrics are requested (docs/spec/metrics.md, section 2).

Allocations and amounts of a queue include those of all queues below it. An application counts at its own queue alone, as
in the original, so that a sum over all queues counts it once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from licorne.core.constants import SUM_MAX
from licorne.host.web.monitor import Monitor

from .counts import Counts, Shown

if TYPE_CHECKING:
    from licorne.core.base.states import ApplicationState
    from licorne.core.partition import Partition
    from licorne.core.queues.queue import Queue

QUEUE_STATES = ("new", "accepted", "running", "failing", "resuming", "completing")
ZEROS_MAX = 100
"""Most amounts of a queue that are shown as 0 because an earlier reading of the metrics showed them."""
Homes = dict[tuple[str, str], "Partition"]
"""Partitions by (resource manager, name)."""


class QueueFigures:
    """The figures of one path, summed over all partitions that have a queue of this path.

    `states`: applications of the queue itself, empty if it is no leaf; `made`, `live`: allocations in the queue and below.
    """

    def __init__(self) -> None:
        self.states: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.resources: dict[tuple[str, str], int] = {}
        self.made = 0
        self.live = 0

    def add(self, state: str, resources: dict[str, int] | None) -> None:
        """Add amounts of a queue of this path."""
        for name, amount in (resources or {}).items():
            if amount < SUM_MAX:  # else nothing limits it
                self.resources[state, name] = self.resources.get((state, name), 0) + amount


def figures_of(monitor: Monitor, partitions: list[Partition]) -> dict[str, QueueFigures]:
    """Return the counts of applications and allocations by path.

    They are read in one step, since the number of released allocations is the difference of two of them.
    """
    figures: dict[str, QueueFigures] = {}
    for partition in partitions:
        for queue in partition.tree.queues():
            of = figures.setdefault(queue.path, QueueFigures())
            if queue.is_leaf:
                of.states = of.states or dict.fromkeys(QUEUE_STATES, 0)
        _applications(figures, partition)
    _counted(figures, homes_of(partitions), monitor.counts)
    return figures


def add_amounts(of: QueueFigures, queue: Queue) -> None:
    """Add the guarantee, the maxima and the amounts of a queue of this path."""
    of.add("guaranteed", queue.guaranteed_resource())
    of.add("max", queue.max_resource())
    of.add("allocated", queue.allocated_resource())
    of.add("pending", queue.pending_resource())
    of.add("preempting", queue.preempting_resource())
    if queue.max_apps or queue.managed:
        of.add("maxRunningApps", {"apps": queue.max_apps})


def keep_zeros(figures: dict[str, QueueFigures], shown: Shown) -> Iterator[None]:
    """Set amounts that were shown before and are gone to 0, as the original does: no series ends while its queue exists.

    Yields once for each queue, so that the work can be done in small steps.
    """
    for path in [path for path in shown if path not in figures]:
        del shown[path]
    for path, of in figures.items():
        yield
        known = shown.setdefault(path, {})
        gone = [key for key in known if key not in of.resources]
        for key in gone[: max(0, len(gone) - ZEROS_MAX)]:
            del known[key]
        known |= dict.fromkeys(of.resources)
        of.resources = {key: of.resources.get(key, 0) for key in sorted(known)}


def _applications(figures: dict[str, QueueFigures], partition: Partition) -> None:
    """Count applications by state at their own queue alone, and live allocations at their queue and all queues above it."""
    leaves: defaultdict[Queue, Counter[ApplicationState]] = defaultdict(Counter)
    live: Counter[Queue] = Counter()
    for app in partition.applications.values():
        leaves[app.queue][app.state] += 1
        live[app.queue] += len(app.allocations)
    for leaf, states in leaves.items():
        for of in _lineage(figures, leaf.path):
            of.live += live[leaf]
        own = figures[leaf.path].states
        for state, number in states.items():
            name = str(state).lower()
            if name in QUEUE_STATES:
                own[name] = own.get(name, 0) + number


def _counted(figures: dict[str, QueueFigures], homes: Homes, counts: Counts) -> None:
    """Add what was counted by queue since the start: allocations up to root, applications at their own queue."""
    for (rm_id, name, path), number in counts.by_queue.items():
        if (rm_id, name) in homes:
            for of in _lineage(figures, path):
                of.made += number
    for (rm_id, name, path), ended in counts.ended.items():
        own = figures.get(path)
        if (rm_id, name) in homes and own is not None:
            for final, number in ended.items():
                own.ended[final] = own.ended.get(final, 0) + number


def _lineage(figures: dict[str, QueueFigures], path: str) -> Iterator[QueueFigures]:
    while path:
        of = figures.get(path)
        if of is not None:
            yield of
        path = path.rpartition(".")[0]


def homes_of(partitions: list[Partition]) -> Homes:
    """Return the partitions by (resource manager, name)."""
    return {(partition.owner, partition.name): partition for partition in partitions}
