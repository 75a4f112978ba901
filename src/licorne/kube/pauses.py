"""Says whether something may be sent: the Lease is held, and the cluster was read since the process was paused last.

A process may be stopped, its container frozen, its machine suspended, or its event loop blocked. What it knew before is
then old: pods that it was about to bind may be gone, and their places taken.

Wall-clock time goes on while a machine is suspended, monotonic time also when the wall clock is set back. A pause is what
either of them tells of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from licorne.kube.lease import HeldLease

HEARTBEAT_S: Final = 1.0
PAUSE_S: Final = 5.0
"""A loop that did nothing for so long was paused. Shorter stops are as harmless as a slow network."""


class PauseGuard:
    """Says whether what the process knows is recent enough to act on, and whether it is the one that acts.

    Parameters:
        clock: returns a time in nanoseconds that never goes back.
        wall: returns the time in seconds as the machine's clock has it.
        lease: must be held; None: nothing is written anyway, or there is no other process.

    `check` compares the clocks at once, so a pause is noticed by whoever is first to act after it. `pauses` counts pauses;
    what was decided when it was less is out of date.
    """

    def __init__(self, clock: Callable[[], int], wall: Callable[[], float], lease: HeldLease | None = None) -> None:
        self._clock = clock
        self._wall = wall
        self._lease = lease
        self._closed = False
        self._last_ns, self._last_wall_s = clock(), wall()
        self.pauses = 0
        self._recent = asyncio.Event()
        self._recent.set()
        self._paused = asyncio.Event()

    def check(self) -> bool:
        """Return whether something may be sent now."""
        if max((self._clock() - self._last_ns) / 1e9, self._wall() - self._last_wall_s) > PAUSE_S:
            self.pauses += 1
            self._recent.clear()
            self._paused.set()
            self._last_ns, self._last_wall_s = self._clock(), self._wall()
            if self._lease is not None:
                self._lease.lapse()
        return self._recent.is_set() and (self._lease is None or self._lease.held())

    async def recent(self) -> None:
        """Return at once if something may be sent, and otherwise when the cluster has been read and the lease is held."""
        while not self.check():
            await self._recent.wait()
            if self._lease is not None:
                await self._lease.regained()

    async def paused(self) -> None:
        """Wait for a pause."""
        await self._paused.wait()

    def was_read(self, pauses: int) -> None:
        """Take note that the cluster was read after this number of pauses; one more since then makes it old again."""
        self.check()
        if pauses == self.pauses and not self._closed:
            self._paused.clear()
            self._recent.set()

    def close(self) -> None:
        """Let nothing be sent any more."""
        self._closed = True
        self._recent.clear()

    def beat(self) -> None:
        """Say that the process is awake; work that blocks the loop for seconds does so in between."""
        self.check()
        self._last_ns, self._last_wall_s = self._clock(), self._wall()

    async def watch(self) -> None:
        """Say so regularly, until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(HEARTBEAT_S)
