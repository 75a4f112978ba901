"""Watch a scheduler: count its output messages, keep its events and history, and check its health in the background.

A host makes one `Monitor` for its `Backend`. The periodic work is one task of the event loop (`run`), which once a second
does whatever is due.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from licorne.answers.timeline import Timeline, shares_of
from licorne.core.partition import Partition
from licorne.host.log import Log, no_log
from licorne.host.pace import paced
from licorne.host.web.figures.counts import Counts
from licorne.host.web.figures.history import History
from licorne.host.web.figures.lag import LoopLag, Waits
from licorne.host.web.figures.latencies import Latencies
from licorne.si.messages import Output

from . import health
from .backend import Backend
from .event_ring import EventRing
from .settings import WebSettings
from .usage import tell_usage

DEFAULTS = WebSettings()
TICK_S = 1.0
PARKED_EVERY_S = 10.0
SAMPLED_EVERY_S = 60.0
PARKED_NAMES = ("live", "no_node", "refused", "awaits_node", "awaits_placeholder", "awaits_gang")
"""Why an ask is parked: the name at index i belongs to the value i of `Ask.parked` (`licorne.core.queues.ask`)."""


class Monitor:
    """The past of a scheduler, as far as it is kept, and its health.

    Parameters:
        backend: the scheduler.
        uuid: identifies this process to readers of events (`InstanceUUID`).
        settings: those of events and health checks; with the capacity 0 no events are ever made.
        log: receives the usage summary of each application that ends; its level is shown, and how many lines it dropped.
    """

    def __init__(self, backend: Backend, uuid: str, settings: WebSettings = DEFAULTS, log: Log | None = None) -> None:
        self.backend = backend
        self.counts = Counts(backend.cluster)
        self.latencies = Latencies()
        self.lag = LoopLag()
        self.gaps = Waits()
        """Seconds between two slices of the engine while there was more to decide."""
        self.decisions = 0
        self.ring = EventRing(uuid, max(settings.event_capacity, 1))
        self.log = log or no_log()
        self.tracks_events = settings.tracks_events and settings.event_capacity > 0
        self.history = History(backend.clock())
        self.timeline: Timeline | None = None
        """What was decided last, and how queues fared against their guarantees, minute by minute; None: no page shows it."""
        self.health: health.Health | None = None
        """The result of the last health check; None before the first one has ended, or if checks are disabled."""
        self.parked: dict[str, int] = {}
        """Number of pending asks by the reason why they are parked, as of the last count (every `PARKED_EVERY_S` seconds)."""
        self.errors = 0
        """Failures of the scheduler itself, that is bugs."""
        self.rate = 0.0
        """Decisions per second, over the last tick."""
        self._health_interval_s = settings.health_interval_s
        self._seen = (0, 0)  # errors and refused nodes at the last health check
        backend.cluster.watch_usage()
        if settings.event_capacity > 0:
            backend.cluster.recorder = self.ring.record
        backend.cluster.watcher = self._watch

    def _watch(self, partition: Partition) -> None:
        self.latencies.watch(partition)
        partition.on_end = partial(tell_usage, self.log, partition)

    def retune(self, settings: WebSettings) -> None:
        """Apply changed settings at run time; events are made only if a recorder was installed at construction."""
        self._health_interval_s = settings.health_interval_s
        if settings.health_interval_s <= 0:
            self.health = None  # nothing would ever correct the last result
        self.ring.resize(max(settings.event_capacity, 1))
        self.tracks_events = settings.tracks_events

    # -- called by the host ----------------------------------------------------------------------------

    def on_outputs(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Count messages that the scheduler sent to a resource manager."""
        self.counts.count_outputs(rm_id, outputs)
        if self.timeline is not None:
            self.timeline.decided(self.backend.clock(), outputs)

    def cycle(self, seconds: float, made: int) -> None:
        """Count a call of `schedule` that took `seconds` and made `made` allocations."""
        self.latencies.slice(seconds, made)
        self.decisions += made

    def failed(self) -> None:
        """Count a failure of the scheduler, which is a bug."""
        self.errors += 1

    # -- in the background -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Do the periodic work until the task is cancelled."""
        with self.lag.running():
            await self._tick()

    async def _tick(self) -> None:
        checked = parked = sampled = -1e9
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
                if now - sampled >= SAMPLED_EVERY_S:
                    sampled = now
                    await self.sample()
                if 0 < self._health_interval_s <= now - checked:
                    checked = now
                    await self.check_health()
            except Exception:
                self.errors += 1
                self.log.exception("watching failed")

    def tick(self) -> None:
        """Do the due work that is quick: settle latencies, and once a minute record the history."""
        self.latencies.settle(self.backend.cluster.partitions())
        now = self.backend.clock()
        if self.history.is_due(now):
            self.history.note(now, self.running(), self.containers())
            self.counts.forget_removed()

    def running(self) -> int:
        """Return the number of applications in state Running."""
        partitions = self.backend.partitions()
        return sum(str(app.state) == "Running" for partition in partitions for app in partition.applications.values())

    def containers(self) -> int:
        """Return the number of allocations."""
        partitions = self.backend.partitions()
        return sum(len(app.allocations) for partition in partitions for app in partition.applications.values())

    async def check_health(self) -> None:
        """Run the health checks, in small steps between which the loop serves others."""
        now = (self.errors, self.counts.nodes_refused)
        steps = health.run(self.backend, now[0] - self._seen[0], now[1] - self._seen[1])
        self._seen = now
        async for result in paced(steps):
            if result is not None and self._health_interval_s > 0:
                self.health = result

    async def sample(self) -> None:
        """Note how queues fare against their guarantees, in small steps, if a page shows it."""
        if self.timeline is None:
            return
        found = [pair async for pair in paced(shares_of(self.backend.partitions()))]
        self.timeline.sample(self.backend.clock(), found)

    async def count_parked(self) -> None:
        """Count the pending asks by the reason why they are parked, in small steps."""
        counted = dict.fromkeys(PARKED_NAMES, 0)
        apps = [app for partition in self.backend.partitions() for app in partition.applications.values()]
        async for app in paced(apps):
            for ask in app.asks.values():
                counted[PARKED_NAMES[ask.parked]] += 1
        self.parked = counted
