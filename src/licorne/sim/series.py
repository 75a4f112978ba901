"""The usage of queues as a time series: rows at equal intervals of virtual time, handed on as time passes.

A row at a time t has the state after everything that happens at t. The state is read only at moments whose span holds
such a time. The rows are then held until they differ or the simulation ends, because the clock may run on through
deadlines without effect, and the series ends with the simulation, as all other figures do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from licorne.sim.observer import Observer
from licorne.workload.measure import seconds

if TYPE_CHECKING:
    from licorne.core.partition import Partition

CLUSTER = "cluster"
"""In place of a queue, in the rows of the whole cluster; paths of queues begin with `root`."""
_Values = tuple[str, str, int, int, int | None, int | None]


class SeriesRow(msgspec.Struct, frozen=True):
    """The use of a resource by a queue and all below it at a time, in seconds; amounts as in the workload.

    `queue` is a path, or `cluster`. `used`: allocated; `pending`: asked for and not allocated; `guaranteed` and `max`: those
    of the queue itself, None where it has none; of the cluster `max` is the capacity.
    """

    time_s: float
    queue: str
    resource: str
    used: int
    pending: int
    guaranteed: int | None
    max: int | None


class Series(Observer):
    """An observer that hands on the rows at 0, `every_ns`, 2 `every_ns` … to `write`."""

    def __init__(self, every_ns: int, write: Callable[[SeriesRow], object]) -> None:
        if every_ns <= 0:
            raise ValueError("the interval of a series must be above 0")
        self._every_ns = every_ns
        self._write = write
        self._next_ns = 0
        self._held_ns = 0  # the first time for which `_values` are held
        self._values: list[_Values] = []

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        """Take the state at those times of the series at which it holds."""
        if until_ns is None:
            if self._next_ns <= now_ns:
                self._take(partition)
            self._hand_on(now_ns + 1)
        elif self._next_ns < until_ns:
            self._take(partition)
            self._next_ns += -(-(until_ns - self._next_ns) // self._every_ns) * self._every_ns

    def _take(self, partition: Partition) -> None:
        values = list(_read(partition))
        if values != self._values:
            self._hand_on(self._next_ns)
            self._values = values

    def _hand_on(self, end_ns: int) -> None:
        """Write the rows that are held, for all times before `end_ns`."""
        for at_ns in range(self._held_ns, end_ns, self._every_ns):
            at_s = seconds(at_ns)
            for values in self._values:
                self._write(SeriesRow(at_s, *values))
        self._held_ns = max(self._held_ns, self._next_ns)


def rows_now(at_s: float, partition: Partition) -> Iterator[SeriesRow]:
    """Yield the rows of the present state, for a time in seconds."""
    return (SeriesRow(at_s, *values) for values in _read(partition))


def _read(partition: Partition) -> Iterator[_Values]:
    """Yield the present values of the cluster and each queue, for each resource that is used, wanted or limited there."""
    for queue in partition.tree.queues():
        used, pending = queue.allocated_resource(), queue.pending_resource()
        limit, guaranteed = queue.max_resource() or {}, queue.guaranteed_resource() or {}
        names = sorted(used.keys() | pending.keys() | limit.keys() | guaranteed.keys())
        for path in (CLUSTER, queue.path) if queue.parent is None else (queue.path,):
            for name in names:
                yield path, name, used.get(name, 0), pending.get(name, 0), guaranteed.get(name), limit.get(name)
