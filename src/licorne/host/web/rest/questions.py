"""Endpoints that answer "why does it wait" and "who has what" (the pages are in `licorne.host.web.page`).

The answers are computed in another process, from the state at the moment of the question. Where a process follows the
scheduler (`licorne.host.follower`) it has that state; otherwise, or if it is behind, one is started and sent a checkpoint.
One question is answered at a time.
"""

from __future__ import annotations

from msgspec.structs import replace
from starlette.responses import Response

from licorne.answers.process import Question, UnansweredError, ask
from licorne.host.web.backend import Backend
from licorne.state.recording.moments import parse_moment

from .answers import JSON
from .errors import RestError, refuse
from .handlers import Handlers
from .routing import Call

RETRY_AFTER_S = 5
LIMIT_S = 10.0
"""Seconds for which changes are looked for."""


async def why_all(handlers: Handlers, call: Call) -> Response:
    """Answer with what waits, by reason."""
    return _json(await answered(handlers, Question("why", partition=call.query("partition"))))


async def why(handlers: Handlers, call: Call) -> Response:
    """Answer why an ask, a pod or an application waits."""
    return _json(await answered(handlers, _question(call, call.variables["name"])))


async def why_pod(handlers: Handlers, call: Call) -> Response:
    """Answer why a pod waits that is named by its namespace and name."""
    pod = f"{call.variables['namespace']}/{call.variables['pod']}"
    return _json(await answered(handlers, _question(call, pod)))


async def shares(handlers: Handlers, call: Call) -> Response:
    """Answer with who has what of which guarantee and max, who borrows from whom, and what was used since a time."""
    question, since = Question("shares", partition=call.query("partition")), call.query("since")
    if since:
        recorder = handlers.backend.recorder()
        if recorder is None:
            refuse(400, f"since={since}: nothing is recorded here, so nothing is known of the time before")
        try:
            since_ns = parse_moment(since)
        except ValueError as error:
            refuse(400, f"since={since}: {error}")
        question = replace(question, since_ns=since_ns, recording=str(recorder.folder.absolute()))
    return _json(await answered(handlers, question))


def _question(call: Call, name: str) -> Question:
    return Question("why", name, call.query("partition"), call.query("prove") != "false", LIMIT_S)


async def answered(handlers: Handlers, question: Question) -> bytes:
    """Return the answer to a question as JSON.

    Raises:
        RestError: 404, nothing has the name that is asked for; 503, another question is being answered, or there was no answer
            in time.
    """
    lock = handlers.asking
    if lock.locked():
        raise RestError(503, "Another question is being answered", {"Retry-After": str(RETRY_AFTER_S)})
    async with lock:
        if not handlers.backend.managers():
            refuse(404, "No resource manager is registered yet")
        try:
            return await _followed(handlers.backend, question) or await ask(await handlers.exact_dump(), question)
        except UnansweredError as error:
            return refuse(404, str(error))
        except TimeoutError:
            return refuse(503, "There was no answer in time")


async def _followed(backend: Backend, question: Question) -> bytes | None:
    """Return the answer of the process that follows the scheduler; None if there is none, or if nothing there has the name.

    A state dump may know it still: with it come the pods that the resource manager does not ask for.
    """
    if backend.follower is None:
        return None
    try:
        return await backend.follower.ask(question, backend.clock())
    except UnansweredError:
        return None


def _json(answer: bytes) -> Response:
    return Response(answer + b"\n", media_type=JSON)
