"""Watches a scheduler: counts what it says, keeps its events and history, and looks after its health in the background.

One `Monitor` for a `Backend`. Its own work is a task of the loop (`run`): once a second it looks what is due.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from licorne.core.partition import Partition
from licorne.daemon.log import Log, no_log
from licorne.daemon.pace import paced
from licorne.si.messages import Output
from licorne.web.figures.counts import Counts
from licorne.web.figures.history import History
from licorne.web.figures.lag import LoopLag, Waits
from licorne.web.figures.latencies import Latencies

from . import health
from .backend import Backend
from .event_ring import CAPACITY, EventRing
from .usage import tell_usage

TICK_S = 1.0
PARKED_EVERY_S = 10.0
PARKED_NAMES = ("live", "no_node", "refused", "awaits_node", "awaits_placeholder", "awaits_gang")
"""Why an ask is parked, by the numbers of `licorne.core.queues.ask`."""


class Monitor:
    """What is known about the past of a scheduler, and its health.

    Parameters:
        backend: the scheduler.
        uuid: of this process, for readers of events (`InstanceUUID`).
        health_interval_s: between two runs of the health checks; 0 or less: none (`health.checkInterval`).
        event_capacity: how many events are kept (`event.ringBufferCapacity`); 0: none are made
            (`event.trackingEnabled`: false).
        log: where the usage of applications goes that have ended.
    """

    def __init__(
        self,
        backend: Backend,
        uuid: str,
        *,
        health_interval_s: float = health.INTERVAL_S,
        event_capacity: int = CAPACITY,
        log: Log | None = None,
    ) -> None:
        self.backend = backend
        self.counts = Counts(backend.cluster)
        self.latencies = Latencies()
        self.lag = LoopLag()
        self.gaps = Waits()
        """Between two slices of the engine, while there was more to decide."""
        self.decisions = 0
        self.ring = EventRing(uuid, max(event_capacity, 1))
        self.log_level: Callable[[], str] = lambda: "INFO"
        """What is logged at least, as its host has it."""
        self.log_dropped: Callable[[], int] = lambda: 0
        """Lines of its host's log that were not written."""
        self.tracks_events = event_capacity > 0
        self.history = History(backend.clock())
        self.health: health.Health | None = None
        """The result of the last run; None before the first one ends, or where there are none."""
        self.parked: dict[str, int] = {}
        """Pending asks by why they are parked, as they were some seconds ago."""
        self.errors = 0
        """Failures of the scheduler itself."""
        self.rate = 0.0
        """Decisions per second, over the last tick."""
        self._health_interval_s = health_interval_s
        self._seen = (0, 0)  # errors and refused nodes at the last health check
        backend.cluster.watch_usage()
        if self.tracks_events:
            backend.cluster.recorder = self.ring.record
        backend.cluster.watcher = self._watch
        self._log = log or no_log()

    def _watch(self, partition: Partition) -> None:
        self.latencies.watch(partition)
        partition.on_end = partial(tell_usage, self._log, partition)

    def retune(self, *, health_interval_s: float, event_capacity: int, tracks_events: bool) -> None:
        """Other settings, while it runs; events only if there is a recorder from the start on."""
        self._health_interval_s = health_interval_s
        self.ring.resize(max(event_capacity, 1))
        self.tracks_events = tracks_events

    # -- what the host tells ---------------------------------------------------------------------------

    def on_outputs(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """The scheduler has told a resource manager this."""
        self.counts.count_outputs(rm_id, outputs)

    def cycle(self, seconds: float, made: int) -> None:
        """A call of `schedule` took so long and made so many allocations."""
        self.latencies.slice(seconds, made)
        self.decisions += made

    def failed(self) -> None:
        """The scheduler failed: a bug."""
        self.errors += 1

    # -- in the background -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled."""
        with self.lag.running():
            await self._tick()

    async def _tick(self) -> None:
        checked = parked = -1e9
        decided, at = self.decisions, time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            self.rate, decided, at = (self.decisions - decided) / max(now - at, 1e-9), self.decisions, now
            try:
                self.tick()
                if now - parked >= PARKED_EVERY_S:
                    parked = now
                    await self.count_parked()
                if 0 < self._health_interval_s <= now - checked:
                    checked = now
                    await self.check_health()
            except Exception:  # noqa: BLE001  a bug, whatever it is; what else is watched goes on
                self.errors += 1
                self._log.exception("watching failed")

    def tick(self) -> None:
        """Do what is due by now and quickly done."""
        self.latencies.settle(self.backend.cluster.partitions())
        now = self.backend.clock()
        if self.history.is_due(now):
            self.history.note(now, self.running(), self.containers())
            self.counts.forget_removed()

    def running(self) -> int:
        """Applications that run."""
        partitions = self.backend.partitions()
        return sum(str(app.state) == "Running" for partition in partitions for app in partition.applications.values())

    def containers(self) -> int:
        """Allocations that there are."""
        partitions = self.backend.partitions()
        return sum(len(app.allocations) for partition in partitions for app in partition.applications.values())

    async def check_health(self) -> None:
        """Run the health checks, in small steps."""
        now = (self.errors, self.counts.nodes_refused)
        steps = health.run(self.backend, now[0] - self._seen[0], now[1] - self._seen[1])
        self._seen = now
        async for result in paced(steps):
            if result is not None:
                self.health = result

    async def count_parked(self) -> None:
        """Count pending asks by why they are parked, in small steps."""
        counted = dict.fromkeys(PARKED_NAMES, 0)
        apps = [app for partition in self.backend.partitions() for app in partition.applications.values()]
        async for app in paced(apps):
            for ask in app.asks.values():
                counted[PARKED_NAMES[ask.parked]] += 1
        self.parked = counted


__all__ = ["Monitor"]
