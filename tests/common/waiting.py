"""Waiting for what another task, thread or process brings about.

A wait ends as soon as that is there, so its bound costs nothing: it is far beyond what a slow machine takes, and below
the timeout of a test, so that a failure says what was waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 300.0


def wait_for(holds: Callable[[], T], what: str = "it never came to hold") -> T:
    """Wait until a call gives a true value, and return that."""
    end = time.monotonic() + WAIT_S
    while not (found := holds()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return found


async def eventually(holds: Callable[[], T], what: str = "it never came to hold") -> T:
    """Wait in a task until a call gives a true value, and return that."""
    end = time.monotonic() + WAIT_S
    while not (found := holds()):
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)
    return found
