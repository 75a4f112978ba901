"""The view *why*: why an application, an ask or a pod waits, and what would let it run, ready to copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import yaml

from licorne.answers import changes
from licorne.answers.chain import Chain
from licorne.answers.process import Question
from licorne.answers.proposals import Proposal
from licorne.answers.why import Answer, ApplicationAnswer, AskAnswer, Overview
from licorne.config.quantity import spoken
from licorne.host.web.rest.errors import RestError

from .bars import Bar, bar, ordered
from .source import Source
from .tables import Query
from .view import View

LIMIT_S = 10.0
"""Seconds for which changes are looked for."""


class _Asked(NamedTuple):
    """The answer, or why there is none."""

    answer: bytes
    fault: str
    status: int
    follows: bool | None


class Level(NamedTuple):
    """Something that an ask has to pass, for one type: what is used there, the max, and what the ask lacks."""

    where: str
    queue: str
    resource: str
    bar: Bar
    used: int
    max: int
    missing: int


class Written(NamedTuple):
    """A change as it is made: a part of the configuration, or commands. `numbers`: where, before and after, by type."""

    kind: str
    text: str
    numbers: tuple[tuple[str, str, int, int], ...] = ()


class Proved(NamedTuple):
    """A proposal, and how its changes are written."""

    proposal: Proposal
    written: tuple[Written, ...]


async def _fetch(source: Source, partition: str, query: Query) -> _Asked:
    question = Question("why", query["name"].strip(), partition, query["prove"] != "false", LIMIT_S)
    follows = (await source.figures()).follows
    try:
        return _Asked(await source.answer(question), "", 200, follows)
    except RestError as error:
        return _Asked(b"", error.message, error.status, follows)


def _context(found: _Asked, query: Query) -> dict[str, Any]:
    answer = msgspec.json.decode(found.answer, type=Answer) if found.answer else None
    ask = answer.first if isinstance(answer, ApplicationAnswer) else answer if isinstance(answer, AskAnswer) else None
    groups = answer.groups if isinstance(answer, Overview | ApplicationAnswer) else ()
    return {
        "name": query["name"].strip(),
        "fault": found.fault,
        "status": found.status,
        "follows": found.follows,
        "answer": answer,
        "overview": answer if isinstance(answer, Overview) else None,
        "application": answer if isinstance(answer, ApplicationAnswer) else None,
        "ask": ask,
        "groups": groups,
        "levels": [] if ask is None or ask.chain is None else list(_levels(ask.chain, ask.resource)),
        "proved": []
        if ask is None or ask.proposals is None
        else [Proved(each, written(each, ask)) for each in ask.proposals.found],
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


# -- changes as they are written ------------------------------------------------------------------------------


def written(proposal: Proposal, ask: AskAnswer) -> tuple[Written, ...]:
    """Return the changes of a proposal that are parts of the configuration, or commands."""
    found = (_one_written(change, ask, ask.partition) for change in proposal.changes)
    return tuple(each for each in found if each is not None)


def _one_written(change: changes.Change, ask: AskAnswer, partition: str) -> Written | None:
    """Return a change as a part of the configuration or as a command; None if it is neither."""
    assert ask.chain is not None
    match change:
        case changes.QueueMax(queue=path, more=more, dynamic=False):
            level = next((each for each in ask.chain.queues if each.queue == path), None)
            before = dict(level.max or {}) if level is not None else {}
            after = {name: before.get(name, 0) + amount for name, amount in more.items()}
            own = {"resources": {"max": {name: _quantity(name, value) for name, value in after.items()}}}
            numbers = tuple((path, name, before.get(name, 0), value) for name, value in after.items())
            return Written("queues.yaml", _yaml(partition, path, own), numbers)
        case changes.LimitMax(kind=kind, name=name, queue=path, more=more, wildcard=wildcard):
            limit = next((e for e in ask.chain.limits if (e.kind, e.name, e.queue) == (kind, name, path)), None)
            before = dict(limit.max or {}) if limit is not None else {}
            after = {each: before.get(each, 0) + amount for each, amount in more.items()}
            who = "*" if wildcard else name
            limits: dict[str, Any] = {
                "limits": [
                    {
                        "limit": who,
                        f"{kind}s": [who],
                        "maxresources": {each: _quantity(each, value) for each, value in after.items()},
                    }
                ]
            }
            where = f"{kind} {who} at {path}"
            numbers = tuple((where, each, before.get(each, 0), value) for each, value in after.items())
            return Written("queues.yaml", _yaml(partition, path, limits), numbers)
        case changes.MaxApplications(queue=path, more=more, kind="queue", dynamic=False):
            level = next((each for each in ask.chain.queues if each.queue == path), None)
            was = level.max_applications if level is not None else 0
            return Written(
                "queues.yaml",
                _yaml(partition, path, {"maxapplications": was + more}),
                ((path, "applications", was, was + more),),
            )
        case changes.Schedulable(node=node):
            return Written("command", f"kubectl uncordon {shlex.quote(node)}")
        case changes.NoTaint(node=node, taint=taint):
            return Written("command", f"kubectl taint nodes {shlex.quote(node)} {shlex.quote(f'{taint}-')}")
    return None


def _quantity(name: str, value: int) -> int | str:
    """Return an amount as people write it in a configuration: without quotes where it is a number."""
    text = spoken(name, value)
    return int(text) if text.isdigit() else text


def _yaml(partition: str, path: str, own: dict[str, Any]) -> str:
    """Return a part of queues.yaml: the way to a queue, and what of it changes."""
    inner: dict[str, Any] = {}
    for name in reversed(path.split(".")):
        inner = {"name": name, **(own if not inner else {"queues": [inner]})}
    found = {"partitions": [{"name": partition, "queues": [inner]}]}
    text: str = yaml.safe_dump(found, sort_keys=False, default_flow_style=False, width=1000, allow_unicode=True)
    return text


VIEW = View("why", "Why", "/why", _fetch, _context)

__all__ = ["VIEW", "written"]
