"""Time in a long-running process: its clock, and long work in small steps, so that the loop stays responsive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

SLICE_S = 0.003
"""About how long steps run before the loop has its turn."""

_T = TypeVar("_T")


async def paced(steps: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield the steps one by one, and give the loop a turn after each slice of `SLICE_S` seconds."""
    ends = time.perf_counter() + SLICE_S
    for step in steps:
        yield step
        if time.perf_counter() >= ends:
            await asyncio.sleep(0)
            ends = time.perf_counter() + SLICE_S


def steady_clock() -> Callable[[], int]:
    """Return a clock in nanoseconds since 1970 that never goes back: system time now, monotonic time from then on."""
    offset = time.time_ns() - time.monotonic_ns()
    return lambda: time.monotonic_ns() + offset
