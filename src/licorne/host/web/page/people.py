"""The view *people*: what users and groups use, the limits that they are nearest to, and what of theirs waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from licorne.si import rest_objects as objects

from .applications import ENDED
from .bars import Bar, bar
from .source import ApplicationSummary, People
from .tables import Column, Query, table
from .view import View, chosen, needs


class Limit(NamedTuple):
    """A limit of a user or group at a queue, and what is used there of one type."""

    queue: str
    used: int
    limit: int


class Row(NamedTuple):
    """A user or group, for one type of resource. `limit`: the one of which the largest part is used; None: there is none."""

    name: str
    used: int
    limit: Limit | None
    bar: Bar | None
    running: int
    waiting: int
    wanted: int


def _context(found: tuple[People, Sequence[ApplicationSummary]], query: Query) -> dict[str, Any]:
    people, applications = found
    groups = query["kind"] == "groups"
    usages = {each.group_name: each.queues for each in people.groups} if groups else {}
    if not groups:
        usages = {each.user_name: each.queues for each in people.users}
    live = [each for each in applications if each.app.application_state not in ENDED]
    of_group = {app: each.group_name for each in people.groups for app in each.applications}
    waiting, wanted, names = Counter[str](), dict[str, Counter[str]](), dict.fromkeys(usages)
    for each in live:
        name = of_group.get(each.app.application_id, "") if groups else each.app.user
        if name or not groups:
            waiting[name] += each.waiting
            wanted.setdefault(name, Counter()).update(each.app.pending_resource)
            names.setdefault(name)
    levels = [level for usage in usages.values() if usage is not None for level in _levels(usage)]
    keys = (key for level in levels for key in (*level.resource_usage, *level.max_resources))
    types, name = chosen((*keys, *(key for some in wanted.values() for key in some)), query)
    rows = [_row(each, usages.get(each), name, waiting[each], wanted.get(each, Counter())[name]) for each in names]
    columns = (
        Column[Row]("name", "Group" if groups else "User", lambda row: row.name),
        Column[Row]("used", "Used", lambda row: row.used, number=True, unit="amount"),
        Column[Row]("", "Of the limit"),
        Column[Row]("limit", "Limit", lambda row: row.limit.limit if row.limit else -1, number=True, unit="amount"),
        Column[Row]("at", "At queue", lambda row: row.limit.queue if row.limit else ""),
        Column[Row]("running", "Running applications", lambda row: row.running, number=True),
        Column[Row]("waiting", "Pods waiting", lambda row: row.waiting, number=True),
        Column[Row]("wanted", "Wanted", lambda row: row.wanted, number=True, unit="amount"),
    )
    return {
        "types": types,
        "resource": name,
        "groups": groups,
        "limited": people.limited,
        "table": table(rows, columns, query, names=lambda row: (row.name,), sort="-used"),
    }


def _levels(usage: objects.Usage) -> Iterator[objects.Usage]:
    yield usage
    for child in usage.children:
        yield from _levels(child)


def _row(name: str, usage: objects.Usage | None, resource: str, waiting: int, wanted: int) -> Row:
    limits = [
        Limit(level.queue_path, level.resource_usage.get(resource, 0), level.max_resources[resource])
        for level in (_levels(usage) if usage is not None else ())
        if resource in level.max_resources
    ]
    nearest = max(limits, key=lambda limit: limit.used / limit.limit if limit.limit else 1.0, default=None)
    return Row(
        name=name,
        used=0 if usage is None else usage.resource_usage.get(resource, 0),
        limit=nearest,
        bar=None if nearest is None else bar(resource, nearest.used, None, nearest.limit),
        running=0 if usage is None else len(usage.running_applications),
        waiting=waiting,
        wanted=wanted,
    )


VIEW = View("people", "People", "/people", needs("people", "applications"), _context, compared=True)

__all__ = ["VIEW"]
