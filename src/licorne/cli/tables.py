"""Printing the result of a simulation as tables (`licorne.cli.sheets`).

Tables show what is there first: rows of nothing but zeros are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from rich.table import Table

from licorne.cli.sheets import Sheet, output, print_plainly, widened
from licorne.sim.report import QueueUsage, Result
from licorne.sim.times import ALL_QUEUES, QueueCompletions, QueueWaits
from licorne.workload.quantities import HOUR_S, amount, duration

if TYPE_CHECKING:
    from rich.console import Console

Row = TypeVar("Row")
_ROWS = 30
"""Reasons or queues in a table, at most; `--json` has all."""


def show(result: Result, console: Console | None = None) -> None:
    """Print a result on `console`, by default standard output."""
    console = output() if console is None else widened(console)
    console.print(result.workload, style="bold", markup=False)
    console.print(f"queue configuration: {result.configuration}", markup=False)
    if result.configuration.startswith("built-in;"):
        console.print(
            "  --config FILE gives one with these queues; the built-in one has a queue for each tag namespace"
        )
    for each in result.policies:
        console.print(
            f"policy {each.name}: {', '.join(each.decides)}; digest {each.digest or 'unknown'}", soft_wrap=True
        )
    print_plainly(console, _summary(result))
    console.print()
    for sheet in _sheets(result):
        sheet.print(console)
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    kind = "compiled" if result.compiled else "interpreted"
    console.print(f"simulated {duration(result.simulated_s)} in {result.real_s:.2f} s ({kind})")
    console.print(f"digest {result.digest}", soft_wrap=True)


def _summary(result: Result) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    rows = (
        ("asks", result.asks, True),
        ("placed", result.placed, True),
        ("never placed", result.never_placed, True),
        ("ended by themselves", result.ended, False),
        ("ended by a timeout", result.timed_out, False),
        ("preempted", result.preempted, False),
        ("created again after that" if result.preempted else "created again", result.resubmitted, False),
        ("placeholders", result.placeholders, False),
        ("reported as running already", result.recovered, False),
        ("applications accepted", result.applications_accepted, True),
        ("applications rejected", result.applications_rejected, False),
        ("nodes rejected", result.nodes_rejected, False),
    )
    for name, number, always in rows:
        if number or always:
            table.add_row(name, f"{number:,}")
    return table


def _sheets(result: Result) -> Iterable[Sheet]:
    """Yield all tables of a result."""
    yield _reasons(result)
    yield _rejected_queues(result)
    yield _refused(result)
    yield _waits(result)
    yield from _completions(result)
    yield _gangs(result)
    yield _evictions(result)
    yield _utilisation(result)
    yield _queues(result)


def _reasons(result: Result) -> Sheet:
    sheet = Sheet("never placed", ("~reason", "~for example", "asks"), drop=("for example",))
    for row in sheet.first(result.reasons, _ROWS, "reason"):
        sheet.add(row.reason, _at(row.example, row.place), f"{row.asks:,}")
    return sheet


def _rejected_queues(result: Result) -> Sheet:
    sheet = Sheet(
        "applications rejected, by the queue that they asked for",
        ("<queue", "<exists", "~for example", "applications"),
        drop=("for example",),
    )
    for row in sheet.first(result.rejected_queues, _ROWS, "queue"):
        exists = "-" if not row.queue else "yes" if row.exists else "no"
        sheet.add(row.queue or "(none)", exists, _at(row.example, row.place), f"{row.applications:,}")
    return sheet


def _refused(result: Result) -> Sheet:
    sheet = Sheet(
        "refused by the scheduler", ("<what", "~reason", "~for example", "times"), drop=("for example", "what")
    )
    for row in sheet.first(result.refused, _ROWS, "reason"):
        sheet.add(row.what, row.reason, _at(row.example, row.place), f"{row.number:,}")
    return sheet


def _at(example: str, place: str) -> str:
    """Return an example with its place in the workload, or the one that is known."""
    return f"{example} ({place})" if example and place else example or place


def _waits(result: Result) -> Sheet:
    sheet = Sheet(
        f"waiting time until placed{_window(result)}",
        ("<queue", "placed", "never placed", "mean", "p50", "p95", "p99", "longest"),
        drop=("p99", "mean", "placed", "longest"),
    )
    if result.waiting_times[-1].placed:
        for row in _most(result.waiting_times, [row.placed + row.never_placed for row in result.waiting_times]):
            times = _durations(row.placed, row.mean_s, row.p50_s, row.p95_s, row.p99_s, row.longest_s)
            sheet.add(_queue(row), f"{row.placed:,}", f"{row.never_placed:,}", *times)
        sheet.more(len(result.waiting_times) - len(sheet.rows), "queue")
    return sheet


def _completions(result: Result) -> Iterable[Sheet]:
    """Yield the table of times to completion, and that of slowdowns."""
    times = Sheet(
        f"time from arrival to end{_window(result)}",
        ("<queue", "completed", "not completed", "mean", "p50", "p95", "p99", "longest"),
        drop=("p99", "mean", "completed", "longest"),
    )
    slowdowns = Sheet("bounded slowdown", ("<queue", "mean", "p50", "p95", "p99", "most"), drop=("p99",))
    if result.completions and result.completions[-1].completed:
        found = _most(result.completions, [row.completed + row.not_completed for row in result.completions])
        for row in found:
            spans = _durations(row.completed, row.mean_s, row.p50_s, row.p95_s, row.p99_s, row.longest_s)
            times.add(_queue(row), f"{row.completed:,}", f"{row.not_completed:,}", *spans)
            if row.completed:
                slow = (row.slowdown_mean, row.slowdown_p50, row.slowdown_p95, row.slowdown_p99, row.slowdown_most)
                slowdowns.add(_queue(row), *(f"{value:,.2f}" for value in slow))
        for sheet in (times, slowdowns):
            sheet.more(len(result.completions) - len(found), "queue")
    yield times
    yield slowdowns


def _durations(number: int, *seconds: float) -> list[str]:
    """Format durations that summarise `number` values, as a mean does; each is a dash where there are no values."""
    return [duration(value) if number else "-" for value in seconds]


def _queue(row: QueueWaits | QueueCompletions) -> str:
    return "all" if row.queue == ALL_QUEUES else row.queue or "(none)"


def _most(rows: list[Row], sizes: list[int]) -> list[Row]:
    """Return the last row, which is of all queues, after those of the largest sizes, as many as a table has."""
    largest = sorted(range(len(rows) - 1), key=lambda index: -sizes[index])[:_ROWS]
    return [rows[index] for index in sorted(largest)] + rows[-1:]


def _window(result: Result) -> str:
    """Return what to add to the title of figures that are not of the whole simulation."""
    since_s, until_s = result.window_s
    if (since_s, until_s) == (0, result.simulated_s):
        return ""
    return f", from {duration(since_s)} to {duration(until_s)}"


def _gangs(result: Result) -> Sheet:
    sheet = Sheet(
        "gangs, from submission until all their members run",
        ("<queue", "<kind", "gangs", "started", "too late", "p50", "p95", "longest"),
        drop=("p95", "kind", "gangs", "longest"),
    )
    for row in sheet.first(result.gangs, _ROWS, "queue"):
        waits = _durations(row.started, row.p50_s, row.p95_s, row.longest_s)
        sheet.add(row.queue, row.kind, f"{row.gangs:,}", f"{row.started:,}", f"{row.timed_out:,}", *waits)
    return sheet


def _evictions(result: Result) -> Sheet:
    """Make the table of evictions by queue. Lost work is pods times time, and for each resource amount times hours."""
    sheet = Sheet(
        "evictions, and the work lost to them",
        ("<from queue", "<for", "<why", "pods", "pod time", "work lost"),
        drop=("work lost", "why", "pod time"),
    )
    for row in sheet.first(result.evictions, _ROWS, "queue"):
        lost = (_times_hours(name, value / HOUR_S) for name, value in row.lost.items() if name != "pods")
        sheet.add(row.queue, row.wanted_by, row.kind, f"{row.pods:,}", duration(row.lost_pod_s), ", ".join(lost))
    return sheet


def _times_hours(resource: str, value: float) -> str:
    unit = "" if resource in ("vcore", "memory") else f" {resource}"
    return f"{amount(resource, value)}{unit} h"


def _utilisation(result: Result) -> Sheet:
    sheet = Sheet(
        f"utilisation{_window(result)}",
        ("<resource", "capacity", "mean used", "peak used", "mean", "peak", "at end"),
        drop=("peak used", "mean used"),
    )
    for row in result.utilisation:
        name = row.resource
        used = (amount(name, value) for value in (row.mean_capacity, row.mean_used, row.peak_used))
        sheet.add(name, *used, *(f"{share:.1%}" for share in (row.mean, row.peak, row.end)))
    return sheet


def _queues(result: Result) -> Sheet:
    """Make the table of queues: those that were used, and if they are too many, those with the largest shares of root's use."""
    sheet = Sheet(
        f"use of queues{_window(result)}",
        ("<queue", "<resource", "mean", "peak", "at end", "guaranteed", "max"),
        drop=("at end", "guaranteed", "max"),
    )
    used = [row for row in result.queues if row.peak or row.mean or row.end]
    queues = [(queue, list(group)) for queue, group in groupby(used, key=lambda row: row.queue)]
    whole = {row.resource: _use(row) for row in used if row.queue == "root"}

    def share(group: list[QueueUsage]) -> float:
        return max(_use(row) / (whole.get(row.resource) or 1) for row in group)

    largest = sorted(range(len(queues)), key=lambda index: -share(queues[index][1]))[:_ROWS]
    for queue, group in (queues[index] for index in sorted(largest)):
        for index, row in enumerate(group):
            name = row.resource
            limits = ("-" if value is None else amount(name, value) for value in (row.guaranteed, row.max))
            sheet.add(
                "" if index else queue, name, *(amount(name, value) for value in (row.mean, row.peak, row.end)), *limits
            )
    sheet.more(len(queues) - len(largest), "queue")
    sheet.more(len(result.queues) - len(used), "row", "without any use")
    return sheet


def _use(row: QueueUsage) -> float:
    """Return the use by which queues are compared: the mean, or where it is 0 the peak, or else the use at the end."""
    return row.mean or row.peak or row.end
