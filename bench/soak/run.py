"""Measure one kind of a soak: the time of an event early and late, and the memory of the process.

Times are taken for batches of a hundred events, because events of a kind differ, and their median counts. The speed of the
processor varies, above all where other processes use it. So in both of the tenths that are compared, the same kind is also
run in a fresh scheduler, batch by batch in turn, and the slowdown of that one is divided out. Memory is read when half of
the events are done, and at the end.
"""

from __future__ import annotations

import gc
import time
from statistics import median

import msgspec

from bench.soak.kinds import Kind, end, events
from bench.soak.world import World
from licorne._machine import rss_bytes
from licorne.workload.workload import Progress

BATCH = 100
COUNT_MIN = 1_000
"""With fewer events, a tenth of them is too few for a median."""
REST_S = 60
"""Seconds of virtual time that pass after a kind, so that everything that is to complete has completed."""
SLOWER_MAX = 1.10
LARGER_MAX = 1.02
"""How many times as slow an event of the last tenth may be as one of the second, and how many times as large the process at
the end as in the middle."""


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """The result for a kind: microseconds for an event in the second tenth and in the last, and bytes of the process.

    `fresh_second_us` and `fresh_last_us`: times of events in a fresh scheduler, measured during the same tenths.
    """

    name: str
    what: str
    events: int
    second_us: float
    last_us: float
    fresh_second_us: float
    fresh_last_us: float
    middle_bytes: int
    end_bytes: int

    @property
    def slower(self) -> float:
        """The time of an event in the last tenth divided by that in the second, corrected for the speed of the machine."""
        return self.last_us / self.second_us * self.fresh_second_us / self.fresh_last_us

    @property
    def larger(self) -> float:
        """The memory at the end divided by that in the middle; 1 where it is not known."""
        return self.end_bytes / self.middle_bytes if self.middle_bytes else 1.0

    @property
    def holds(self) -> bool:
        """Whether both ratios are within their bounds."""
        return self.slower <= SLOWER_MAX and self.larger <= LARGER_MAX


def soak(world: World, kind: Kind, count: int, progress: Progress | None = None) -> Soaked:
    """Create and remove `count` things of a kind, or the share of that for a slow kind."""
    number = max(COUNT_MIN, int(count * kind.share)) // BATCH * BATCH
    tenth = number // 10
    second, last = Tenth(), Tenth()
    middle = 0
    for first in range(0, number, BATCH):
        if tenth <= first < 2 * tenth:
            second.time(world, kind, first)
        elif first >= number - tenth:
            last.time(world, kind, first)
        else:
            events(world, kind, first, BATCH)
        if not middle and 2 * first >= number:
            second.fresh = None
            middle = _settled()
        if progress is not None and first % 1_000 == 0:
            progress(first, number)
    last.fresh = None
    result = Soaked(
        name=kind.name,
        what=kind.what,
        events=number,
        second_us=median(second.times) / BATCH / 1e3,
        last_us=median(last.times) / BATCH / 1e3,
        fresh_second_us=median(second.fresh_times) / BATCH / 1e3,
        fresh_last_us=median(last.fresh_times) / BATCH / 1e3,
        middle_bytes=middle,
        end_bytes=_settled(),
    )
    end(world, kind, number, REST_S)
    return result


class Tenth:
    """A tenth of the events, timed by the batch (ns of processor time), and as many in a fresh scheduler."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.fresh_times: list[int] = []
        self.fresh: World | None = None
        self._come = 0

    def time(self, world: World, kind: Kind, first: int) -> None:
        """Time a batch in this world, and one in a fresh one."""
        if self.fresh is None:
            self.fresh = World()
            self._come = (kind.alive + BATCH) // BATCH * BATCH
            events(self.fresh, kind, 0, self._come)
        self.times.append(_timed(world, kind, first))
        self.fresh_times.append(_timed(self.fresh, kind, self._come))
        self._come += BATCH


def _timed(world: World, kind: Kind, first: int) -> int:
    begun = time.thread_time_ns()
    events(world, kind, first, BATCH)
    return time.thread_time_ns() - begun


def _settled() -> int:
    """Return the memory in use after a garbage collection."""
    gc.collect()
    return rss_bytes()
