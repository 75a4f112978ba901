"""The view *why*: why an application, an ask or a pod waits, and what would let it run, ready to copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from licorne.answers.chain import Chain
from licorne.answers.process import Question
from licorne.answers.why import Answer, ApplicationAnswer, AskAnswer, Overview
from licorne.answers.written import written
from licorne.host.web.rest.errors import RestError

from .bars import Bar, bar, ordered
from .tables import Query
from .view import Source, View

LIMIT_S = 10.0
"""Seconds for which changes are looked for."""


class Level(NamedTuple):
    """Something that an ask has to pass, for one type: what is used there, the max, and what the ask lacks."""

    where: str
    queue: str
    resource: str
    bar: Bar
    used: int
    max: int
    missing: int


async def _fetch(source: Source, partition: str, query: Query) -> tuple[bytes, str, int, bool | None]:
    """Return the answer, or why there is none, with its status, and whether a process follows this one."""
    question = Question("why", query["name"].strip(), partition, query["prove"] != "false", LIMIT_S)
    follows = (await source.figures(partition)).follows
    try:
        return await source.answer(question), "", 200, follows
    except RestError as error:
        return b"", error.message, error.status, follows


def _context(query: Query, found: bytes, fault: str, status: int, follows: bool | None) -> dict[str, Any]:
    answer = msgspec.json.decode(found, type=Answer) if found else None
    ask = answer.first if isinstance(answer, ApplicationAnswer) else answer if isinstance(answer, AskAnswer) else None
    return {
        "name": query["name"].strip(),
        "fault": fault,
        "status": status,
        "follows": follows,
        "answer": answer,
        "overview": answer if isinstance(answer, Overview) else None,
        "application": answer if isinstance(answer, ApplicationAnswer) else None,
        "ask": ask,
        "groups": getattr(answer, "groups", ()),
        "levels": list(_levels(ask.chain, ask.resource)) if ask and ask.chain else [],
        "proved": [(each, written(each, ask)) for each in ask.proposals.found] if ask and ask.proposals else [],
        "unexplained": getattr(answer, "unexplained", 0),
    }


def _levels(chain: Chain, wanted: Mapping[str, int]) -> Iterator[Level]:
    bounds = [(level.queue, level.queue, level.max, level.allocated, level.missing) for level in chain.queues]
    bounds += [
        (f"{limit.kind} {limit.name} at {limit.queue}", limit.queue, limit.max, limit.used, limit.missing)
        for limit in chain.limits
    ]
    for where, queue, most, used, missing in bounds:
        for name in ordered(name for name in wanted if most and name in most):
            assert most is not None
            drawn = bar(name, used.get(name, 0), None, most[name], wanted[name])
            yield Level(where, queue, name, drawn, used.get(name, 0), most[name], missing.get(name, 0))


VIEW = View("why", "Why", "/why", _fetch, _context, live=False)
