"""The results of the service's measurements: kept as JSON, shown as tables."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.cases import Target
from bench.report import head
from bench.results import Report, Verdict, new_report
from bench.service.run import ServiceResult
from licorne.core import compiled

_WORDS = {
    "pods_per_s": "pods/s",
    "longest_gap_ms": "ms without a decision while there is more to decide",
    "rest_p99_ms": "ms for 99 of 100 requests",
    "lost_percent": "% of the rate lost",
    "loop_percent": "% more processor time of the thread that decides",
    "bytes_per_decision": "bytes a decision",
    "question_percent": "% more processor time of the thread that decides, with a question a second",
    "state_age_s": "s: the age of the state that was asked",
}


class ServiceReport(msgspec.Struct, kw_only=True):
    """All results. `head` describes the machine as in the other benchmark."""

    head: Report
    scale: float
    results: list[ServiceResult] = []
    failures: list[str] = []


def new_service_report(scale: float) -> ServiceReport:
    """Return an empty report on this machine; takes a second."""
    made = new_report()
    made.compiled = compiled
    return ServiceReport(head=made, scale=scale)


def show_service(report: ServiceReport, console: Console | None = None) -> None:
    """Print a report."""
    console = console or Console(highlight=False)
    for line in head(report.head):
        console.print(line, markup=False)
    for result in report.results:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=result.case.name, title_justify="left")
        table.add_column("figure", overflow="fold")
        table.add_column("value", justify="right", overflow="fold")
        for name, value in result.figures.items():
            table.add_row(name.replace("_", " "), f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}")
        console.print(table)
    for line, style in verdicts(report):
        console.print(line, style=style, markup=False)


def verdicts(report: ServiceReport) -> Iterator[tuple[str, str]]:
    """Yield the verdicts, and what makes them doubtful, each with its color."""
    for result in report.results:
        for verdict in result.verdicts:
            yield f"{result.case.name}: {sentence(verdict)}", "green" if verdict.reached else "red"
    for failure in report.failures:
        yield failure, "yellow"
    if report.scale != 1:
        yield f"sizes are {report.scale:g} of the full ones: no target is judged", "yellow"


def sentence(verdict: Verdict) -> str:
    """Return a verdict as text, like `target 100,000 pods/s: missed, 92,000`."""
    target = verdict.target
    wanted = f"target {'at most ' if target.at_most else ''}{_number(target.value)} {_words(target)}"
    return f"{wanted}: {'reached' if verdict.reached else 'missed'}, {_number(verdict.measured)}"


def _words(target: Target) -> str:
    return _WORDS[target.figure]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
