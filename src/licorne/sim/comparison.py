"""Two results of one workload side by side: who waits longer, what is never placed any more, who is evicted, who is refused.

The results are those of `licorne.simulate` with two queue configurations. A queue that is in one of them alone has no figures
in the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from licorne._wording import counted
from licorne.sim.refusals import RejectedQueue
from licorne.sim.report import Result
from licorne.sim.times import ALL_QUEUES, QueueWaits


class QueueFigures(msgspec.Struct, frozen=True):
    """What became of the pods of a queue under one configuration.

    `placed` counts placements, `never_placed` pods without one. Waits are in seconds, None where nothing was placed;
    `mean_wait_least_s` counts those never placed too, as long as they waited, so it is at least so long.
    `evicted`: pods of the queue that others or a lowered quota have evicted.
    """

    placed: int
    never_placed: int
    mean_wait_s: float | None
    p95_wait_s: float | None
    evicted: int
    mean_wait_least_s: float


class QueueChange(msgspec.Struct, frozen=True):
    """What became of the pods of one queue under the old and the new configuration; None where it had no pods."""

    queue: str
    old: QueueFigures | None
    new: QueueFigures | None

    @property
    def longer_s(self) -> float:
        """How much longer its pods wait on average, those never placed to the end; negative: shorter. 0 where that cannot be said."""
        if self.old is None or self.new is None:
            return 0.0
        return self.new.mean_wait_least_s - self.old.mean_wait_least_s


class Totals(msgspec.Struct, frozen=True):
    """How much one simulation of a comparison placed, rejected and preempted, and its digest; the fields are those of its `Result`."""

    configuration: str
    placed: int
    never_placed: int
    applications_rejected: int
    preempted: int
    digest: str


class Comparison(msgspec.Struct, frozen=True):
    """Two results of one workload.

    `same`: there are decisions, and every one is the same. `queues`: all with pods, those whose pods wait longest in addition first.
    `rejected`: what applications asked for that only the new configuration refuses, and `admitted` what only the old one does.
    `notes`: those of either result, and why nodes were refused.
    """

    workload: str
    same: bool
    old: Totals
    new: Totals
    everything: QueueChange
    queues: list[QueueChange]
    rejected: list[RejectedQueue]
    admitted: list[RejectedQueue]
    notes: list[str]


def compare(old: Result, new: Result) -> Comparison:
    """Compare two results of one workload."""
    before, after = _figures(old), _figures(new)
    changes = [QueueChange(name, before.get(name), after.get(name)) for name in sorted(before.keys() | after.keys())]
    queues = [change for change in changes if change.queue != ALL_QUEUES]
    return Comparison(
        workload=new.workload,
        same=old.digest == new.digest and new.placed > 0,
        old=msgspec.convert(old, Totals, from_attributes=True),
        new=msgspec.convert(new, Totals, from_attributes=True),
        everything=QueueChange(ALL_QUEUES, before.get(ALL_QUEUES), after.get(ALL_QUEUES)),
        queues=sorted(queues, key=lambda change: -change.longer_s),
        rejected=_only(new.rejected_queues, old.rejected_queues),
        admitted=_only(old.rejected_queues, new.rejected_queues),
        notes=list(dict.fromkeys([*old.notes, *new.notes, *_refused_nodes(old), *_refused_nodes(new)])),
    )


def _refused_nodes(result: Result) -> Iterable[str]:
    for row in result.refused:
        if row.what == "node":
            yield f"{counted(row.number, 'node')} refused, such as {row.example}: {row.reason}"


def _figures(result: Result) -> dict[str, QueueFigures]:
    evicted: Counter[str] = Counter()
    for row in result.evictions:
        evicted[row.queue] += row.pods
    evicted[ALL_QUEUES] = evicted.total()
    return {waits.queue: _of(waits, evicted[waits.queue]) for waits in result.waiting_times}


def _of(row: QueueWaits, evicted: int) -> QueueFigures:
    mean_s, p95_s = (row.mean_s, row.p95_s) if row.placed else (None, None)
    return QueueFigures(row.placed, row.never_placed, mean_s, p95_s, evicted, row.mean_least_s)


def _only(some: Iterable[RejectedQueue], others: Iterable[RejectedQueue]) -> list[RejectedQueue]:
    known = {each.queue for each in others}
    return [each for each in some if each.queue not in known]
