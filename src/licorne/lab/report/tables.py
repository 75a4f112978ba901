"""The rows of a report: what its files have, as numbers, and what stands behind its pictures on the page, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from licorne.lab.report.figures import (
    Figures,
    ModelOverTime,
    PodTimes,
    QueueOverTime,
    ResourceOverTime,
    Shortfall,
    Spread,
    Values,
)
from licorne.workload.quantities import amount, duration

ROWS_MAX = 25
"""Most rows of a table over time on the page: neighbouring bins are joined."""
Columns = Sequence[tuple[str, Any]]
"""The names and types of columns."""
Cells = Iterable[tuple[Any, ...]]
"""The values of rows, in the order of their columns."""


def columns_of(kind: type[msgspec.Struct]) -> Columns:
    """Return the columns of a class of figures: its fields, where a list over time becomes one value."""
    return [(name, float | None if hint == Values else hint) for name, hint in get_type_hints(kind).items()]


def _over_time(figures: Figures, parts: Cells) -> Cells:
    """Yield a row for each bin of each part: when it begins, and what the part has then, of a list over time the value."""
    starts = [round(figures.start_s + index * figures.bin_s, 6) for index in range(figures.bins)]
    for part in parts:
        yield from zip(starts, *(each if isinstance(each, list) else repeat(each) for each in part), strict=False)


def _fields(items: Iterable[msgspec.Struct]) -> Cells:
    return map(msgspec.structs.astuple, items)


def _moments(figures: Figures) -> tuple[Values, ...]:
    nothing: Values = [None] * figures.bins
    found = figures.fragmentation
    shares = (nothing, nothing) if found is None else (found.of_capacity, found.of_idle)
    return (figures.pending_asks, figures.held_asks, figures.evenness, *shares)


def _times(figures: Figures) -> Cells:
    groups = (("all", [figures.everything]), ("queue", figures.by_queue), ("user", figures.by_user))
    for by, rows in groups:
        for row in rows:
            for what in ("waiting_s", "completion_s", "slowdown"):
                counts = (row.pods, row.never_placed, row.not_completed)
                yield by, row.name, what, *counts, *msgspec.structs.astuple(getattr(row, what))[:-1]


_TIME: Final = ("time_s", float)
_MOMENTS: Final = ("pending_asks", "held_asks", "evenness", "fragmented_of_capacity", "fragmented_of_idle")
_WHOSE: Final = (("by", str), ("name", str), ("what", str))
_COUNTS: Final = (("pods", int), ("never_placed", int), ("not_completed", int))

FILES: Final[dict[str, tuple[Columns, Callable[[Figures], Cells]]]] = {
    "cluster": ((_TIME, *columns_of(ResourceOverTime)), lambda run: _over_time(run, _fields(run.cluster))),
    "queues": ((_TIME, *columns_of(QueueOverTime)), lambda run: _over_time(run, _fields(run.queues))),
    "over-time": ((_TIME, *((name, float | None) for name in _MOMENTS)), lambda run: _over_time(run, [_moments(run)])),
    "nodes": (  # more than `above` and up to `up_to` of a node is used; both 0: nothing is
        (_TIME, ("above", float), ("up_to", float), ("nodes", float | None)),
        lambda run: _over_time(run, ((max(i - 1, 0) / 10, i / 10, each) for i, each in enumerate(run.nodes.classes))),
    ),
    "devices": ((_TIME, *columns_of(ModelOverTime)), lambda run: _over_time(run, _fields(run.devices))),
    "times": ((*_WHOSE, *_COUNTS, *columns_of(Spread)[:-1]), _times),
    "guarantees": (columns_of(Shortfall), lambda run: _fields(run.shortfalls)),
}
"""The files of rows: their columns after `run`, and the rows of a simulation."""


class Table(NamedTuple):
    """A table of the page: a caption, titles of columns, and cells as text. Titles with a `<` before are of names."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def by_run(
    runs: Sequence[Figures],
    caption: str,
    titles: Sequence[str],
    rows: Callable[[Figures], Iterable[Any]],
    cells: Callable[[Any], Sequence[str]],
) -> Table:
    """Return a table of rows of each simulation as `cells` writes them, and in front of them the simulation if there are several."""
    first = ("<run",) if len(runs) > 1 else ()
    written = [[*([figures.label] if first else ()), *cells(row)] for figures in runs for row in rows(figures)]
    return Table(caption, (*first, *titles), written)


def percent(value: float | None) -> str:
    """Format a share."""
    return "–" if value is None else f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Format a number: without decimals from 100 on."""
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.2f}"


def over_time(
    runs: Sequence[Figures],
    caption: str,
    columns: Callable[[Figures], Sequence[tuple[str, Values, Callable[[float | None], str]]]],
) -> list[Table]:
    """Return a table over time for each simulation; `columns` returns title, values and format of each column."""
    found: list[Table] = []
    for figures in runs:
        chosen = columns(figures)
        joined = -(-figures.bins // ROWS_MAX)
        rows: list[list[str]] = []
        for at in range(0, figures.bins, joined):
            begins = duration(at * figures.bin_s)
            rows.append([begins, *(shown(mean(values[at : at + joined])) for _, values, shown in chosen)])
        each = duration(joined * figures.bin_s)
        label = f"{figures.label}: " if len(runs) > 1 else ""
        table = Table(f"{label}{caption}, means of {each}", ("<from", *(name for name, _, _ in chosen)), rows)
        found.append(table)
    return found


def mean(values: Values) -> float | None:
    """Return the mean of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def shares(part: Values, whole: Values) -> Values:
    """Return one list over time as a share of another."""
    return [a / b if a is not None and b else None for a, b in zip(part, whole, strict=True)]


def amounts(resource: str) -> Callable[[float | None], str]:
    """Return what formats amounts of a resource."""
    return lambda value: "–" if value is None else amount(resource, value)


def spread_table(runs: Sequence[Figures], caption: str, by: str, what: str, *, seconds: bool) -> Table:
    """Return a table of the times of pods by queue or user, the simulations below each other."""
    shown: Callable[[float], str] = duration if seconds else (lambda value: f"{value:,.2f}")

    def cells(row: PodTimes) -> list[str]:
        spread: Spread = getattr(row, what)
        values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.most)
        missing = row.never_placed if what == "waiting_s" else row.not_completed
        times = [shown(value) if spread.number else "–" for value in values]
        return [row.name or "(none)", f"{spread.number:,}", f"{missing:,}", *times]

    lacking = "never placed" if what == "waiting_s" else "not completed"
    name = "<queue" if by == "by_queue" else "<user"
    titles = (name, "pods", lacking, "mean", "median", "p95", "p99", "longest" if seconds else "most")
    return by_run(runs, caption, titles, lambda figures: (*getattr(figures, by), figures.everything), cells)
