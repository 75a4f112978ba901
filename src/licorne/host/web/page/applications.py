"""The views of *applications*: all of them as a table, and one with its story, its pods and its gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from licorne.answers.pods import POD_NAME, POD_NAMESPACE
from licorne.core.base.states import SECOND_NS
from licorne.host.web.rest.errors import refuse
from licorne.si import rest_objects as objects

from .source import ROWS, ApplicationSummary
from .tables import Column, Query, is_within, part, table
from .view import Source, View, chosen, needs

ENDED = frozenset({"Completed", "Failed", "Rejected", "Expired", "Killed"})


def _context(found: tuple[Sequence[ApplicationSummary]], query: Query) -> dict[str, Any]:
    [applications] = found
    states = Counter(each.app.application_state for each in applications)
    amounts = [each.app.used_resource for each in applications]
    waits = [each.app.pending_resource for each in applications]
    types, name = chosen((key for some in (*amounts, *waits) for key in some), query)
    columns = (
        Column[ApplicationSummary]("application", "Application", lambda row: row.app.application_id),
        Column[ApplicationSummary]("state", "State", lambda row: row.app.application_state),
        Column[ApplicationSummary]("queue", "Queue", lambda row: row.app.queue_name),
        Column[ApplicationSummary]("user", "User", lambda row: row.app.user),
        Column[ApplicationSummary]("running", "Pods running", lambda row: row.running, number=True),
        Column[ApplicationSummary]("waiting", "Pods waiting", lambda row: row.waiting, number=True),
        Column[ApplicationSummary](
            "used", "Used", lambda row: row.app.used_resource.get(name, 0), number=True, unit="amount"
        ),
        Column[ApplicationSummary](
            "wanted", "Wanted", lambda row: row.app.pending_resource.get(name, 0), number=True, unit="amount"
        ),
        Column[ApplicationSummary]("submitted", "Submitted", lambda row: row.app.submission_time, number=True),
    )
    return {
        "types": types,
        "resource": name,
        "states": sorted(states.items()),
        "table": table(
            _chosen(applications, query),
            columns,
            query,
            names=lambda row: (row.app.application_id, row.app.queue_name, row.app.user, row.app.application_state),
            sort="-submitted",
        ),
    }


def _chosen(rows: Iterable[ApplicationSummary], query: Query) -> list[ApplicationSummary]:
    """Return the applications of the state, queue and user that the address names; a queue includes those below it."""
    state, queue, user = query["state"], query["queue"], query["user"]
    return [
        row
        for row in rows
        if (not state or row.app.application_state == state)
        and is_within(row.app.queue_name, queue)
        and (not user or row.app.user == user)
    ]


# -- one application -----------------------------------------------------------------------------------------


class _One(NamedTuple):
    app: objects.Application
    running: int
    waiting: int
    now_ns: int


class Stage(NamedTuple):
    """A time for which an application was in a state, with its place on the time line in percent."""

    state: str
    since_ns: int
    seconds: float
    x: str
    width: str


async def _fetch_one(source: Source, partition: str, query: Query) -> _One:
    name = query["name"]
    summaries = await source.applications(partition)
    running, waiting = next(
        ((each.running, each.waiting) for each in summaries if each.app.application_id == name), (0, 0)
    )
    asks, allocations = ((query.number(param) - 1) * ROWS for param in ("waiting", "running"))
    app = await source.application(partition, name, asks, allocations)
    if app is None:
        refuse(404, f"There is no application {name}, or it ended long ago")
    return _One(app, max(running, len(app.allocations)), max(waiting, len(app.requests)), source.now_ns())


def _context_one(found: _One, query: Query) -> dict[str, Any]:
    app = found.app
    return {
        "app": app,
        "stages": _stages(app, found.now_ns),
        "asks": part(app.requests, found.waiting, query, "waiting"),
        "allocations": part(app.allocations, found.running, query, "running"),
        "pod": pod,
        "reason": _reason,
        "ended": app.application_state in ENDED,
    }


def _stages(app: objects.Application, now_ns: int) -> list[Stage]:
    changes = sorted(app.state_log, key=lambda change: change.time)
    if not changes:
        return []
    ended = app.application_state in ENDED
    end = max(changes[-1].time if ended else now_ns, changes[-1].time)
    length = max(end - changes[0].time, 1)
    found = []
    for change, after in zip(changes, (*(later.time for later in changes[1:]), end), strict=True):
        x, width = (change.time - changes[0].time) * 100 / length, (after - change.time) * 100 / length
        since = (after - change.time) / SECOND_NS
        found.append(Stage(change.application_state, change.time, since, f"{x:.2f}%", f"{max(width, 0.3):.2f}%"))
    return found


def pod(item: objects.Ask | objects.Allocation | objects.ForeignAllocation) -> str:
    """Return what an ask or allocation is called."""
    return pod_name(item.allocation_tags, item.allocation_key)


def pod_name(tags: Mapping[str, str], key: str) -> str:
    """Return a pod as NAMESPACE/NAME, or its key where no pod is known."""
    name = tags.get(POD_NAME, "")
    return f"{tags.get(POD_NAMESPACE, '')}/{name}" if name else key


def _reason(ask: objects.Ask) -> str:
    """Return why an ask waits: in licorne's words, or in YuniKorn's."""
    if ask.waiting_reasons:
        return ask.waiting_reasons[0].text
    return max(ask.allocation_log, key=lambda entry: entry.last_occurrence).message if ask.allocation_log else ""


VIEW = View("applications", "Applications", "/applications", needs("applications"), _context, compared=True)
ONE = View("application", "Application", "/application", _fetch_one, _context_one, nav=False, parent="applications")

__all__ = ["ENDED", "ONE", "VIEW", "pod", "pod_name"]
