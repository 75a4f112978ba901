"""The times of pods by queue and by user, kept as plain numbers: 24 bytes for a pod."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from math import fsum

from licorne.lab.report.figures import CURVE, PodTimes, Spread
from licorne.sim.pods import COMPLETED, PodRecord, bounded_slowdown
from licorne.workload.measure import NANOSECONDS, percentiles

ALL = "all"


class _Times:
    """What is known of some pods."""

    __slots__ = ("completions", "never", "not_completed", "pods", "slowdowns", "waits")

    def __init__(self) -> None:
        self.pods = 0
        self.never = 0
        self.not_completed = 0
        self.waits = array("d")
        self.completions = array("d")
        self.slowdowns = array("d")


class Spreads:
    """Collects records of pods that arrive in a part of the time, in seconds (None: without end)."""

    def __init__(self, since_s: float, until_s: float | None) -> None:
        self._since_s = since_s
        self._until_s = float("inf") if until_s is None else until_s
        self._found: defaultdict[tuple[str, str], _Times] = defaultdict(_Times)

    def take(self, record: PodRecord) -> None:
        """Take what became of a pod."""
        arrival_s, end_s, pods = record.arrival_s, record.end_s, record.pods
        if not self._since_s <= arrival_s < self._until_s:
            return
        found = self._found[record.queue, record.user]
        found.pods += pods
        if record.start_s is None:
            found.never += pods
        else:
            found.waits.append(record.waiting_s)
        if end_s is not None and record.outcome in COMPLETED:
            completion_s = end_s - arrival_s
            found.completions.append(completion_s)
            found.slowdowns.append(bounded_slowdown(completion_s * NANOSECONDS, record.run_s * NANOSECONDS))
        else:
            found.not_completed += pods

    def sort(self) -> None:
        """Sort what was taken, once: what is put together of sorted parts is sorted again with few comparisons."""
        for times in self._found.values():
            for values in (times.waits, times.completions, times.slowdowns):
                values[:] = array("d", sorted(values))

    def everything(self) -> PodTimes:
        """Return the times of all pods."""
        return _joined(ALL, self._found.values())

    def by_queue(self) -> list[PodTimes]:
        """Return the times by queue, in the order of paths."""
        return self._by(0)

    def by_user(self) -> list[PodTimes]:
        """Return the times by user, in the order of names."""
        return self._by(1)

    def _by(self, part: int) -> list[PodTimes]:
        groups: defaultdict[str, list[_Times]] = defaultdict(list)
        for names, times in sorted(self._found.items()):
            groups[names[part]].append(times)
        return [_joined(name, times) for name, times in sorted(groups.items())]


def _joined(name: str, parts: Iterable[_Times]) -> PodTimes:
    parts = list(parts)
    return PodTimes(
        name=name,
        pods=sum(part.pods for part in parts),
        never_placed=sum(part.never for part in parts),
        not_completed=sum(part.not_completed for part in parts),
        waiting_s=spread(chain.from_iterable(part.waits for part in parts)),
        completion_s=spread(chain.from_iterable(part.completions for part in parts)),
        slowdown=spread(chain.from_iterable(part.slowdowns for part in parts)),
    )


def spread(values: Iterable[float]) -> Spread:
    """Return mean and percentiles of values."""
    ordered = sorted(values)
    number = len(ordered)
    if not number:
        return Spread(0, 0.0, 0.0, 0.0, 0.0, 0.0, [])
    curve = [round(value, 6) for value in percentiles(ordered, CURVE[1:])]
    p50, p95, p99 = (round(value, 6) for value in percentiles(ordered, (50, 95, 99)))
    mean = round(fsum(ordered) / number, 6)
    return Spread(number, mean, p50, p95, p99, round(ordered[-1], 6), [round(ordered[0], 6), *curve])
