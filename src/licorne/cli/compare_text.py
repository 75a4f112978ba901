"""Printing a comparison of two configurations for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from licorne.cli.sheets import Sheet, output, widened
from licorne.sim.comparison import Comparison, QueueChange, QueueFigures
from licorne.sim.refusals import RejectedQueue
from licorne.workload.quantities import duration

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 40
"""Rows of a table, at most; `--json` has all."""


def show(answer: Comparison, old: str, new: str, console: Console | None = None) -> None:
    """Print a comparison on `console`, by default standard output. `old`, `new`: what the configurations are called."""
    console = output() if console is None else widened(console)
    console.print(answer.workload, style="bold", markup=False)
    console.print(f"old: {old}, new: {new}", markup=False, soft_wrap=True)
    if answer.same:
        console.print("every decision is the same under both configurations")
    elif not (answer.old.placed or answer.new.placed):
        console.print("nothing was placed under either configuration, so nothing can be compared")
    console.print()
    for sheet in (_totals(answer), _queues(answer)):
        sheet.print(console)
    for title, rows in (
        ("refused only by the new configuration", answer.rejected),
        ("refused only by the old configuration", answer.admitted),
    ):
        _refused(title, rows).print(console)
    for note in answer.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for which, totals in (("old", answer.old), ("new", answer.new)):
        console.print(f"{which} digest {totals.digest}", markup=False, soft_wrap=True)


def _totals(answer: Comparison) -> Sheet:
    sheet = Sheet("altogether", ("<", "old", "new"))
    old, new = answer.old, answer.new
    for name, before, after in (
        ("asks placed", old.placed, new.placed),
        ("asks never placed", old.never_placed, new.never_placed),
        ("applications rejected", old.applications_rejected, new.applications_rejected),
        ("pods preempted", old.preempted, new.preempted),
    ):
        sheet.add(name, f"{before:,}", f"{after:,}")
    return sheet


def _queues(answer: Comparison) -> Sheet:
    sheet = Sheet(
        "by queue, those that wait longer first: old → new",
        ("<queue", "mean wait", "change", "95 %", "never placed", "evicted"),
    )
    for change in [*sheet.first(answer.queues, SHOWN, "queue"), answer.everything]:
        sheet.add(change.queue, *_cells(change))
    return sheet


def _cells(change: QueueChange) -> Iterable[str]:
    mean, *others = (f"{old} → {new}" for old, new in zip(_figures(change.old), _figures(change.new), strict=True))
    sign = "+" if change.longer_s > 0 else "-" if change.longer_s else ""
    return [mean, f"{sign}{duration(abs(change.longer_s))}", *others]


def _figures(found: QueueFigures | None) -> tuple[str, str, str, str]:
    if found is None:
        return ("-", "-", "-", "-")
    mean = duration(found.mean_wait_least_s)
    if found.mean_wait_least_s != (found.mean_wait_s or 0.0):  # pods that were never placed have waited too
        mean = f"≥ {mean}"
    return (mean, _time(found.p95_wait_s), f"{found.never_placed:,}", f"{found.evicted:,}")


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _refused(title: str, rows: list[RejectedQueue]) -> Sheet:
    sheet = Sheet(title, ("<asked for", "applications", "<one of them"))
    for row in sheet.first(rows, SHOWN, "queue"):
        sheet.add(row.queue, f"{row.applications:,}", row.example)
    return sheet
