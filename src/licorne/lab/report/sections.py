"""What a page shows, part by part: plain words, pictures, and the tables that have the same in numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from licorne.lab.report import plots
from licorne.lab.report.figures import Bar, Figures, NeverPlaced, PodTimes, Shortfall, Values
from licorne.lab.report.tables import Table, amounts, by_run, number, over_time, percent, shares, spread_table
from licorne.workload.quantities import HOUR_S, amount, duration

if TYPE_CHECKING:
    from licorne.lab.report.drawing import Canvas

ROWS_MAX = 200
"""Most rows of a table on the page; the files have all."""
_Column = tuple[str, Values, Callable[[float | None], str]]


class Plot(NamedTuple):
    """A picture: its file's name, what it shows in a sentence, how it is drawn, and its heights in inches."""

    name: str
    caption: str
    draw: Callable[[Canvas, Sequence[Figures]], None]
    height_in: float = 3.0
    narrow_in: float = 3.0


class Section(NamedTuple):
    """A part of a page."""

    name: str
    title: str
    text: str
    plots: Sequence[Plot]
    tables: Sequence[Table]


def sections(runs: Sequence[Figures]) -> Iterator[Section]:
    """Yield the parts of a page about one or several simulations; those that nothing is known of are left out."""
    timed = any(figures.timed for figures in runs)
    yield _summary(runs)
    if timed:
        yield _utilisation(runs)
    if timed and any(figures.devices for figures in runs):
        yield _devices(runs)
    if timed and any(figures.fragmentation for figures in runs):
        yield _fragmentation(runs)
    if timed:
        yield _pending(runs)
        yield from _times(runs)
    if timed and plots.drawn_queues(runs):
        yield _queues(runs)
    yield from _fairness(runs, timed=timed)
    if timed:
        yield _nodes(runs)
    if any(figures.result["evictions"] for figures in runs if "evictions" in figures.result):
        yield _evictions(runs)
    if any(figures.never_placed_all for figures in runs):
        yield _never_placed(runs)
    if timed:
        yield _gantt(runs)


