"""Printing who has what for people: queues, users and groups, loans, and who is below its guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from licorne.answers.shares import Hours, HoursUsed, PartitionShares, Shares
from licorne.cli.recordings import written
from licorne.cli.sheets import Sheet, output, widened
from licorne.cli.why_text import print_moment, print_notes
from licorne.sim.quantities import amount, duration

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 60
"""Rows of a table, at most; `--json` has all."""


def show(answer: Shares, console: Console | None = None, *, recorded: bool = False) -> None:
    """Print who has what on `console`, by default standard output. `recorded`: at a moment of a recording."""
    console = output() if console is None else widened(console)
    if recorded:
        print_moment(console, answer.at_s)
    for part in answer.partitions:
        console.print(Text(f"partition {part.partition}", style="bold"))
        console.print()
        for sheet in (_queues(part), _below(part, answer.at_s), _loans(part), _people(part)):
            if sheet.rows:
                sheet.print(console)
    if answer.hours is not None:
        _hours(answer.hours).print(console)
    print_notes(console, answer.notes)


def _queues(part: PartitionShares) -> Sheet:
    sheet = Sheet(
        "queues",
        ("<queue", "<resource", "used", "guaranteed", "of it", "max", "of that", "waiting"),
        drop=("of that", "waiting", "of it"),
    )
    rows = [row for row in part.queues if row.used or row.pending or row.guaranteed or row.max]
    last = ""
    for row in rows[:SHOWN]:
        name = row.resource
        sheet.add(
            row.queue if row.queue != last else "",
            name,
            amount(name, row.used),
            _or_dash(name, row.guaranteed),
            _percent(row.used, row.guaranteed),
            _or_dash(name, row.max),
            _percent(row.used, row.max),
            amount(name, row.pending) if row.pending else "-",
        )
        last = row.queue
    sheet.more(len(rows) - SHOWN, "row")
    return sheet


def _below(part: PartitionShares, at_s: float) -> Sheet:
    sheet = Sheet("below their guarantee, with work that waits", ("<queue", "<resource", "short of", "for"))
    for row in [row for row in part.queues if row.below][:SHOWN]:
        since = duration(max(0.0, at_s - row.waits_since_s))
        sheet.add(row.queue, row.resource, amount(row.resource, row.below), since)
    return sheet


def _loans(part: PartitionShares) -> Sheet:
    sheet = Sheet("who uses whose guarantee", ("<resource", "<of", "<uses", "amount"))
    for loan in part.loans[:SHOWN]:
        sheet.add(loan.resource, loan.lender, loan.borrower, amount(loan.resource, loan.amount))
    sheet.more(len(part.loans) - SHOWN, "loan")
    return sheet


def _people(part: PartitionShares) -> Sheet:
    sheet = Sheet(
        "users and groups, in all queues",
        ("<who", "<resource", "used", "limit at root", "applications"),
        drop=("applications", "limit at root"),
    )
    last = ""
    for row in part.people[:SHOWN]:
        who = f"{row.kind} {row.name}"
        cells = (amount(row.resource, row.used), _or_dash(row.resource, row.limit), f"{row.applications:,}")
        sheet.add(who if who != last else "", row.resource, *cells)
        last = who
    sheet.more(len(part.people) - SHOWN, "row")
    return sheet


def _hours(found: Hours) -> Sheet:
    over = duration(found.until_s - found.since_s)
    sheet = Sheet(f"used in {over}, from {written(int(found.since_s * 10**9))} on", ("<who", "<resource", "hours"))
    last = ""
    for row in found.used[:SHOWN]:
        who = row.name if row.kind == "queue" else f"{row.kind} {row.name}"
        sheet.add(who if who != last else "", f"{row.resource} hours", _per_hour(row))
        last = who
    sheet.more(len(found.used) - SHOWN, "row")
    return sheet


def _per_hour(row: HoursUsed) -> str:
    """Return an amount times hours: of cores and GiB, or of what the type counts."""
    unit = {"vcore": 1000, "memory": 2**30}.get(row.resource, 1)
    name = {"vcore": " cores", "memory": " GiB"}.get(row.resource, "")
    return f"{row.hours / unit:,.2f}{name}"


def _or_dash(resource: str, value: int | None) -> str:
    return "-" if value is None else amount(resource, value)


def _percent(part: int, whole: int | None) -> str:
    return f"{part / whole:.0%}" if whole else "-"
