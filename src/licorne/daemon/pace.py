"""Running long work, which is a generator, in small steps, so that the loop stays responsive."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

SLICE_S = 0.003
"""About how long steps run before the loop has its turn."""

_T = TypeVar("_T")


async def paced(steps: Iterable[_T], slice_s: float = SLICE_S) -> AsyncIterator[_T]:
    """Yield the steps one by one, and give the loop a turn after each slice of `slice_s` seconds."""
    ends = time.perf_counter() + slice_s
    for step in steps:
        yield step
        if time.perf_counter() >= ends:
            await asyncio.sleep(0)
            ends = time.perf_counter() + slice_s


__all__ = ["SLICE_S", "paced"]
