"""Printing who has what for people: queues, users and groups, loans, and who is below its guarantee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from licorne.answers.shares import Hours, HoursUsed, Loan, PartitionShares, Shares
from licorne.cli.sheets import Sheet, output, widened
from licorne.cli.why_text import print_moment, print_notes
from licorne.state.recording.moments import written
from licorne.workload.quantities import amount, duration

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 60
"""Rows of a table, at most; `--json` has all."""
LARGEST = 10
"""How many borrowers, and how many lenders, a table names at most; the others are summed."""
BORROWED, LENT = "borrowed", "lent"


def show(
    answer: Shares,
    console: Console | None = None,
    *,
    recorded: bool = False,
    config: str = "",
    assumptions: bool = False,
) -> None:
    """Print who has what on `console`, by default standard output.

    `recorded`: at a moment of a recording. `config`: the file with the configuration by whose bounds it is told; "": those
    of the one in force. `assumptions`: those that it rests on are listed.
    """
    console = output() if console is None else widened(console)
    if recorded:
        print_moment(console, answer.at_s)
    if config:
        console.print(f"What runs and waits now, beside the bounds of {config}:", markup=False, soft_wrap=True)
        console.print()
    for part in answer.partitions:
        console.print(f"partition {part.partition}", style="bold", markup=False)
        console.print()
        for sheet in (_queues(part), _below(part, answer.at_s), *_matrices(part, console.width), _people(part)):
            sheet.print(console)
    if answer.hours is not None:
        _hours(answer.hours).print(console)
    print_notes(console, answer.notes, assumptions=assumptions)


def _queues(part: PartitionShares) -> Sheet:
    sheet = Sheet(
        "queues",
        ("<queue", "<resource", "used", "guaranteed", "of it", "max", "of that", "waiting"),
        drop=("of that", "waiting", "of it"),
    )
    rows = [row for row in part.queues if row.used or row.pending or row.guaranteed or row.max]
    last = ""
    for row in sheet.first(rows, SHOWN, "row"):
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
    return sheet


def _below(part: PartitionShares, at_s: float) -> Sheet:
    sheet = Sheet("below their guarantee, with work that waits", ("<queue", "<resource", "short of", "for"))
    for row in [row for row in part.queues if row.below][:SHOWN]:
        since = duration(max(0.0, at_s - row.waits_since_s))
        sheet.add(row.queue, row.resource, amount(row.resource, row.below), since)
    return sheet


def _matrices(part: PartitionShares, width: int) -> Iterator[Sheet]:
    """Yield a table for each type: how much each borrower (row) uses of the guarantee of each lender (column).

    It names as many lenders as there is room for.
    """
    for resource, group in groupby(part.loans, key=attrgetter("resource")):
        loans = list(group)
        sheets = (_matrix(resource, loans, columns) for columns in range(LARGEST, 0, -1))
        sheet = next(sheets)
        while not sheet.fits(width) and (narrower := next(sheets, None)) is not None:
            sheet = narrower
        yield sheet


def _matrix(resource: str, loans: Sequence[Loan], columns: int) -> Sheet:
    """Return the table of the loans of a type, with a column for each of the `columns` largest lenders.

    Each of the largest borrowers has a row; all other lenders, and all other borrowers, are summed.
    """
    lent: Counter[str] = Counter()
    borrowed: Counter[str] = Counter()
    for loan in loans:
        lent[loan.lender] += loan.amount
        borrowed[loan.borrower] += loan.amount
    lenders, borrowers = _named(lent, columns), _named(borrowed, LARGEST)
    cells: Counter[tuple[str, str]] = Counter()
    for loan in loans:
        row, column = borrowers[loan.borrower], lenders[loan.lender]
        for place in ((row, column), (row, BORROWED), (LENT, column), (LENT, BORROWED)):
            cells[place] += loan.amount
    titles = [*dict.fromkeys(lenders.values()), BORROWED]
    sheet = Sheet(f"who uses whose guarantee of {resource}: borrowers by line, lenders by column", ("<", *titles))
    for row in (*dict.fromkeys(borrowers.values()), LENT):
        sheet.add(row, *(amount(resource, cells[row, title]) if cells[row, title] else "-" for title in titles))
    if len(lenders) > columns or len(borrowers) > LARGEST:
        sheet.ending.append("the others are summed: see --json")
    return sheet


def _named(sums: Counter[str], shown: int) -> dict[str, str]:
    """Return a title for each queue, that of the largest sum first: its path for the first `shown`, else how many others there are."""
    queues = sorted(sums, key=lambda queue: (-sums[queue], queue))
    rest = f"{len(queues) - shown:,} others" if len(queues) - shown > 1 else "1 other"
    return {queue: queue if index < shown else rest for index, queue in enumerate(queues)}


def _people(part: PartitionShares) -> Sheet:
    sheet = Sheet(
        "users and groups, in all queues",
        ("<who", "<resource", "used", "limit", "of that", "<at", "applications"),
        drop=("applications",),
    )
    last = ""
    for row in sheet.first(part.people, SHOWN, "row"):
        who = f"{row.kind} {row.name}"
        limit = row.tightest
        cells = ("-", "-", "-")
        if limit is not None:
            cells = (amount(row.resource, limit.limit), _percent(limit.used, limit.limit), limit.queue)
        first = who if who != last else ""
        sheet.add(first, row.resource, amount(row.resource, row.used), *cells, f"{row.applications:,}")
        last = who
    return sheet


def _hours(found: Hours) -> Sheet:
    over = duration(found.until_s - found.since_s)
    sheet = Sheet(f"used in {over}, from {written(int(found.since_s * 10**9))} on", ("<who", "<resource", "hours"))
    last = ""
    for row in sheet.first(found.used, SHOWN, "row"):
        who = row.name if row.kind == "queue" else f"{row.kind} {row.name}"
        sheet.add(who if who != last else "", f"{row.resource} hours", _resource_hours(row))
        last = who
    return sheet


def _resource_hours(row: HoursUsed) -> str:
    """Return what was used, as amount times hours: in hours of a core or a GiB, or of what the type counts."""
    unit = {"vcore": 1000, "memory": 2**30}.get(row.resource, 1)
    name = {"vcore": " cores", "memory": " GiB"}.get(row.resource, "")
    return f"{row.hours / unit:,.2f}{name}"


def _or_dash(resource: str, value: int | None) -> str:
    return "-" if value is None else amount(resource, value)


def _percent(part: int, whole: int | None) -> str:
    return f"{part / whole:.0%}" if whole else "-"
