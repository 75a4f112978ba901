"""The rows of a report: what its files have, as numbers, and what stands behind its pictures on the page, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from licorne.lab.report.figures import Figures, NeverPlaced, PodTimes, Values
from licorne.workload.quantities import amount, duration

ROWS_MAX = 25
"""Most rows of a table over time on the page: neighbouring bins are joined."""


class ClusterRow(msgspec.Struct, frozen=True):
    """A resource of the cluster over a bin that begins at `time_s`."""

    run: str
    time_s: float
    resource: str
    capacity: float | None
    used: float | None
    pending: float | None


class QueueRow(msgspec.Struct, frozen=True):
    """A resource of a queue and all below it over a bin that begins at `time_s`."""

    run: str
    time_s: float
    queue: str
    resource: str
    used: float | None
    pending: float | None
    guaranteed: float | None
    max: float | None


class MomentRow(msgspec.Struct, frozen=True):
    """What there is one number of, over a bin that begins at `time_s`; shares are fractions of 1."""

    run: str
    time_s: float
    pending_asks: float | None
    held_asks: float | None
    evenness: float | None
    fragmented_of_capacity: float | None
    fragmented_of_idle: float | None


class NodesRow(msgspec.Struct, frozen=True):
    """How many nodes are used by more than `above` and up to `up_to` of them, over a bin; both 0: not at all."""

    run: str
    time_s: float
    above: float
    up_to: float
    nodes: float | None


class DevicesRow(msgspec.Struct, frozen=True):
    """The devices of a model over a bin that begins at `time_s`; `used` in thousandths of a device."""

    run: str
    time_s: float
    model: str
    devices: float | None
    untouched: float | None
    partly: float | None
    full: float | None
    used: float | None


class TimesRow(msgspec.Struct, frozen=True):
    """Waiting, completion (seconds) and bounded slowdown of the pods of a queue, of a user, or of all (`by`)."""

    run: str
    by: str
    name: str
    what: str
    pods: int
    never_placed: int
    not_completed: int
    number: int
    mean: float
    p50: float
    p95: float
    p99: float
    most: float


class ShortfallRow(msgspec.Struct, frozen=True):
    """How far a queue was below its guarantee of a resource while it had demand."""

    run: str
    queue: str
    resource: str
    guaranteed: int
    demand_s: float
    short_s: float
    mean: float
    most: int
    lost: float


class NeverPlacedRow(msgspec.Struct, frozen=True):
    """An ask that was never placed, and why."""

    run: str
    key: str
    application: str
    queue: str
    user: str
    reason: str
    pods: int


def _starts(figures: Figures) -> list[float]:
    return [round(figures.start_s + index * figures.bin_s, 6) for index in range(figures.bins)]


def cluster(figures: Figures) -> Iterator[ClusterRow]:
    """Yield the rows of the cluster."""
    for row in figures.cluster:
        for at_s, *values in zip(_starts(figures), row.capacity, row.used, row.pending, strict=True):
            yield ClusterRow(figures.label, at_s, row.resource, *values)


def queues(figures: Figures) -> Iterator[QueueRow]:
    """Yield the rows of the queues."""
    for row in figures.queues:
        columns = zip(_starts(figures), row.used, row.pending, row.guaranteed, row.max, strict=True)
        for at_s, *values in columns:
            yield QueueRow(figures.label, at_s, row.queue, row.resource, *values)


def moments(figures: Figures) -> Iterator[MomentRow]:
    """Yield the rows of what there is one number of."""
    nothing: Values = [None] * figures.bins
    found = figures.fragmentation
    shares = (nothing, nothing) if found is None else (found.of_capacity, found.of_idle)
    columns = zip(_starts(figures), figures.pending_asks, figures.held_asks, figures.evenness, *shares, strict=True)
    for at_s, *values in columns:
        yield MomentRow(figures.label, at_s, *values)


def nodes(figures: Figures) -> Iterator[NodesRow]:
    """Yield a row for each class of use, in steps of a tenth, and bin of time: how many nodes were used that much then."""
    for index, values in enumerate(figures.nodes.classes):
        for at_s, value in zip(_starts(figures), values, strict=True):
            yield NodesRow(figures.label, at_s, max(index - 1, 0) / 10, index / 10, value)


def devices(figures: Figures) -> Iterator[DevicesRow]:
    """Yield the rows of devices by model."""
    for row in figures.devices:
        columns = zip(_starts(figures), row.devices, row.untouched, row.partly, row.full, row.used, strict=True)
        for at_s, *values in columns:
            yield DevicesRow(figures.label, at_s, row.model, *values)


def times(figures: Figures) -> Iterator[TimesRow]:
    """Yield the rows of the times of pods."""
    groups: tuple[tuple[str, Sequence[PodTimes]], ...] = (
        ("all", [figures.everything]),
        ("queue", figures.by_queue),
        ("user", figures.by_user),
    )
    for by, rows in groups:
        for row in rows:
            for what in ("waiting_s", "completion_s", "slowdown"):
                spread = getattr(row, what)
                found = (spread.number, spread.mean, spread.p50, spread.p95, spread.p99, spread.most)
                counts = (row.pods, row.never_placed, row.not_completed)
                yield TimesRow(figures.label, by, row.name, what, *counts, *found)


def shortfalls(figures: Figures) -> Iterator[ShortfallRow]:
    """Yield the rows of guarantees."""
    return (ShortfallRow(figures.label, *msgspec.structs.astuple(row)) for row in figures.shortfalls)


def never_placed(label: str, rows: Iterable[NeverPlaced]) -> Iterator[NeverPlacedRow]:
    """Yield the rows of asks that were never placed."""
    return (NeverPlacedRow(label, *msgspec.structs.astuple(row)) for row in rows)


class Table(NamedTuple):
    """A table of the page: a caption, titles of columns, and cells as text. Titles with a `<` before are of names."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


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
            rows.append([begins, *(shown(_mean(values[at : at + joined])) for _, values, shown in chosen)])
        each = duration(joined * figures.bin_s)
        label = f"{figures.label}: " if len(runs) > 1 else ""
        table = Table(f"{label}{caption}, means of {each}", ("<from", *(name for name, _, _ in chosen)), rows)
        found.append(table)
    return found


def _mean(values: Values) -> float | None:
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
    several = len(runs) > 1
    rows: list[list[str]] = []
    for figures in runs:
        for row in (*getattr(figures, by), figures.everything):
            spread = getattr(row, what)
            values = (spread.mean, spread.p50, spread.p95, spread.p99, spread.most)
            cells = [shown(value) if spread.number else "–" for value in values]
            missing = row.never_placed if what == "waiting_s" else row.not_completed
            head = [figures.label] if several else []
            rows.append([*head, row.name or "(none)", f"{spread.number:,}", f"{missing:,}", *cells])
    lacking = "never placed" if what == "waiting_s" else "not completed"
    first = ("<run",) if several else ()
    name = "<queue" if by == "by_queue" else "<user"
    return Table(
        caption, (*first, name, "pods", lacking, "mean", "median", "p95", "p99", "longest" if seconds else "most"), rows
    )