def _across(number: int, panel_in: float) -> dict[str, float]:
    """Return the heights of a picture with this many panels."""
    return {"height_in": panel_in * -(-number // 2), "narrow_in": panel_in * number + 0.3}


def _summary(runs: Sequence[Figures]) -> Section:
    names = (
        ("asks", "asks"),
        ("placed", "placed"),
        ("never_placed", "never placed"),
        ("ended", "ended by themselves"),
        ("preempted", "preempted"),
        ("resubmitted", "created again after that"),
        ("applications_accepted", "applications accepted"),
        ("applications_rejected", "applications rejected"),
    )
    rows = [[name, *(f"{figures.result[key]:,}" for figures in runs)] for key, name in names]
    rows.append(["virtual time", *(duration(figures.result["simulated_s"]) for figures in runs)])
    rows.append(["mean wait of a pod", *(duration(figures.everything.waiting_s.mean) for figures in runs)])
    rows.append(["mean bounded slowdown", *(number(figures.everything.slowdown.mean) for figures in runs)])
    rows.append(["mean of Jain's index", *(number(figures.evenness_mean) for figures in runs)])
    rows.append(["digest of the decisions", *(figures.result["digest"] for figures in runs)])
    columns = ("<what", *(figures.label if len(runs) > 1 else "value" for figures in runs))
    text = "What was asked for, and what became of it."
    return Section("summary", "Summary", text, (), (Table("All pods", columns, rows), _by_queue(runs)))


def _by_queue(runs: Sequence[Figures]) -> Table:
    def cells(row: PodTimes) -> list[str]:
        waits = (row.waiting_s.mean, row.waiting_s.p95)
        return [
            row.name or "(none)",
            f"{row.pods:,}",
            f"{row.never_placed:,}",
            *(duration(value) if row.waiting_s.number else "–" for value in waits),
            number(row.slowdown.mean) if row.slowdown.number else "–",
        ]

    titles = ("<queue", "pods", "never placed", "mean wait", "95 % wait at most", "mean bounded slowdown")
    caption = "By queue; waits are those of pods that were placed"
    return _cut(by_run(runs, caption, titles, lambda figures: figures.by_queue, cells))


def _utilisation(runs: Sequence[Figures]) -> Section:
    def columns(figures: Figures) -> list[_Column]:
        return [(row.resource, shares(row.used, row.capacity), percent) for row in figures.cluster]

    def cells(row: dict[str, Any]) -> list[str]:
        name = row["resource"]
        return [name, amount(name, row["mean_capacity"]), percent(row["mean"]), percent(row["peak"])]

    titles = ("<resource", "mean capacity", "mean use", "peak use")
    exact = by_run(runs, "Exact means and peaks", titles, lambda figures: figures.result["utilisation"], cells)
    text = "The share of each resource of the cluster that was allocated. Placeholders of gangs count as use."
    plot = Plot(
        "utilisation", "Allocated share of each resource over time", plots.utilisation, **_across(len(runs), 3.1)
    )
    return Section("utilisation", "Utilisation", text, (plot,), (exact, *over_time(runs, "Utilisation", columns)))


def _devices(runs: Sequence[Figures]) -> Section:
    def columns(figures: Figures) -> list[_Column]:
        return [
            (row.model or "(no model)", shares(row.used, [1000 * (value or 0) for value in row.devices]), percent)
            for row in figures.devices
        ]

    text = (
        "Devices of nodes, such as GPUs: how many were completely used, how many partly, by pods that share one, and how many "
        "were untouched. The tables have the use of each model."
    )
    plot = Plot("devices", "Devices by use over time", plots.devices, **_across(len(runs), 3.1))
    return Section("devices", "Devices", text, (plot,), over_time(runs, "Use of devices by model", columns))


def _fragmentation(runs: Sequence[Figures]) -> Section:
    def columns(figures: Figures) -> list[_Column]:
        found = figures.fragmentation
        if found is None:
            return []
        return [("of what is idle", found.of_idle, percent), ("of all devices", found.of_capacity, percent)]

    text = (
        "How much of the devices is idle and of no use for the usual pods of this workload: what is idle on a node, less what "
        "the usual shapes of pods could use there, by how frequent they are (Weng et al., Beware of Fragmentation, USENIX ATC "
        "2023). Usual are the most frequent shapes that hold 95 % of the pods."
    )
    plot = Plot("fragmentation", "Fragmented devices over time", plots.fragmentation, **_across(len(runs), 3.0))
    return Section("fragmentation", "Fragmentation", text, (plot,), over_time(runs, "Fragmented", columns))


def _pending(runs: Sequence[Figures]) -> Section:
    def columns(figures: Figures) -> list[_Column]:
        wanted = [
            (f"pending {plots.short(row.resource)}", row.pending, amounts(row.resource)) for row in figures.cluster
        ]
        return [("pending asks", figures.pending_asks, number), ("held back", figures.held_asks, number), *wanted]

    text = (
        "How many asks waited to be placed. Held back are those that a gang or a strict order keeps from the scheduler."
    )
    plot = Plot("pending", "Pending asks over time", plots.pending, **_across(len(runs), 2.8))
    return Section("pending", "Pending asks", text, (plot,), over_time(runs, "Pending", columns))


def _times(runs: Sequence[Figures]) -> Iterator[Section]:
    wait = (
        "waiting",
        "Waiting times",
        (
            "How long pods waited until they were placed; of a pod that was evicted, all its waits together. A line says which "
            "share of the pods of a queue or user waited at most that long. Pods that were never placed have no time, and are "
            "counted in the table."
        ),
        "waiting_s",
        "waiting time",
    )
    completion = (
        "completion",
        "Completion times",
        "The time from the arrival of a pod to its last end, evictions included, of pods that ended by themselves.",
        "completion_s",
        "time from arrival to end",
    )
    slowdown = (
        "slowdown",
        "Bounded slowdown",
        (
            "How many times longer a pod took than its run: max(1, (waiting + run) / max(run, 10 s)). Work lost to an eviction "
            "counts as waiting."
        ),
        "slowdown",
        "bounded slowdown",
    )
    for name, title, text, what, label in (wait, completion, slowdown):
        found: list[Plot] = []
        tables: list[Table] = []
        drawn: list[list[list[float]]] = []
        for by, who in (("by_queue", "queue"), ("by_user", "user")):
            if all(getattr(row, what).number == 0 for figures in runs for row in getattr(figures, by)):
                continue
            draw = partial(plots.spreads, what=what, label=label, by=by)
            caption = f"{title} by {who}: share of the pods, of those with the most pods"
            curves = [sorted(getattr(row, what).curve for row in getattr(figures, by)) for figures in runs]
            if curves != drawn:  # where each user has a queue of its own, one picture shows both
                found.append(Plot(f"{name}-by-{who}", caption, draw, **_across(len(runs), 3.2)))
            drawn = curves
            tables.append(spread_table(runs, f"{title} by {who}", by, what, seconds=what != "slowdown"))
        if found:
            yield Section(name, title, text, found, tables)


def _queues(runs: Sequence[Figures]) -> Section:
    def cells(row: dict[str, Any]) -> list[str]:
        name = row["resource"]
        values = (row[key] for key in ("mean", "peak", "guaranteed", "max"))
        return [row["queue"], name, *("–" if value is None else amount(name, value) for value in values)]

    titles = ("<queue", "<resource", "mean use", "peak use", "guaranteed", "max")
    table = _cut(by_run(runs, "Use of all queues", titles, lambda figures: figures.result["queues"], cells))
    text = (
        "What queues used, what they wanted besides, and what they are guaranteed and may use at most. Drawn are the leaf "
        f"queues that used most, up to {plots.QUEUES_DRAWN}, each by the resource of which it used the largest share."
    )
    panels = len(plots.queue_rows(runs))
    plot = Plot("queues", "Use of queues over time, with guarantee and max", plots.queues, **_across(panels, 2.2))
    return Section("queues", "Queues", text, (plot,), (table,))


def _fairness(runs: Sequence[Figures], *, timed: bool) -> Iterator[Section]:
    found: list[Plot] = []
    tables: list[Table] = []
    if any(figures.shortfalls for figures in runs):
        tables.append(_cut(_shortfalls(runs)))
        lines = min(max(len(figures.shortfalls) for figures in runs), 2 * plots.QUEUES_DRAWN)
        heights = _across(len(runs), 1.2 + 0.2 * lines)
        caption = "Missing part of guarantees, on average while there was demand"
        found.append(Plot("guarantees", caption, plots.shortfalls, **heights))
    if timed and any(value is not None for figures in runs for value in figures.evenness):
        caption = "Jain's index over the served parts of queues, over time"
        found.append(Plot("evenness", caption, plots.evenness, **_across(len(runs), 2.6)))
        tables += over_time(runs, "Jain's index", lambda figures: [("index", figures.evenness, number)])
    text = (
        "A queue is below its guarantee while it has less than the guarantee and less than its demand (what it has and what it "
        "asks for). Jain's index compares the leaf queues with demand by the part that each has of what it can claim: its "
        "guarantee, or without one an equal part of the cluster, and no more than its demand. 1: all have the same part; "
        "1/n: one of n has everything."
    )
    if found:
        yield Section("fairness", "Fairness", text, found, tables)


def _shortfalls(runs: Sequence[Figures]) -> Table:
    def cells(row: Shortfall) -> list[str]:
        return [
            row.queue,
            row.resource,
            amount(row.resource, row.guaranteed),
            duration(row.demand_s),
            percent(row.short_s / row.demand_s if row.demand_s else None),
            percent(row.mean / row.guaranteed if row.guaranteed else None),
            amount(row.resource, row.most),
        ]

    titles = ("<queue", "<resource", "guaranteed", "had demand", "below it for", "missing on average", "at most")
    caption = "Below the guarantee while there was demand"
    return by_run(runs, caption, titles, lambda figures: figures.shortfalls, cells)


def _nodes(runs: Sequence[Figures]) -> Section:
    def columns(figures: Figures) -> list[_Column]:
        names = ("unused", *(f"to {10 * index} %" for index in range(1, 11)))
        return [(name, values, number) for name, values in zip(names, figures.nodes.classes, strict=True)]

    text = "How many nodes were used how much, each by the resource of which it had the smallest part left."
    plot = Plot("nodes", "Nodes by use over time", plots.nodes, **_across(len(runs), 3.3))
    return Section("nodes", "Nodes by use", text, (plot,), over_time(runs, "Nodes", columns))


def _evictions(runs: Sequence[Figures]) -> Section:
    def cells(row: dict[str, Any]) -> list[str]:
        lost = (f"{plots.short(name)}: {amount(name, value / HOUR_S)} × h" for name, value in row["lost"].items())
        first = (row["queue"], row["wanted_by"], row["kind"], f"{row['pods']:,}", duration(row["lost_pod_s"]))
        return [*first, ", ".join(lost)]

    titles = ("<from queue", "<for", "<why", "pods", "pod time", "work lost")
    table = _cut(by_run(runs, "Evictions", titles, lambda figures: figures.result["evictions"], cells))
    text = (
        "Pods that were evicted, for which queue, and the work that was lost: a pod that is created again starts anew."
    )
    lines = min(max(len(figures.result["evictions"]) for figures in runs), 2 * plots.QUEUES_DRAWN)
    caption = "Work lost to evictions, from queue → for queue"
    plot = Plot("evictions", caption, plots.evictions, **_across(len(runs), 1.2 + 0.22 * lines))
    return Section("evictions", "Evictions and lost work", text, (plot,), (table,))


def _never_placed(runs: Sequence[Figures]) -> Section:
    def reason(row: dict[str, Any]) -> list[str]:
        return [row["reason"], f"{row['asks']:,}"]

    def cells(row: NeverPlaced) -> list[str]:
        return [row.key, row.application, row.queue, row.user, row.reason, f"{row.pods:,}"]

    reasons = by_run(runs, "Reasons", ("<reason", "asks"), lambda figures: figures.result["reasons"], reason)
    titles = ("<ask", "<application", "<queue", "<user", "<reason", "pods")
    asks = by_run(runs, "Asks that were never placed", titles, lambda figures: figures.never_placed, cells)
    total = sum(figures.never_placed_all for figures in runs)
    text = "Asks that were never placed, or not again after an eviction, and why; never-placed.csv beside this page has all."
    return Section("never-placed", "Never placed", text, (), (_cut(reasons), _cut(asks, total)))


def _gantt(runs: Sequence[Figures]) -> Section:
    def where(bar: Bar) -> tuple[str, str]:
        return bar.node, bar.queue

    def cells(bars: list[Bar]) -> list[str]:
        length_s = sum(bar.end_s - bar.start_s for bar in bars)
        spans = (duration(min(bar.start_s for bar in bars)), duration(max(bar.end_s for bar in bars)))
        return [*where(bars[0]), f"{len(bars):,}", *spans, duration(length_s)]

    def groups(figures: Figures) -> list[list[Bar]]:
        return [list(group) for _, group in groupby(sorted(figures.bars, key=where), key=where)]

    titles = ("<node", "<queue", "runs", "first start", "last end", "pod time")
    table = by_run(runs, "Runs by node and queue", titles, groups, cells)
    text = (
        "Runs of pods on nodes, where there are few enough of them; else when each queue used how much of its own peak."
    )
    height = plots.gantt_height(runs)
    plot = Plot("gantt", "Gantt: pods on nodes, or use of queues (brighter: more)", plots.gantt, height, height)
    tables = [_cut(table)] if table.rows else over_time(runs, "Use of queues", _used_queues)
    return Section("gantt", "Gantt", text, (plot,), tables)


def _used_queues(figures: Figures) -> list[_Column]:
    return [
        (f"{row.queue}, {plots.short(row.resource)}", row.used, amounts(row.resource))
        for _, row in plots.queue_rows([figures])
    ]


def _cut(table: Table, total: int = 0) -> Table:
    """Return a table that is cut to the rows that a page shows, and whose caption tells the total."""
    total = max(total, len(table.rows))
    if total <= ROWS_MAX and total == len(table.rows):
        return table
    rows = table.rows[:ROWS_MAX]
    return Table(f"{table.caption} (the first {len(rows):,} of {total:,})", table.columns, rows)
