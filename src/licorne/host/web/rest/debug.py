"""The endpoints about this program itself: its versions, what it is doing, and the description of its interface."""

from __future__ import annotations

import asyncio
import platform
import sys
import threading
import traceback
from functools import cache, partial

from starlette.responses import PlainTextResponse, Response

import licorne
from licorne.core import compiled
from licorne.host.threads import COMMON
from licorne.si import rest_objects as objects

from . import openapi
from .answers import JSON, encode, json_response
from .handlers import Handlers
from .routing import Call

_TOP = 50


async def version(_: Handlers, _call: Call) -> Response:
    """Answer with the versions of licorne and Python, and whether the hot modules are compiled."""
    return json_response(
        objects.Version(version=licorne.__version__, compiled=compiled, python=platform.python_version())
    )


async def stack(_: Handlers, _call: Call) -> Response:
    """Answer with the stacks of all threads and tasks."""
    return PlainTextResponse(await COMMON.run(partial(_text, _stacks())))


async def document(_: Handlers, _call: Call) -> Response:
    """Answer with the OpenAPI document."""
    return Response(_document(), media_type=JSON)


@cache
def _document() -> bytes:
    from .endpoints import ENDPOINTS  # noqa: PLC0415  `endpoints` imports this module, whose handlers it lists

    return encode(openapi.document(ENDPOINTS)) + b"\n"


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
