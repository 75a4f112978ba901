"""Show a comparison of two states as a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from rich.console import Console

from bench.report import columns, head
from bench.results import BUSY_CORES
from bench.turns import WIDTH, Compared, TurnsReport

FIGURES = {
    "allocations_per_s": "allocations/s",
    "release_us_mean": "releases/s",
    "per_s": "evictions or members/s",
    "pods_per_s": "pods/s",
    "with_per_s": "pods/s with clients",
}


def show_turns(report: TurnsReport, bound: float, console: Console | None = None) -> None:
    """Print a comparison; cases whose whole interval lies below the bound are named as slower."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # in a file, wide tables are better than broken words
    for line in head(report.head):
        console.print(line, markup=False)
    table = columns("case", "figure", "old", "new", "new : old", "95 % interval", "turns", "verdict", "others")
    for case in report.cases:
        table.add_row(
            case.case,
            FIGURES[case.figure],
            *(f"{median(rates):,.0f}" for rates in zip(*((t.old.rate, t.new.rate) for t in case.turns), strict=True)),
            f"{case.interval.ratio:.3f}",
            f"{case.interval.low:.3f} to {case.interval.high:.3f}",
            str(len(case.turns)),
            verdict(case, bound),
            f"{other_cores(case):.2f}",
        )
    table.caption = (
        f"old: {report.old}; new: {report.new}; medians of the turns; slower: the whole interval lies below {bound:g}; "
        "others: processors that other processes kept busy, the median"
    )
    console.print(table)
    for line in warnings(report, bound):
        console.print(line, style="yellow", markup=False)


def verdict(case: Compared, bound: float) -> str:
    """Return what the interval shows about a case, in a few words."""
    if case.interval.high < bound:
        return "slower"
    if case.interval.low > 1:
        return "faster"
    return "not slower" if case.interval.low >= bound else "not shown to be slower"


def warnings(report: TurnsReport, bound: float) -> Iterator[str]:
    """Yield which cases are slower, what makes the figures doubtful, and what is missing."""
    for case in report.slower(bound):
        yield f"{case.case}: slower, {case.interval.ratio:.3f} of what it was"
    for case in report.cases:
        if not case.same_decisions:
            yield f"{case.case}: the two decide differently, so their rates need not be of the same work"
        if case.interval.width >= WIDTH:
            yield f"{case.case}: {len(case.turns)} turns leave an interval of {case.interval.width:.3f}"
        if other_cores(case) >= BUSY_CORES:
            yield f"{case.case}: others kept {other_cores(case):.1f} processors busy"
    yield from report.failures


def other_cores(case: Compared) -> float:
    """Return the processors that others kept busy, the median of all runs; 0 where it is not known."""
    return median(run.other_cores or 0.0 for turn in case.turns for run in (turn.old, turn.new))
