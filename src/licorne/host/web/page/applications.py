"""The views of *applications*: all of them as a table, and one with its story, its pods and its gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from licorne.answers.pods import POD_NAME, POD_NAMESPACE
from licorne.host.web.rest.errors import refuse
from licorne.si import rest_objects as objects

from .source import ROWS, Applications, ApplicationSummary
from .view import Query, Row, Source, View, chosen, columns, is_within, needs, part, table

ENDED = frozenset({"Completed", "Failed", "Rejected", "Expired", "Killed"})
COLUMNS = (
    "application=app.application_id, state=app.application_state, queue=app.queue_name, user=app.user, running# Pods running, "
    "waiting# Pods waiting, used$=app.used_resource, wanted$=app.pending_resource, submitted#=app.submission_time"
)


def _context(query: Query, applications: Applications) -> dict[str, Any]:
    amounts = [some for each in applications for some in (each.app.used_resource, each.app.pending_resource)]
    types, name = chosen((key for some in amounts for key in some), query)
    state, queue, user = query["state"], query["queue"], query["user"]
    rows = [
        row
        for row in applications
        if state in ("", row.app.application_state)
        and is_within(row.app.queue_name, queue)
        and user in ("", row.app.user)
    ]
    return {
        "types": types,
        "resource": name,
        "states": sorted(Counter(each.app.application_state for each in applications).items()),
        "table": table(rows, columns(COLUMNS, name), query, "-submitted"),
    }


# -- one application -----------------------------------------------------------------------------------------


async def _fetch_one(source: Source, partition: str, query: Query) -> tuple[ApplicationSummary, int]:
    asks, allocations = ((query.number(param) - 1) * ROWS for param in ("waiting", "running"))
    found = await source.application(partition, query["name"], asks, allocations)
    return found or refuse(404, f"There is no application {query['name']}, or it ended long ago"), source.now_ns()


def _context_one(query: Query, found: ApplicationSummary, now_ns: int) -> dict[str, Any]:
    app, running, waiting = found
    ended = app.application_state in ENDED
    return {
        "app": app,
        "stages": _stages(app, None if ended else now_ns),
        "asks": part(app.requests, waiting, query, "waiting"),
        "allocations": part(app.allocations, running, query, "running"),
        "pod": pod,
        "reason": _reason,
        "ended": ended,
    }


def _stages(app: objects.Application, now_ns: int | None) -> list[Row]:
    """Return for which times an application was in which state, until a time or until it ended."""
    log = sorted((change.time, change.application_state) for change in app.state_log)
    ends = [at for at, _ in log[1:]] + [max(log[-1][0], now_ns or 0) if log else 0]
    return [Row(state=state, since_ns=at, until_ns=after) for (at, state), after in zip(log, ends, strict=False)]


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
