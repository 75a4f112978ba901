"""The times of pods, by queue: how long they waited, how long until they were complete, and their bounded slowdown.

Percentiles are of the pods that have such a time. Those that have none, because they were never placed or did not end, are
counted in the same row: a queue in which half of the pods never ran would look fast without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import fsum

import msgspec

from licorne.sim.pods import PodRecords, bounded_slowdown
from licorne.workload.measure import percentiles, seconds

ALL_QUEUES = "all queues"
"""In place of a queue, in the row of all of them; paths of queues begin with `root`."""


class QueueWaits(msgspec.Struct, frozen=True):
    """How long the pods of a queue waited until they were placed: mean and nearest-rank percentiles, in seconds.

    `placed` counts placements, so a pod that was evicted and placed again counts twice, each time from its creation.
    `never_placed` counts pods without a time: they wait to the end, or were refused or withdrawn. Those of a refused
    application count where it wanted to go. `mean_least_s` is the mean with those that waited in vain, to the end or until they
    were withdrawn, so it is at least so long.
    """

    queue: str
    placed: int
    never_placed: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float
    mean_least_s: float


class QueueCompletions(msgspec.Struct, frozen=True):
    """How long the pods of a queue took from arrival to end, in seconds, and their bounded slowdown.

    The bounded slowdown of a pod is max(1, (wait + run) / max(run, 10 s)). Its run is the last one; work that was lost to an
    eviction counts as waiting. `completed` pods were placed and ended by themselves or by a line of the workload;
    `not_completed` were placed and did not, or were never placed.
    """

    queue: str
    completed: int
    not_completed: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    longest_s: float
    slowdown_mean: float
    slowdown_p50: float
    slowdown_p95: float
    slowdown_p99: float
    slowdown_most: float


def waiting_times(waits_ns: Mapping[str, Sequence[int]], records: PodRecords) -> list[QueueWaits]:
    """Return a row for each queue in which a pod was placed or waited in vain, and the row of all queues."""
    # Sorted once for each queue: what is put together of them is sorted again almost for nothing.
    ordered = {queue: sorted(waits_ns.get(queue, ())) for queue in _queues(waits_ns, records.never_placed)}
    counts = (records.never_placed, records.unplaced, records.unplaced_ns)
    rows = [_waits(queue, times, *(count[queue] for count in counts)) for queue, times in ordered.items()]
    return [*rows, _waits(ALL_QUEUES, list(chain(*ordered.values())), *(count.total() for count in counts))]


def completions(records: PodRecords) -> list[QueueCompletions]:
    """Return a row for each queue in which a pod was started or waited in vain, and the row of all queues."""
    rows: list[QueueCompletions] = []
    every: tuple[list[int], list[float]] = ([], [])
    for queue in _queues(records.completed, records.not_completed):
        times, runs = records.completed.get(queue, ((), ()))
        slowdowns = sorted(map(bounded_slowdown, times, runs))
        ordered = sorted(times)
        rows.append(_completions(queue, ordered, slowdowns, records.not_completed[queue]))
        every[0].extend(ordered)
        every[1].extend(slowdowns)
    return [*rows, _completions(ALL_QUEUES, *every, records.not_completed.total())]


def _queues(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    """Return the names of the queues of both, sorted; applications that were refused and asked for no queue have none."""
    return sorted(first.keys() | second.keys(), key=str.encode)


def _waits(queue: str, times: Sequence[int], never_placed: int, unplaced: int, unplaced_ns: int) -> QueueWaits:
    p50, p95, p99, longest = map(seconds, percentiles(times, (50, 95, 99, 100)))
    waited = len(times) + unplaced
    least_s = seconds((sum(times) + unplaced_ns) / waited) if waited else 0.0
    return QueueWaits(queue, len(times), never_placed, _mean_s(times), p50, p95, p99, longest, least_s)


def _completions(queue: str, times: Sequence[int], slowdowns: Sequence[float], not_completed: int) -> QueueCompletions:
    p50, p95, p99, longest = map(seconds, percentiles(times, (50, 95, 99, 100)))
    slow = percentiles(slowdowns, (50, 95, 99, 100))
    mean = fsum(slowdowns) / len(slowdowns) if slowdowns else 0.0
    return QueueCompletions(
        queue, len(times), not_completed, _mean_s(times), p50, p95, p99, longest,
        *(round(value, 6) for value in (mean, *slow)),
    )  # fmt: skip


def _mean_s(times: Sequence[int]) -> float:
    return seconds(sum(times) / len(times)) if times else 0.0
