"""Long work in small steps, so that the loop stays responsive: who makes it is a generator, who runs it is here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

SLICE_S = 0.003
"""How long one turn takes, about; then the loop has its turn."""

_T = TypeVar("_T")


async def paced(steps: Iterable[_T], slice_s: float = SLICE_S) -> AsyncIterator[_T]:
    """The steps one by one; the loop is given back whenever a slice is over."""
    ends = time.perf_counter() + slice_s
    for step in steps:
        yield step
        if time.perf_counter() >= ends:
            await asyncio.sleep(0)
            ends = time.perf_counter() + slice_s


__all__ = ["SLICE_S", "paced"]
