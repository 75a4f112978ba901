"""The view *decisions*: allocations and evictions over time, by queue, and one by one with the state that each was based on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from licorne.core.base.states import SECOND_NS
from licorne.si.messages import NewAllocation, Released

from .applications import pod_name
from .fairness import window_of
from .source import ApplicationSummary
from .tables import Query, columns, is_within, table
from .view import Source, View

BUCKETS = 60
COLUMNS = "time#=time_ns, kind What, pod, application, queue, node"
Decision = tuple[int, NewAllocation | Released]


class Row(NamedTuple):
    """A decision. `before`: the moment just before it, as addresses name it; empty: there is no recording."""

    time_ns: int
    kind: str
    pod: str
    application: str
    queue: str
    node: str
    why: str
    before: str


async def _fetch(source: Source, partition: str, query: Query) -> tuple[Any, ...]:
    found = await source.timeline(window_of(query))
    if found is None:
        return [], "", [], False, False
    some = [(at_ns, said) for at_ns, said in found.decisions if said.partition == partition]
    return some, found.cut, await source.applications(partition), True, source.span is not None


def _context(
    query: Query,
    decisions: Sequence[Decision],
    cut: str,
    applications: Sequence[ApplicationSummary],
    known: bool,
    recorded: bool,
) -> dict[str, Any]:
    rows = list(_rows(decisions, applications, recorded))
    path, kind = query["queue"], query["kind"]
    some = [row for row in rows if is_within(row.queue, path) and kind in ("", row.kind)]
    counts = Counter((row.queue, row.kind) for row in rows)
    queues = [(queue, counts[queue, "allocated"], counts[queue, "evicted"]) for queue in {queue for queue, _ in counts}]
    return {
        "table": table(some, columns(COLUMNS), query, "-time"),
        "queues": sorted(queues, key=lambda row: (-row[2], -row[1], row[0]))[:20],
        "queues_all": len(queues),
        "plot": _plot(some),
        "cut": cut,
        "known": known,
        "recorded": recorded,
        "window": window_of(query),
        "since_ns": min((row.time_ns for row in rows), default=0),
    }


def _rows(found: Sequence[Decision], applications: Sequence[ApplicationSummary], recorded: bool) -> Iterator[Row]:
    queue_of = {each.app.application_id: each.app.queue_name for each in applications}
    for at_ns, said in found:
        before = f"{(at_ns - 1) // SECOND_NS}.{(at_ns - 1) % SECOND_NS:09d}" if recorded else ""
        app = said.application_id
        if isinstance(said, NewAllocation):
            name = pod_name(said.tags or {}, said.key)
            yield Row(at_ns, "allocated", name, app, said.queue, said.node_id, "", before)
        else:
            yield Row(at_ns, "evicted", said.key, app, queue_of.get(app, ""), "", said.message, before)


def _plot(rows: Sequence[Row]) -> str:
    times_ns = [row.time_ns for row in rows] or [0]
    first, last = min(times_ns), max(times_ns)
    width = max((last - first) // BUCKETS, SECOND_NS)
    counts = Counter(((row.time_ns - first) // width, row.kind) for row in rows)
    length = (last - first) // width + 1
    if length < 2:
        return ""
    series = [
        {"label": kind, "kind": colour, "values": [counts[at, kind] for at in range(length)]}
        for kind, colour in (("allocated", "guaranteed"), ("evicted", "refused"))
    ]
    times = [(first + at * width) // SECOND_NS for at in range(length)]
    return msgspec.json.encode({"times": times, "unit": "", "series": series, "bars": True}).decode()


VIEW = View("decisions", "Decisions", "/decisions", _fetch, _context)
