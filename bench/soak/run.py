"""Measures a kind of things that come and go: how long one takes early and late, and what memory the process has.

Times are of twenty events at a time, for those of a kind differ by turns, and their median counts, which others on the
machine hardly move. Memory is read when half of them have come and gone, and at the end.
"""

from __future__ import annotations

import gc
import time
from statistics import median

import msgspec

from bench.soak.kinds import Kind, end, events
from bench.soak.world import World
from licorne.sim.machine import rss_bytes
from licorne.sim.workload import Progress

BATCH = 20
COUNT_MIN = 1_000
"""With fewer things a tenth of them is too few to have a median."""
REST_S = 60
"""So much time passes after a kind: what completes by then has completed."""
SLOWER_MAX = 1.10
LARGER_MAX = 1.02
"""How much slower an event of the last tenth may be than one of the second, and how much larger the process at the end than
in the middle."""


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """What came out for a kind: microseconds for an event in the second tenth and in the last, and bytes of the process."""

    name: str
    what: str
    events: int
    second_us: float
    last_us: float
    middle_bytes: int
    end_bytes: int

    @property
    def slower(self) -> float:
        """The time of an event in the last tenth, as a multiple of that in the second."""
        return self.last_us / self.second_us

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
    clock = time.thread_time_ns  # not that of others on the machine
    second: list[int] = []
    last: list[int] = []
    middle = 0
    for first in range(0, number, BATCH):
        begun = clock()
        events(world, kind, first, BATCH)
        took = clock() - begun
        if number <= 10 * first < 2 * number:
            second.append(took)
        elif 10 * first >= 9 * number:
            last.append(took)
        if not middle and 2 * first >= number:
            middle = _settled()
        if progress is not None and first % 1_000 == 0:
            progress(first, number)
    result = Soaked(
        name=kind.name,
        what=kind.what,
        events=number,
        second_us=median(second) / BATCH / 1e3,
        last_us=median(last) / BATCH / 1e3,
        middle_bytes=middle,
        end_bytes=_settled(),
    )
    end(world, kind, number, REST_S)
    return result


def _settled() -> int:
    """The memory in use, without what nobody can reach any more."""
    gc.collect()
    return rss_bytes()
