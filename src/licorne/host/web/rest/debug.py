"""The original's endpoints about the run time of its language, answered as far as Python has an equivalent.

An endpoint without one is refused with the reason.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import threading
import traceback
import tracemalloc
from functools import partial

from starlette.responses import PlainTextResponse, Response

import licorne
from licorne.core import compiled
from licorne.host.threads import COMMON
from licorne.si import rest_objects as objects

from .answers import json_response
from .errors import refuse
from .handlers import Handlers
from .routing import Call

_MISSING = {
    "block": "Python keeps no profile of blocking; the scheduler has no locks to wait for",
    "mutex": "Python keeps no profile of locks; the scheduler has none",
    "profile": "a profiler would stop the scheduler; run `py-spy record` on the process instead",
    "trace": "Python has no execution trace; run `py-spy dump` on the process, or read /debug/stack",
    "symbol": "Python's stacks name their functions themselves",
}
_STACKS = ("goroutine", "threadcreate")
_TOP = 50


async def version(_: Handlers, _call: Call) -> Response:
    """Answer with the versions of licorne and Python, and whether the hot modules are compiled."""
    return json_response(
        objects.Version(version=licorne.__version__, compiled=compiled, python=platform.python_version())
    )


async def stack(_: Handlers, _call: Call) -> Response:
    """Answer with the stacks of all threads and tasks."""
    return PlainTextResponse(await COMMON.run(partial(_text, _stacks())))


async def pprof(_: Handlers, call: Call) -> Response:
    """Answer with the profile of the name in the path; refuse a name without a profile."""
    name = call.variables["profile"]
    if name == "":
        lines = [f"/debug/pprof/{profile}" for profile in ("allocs", "cmdline", "heap", *_STACKS)]
        return PlainTextResponse("\n".join(lines) + "\n")
    if name == "cmdline":
        return PlainTextResponse("\0".join(sys.orig_argv[:1] + sys.argv[:1]))
    if name in _STACKS:
        return await stack(_, call)
    if name in ("heap", "allocs"):
        if not tracemalloc.is_tracing():
            refuse(
                404, f"/debug/pprof/{name}: memory is traced only if the process was started with PYTHONTRACEMALLOC=1"
            )
        statistics = tracemalloc.take_snapshot().statistics("lineno")
        return PlainTextResponse("".join(f"{one}\n" for one in statistics[:_TOP]))
    return refuse(404, f"/debug/pprof/{name}: {_MISSING.get(name, 'there is no such profile')}")


async def log_level(_: Handlers, _call: Call) -> Response:
    """Refuse: the log level is set at the start; the original too dropped this endpoint after release 1.3."""
    refuse(404, "The level of the log is set when the scheduler is started (--log-level); this path is of release 1.3")


def _stacks() -> list[tuple[str, traceback.StackSummary]]:
    """Return title and current stack of each thread and task, oldest call first; source lines are not read yet."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    extract = partial(traceback.StackSummary.extract, limit=_TOP, lookup_lines=False)
    found = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001  the documented way
        frames = extract(traceback.walk_stack(frame))
        frames.reverse()
        found.append((f"thread {names.get(ident, ident)}", frames))
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        # Frames of compiled coroutines have no line, and `asyncio.Task.print_stack` fails on them.
        frames = extract((frame, frame.f_lineno) for frame in task.get_stack(limit=_TOP))
        found.append((f"task {task.get_name()}", frames))
    return found


def _text(stacks: list[tuple[str, traceback.StackSummary]]) -> str:
    """Format the stacks. This reads source files, so it belongs into a thread."""
    return "".join(f"{title}:\n{''.join(stack.format())}\n" for title, stack in stacks)
