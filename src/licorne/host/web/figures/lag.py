"""How late the event loop is: the measure of whether anything blocks it.

Two things are measured, neither of which costs more than reading the clock. `LoopLag` schedules a tick every 10 ms and
measures how late each tick is. The engine measures how long it waits between two slices while there is more to decide:
that is the time that requests, answers, REST and the garbage collector take from decisions.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK_S = 0.01
LAG_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Waits(Histogram):
    """A histogram of waits, in seconds, with the longest since it was last read."""

    def __init__(self) -> None:
        super().__init__(LAG_BUCKETS_S)
        self._longest_s = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count a wait, `times` times."""
        super().add(value, times)
        self._longest_s = max(self._longest_s, value)

    def take_longest(self) -> float:
        """Return the longest wait since the last call, in seconds, and reset it; 0 if there was none."""
        longest, self._longest_s = self._longest_s, 0.0
        return longest


class LoopLag:
    """Measures how late a timer of the event loop fires while it is `running`; `waits` is the histogram of the delays."""

    def __init__(self) -> None:
        self.waits = Waits()
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Tick until the context is left."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            now = time.perf_counter()
            self.waits.add(max(0.0, now - self._due))
            self._due = now + TICK_S
            self._handle = loop.call_later(TICK_S, tick)

        self._due = time.perf_counter() + TICK_S
        self._handle = loop.call_later(TICK_S, tick)
        try:
            yield
        finally:
            self._handle.cancel()
