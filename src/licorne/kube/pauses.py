"""Notices that the process was paused, after which nothing may be sent until the cluster has been read again.

A process may be stopped, its container frozen, its machine suspended, or its event loop blocked. What it knew before is
then old: pods that it was about to bind may be gone, and their places taken.

Wall-clock time goes on while a machine is suspended, monotonic time also when the wall clock is set back. A pause is what
either of them tells of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

HEARTBEAT_S: Final = 1.0
PAUSE_S: Final = 5.0
"""A loop that did nothing for so long was paused. Shorter stops are as harmless as a slow network."""


class PauseGuard:
    """Says whether what the process knows is recent enough to act on.

    Parameters:
        clock: returns a time in nanoseconds that never goes back.
        wall: returns the time in seconds as the machine's clock has it.

    `check` compares the clocks at once, so a pause is noticed by whoever is first to act after it. `pauses` counts pauses;
    what was decided when it was less is out of date.
    """

    def __init__(self, clock: Callable[[], int], wall: Callable[[], float]) -> None:
        self._clock = clock
        self._wall = wall
        self._last_ns, self._last_wall_s = clock(), wall()
        self.pauses = 0
        self._recent = asyncio.Event()
        self._recent.set()
        self._paused = asyncio.Event()

    def check(self) -> bool:
        """Return whether there was no pause since the cluster was read."""
        if max((self._clock() - self._last_ns) / 1e9, self._wall() - self._last_wall_s) > PAUSE_S:
            self.pauses += 1
            self._recent.clear()
            self._paused.set()
            self._last_ns, self._last_wall_s = self._clock(), self._wall()
        return self._recent.is_set()

    async def recent(self) -> None:
        """Return at once if there was no pause, and otherwise when the cluster has been read."""
        while not self.check():
            await self._recent.wait()

    async def paused(self) -> None:
        """Wait for a pause."""
        await self._paused.wait()

    def was_read(self, pauses: int) -> None:
        """Take note that the cluster was read after this number of pauses; one more since then makes it old again."""
        self.check()
        if pauses == self.pauses:
            self._paused.clear()
            self._recent.set()

    def beat(self) -> None:
        """Say that the process is awake; work that blocks the loop for seconds does so in between."""
        self.check()
        self._last_ns, self._last_wall_s = self._clock(), self._wall()

    async def watch(self) -> None:
        """Say so regularly, until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(HEARTBEAT_S)
