"""Asking a scheduler again and again until enough is captured, whatever becomes of the connection.

A poll that fails is tried again after a growing pause; what happened meanwhile is told by the event stream when it is back,
or else by the next poll. Only the first poll must succeed: until then nobody knows that there is a scheduler at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from licorne._bounded import json_value
from licorne.core.base.setting_table import unknown_settings
from licorne.si import rest_objects as objects
from licorne.si.constants import DEFAULT_PARTITION
from licorne.state.configuration import as_yaml
from licorne.state.dump import without_gzip
from licorne.state.recording import Names
from licorne.state.source import Server, SourceError
from licorne.workload import lines
from licorne.workload.measure import NANOSECONDS
from licorne.workload.workload import ASKS_MAX

from .events import Events
from .spool import Spool
from .tracker import Tracker

PAUSES_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""How long to wait after each failed poll in a row, at least."""
CLOCK_S: Final = 2.0
"""By how many seconds the scheduler's clock must differ from this one's to count; an answer tells whole seconds."""
NOT_FOUND: Final = 404
NOBODY: Final = "no resource manager is registered with the scheduler, so there is nothing to record yet"
PARTITION: Final = f"/ws/v1/partition/{DEFAULT_PARTITION}"
T = TypeVar("T")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to capture.

    `every_s`: seconds between two polls. `for_s`: for how many seconds to go on; None: until `stop` is true. `asks_max`: how
    many asks are written at most; with them the capture ends.
    """

    every_s: float = 10.0
    for_s: float | None = None
    asks_max: int = ASKS_MAX


class Captured(msgspec.Struct, frozen=True):
    """What has been captured: asks, seconds, polls, and what is not known, as sentences, which are in the file too."""

    asks: int
    seconds: float
    polls: int
    notes: tuple[str, ...]


class Progress(msgspec.Struct, frozen=True):
    """How far it is: seconds since the beginning, asks that are written, pods that are there, and the last trouble or ""."""

    seconds: float
    asks: int
    pods: int
    trouble: str


def capture(
    server: Server,
    path: Path,
    options: Options | None = None,
    *,
    names: Names | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Progress], object] = lambda _: None,
) -> Captured:
    """Capture a workload from a running scheduler, and write it to a file.

    Args:
        server: the REST interface of the scheduler.
        path: the workload file; it is there only when it is complete.
        options: how to capture.
        names: replaces names of users and groups; None: they are written.
        stop: asked several times a second whether to end.
        progress: told after each poll.

    Raises:
        SourceError: the scheduler does not answer at the beginning.
        AnonymityError: names are to be replaced, and its configuration depends on them.
        OSError: the file cannot be written.
    """
    with Spool(path) as spool, closing(Events(server)) as events:
        made = _Capture(server, spool, events, options or Options(), names)
        try:
            made.run(stop, progress)
        except KeyboardInterrupt:
            made.ended = "interrupted"
        notes = tuple(made.finish())
        meta = lines.Meta(name=path.name.removesuffix(".jsonl"), version=2, resubmit=False, notes=notes)
        spool.write([meta, lines.Config(yaml=made.config, extra=made.extra)])
        return Captured(spool.asks, lines.from_ns(made.last_ns - made.tracker.begin_ns), made.polls, notes)


class _Capture:
    def __init__(self, server: Server, spool: Spool, events: Events, options: Options, names: Names | None) -> None:
        self._server = server
        self._spool = spool
        self._events = events
        self._options = options
        self._offset_ns = 0
        self._failed = 0
        self._lost = 0
        self._lost_ns = 0
        self.polls = 0
        self.config = ""
        self.extra: dict[str, str] = {}
        self.ended = ""
        self._now_ns()
        self._get("/ws/v1/clusters", list[dict[str, Any]])  # its answer tells what time it is there
        self.tracker = Tracker(self._now_ns(), spool.put, names)
        self.last_ns = self.tracker.begin_ns
        try:
            self._poll()
        except SourceError as error:
            if error.code == NOT_FOUND and self._has_nobody():
                raise SourceError(f"{server.base}: {NOBODY}") from None
            raise

    def _has_nobody(self) -> bool:
        """Return whether no resource manager is registered with the scheduler, so it has no partitions."""
        try:
            return not self._get("/ws/v1/partitions", list[Any])
        except SourceError:
            return False

    def _now_ns(self) -> int:
        """Return the time by the scheduler's clock."""
        return time.time_ns() + self._offset_ns

    def run(self, stop: Callable[[], bool], progress: Callable[[Progress], object]) -> None:
        """Poll until it is time to end."""
        began_s = time.monotonic()
        trouble = ""
        while True:
            progress(
                Progress(time.monotonic() - began_s, self._spool.asks, self.tracker.pods, trouble or self._events.why)
            )
            if self._spool.asks + self.tracker.pods >= self._options.asks_max:
                self.ended = f"the recording ended as it had {self._options.asks_max:,} asks"
                return
            pause_s = max(self._options.every_s, PAUSES_S[min(self._failed, len(PAUSES_S)) - 1] if self._failed else 0)
            next_s = time.monotonic() + pause_s
            end_s = float("inf") if self._options.for_s is None else began_s + self._options.for_s
            while time.monotonic() < min(next_s, end_s) and not stop():
                time.sleep(max(min(0.2, min(next_s, end_s) - time.monotonic()), 0))
            trouble = self._try_to_poll()
            if time.monotonic() >= end_s or stop():
                return

    def _try_to_poll(self) -> str:
        """Poll; returns why that failed, or ""."""
        try:
            self._poll()
        except SourceError as error:
            self._lost += self._failed == 0
            self._failed += 1
            return str(error)
        self._failed = 0
        return ""

    def _poll(self) -> None:
        """Take events and then the state: what a poll shows is rarely older than an event that was taken before it."""
        asked_ns = self._now_ns()
        tracker = self.tracker
        for event in self._events.take():
            tracker.event(event)
        config = self._get("/ws/v1/config", dict[str, Any], Accept="application/json")
        queues = self._get(f"{PARTITION}/queues", objects.Queue)
        nodes = self._get(f"{PARTITION}/nodes", list[objects.Node])
        applications = self._get(f"{PARTITION}/applications/active", list[objects.Application])
        if self._failed:
            self._lost_ns += asked_ns - self.last_ns
        now_ns = self._now_ns()
        text = as_yaml({"Partitions": config.get("Partitions") or []})
        written = tracker.configuration(text, now_ns)
        if not self.polls:
            self.config = written
            self.extra = {
                key: value for key, value in (config.get("Extra") or {}).items() if not unknown_settings({key: value})
            }
        tracker.queues(queues)
        tracker.nodes(nodes, now_ns)
        tracker.applications(applications, now_ns)
        self._describe()
        self.polls += 1
        self.last_ns = now_ns

    def _describe(self) -> None:
        """Look among the applications that have ended for those that lived between two polls."""
        if self.tracker.undescribed():
            self.tracker.completed(self._get(f"{PARTITION}/applications/completed", list[objects.Application]))

    def _get(self, path: str, kind: type[T], **headers: str) -> T:
        data, date = self._server.read(path, "REST interface of a scheduler", headers=headers)
        try:
            if date and not self.polls:
                ahead_s = parsedate_to_datetime(date).timestamp() - time.time()
                self._offset_ns = int(ahead_s * NANOSECONDS) if abs(ahead_s) > CLOCK_S else 0
            found = json_value(without_gzip(data))
            return msgspec.convert([] if found is None else found, kind)
        except (ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise SourceError(f"{self._server.base}{path}: its answer cannot be used: {error}") from None

    def finish(self) -> Iterator[str]:
        """Put what is still there; yield what is not known, as sentences."""
        try:
            for event in self._events.take():
                self.tracker.event(event)
            self.tracker.rejected(self._get(f"{PARTITION}/applications/rejected", list[objects.Application]))
            self._describe()
        except SourceError:
            yield "the scheduler could not be reached at the end: applications that were rejected are not known"
        self.tracker.finish()
        yield from self.tracker.notes()
        events = self._events
        if not events.how:
            yield f"no events were read, so what happened between two polls is not known: {events.why}"
        if events.gaps:
            yield f"events are missing ({events.gaps:,} gaps); there, only polls tell"
        if events.restarts:
            yield f"the scheduler was started anew ({events.restarts:,})"
        if self._lost:
            yield f"the scheduler could not be reached {self._lost:,} times, for {self._lost_ns / NANOSECONDS:,.0f} s altogether"
        if self.ended and self.ended != "interrupted":
            yield self.ended
