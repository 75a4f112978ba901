"""The page of what is not the scheduler of this process: a state dump, a scheduler elsewhere, or a recording, at any moment of it.

`licorne page` serves it to the machine that it runs on. A moment of a recording is another scheduler, which is restored
when it is first looked at, and shown like a running one; the last few are kept.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from licorne.answers.recorded import NothingRecordedError, restore_moment
from licorne.answers.timeline import Timeline, recorded_timeline
from licorne.core.api import SchedulerAPI
from licorne.core.base.states import SECOND_NS
from licorne.host.guesses import Guesses
from licorne.host.threads import COMMON
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.rest.access import Access, RequestLimits
from licorne.host.web.rest.app import Dispatcher, OnError, RestApp, ignore_change
from licorne.host.web.rest.errors import refuse
from licorne.host.web.rest.gate import Gate
from licorne.host.web.rest.handlers import Handlers
from licorne.si.rest_objects import FullState
from licorne.state.dump import DumpError
from licorne.state.recording import RecordingError, choose_run, list_runs
from licorne.state.recording.moments import parse_moment
from licorne.state.source import SourceError

from .live import LiveSource
from .routes import Pages
from .source import DumpSource
from .tables import Query
from .view import Source

Opened = Callable[[Query], Awaitable[Source]]
AGAIN_S: Final = 5.0
"""Seconds for which a dump of a running scheduler is shown before another one is asked for."""
TIMELINE_S: Final = 20.0
"""Seconds for which the time before a moment is repeated, about."""
MOMENTS_MAX: Final = 3
"""Moments of a recording that are kept in memory."""


def pages_app(opened: Opened, on_error: OnError) -> RestApp:
    """Return the application that serves the pages of a source alone, without REST and without tokens."""
    handlers = _handlers(SchedulerAPI(on_output=lambda *_: None), time.time_ns)
    endpoints = Pages(opened, handlers).endpoints()
    return RestApp(handlers, Dispatcher(handlers, Gate(Access(), Guesses()), endpoints, ignore_change, on_error))


def _handlers(api: SchedulerAPI, clock: Callable[[], int]) -> Handlers:
    return Handlers(Monitor(Backend(api, clock), ""), RequestLimits(), old_queue_names=False)


class OpenedDump:
    """A state dump. `fetch` reads it; `again`: it may change, so it is read anew for who looks later."""

    def __init__(self, fetch: Callable[[], FullState], name: str, *, again: bool) -> None:
        self._fetch = fetch
        self._name = name
        self._again = again
        self._lock = asyncio.Lock()
        self._source: DumpSource | None = None
        self._until_s = 0.0

    async def opened(self, _query: Query) -> Source:
        """Return the dump, read at most `AGAIN_S` ago."""
        async with self._lock:
            if self._source is None or (self._again and time.monotonic() >= self._until_s):
                try:
                    state = await COMMON.run(self._fetch)
                except (SourceError, DumpError) as error:
                    refuse(503, str(error))
                self._source = DumpSource(state, self._name, changes=self._again)
                self._until_s = time.monotonic() + AGAIN_S
            return self._source


class _Moment(LiveSource):
    """A moment of a recording, with the time before it, which is repeated when it is first looked at."""

    def __init__(self, handlers: Handlers, folder: Path, span: tuple[int, int]) -> None:
        super().__init__(handlers, f"recording {folder.name}")
        self.span = span
        self._folder = folder
        self._timelines: dict[float, Timeline] = {}

    async def timeline(self, window_s: float) -> Timeline | None:
        """Return what was decided, and how queues fared, in so many seconds before the moment."""
        if window_s not in self._timelines:
            until_ns, ends = self.now_ns(), time.monotonic() + TIMELINE_S
            since_ns = max(until_ns - int(window_s * SECOND_NS), self.span[0] if self.span else 0)
            run = partial(choose_run, self._folder, at_ns=until_ns)
            found = await COMMON.run(
                lambda: recorded_timeline(run(), since_ns, until_ns, lambda: time.monotonic() < ends)
            )
            self._timelines = {window_s: found}
        return self._timelines[window_s]


def begins_ns(folder: Path) -> int:
    """Return the first moment that a recording has; 0 if it has none yet."""
    return min((run.begins_ns for run in list_runs(folder) if run.begins_ns), default=0)


class OpenedRecording:
    """A recording, of which the address says the moment: `t`, as `licorne why --at` takes it; without it, its end.

    `clock`: the time up to which it is written now; None: it is written no more.
    """

    def __init__(self, folder: Path, clock: Callable[[], int] | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = asyncio.Lock()
        self._moments: dict[int | None, LiveSource] = {}
        self._begins_ns = begins_ns(folder)
        self._ends_ns = 0

    async def opened(self, query: Query) -> Source:
        """Return the scheduler as it was at the moment that the address names."""
        try:
            at_ns = parse_moment(query["t"]) if query["t"] else None
        except ValueError as error:
            refuse(400, f"t={query['t'][:80]}: {error}")
        async with self._lock:
            if self._clock is not None:
                self._ends_ns = self._clock()
            elif not self._ends_ns:
                self._moments[None] = await self._moment(None)
            source = self._moments.pop(at_ns, None) or await self._moment(at_ns)
            if self._clock is None or (at_ns is not None and at_ns <= source.now_ns()):  # else more of it is to come
                self._moments[at_ns] = source
            while len(self._moments) > MOMENTS_MAX:
                del self._moments[next(iter(self._moments))]
            return source

    async def _moment(self, at_ns: int | None) -> LiveSource:
        try:
            gc.disable()  # else it looks through all that is restored again and again, which takes a third of the time
            restored = await COMMON.run(lambda: restore_moment(choose_run(self._folder, at_ns=at_ns), at_ns))
        except NothingRecordedError:
            refuse(404, "No resource manager was registered at this moment of the recording")
        except RecordingError as error:
            refuse(404, str(error))
        finally:
            gc.enable()
        if at_ns is None and self._clock is None:
            self._ends_ns = restored.now_ns
        span = self._begins_ns, max(self._ends_ns, restored.now_ns)
        return _Moment(_handlers(restored.api, lambda: restored.now_ns), self._folder, span)
