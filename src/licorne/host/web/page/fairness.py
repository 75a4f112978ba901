"""The view *fairness*: what queues used of what is guaranteed to them over time, who was below it, and since when."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import msgspec

from licorne.answers.timeline import Sample, Share
from licorne.core.base.states import SECOND_NS

from .tables import Query, columns, is_within, table
from .view import Source, View, chosen

COLUMNS = (
    "queue, curve- Share of the guarantee, share# Now, used$=now.used, guaranteed$=now.guaranteed, waiting#=now.waiting, "
    "below#=below_s Waited below it, since#=since_ns Below since"
)
WINDOW_S = 3600.0
WINDOW_MAX_S = 7 * 86_400.0
DRAWN = 6
"""Queues that are drawn together, at most."""
POINTS = 40
"""Points of the small curve in a row, at most."""


class Row(NamedTuple):
    """A queue with its shares of one type, sample by sample; `below_s`: how long it waited below its guarantee, `since_ns`: since when it does; 0: it does not."""

    queue: str
    now: Share
    below_s: float
    since_ns: int
    curve: str
    shares: list[int | None]


async def _fetch(source: Source, partition: str, query: Query) -> tuple[Any, ...]:
    found = await source.timeline(window_of(query))
    return ([], "", partition, False) if found is None else (list(found.samples), found.cut, partition, True)


def window_of(query: Query) -> float:
    """Return of how many seconds before the moment a view tells."""
    return query.seconds("window", WINDOW_MAX_S) or WINDOW_S


def _context(query: Query, samples: Sequence[Sample], cut: str, partition: str, known: bool) -> dict[str, Any]:
    keys = {key for sample in samples for key in sample.keys if key[0] == partition}
    types, name = chosen((key[2] for key in keys), query)
    path = query["queue"]
    queues = sorted(queue for _, queue, type_ in keys if type_ == name and is_within(queue, path))
    by_time = [(sample.time_ns, dict(sample.shares())) for sample in samples]
    rows = [_row(queue, [(at, shares.get((partition, queue, name))) for at, shares in by_time]) for queue in queues]
    drawn = sorted(rows, key=lambda row: (-row.below_s, -row.now.guaranteed))[:DRAWN]
    plot = {
        "times": [at // SECOND_NS for at, _ in by_time],
        "unit": "%",
        "series": [{"label": row.queue, "values": row.shares} for row in drawn],
    }
    return {
        "types": types,
        "resource": name,
        "table": table(rows, columns(COLUMNS, share=lambda row: _ratio(row.now)), query, "-below"),
        "plot": msgspec.json.encode(plot).decode() if drawn and len(by_time) > 1 else "",
        "since_ns": by_time[0][0] if by_time else 0,
        "until_ns": by_time[-1][0] if by_time else 0,
        "cut": cut,
        "known": known,
        "window": window_of(query),
        "ratio": _ratio,
    }


def _row(queue: str, shares: list[tuple[int, Share | None]]) -> Row:
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
    return Row(queue, now, below_ns / SECOND_NS, since[-1][0] if since else 0, curve, percents)


def _ratio(share: Share) -> float | None:
    return share.used / share.guaranteed if share.guaranteed else None


VIEW = View("fairness", "Fairness", "/fairness", _fetch, _context)
