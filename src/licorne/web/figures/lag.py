"""How long the loop keeps its own waiting: the measure of whether anything holds it.

Two things are measured, and none costs more than a look at the clock. `LoopLag`: a clock in the loop that should tick every
10 ms, and how late each tick is. And the engine notes how long it waits between two slices while there is more to decide:
that is what requests, answers, REST and the garbage collector take from decisions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK_S = 0.01
LAG_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Waits(Histogram):
    """How long waits were, in seconds, and the longest since it was asked."""

    def __init__(self) -> None:
        super().__init__(LAG_BUCKETS_S)
        self._longest_s = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """One more, or several."""
        super().add(value, times)
        self._longest_s = max(self._longest_s, value)

    def take_longest(self) -> float:
        """The longest since this was asked last, in seconds; 0 where there was none."""
        longest, self._longest_s = self._longest_s, 0.0
        return longest


class LoopLag:
    """Ticks while it is `running`; `waits` has how late the ticks were."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.waits = Waits()
        self._clock = clock
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Tick until this is left."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            now = self._clock()
            self.waits.add(max(0.0, now - self._due))
            self._due = now + TICK_S
            self._handle = loop.call_later(TICK_S, tick)

        self._due = self._clock() + TICK_S
        self._handle = loop.call_later(TICK_S, tick)
        try:
            yield
        finally:
            self._handle.cancel()


__all__ = ["LAG_BUCKETS_S", "LoopLag", "Waits"]
