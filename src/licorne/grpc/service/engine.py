"""The scheduler's own work on the loop: decisions in slices of a few milliseconds, and deadlines.

A slice ends at a number of allocations, which follows the measured speed so that a slice takes about `slice_s` of the
settings; then the network has its turn. The core decides for one resource manager after the other. After a full slice,
the resource managers that got decisions yield until the others have had their turn, so that none starves. When nothing
is left to decide, the engine sleeps until a request comes or a deadline is due.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from licorne.core.api import SchedulerAPI
from licorne.host.log import Log
from licorne.host.web.monitor import Monitor

from .session import Session
from .sessions import Sessions
from .settings import ServiceSettings

LEAST, FIRST = 10, 200
"""Allocations of a slice: at least, and in the first one. `ServiceSettings.batch`, those of a message, are the most."""
TURNS = 3
"""Extra turns of the loop that the engine yields after a slice while a REST request waits."""
SHORTEST_SLEEP_S = 0.001
LONGEST_SLEEP_S = 3600.0


class Engine:
    """The task that calls the scheduler while there is something to decide, and sleeps otherwise."""

    def __init__(
        self, api: SchedulerAPI, sessions: Sessions, settings: ServiceSettings, clock: Callable[[], int], log: Log
    ) -> None:
        self._api = api
        self._sessions = sessions
        self.settings = settings
        self._clock = clock
        self._log = log
        self._limit = min(FIRST, settings.batch)
        self.monitor: Monitor | None = None
        """Records how long slices took; None without REST."""
        self.waiting: Callable[[], bool] = lambda: False
        """Whether a REST request waits for its answer."""
        self.decided = 0
        """Allocations made since the start."""
        self.slices = 0
        self._yielding: dict[Session, None] = {}
        self._asleep_since = 0.0  # 0: the engine is at work
        self._left_at = 0.0  # when the last slice ended, if it left something to decide; otherwise 0

    async def run(self) -> None:
        """Work until cancelled."""
        wake = self._sessions.wake
        while True:
            wake.clear()
            if self.slice():
                # One turn of the loop for gRPC; further ones while a REST request waits.
                await asyncio.sleep(0)
                for _ in range(TURNS):
                    if not self.waiting():
                        break
                    await asyncio.sleep(0)
                continue
            self._asleep_since = time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_deadline()):  # `wait_for` may swallow a cancellation
                    await wake.wait()
            self._asleep_since = 0.0

    def idle_s(self) -> float:
        """Return for how many seconds the engine has had nothing to decide; 0 while it works."""
        return time.monotonic() - self._asleep_since if self._asleep_since else 0.0

    def slice(self) -> bool:
        """Run one slice of decisions. Returns whether there may be more to decide."""
        limit = self._limit
        told = self._sessions.told_lately
        told.clear()
        began = time.perf_counter()
        if self._left_at and self.monitor is not None:
            self.monitor.gaps.add(began - self._left_at)
        self._left_at = 0.0
        try:
            made = self._api.schedule(limit=limit)
        except Exception:  # noqa: BLE001  a bug of the core, whose state can no longer be trusted
            self._log.exception("the scheduler failed; all resource managers must register again")
            if self.monitor is not None:
                self.monitor.failed()
            self._sessions.stop_all("an internal error of the scheduler")
            return False
        self.decided += made
        self.slices += 1
        ended = time.perf_counter()
        took = ended - began
        if self.monitor is not None:
            self.monitor.cycle(took, made)
        if made < limit:  # only sessions that yielded have something left, and it is their turn now
            resting, self._yielding = self._yielding, {}
            self._sessions.yield_turn(resting, yielding=False)
            self._left_at = ended if resting else 0.0
            return bool(resting)
        self._left_at = ended
        if len(self._sessions.by_id) > 1:
            self._yielding |= told
            self._sessions.yield_turn(told, yielding=True)
        wanted = limit * self.settings.slice_s / max(took, 1e-6)
        self._limit = max(LEAST, min(int(wanted), 2 * limit, self.settings.batch))
        return True

    def _until_deadline(self) -> float:
        """Return the seconds until the next deadline of the core, within the shortest and the longest sleep."""
        due = self._api.next_deadline_ns()
        if due is None:
            return LONGEST_SLEEP_S
        return min(max((due - self._clock()) / 1e9, SHORTEST_SLEEP_S), LONGEST_SLEEP_S)
