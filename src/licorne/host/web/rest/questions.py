"""Endpoints that answer "why does it wait" and "who has what", as JSON and as a page that needs no script.

The answers are computed in another process, from the state at the moment of the question. Where a process follows the
scheduler (`licorne.host.follower`) it has that state; otherwise, or if it is behind, one is started and sent a checkpoint.
One question is answered at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from starlette.responses import HTMLResponse, Response

from licorne._wording import counted
from licorne.answers.process import Question, UnansweredError, ask
from licorne.answers.proposals import Proposal, Proposals
from licorne.answers.why import Answer, ApplicationAnswer, AskAnswer, Group, Overview
from licorne.config.quantity import spoken
from licorne.host.web.backend import Backend
from licorne.state.recording.moments import parse_moment

from .answers import JSON
from .errors import RestError, refuse
from .handlers import Handlers
from .page import PAGE_HEADERS, STYLE
from .routing import Call

RETRY_AFTER_S = 5
LIMIT_S = 10.0
"""Seconds for which changes are looked for."""


async def why_all(handlers: Handlers, call: Call) -> Response:
    """Answer with what waits, by reason."""
    return _json(await _answered(handlers, Question("why", partition=call.query("partition"))))


async def why(handlers: Handlers, call: Call) -> Response:
    """Answer why an ask, a pod or an application waits."""
    return _json(await _answered(handlers, _question(call, call.variables["name"])))


async def why_pod(handlers: Handlers, call: Call) -> Response:
    """Answer why a pod waits that is named by its namespace and name."""
    pod = f"{call.variables['namespace']}/{call.variables['pod']}"
    return _json(await _answered(handlers, _question(call, pod)))


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
    return _json(await _answered(handlers, question))


async def page(handlers: Handlers, call: Call) -> Response:
    """Answer with a page for people: a form, and below it why what it names waits, all that waits, or why there is no answer."""
    name = call.query("name").strip()
    try:
        answer = msgspec.json.decode(await _answered(handlers, _question(call, name)), type=Answer)
        body = "".join(_shown(answer))
    except RestError as error:
        body = f"<p role=alert>{escape(error.message)}"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>Why does it wait? - licorne</title><style>{STYLE}</style><main><h1>Why does it wait?</h1>",
        f"<form action=/why><label>Application, ask or pod: <input name=name size=40 value='{escape(name)}'></label>",
        "<button>Ask</button></form>",
        body,
        "<p><a href=/why>All that waits</a> · <a href=/>Index</a></main>",
    ]
    return HTMLResponse("\n".join(parts) + "\n", headers=PAGE_HEADERS)


def _question(call: Call, name: str) -> Question:
    return Question("why", name, call.query("partition"), call.query("prove") != "false", LIMIT_S)


async def _answered(handlers: Handlers, question: Question) -> bytes:
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


# -- as a page -----------------------------------------------------------------------------------------------


def _shown(answer: Answer) -> Iterable[str]:
    match answer:
        case Overview():
            yield f"<p>{counted(answer.waiting, 'ask')} waiting, {counted(answer.running, 'allocation')} running."
            yield _groups(answer.groups) + _unexplained(answer.unexplained)
        case ApplicationAnswer():
            yield f"<h2>Application {escape(answer.application)} in {escape(answer.queue)}</h2>"
            yield f"<p>{escape(answer.state)}: {answer.running:,} running, {answer.waiting:,} waiting."
            if answer.first is None:
                yield f"<p>{escape(answer.sentence)}"
            else:
                yield _groups(answer.groups) + _unexplained(answer.unexplained)
                yield from _ask(answer.first)
        case AskAnswer():
            yield from _ask(answer)
    if answer.age_s is not None:
        yield f"<p>The state that this is about was {answer.age_s:.1f} s old when it was looked at."
    if answer.notes:
        yield "<h2>What the answer rests on</h2><ul>"
        yield "".join(f"<li>{escape(str(note))}" for note in answer.notes) + "</ul>"


def _ask(answer: AskAnswer) -> Iterable[str]:
    yield f"<h2>{escape(answer.pod or answer.key)} in {escape(answer.queue)}: {escape(answer.state)}</h2>"
    yield f"<p><strong>{escape(answer.sentence)}</strong>"
    if answer.chain is None:
        return
    others = [reason.text for reason in answer.chain.reasons if reason.text != answer.sentence]
    yield "".join(f"<p>Also: {escape(text)}" for text in others)
    if answer.proposals is not None:
        yield from _proposals(answer.proposals)
    yield _levels(answer)
    rows = ((why or "nothing", f"{number:,}") for why, number in answer.chain.nodes.items())
    yield "<h3>Nodes, by what keeps it off them</h3>" + _table(("Reason", "Nodes"), rows)


def _proposals(found: Proposals) -> Iterable[str]:
    if found.by_itself:
        yield f"<p>It needs no change: it is placed on {escape(found.node)} within {found.after_s:g} s."
        return
    if found.found:
        yield "<h3>It would run with any one of these</h3><ol>"
        yield "".join(_proposal(each) for each in found.found)
        yield f"</ol><p>Each was tried on a copy, where all else that waits competes ({found.trials} trials)."
    else:
        yield "<p>No change of the configuration or the nodes was found with which it would run."
    if found.untried:
        yield f"<p>The search left out: {escape('; '.join(found.untried))}."


def _proposal(proposal: Proposal) -> str:
    least = "" if proposal.smallest else "; perhaps less would do"
    return f"<li>{escape(proposal.text)} (then it is placed on {escape(proposal.node)}{least})"


def _levels(answer: AskAnswer) -> str:
    assert answer.chain is not None
    bounds = [(level.queue, level.max, level.allocated, level.missing) for level in answer.chain.queues]
    bounds += [
        (f"{limit.kind} {limit.name} at {limit.queue}", limit.max, limit.used, limit.missing)
        for limit in answer.chain.limits
    ]
    rows = [
        (where, name, *_amounts(name, used, most, missing))
        for where, most, used, missing in bounds
        for name in answer.resource
        if most and name in most
    ]
    return "<h3>What it has to pass</h3>" + _table(("Where", "Resource", "Used", "Max", "Missing"), rows)


def _amounts(
    name: str, used: Mapping[str, int], most: Mapping[str, int], missing: Mapping[str, int]
) -> tuple[str, ...]:
    lack = missing.get(name)
    return spoken(name, used.get(name, 0)), spoken(name, most[name]), "" if lack is None else spoken(name, lack)


def _groups(groups: Iterable[Group]) -> str:
    rows = [
        f"<tr><td>{escape(group.summary)}<td>{group.asks:,}<td>{_link(group.application)}<td>{_link(group.pod or group.oldest)}"
        for group in groups
    ]
    head = "<tr><th>Reason<th>Asks<th>For example<th>The oldest"
    return f"<table>{head}{''.join(rows)}</table>" if rows else ""


def _unexplained(asks: int) -> str:
    return f"<p>{counted(asks, 'ask')} more were not looked at in time." if asks else ""


def _link(name: str) -> str:
    return f"<a href='/why?name={quote(name, safe='')}'>{escape(name)}</a>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = "".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{''.join(f'<th>{escape(title)}' for title in head)}{cells}</table>"


__all__ = ["page", "shares", "why", "why_all"]
