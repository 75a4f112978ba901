"""Measures a kind of things that come and go: how long one takes early and late, and what memory the process has.

Times are of a hundred events at a time, for those of a kind differ by turns, and their median counts. The processor is not always
as fast, least of all where others use it. So in both tenths that are compared the same kind also comes and goes in a fresh
scheduler, turn by turn, and what that one became slower by is taken off. Memory is read when half of them have come and gone,
and at the end.
"""

from __future__ import annotations

import gc
import time
from statistics import median

import msgspec

from bench.soak.kinds import Kind, end, events
from bench.soak.world import World
from licorne._machine import rss_bytes
from licorne.sim.workload import Progress

BATCH = 100
COUNT_MIN = 1_000
"""With fewer things a tenth of them is too few to have a median."""
REST_S = 60
"""So much time passes after a kind: what completes by then has completed."""
SLOWER_MAX = 1.10
LARGER_MAX = 1.02
"""How much slower an event of the last tenth may be than one of the second, and how much larger the process at the end than
in the middle."""


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """What came out for a kind: microseconds for an event in the second tenth and in the last, and bytes of the process.

    `fresh_second_us` and `fresh_last_us`: the same at the same time in a fresh scheduler.
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
        """The time of an event in the last tenth, as a multiple of that in the second, were the machine always as fast."""
        return self.last_us / self.second_us * self.fresh_second_us / self.fresh_last_us

    @property
    def larger(self) -> float:
        """The memory at the end, as a multiple of that in the middle; 1 where it is not known."""
        return self.end_bytes / self.middle_bytes if self.middle_bytes else 1.0

    @property
    def holds(self) -> bool:
        """Has neither grown beyond its bound?"""
        return self.slower <= SLOWER_MAX and self.larger <= LARGER_MAX


def soak(world: World, kind: Kind, count: int, progress: Progress | None = None) -> Soaked:
    """Let so many come and go, or their share of a slow kind."""
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
    """A tenth of the events, timed by the batch (ns of the processor), and as many in a fresh scheduler."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.fresh_times: list[int] = []
        self.fresh: World | None = None
        self._come = 0

    def time(self, world: World, kind: Kind, first: int) -> None:
        """A batch here, and one there."""
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
    """The memory in use, without what nobody can reach any more."""
    gc.collect()
    return rss_bytes()
