"""The views of what was before: *fairness*, and *decisions*.

Fairness: what queues used of what is guaranteed to them over time, who was below it, and since when. Decisions: allocations and
evictions over time, by queue, and one by one with the state that each was based on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any

from licorne.answers.timeline import Sample, Share
from licorne.core.base.states import SECOND_NS
from licorne.si.messages import NewAllocation, Released

from .applications import pod_name
from .source import Applications
from .view import Query, Row, Source, View, chosen, columns, is_within, table

SHARES = (
    "queue, since#=since_ns Below since, below#=below_s Waited below it, curve- Share of the guarantee, share# Now, "
    "used$=now.used, guaranteed$=now.guaranteed, waiting#=now.waiting"
)
WINDOW_S = 3600.0
WINDOW_MAX_S = 7 * 86_400.0
DRAWN = 6
"""Queues that are drawn together, at most."""
POINTS = 40
"""Points of the small curve in a row, at most."""


async def _fetch_shares(source: Source, partition: str, query: Query) -> tuple[Any, ...]:
    found = await source.timeline(window_of(query))
    return ([], "", partition, False) if found is None else (list(found.samples), found.cut, partition, True)


def window_of(query: Query) -> float:
    """Return of how many seconds before the moment a view tells."""
    return query.seconds("window", WINDOW_MAX_S) or WINDOW_S


def _fairness(query: Query, samples: Sequence[Sample], cut: str, partition: str, known: bool) -> dict[str, Any]:
    keys = {key for sample in samples for key in sample.keys if key[0] == partition}
    types, name = chosen((key[2] for key in keys), query)
    path = query["queue"]
    queues = sorted(queue for _, queue, type_ in keys if type_ == name and is_within(queue, path))
    by_time = [(sample.time_ns, dict(sample.shares())) for sample in samples]
    rows = [_row(queue, [(at, shares.get((partition, queue, name))) for at, shares in by_time]) for queue in queues]
    drawn = sorted(rows, key=lambda row: (-row.below_s, -row.now.guaranteed))[:DRAWN]
    series = [{"label": row.queue, "values": row.shares} for row in drawn]
    plot = {"times": [at // SECOND_NS for at, _ in by_time], "unit": "%", "series": series}
    return {
        "types": types,
        "resource": name,
        "table": table(rows, columns(SHARES, share=lambda row: _ratio(row.now)), query, "-below"),
        "plot": plot if drawn and len(by_time) > 1 else None,
        "since_ns": by_time[0][0] if by_time else 0,
        "until_ns": by_time[-1][0] if by_time else 0,
        "cut": cut,
        "known": known,
        "window": window_of(query),
        "ratio": _ratio,
    }


def _row(queue: str, shares: list[tuple[int, Share | None]]) -> Row:
    """Return a queue with its shares of one type; `below_s`: how long it waited below its guarantee, `since_ns`: since when it does; 0: it does not."""

    def below(share: Share | None) -> bool:
        return share is not None and share.used < share.guaranteed and share.waiting > 0

    below_ns = sum(later - at for (at, share), (later, _) in pairwise(shares) if below(share))
    since = list(takewhile(lambda pair: below(pair[1]), reversed(shares)))
    ratios = [None if share is None else _ratio(share) for _, share in shares]
    steps = max(len(ratios) - 1, 1)
    shown = range(0, len(ratios), max(len(ratios) // POINTS, 1))
    curve = " ".join(f"{at * 100 / steps:.0f},{22 - 10 * min(ratios[at] or 0, 2):.0f}" for at in shown)
    percents = [None if ratio is None else round(ratio * 100) for ratio in ratios]
    now = shares[-1][1] or Share(0, 0, 0)
    since_ns = since[-1][0] if since else 0
    return Row(queue=queue, now=now, below_s=below_ns / SECOND_NS, since_ns=since_ns, curve=curve, shares=percents)


def _ratio(share: Share) -> float | None:
    return share.used / share.guaranteed if share.guaranteed else None


FAIRNESS = View("fairness", "Fairness", "/fairness", _fetch_shares, _fairness)


# -- decisions -----------------------------------------------------------------------------------------------

MADE = "time#=time_ns, kind What, pod, application, queue, node"
BUCKETS = 60
Decision = tuple[int, NewAllocation | Released]


async def _fetch_decisions(source: Source, partition: str, query: Query) -> tuple[Any, ...]:
    found = await source.timeline(window_of(query))
    if found is None:
        return [], "", [], False, False
    some = [(at_ns, said) for at_ns, said in found.decisions if said.partition == partition]
    return some, found.cut, await source.applications(partition), True, source.span is not None


def _decisions(
    query: Query, decisions: Sequence[Decision], cut: str, applications: Applications, known: bool, recorded: bool
) -> dict[str, Any]:
    rows = list(_rows(decisions, applications, recorded))
    path, kind = query["queue"], query["kind"]
    some = [row for row in rows if is_within(row.queue, path) and kind in ("", row.kind)]
    counts = Counter((row.queue, row.kind) for row in rows)
    queues = [(queue, counts[queue, "allocated"], counts[queue, "evicted"]) for queue in {queue for queue, _ in counts}]
    return {
        "table": table(some, columns(MADE), query, "-time"),
        "queues": sorted(queues, key=lambda row: (-row[2], -row[1], row[0]))[:20],
        "queues_all": len(queues),
        "plot": _plot(some),
        "cut": cut,
        "known": known,
        "recorded": recorded,
        "window": window_of(query),
        "since_ns": min((row.time_ns for row in rows), default=0),
    }


def _rows(found: Sequence[Decision], applications: Applications, recorded: bool) -> Iterator[Row]:
    """Yield the decisions; `before`: the moment just before one, as addresses name it; empty: there is no recording."""
    queue_of = {each.app.application_id: each.app.queue_name for each in applications}
    for at_ns, said in found:
        before = f"{(at_ns - 1) // SECOND_NS}.{(at_ns - 1) % SECOND_NS:09d}" if recorded else ""
        made = {"time_ns": at_ns, "application": said.application_id, "before": before}
        if isinstance(said, NewAllocation):
            name = pod_name(said.tags or {}, said.key)
            yield Row(**made, kind="allocated", pod=name, queue=said.queue, node=said.node_id, why="")
        else:
            queue = queue_of.get(said.application_id, "")
            yield Row(**made, kind="evicted", pod=said.key, queue=queue, node="", why=said.message)


def _plot(rows: Sequence[Row]) -> dict[str, Any] | None:
    times_ns = [row.time_ns for row in rows] or [0]
    first, last = min(times_ns), max(times_ns)
    width = max((last - first) // BUCKETS, SECOND_NS)
    counts = Counter(((row.time_ns - first) // width, row.kind) for row in rows)
    length = (last - first) // width + 1
    if length < 2:
        return None
    series = [
        {"label": kind, "kind": colour, "values": [counts[at, kind] for at in range(length)]}
        for kind, colour in (("allocated", "guaranteed"), ("evicted", "refused"))
    ]
    times = [(first + at * width) // SECOND_NS for at in range(length)]
    return {"times": times, "unit": "", "series": series, "bars": True}


DECISIONS = View("decisions", "Decisions", "/decisions", _fetch_decisions, _decisions)
