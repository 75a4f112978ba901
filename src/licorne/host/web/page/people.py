"""The view *people*: what users and groups use, the limits that they are nearest to, and what of theirs waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from licorne.si import rest_objects as objects

from .applications import ENDED
from .bars import bar
from .source import Applications, People
from .view import Query, Row, View, chosen, columns, needs, table

COLUMNS = "name {who}, used$, bar- Of the limit, limit$, at At queue, running# Running applications, waiting# Pods waiting, wanted$"


def _context(query: Query, people: People, applications: Applications) -> dict[str, Any]:
    groups = query["kind"] == "groups"
    usages = {user.user_name: user.queues for user in people.users}
    of_group = {app: each.group_name for each in people.groups for app in each.applications}
    if groups:
        usages = {group.group_name: group.queues for group in people.groups}
    waiting, wanted, names = Counter[str](), dict[str, Counter[str]](), dict.fromkeys(usages)
    for each in applications:
        name = of_group.get(each.app.application_id, "") if groups else each.app.user
        if each.app.application_state not in ENDED and (name or not groups):
            waiting[name] += each.waiting
            wanted.setdefault(name, Counter()).update(each.app.pending_resource)
            names.setdefault(name)
    levels = [level for usage in usages.values() for level in _levels(usage)]
    keys = (key for level in levels for key in (*level.resource_usage, *level.max_resources))
    types, name = chosen((*keys, *(key for some in wanted.values() for key in some)), query)
    rows = [_row(each, usages.get(each), name, waiting[each], wanted.get(each, Counter())[name]) for each in names]
    return {
        "types": types,
        "resource": name,
        "groups": groups,
        "limited": people.limited,
        "table": table(rows, columns(COLUMNS.format(who="Group" if groups else "User")), query, "-used"),
    }


def _levels(usage: objects.Usage | None) -> Iterator[objects.Usage]:
    if usage is not None:
        yield usage
        for child in usage.children:
            yield from _levels(child)


def _row(name: str, usage: objects.Usage | None, resource: str, waiting: int, wanted: int) -> Row:
    """Return a user or group, for one type; `limit`: the one of which the largest part is used, and `at` which queue; None: there is none."""
    limits = [
        (level.resource_usage.get(resource, 0), level.max_resources[resource], level.queue_path)
        for level in _levels(usage)
        if resource in level.max_resources
    ]
    used, limit, at = max(limits, key=lambda each: each[0] / each[1] if each[1] else 1.0, default=(0, None, ""))
    return Row(
        name=name,
        used=0 if usage is None else usage.resource_usage.get(resource, 0),
        limit=limit,
        at=at,
        bar=None if limit is None else bar(resource, used, None, limit),
        running=0 if usage is None else len(usage.running_applications),
        waiting=waiting,
        wanted=wanted,
    )


VIEW = View("people", "People", "/people", needs("people", "applications"), _context, compared=True)
