"""A loop whose time passes at once: when all tasks wait, it jumps to the next one's time."""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
STEP_S = 1e-6
"""The shortest time that passes; a shorter one could be lost in rounding."""


class _Selector(selectors.SelectSelector):
    """Never waits: the time for which it should is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("every task waits for something that never happens")
        if not ready and timeout:
            self.now += max(timeout, STEP_S)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self.pauses: list[tuple[float, float]] = []
        """How long each lasted, and when it ended."""

    def time(self) -> float:
        """Return the time in seconds since the loop was made."""
        return self._virtual.now

    def pass_over(self, seconds: float) -> None:
        """Let time pass in which no task runs, as when the process is stopped."""
        self._virtual.now += seconds
        self.pauses.append((seconds, self._virtual.now))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make a test of a coroutine function, which runs in virtual time."""

    @functools.wraps(test)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(test(*args, **kwargs))

    return call
