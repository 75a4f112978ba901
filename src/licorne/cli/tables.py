"""Printing the result of a simulation as tables for a terminal, with amounts and durations in readable units."""

from __future__ import annotations

from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from licorne.sim.report import QueueUsage, Result

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_ROWS = 30
"""Reasons or queues in a table, at most; `--json` has all."""


def show(result: Result, console: Console | None = None) -> None:
    """Print a result on `console`, by default standard output."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        # A file or a pipe has no width: Rich's default of 80 columns would cut the words of long cells.
        console.width = max(console.width, 140)
    console.print(f"[bold]{result.workload}[/bold]")
    console.print(_summary(result))
    if result.reasons:
        console.print(_reasons(result))
    if result.refused:
        console.print(_refused(result))
    if result.waiting_times:
        console.print(_waits(result))
    if result.gangs:
        console.print(_gangs(result))
    if result.evictions:
        console.print(_evictions(result))
    if result.utilisation:
        console.print(_utilisation(result))
    if result.queues:
        console.print(_queues(result.queues))
    for note in result.notes:
        console.print(f"note: {note}", markup=False)
    kind = "compiled" if result.compiled else "interpreted"
    console.print(f"simulated {duration(result.simulated_s)} in {result.real_s:.2f} s ({kind})")
    console.print(f"digest {result.digest}")


def _table(title: str, *columns: str, left: int = 1) -> Table:
    """Make an empty table. The first `left` columns are aligned left, for names, the others right, for numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", overflow="fold")
    return table


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
        ("created again after that", result.resubmitted, False),
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


def _reasons(result: Result) -> Table:
    table = _table("never placed", "reason", "for example", "asks", left=2)
    for row in result.reasons[:_ROWS]:
        table.add_row(row.reason, _at(row.example, row.place), f"{row.asks:,}")
    _more(table, len(result.reasons) - _ROWS, "reasons")
    return table


def _refused(result: Result) -> Table:
    table = _table("refused by the scheduler", "what", "reason", "for example", "times", left=3)
    for row in result.refused[:_ROWS]:
        table.add_row(row.what, row.reason, _at(row.example, row.place), f"{row.number:,}")
    _more(table, len(result.refused) - _ROWS, "reasons")
    return table


def _at(example: str, place: str) -> str:
    """Return an example with its place in the workload, or the one that is known."""
    return f"{example} ({place})" if example and place else example or place


def _waits(result: Result) -> Table:
    table = _table("waiting time until placed", "queue", "placed", "p50", "p95", "p99", "longest")
    # The row of all queues is the last; it is shown in any case.
    left_out = max(0, len(result.waiting_times) - _ROWS - 1)
    for row in result.waiting_times[:_ROWS] + result.waiting_times[_ROWS + left_out :]:
        waits = (duration(wait) for wait in (row.p50_s, row.p95_s, row.p99_s, row.longest_s))
        table.add_row("all" if row.queue == "*" else row.queue, f"{row.placed:,}", *waits)
    _more(table, left_out, "queues")
    return table


def _gangs(result: Result) -> Table:
    table = _table("gangs, from submission until all their members run", "queue", "kind", "gangs", "started",
                   "too late", "p50", "p95", "longest", left=2)  # fmt: skip
    for row in result.gangs[:_ROWS]:
        waits = [duration(wait) for wait in (row.p50_s, row.p95_s, row.longest_s)] if row.started else ["-"] * 3
        table.add_row(row.queue, row.kind, f"{row.gangs:,}", f"{row.started:,}", f"{row.timed_out:,}", *waits)
    _more(table, len(result.gangs) - _ROWS, "queues")
    return table


def _evictions(result: Result) -> Table:
    """Make the table of evictions by queue. Lost work is pods times time, and for each resource amount times hours."""
    table = _table("evictions, and the work lost to them", "from queue", "for", "why", "pods", "pod time", "work lost",
                   left=3)  # fmt: skip
    for row in result.evictions[:_ROWS]:
        lost = (_times_hours(name, value / _HOUR_S) for name, value in row.lost.items() if name != "pods")
        table.add_row(row.queue, row.wanted_by, row.kind, f"{row.pods:,}", duration(row.lost_pod_s), ", ".join(lost))
    _more(table, len(result.evictions) - _ROWS, "queues")
    return table


def _times_hours(resource: str, value: float) -> str:
    unit = "" if resource in ("vcore", "memory") else f" {resource}"
    return f"{amount(resource, value)}{unit} h"


def _utilisation(result: Result) -> Table:
    table = _table("utilisation", "resource", "capacity", "mean used", "peak used", "mean", "peak")
    for row in result.utilisation:
        name = row.resource
        table.add_row(
            name,
            amount(name, row.mean_capacity),
            amount(name, row.mean_used),
            amount(name, row.peak_used),
            f"{row.mean:.1%}",
            f"{row.peak:.1%}",
        )
    return table


def _queues(rows: list[QueueUsage]) -> Table:
    table = _table("use of queues", "queue", "resource", "mean", "peak", "guaranteed", "max", left=2)
    queues = [(queue, list(group)) for queue, group in groupby(rows, key=lambda row: row.queue)]
    for queue, group in queues[:_ROWS]:
        for index, row in enumerate(group):
            name = row.resource
            table.add_row(
                "" if index else queue,
                name,
                amount(name, row.mean),
                amount(name, row.peak),
                "-" if row.guaranteed is None else amount(name, row.guaranteed),
                "-" if row.max is None else amount(name, row.max),
            )
    _more(table, len(queues) - _ROWS, "queues")
    return table


def _more(table: Table, number: int, what: str) -> None:
    """Add a row that says how many rows were left out, if any were."""
    if number > 0:
        table.add_row(f"… {number:,} more {what}: see --json")


def amount(resource: str, value: float) -> str:
    """Format an amount in the usual unit of its resource: cores, binary multiples of bytes, or a plain number."""
    if resource == "vcore":
        return f"{_short(value / 1000)} cores"
    if resource == "memory":
        power = 0
        while abs(value) >= 1024 and power < len(_BINARY) - 1:
            value /= 1024
            power += 1
        return f"{_short(value)} {_BINARY[power]}B"
    return _short(value)


def _short(value: float) -> str:
    """Format a number: without decimals if it is whole or at least 1000, otherwise with one."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.1f}"


def duration(seconds: float) -> str:
    """Format a duration, given in seconds, in its two largest units."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S} h"
