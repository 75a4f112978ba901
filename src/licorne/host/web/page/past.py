"""The page of what is not the scheduler of this process now: a state dump, a scheduler elsewhere, or a moment of a recording.

`licorne page` serves it to the machine that it runs on. A moment of a recording is another scheduler, which is restored
when it is first looked at, and shown like a running one; the last few are kept. Restoring takes seconds of a processor, which a
thread that decides must not lose: where a scheduler records while it runs, a process of its own shows the moments. It is
started when one is first looked at, answers one request at a time, and ends when none came for `IDLE_S`, or with the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from licorne._bounded import UNDECODABLE
from licorne.answers.recorded import NothingRecordedError, restore_moment
from licorne.answers.timeline import Timeline, recorded_timeline
from licorne.core.api import SchedulerAPI
from licorne.core.base.states import SECOND_NS
from licorne.host.guesses import Guesses
from licorne.host.threads import COMMON
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.rest.access import Access, RequestLimits
from licorne.host.web.rest.answers import wants_gzip
from licorne.host.web.rest.app import Dispatcher, OnError, RestApp
from licorne.host.web.rest.errors import refuse
from licorne.host.web.rest.gate import Gate
from licorne.host.web.rest.handlers import Handlers
from licorne.host.web.rest.routing import Call, Endpoint
from licorne.si.rest_objects import FullState
from licorne.state.dump import DumpError
from licorne.state.recording import RecordingError, choose_run, list_runs
from licorne.state.recording.moments import parse_moment
from licorne.state.source import SourceError

from .live import LiveSource
from .routes import LOGGED_IN, Opened, Pages
from .source import DumpSource
from .view import Query, Source

AGAIN_S: Final = 5.0
"""Seconds for which a dump of a running scheduler is shown before another one is asked for."""
TIMELINE_S: Final = 20.0
"""Seconds for which the time before a moment is repeated, about."""
MOMENTS_MAX: Final = 3
"""Moments of a recording that are kept in memory."""
IDLE_S: Final = 600.0
START: Final = """import asyncio, gc, pathlib, sys; gc.disable()
from licorne.host.web.page import past; asyncio.run(past.serve(pathlib.Path(sys.argv[1])))"""
"""The program of the process. Garbage is not collected while it starts, which would take a tenth of the time."""
LIMIT_S: Final = 60.0
"""Seconds that an answer may take, before the process is ended."""
EMPTY: Final[Mapping[str, str]] = {}
WAITING_MAX: Final = 16
"""Requests that wait for the process, at most."""


def pages_app(opened: Opened, on_error: OnError) -> RestApp:
    """Return the application that serves the pages of a source alone, without REST and without tokens."""
    handlers = _handlers(SchedulerAPI(on_output=lambda *_: None), time.time_ns)
    endpoints = Pages(opened, handlers).endpoints()
    return RestApp(handlers, Dispatcher(handlers, Gate(Access(), Guesses()), endpoints, lambda **_: None, on_error))


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
        """Return the state dump; a scheduler that runs is asked for a new one after `AGAIN_S` seconds."""
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
            if gc.get_freeze_count():  # an earlier moment, which may be kept no more
                gc.unfreeze()
                gc.collect()
            gc.disable()  # else it looks through all that is restored again and again, which takes a third of the time
            restored = await COMMON.run(lambda: restore_moment(choose_run(self._folder, at_ns=at_ns), at_ns))
        except NothingRecordedError:
            refuse(404, "No resource manager was registered at this moment of the recording")
        except RecordingError as error:
            refuse(404, str(error))
        finally:
            gc.freeze()
            gc.enable()
        if at_ns is None and self._clock is None:
            self._ends_ns = restored.now_ns
        span = self._begins_ns, max(self._ends_ns, restored.now_ns)
        return _Moment(_handlers(restored.api, lambda: restored.now_ns), self._folder, span)


# -- beside a scheduler that runs -----------------------------------------------------------------------------


class Past:
    """The pages of a recording, from a process that is started as needed, until `ending` is set."""

    def __init__(self, folder: Path, ending: asyncio.Event) -> None:
        self._folder = folder
        self._ending = ending
        self._process: Process | None = None
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._used = False

    async def page(self, path: str, query: str, headers: Mapping[str, str] = EMPTY) -> Response:
        """Return the page at an address of the recording, for a request with `headers`.

        Raises:
            RestError: 503, too many wait, or there was no answer in time.
        """
        if self._waiting >= WAITING_MAX:
            refuse(503, "Too many look at other moments now")
        self._waiting += 1
        try:
            async with self._lock, asyncio.timeout(LIMIT_S):
                status, headers, body = await self._asked(path, query, headers)
        except (TimeoutError, asyncio.IncompleteReadError, OSError, *UNDECODABLE):
            self._end(self._process)
            refuse(503, "The recording could not be read in time")
        except asyncio.CancelledError:  # what it would have answered must not be read as the answer to another
            self._end(self._process)
            raise
        finally:
            self._waiting -= 1
        return Response(body, status, {name: value for name, value in headers.items() if name != "content-length"})

    async def _asked(self, path: str, query: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        process, self._used = self._process, True
        if process is None or process.returncode is not None:
            command = (sys.executable, "-c", START, str(self._folder))
            process = self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
            self._keeping = asyncio.create_task(self._keep(process))
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(msgspec.json.encode((path, query, headers)) + b"\n")
        status, headers, length = msgspec.json.decode(
            await process.stdout.readline(), type=tuple[int, dict[str, str], int]
        )
        return status, headers, await process.stdout.readexactly(length)

    async def _keep(self, process: Process) -> None:
        """Keep a process while it is used, until the server ends."""
        while self._used and process.returncode is None and not self._ending.is_set():
            self._used = False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), IDLE_S)
        self._end(process)
        await process.wait()

    def _end(self, process: Process | None) -> None:
        if process is not None and process.returncode is None:
            process.kill()
        if process is self._process:
            self._process = None


class _Running(LiveSource):
    """The scheduler of this process, and the moments of its recording, if there is one."""

    _past: Past | None = None
    _begins_ns = 0

    async def opened(self, query: Query) -> LiveSource:
        """Return this source, with the moments that may be looked at."""
        recorder = self._backend.recorder()
        if recorder is not None:
            self._begins_ns = self._begins_ns or await COMMON.run(lambda: begins_ns(recorder.folder))
            self.span = (self._begins_ns, self.now_ns()) if self._begins_ns else None
        return self

    async def elsewhere(self, call: Call, logged_in: bool) -> Response | None:
        """Return the page of the moment that an address names; None if it names none."""
        if not (call.query("t") or call.query("against")):
            return None
        recorder = self._backend.recorder()
        if recorder is None:
            refuse(404, "Nothing is recorded here, so only the present can be shown; --record DIR changes that")
        self._past = self._past or Past(recorder.folder, self._handlers.ending)
        url, headers = call.request.url, {"accept-encoding": "gzip"} if wants_gzip(call.request.scope) else {}
        return await self._past.page(url.path, url.query, headers | ({LOGGED_IN: "1"} if logged_in else {}))


def live_pages(handlers: Handlers, gate: Gate) -> tuple[Endpoint, ...]:
    """Return the endpoints of the pages about the scheduler of this process."""
    running = _Running(handlers)
    handlers.monitor.timeline = handlers.monitor.timeline or Timeline()
    return Pages(running.opened, handlers, gate, running.elsewhere).endpoints()


# -- in the process ------------------------------------------------------------------------------------------


async def serve(folder: Path) -> None:
    """Answer the requests of the standard input until it ends."""

    def failed(path: str, error: Exception) -> None:
        sys.stderr.write(f"{path}: {error!r}\n")

    app = pages_app(OpenedRecording(folder, time.time_ns).opened, failed)
    while line := await COMMON.run(sys.stdin.buffer.readline):
        asked = msgspec.json.decode(line, type=tuple[str, str, dict[str, str]])
        status, headers, body = await answer_of(app, *asked)
        sys.stdout.buffer.write(msgspec.json.encode((status, headers, len(body))) + b"\n" + body)
        sys.stdout.buffer.flush()


async def answer_of(
    app: ASGIApp, path: str, query: str, headers: Mapping[str, str] = EMPTY
) -> tuple[int, dict[str, str], bytes]:
    """Return what an application answers to a GET: its status, headers and body."""
    said: list[Any] = []
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": given}

    async def receive() -> dict[str, object]:
        return await asyncio.Future()  # the client never goes

    async def send(message: Any) -> None:
        said.append(message)

    await app(scope, receive, send)
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in said[0]["headers"]}
    return said[0]["status"], found, b"".join(message["body"] for message in said[1:])
