"""Moments of the recording that a scheduler writes while it runs, shown by a process of its own (`python -m` this module).

Restoring a moment takes seconds of a processor, which the thread that decides must not lose. The process is started when a
moment is first looked at, answers one request at a time, and ends when none came for `IDLE_S`, or with the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from licorne.answers.timeline import Timeline
from licorne.host.threads import COMMON
from licorne.host.web.rest.answers import wants_gzip
from licorne.host.web.rest.errors import refuse
from licorne.host.web.rest.gate import Gate
from licorne.host.web.rest.handlers import Handlers
from licorne.host.web.rest.routing import Call, Endpoint

from .live import LiveSource
from .opened import OpenedRecording, begins_ns, pages_app
from .routes import LOGGED_IN, Pages
from .tables import Query

IDLE_S: Final = 600.0
LIMIT_S: Final = 60.0
"""Seconds that an answer may take, before the process is ended."""
EMPTY: Final[Mapping[str, str]] = {}
WAITING_MAX: Final = 16
"""Requests that wait for the process, at most."""


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
        except (TimeoutError, asyncio.IncompleteReadError, OSError, msgspec.DecodeError):
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
            command = (sys.executable, "-m", __name__, str(self._folder))
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
    app = pages_app(OpenedRecording(folder, time.time_ns).opened, _failed)
    while line := await COMMON.run(sys.stdin.buffer.readline):
        asked = msgspec.json.decode(line, type=tuple[str, str, dict[str, str]])
        status, headers, body = await answer_of(app, *asked)
        sys.stdout.buffer.write(msgspec.json.encode((status, headers, len(body))) + b"\n" + body)
        sys.stdout.buffer.flush()


def _failed(path: str, error: Exception) -> None:
    sys.stderr.write(f"{path}: {error!r}\n")


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


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
