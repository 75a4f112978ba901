"""The view *why*: why an application, an ask or a pod waits, and what would let it run, ready to copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from licorne.answers.chain import Chain
from licorne.answers.process import Question
from licorne.answers.why import Answer, ApplicationAnswer, AskAnswer, Overview
from licorne.answers.written import who, written
from licorne.host.web.rest.errors import RestError

from .bars import bar, ordered
from .view import Query, Row, Source, View

LIMIT_S = 10.0
"""Seconds for which changes are looked for."""


async def _fetch(source: Source, partition: str, query: Query) -> tuple[bytes, str, int, bool | None]:
    """Return the answer as JSON, the message and status of its error, and whether a follower is there that can answer."""
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
        "proved": [(one, written(one, ask), who(one)) for one in ask.proposals.found] if ask and ask.proposals else [],
        "unexplained": getattr(answer, "unexplained", 0),
    }


def _levels(chain: Chain, wanted: Mapping[str, int]) -> Iterator[Row]:
    """Yield what an ask has to pass, for each type that it wants: what is used there, the max, and what the ask lacks."""
    bounds: list[tuple[str, Any, Any]] = [(each.queue, each, each.allocated) for each in chain.queues]
    bounds += [(f"{each.kind} {each.name} at {each.queue}", each, each.used) for each in chain.limits]
    for where, each, amounts in bounds:
        most = each.max or {}
        for name in ordered(name for name in wanted if name in most):
            used, missing = amounts.get(name, 0), each.missing.get(name, 0)
            drawn = bar(name, used, None, most[name], wanted[name])
            yield Row(
                where=where, queue=each.queue, resource=name, bar=drawn, used=used, max=most[name], missing=missing
            )


VIEW = View("why", "Why", "/why", _fetch, _context, live=False)
