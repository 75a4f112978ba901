"""The results of the measurements in a cluster: kept as JSON, shown as tables."""

from __future__ import annotations

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.kube.run import Figures
from bench.report import head
from bench.results import Report, new_report
from licorne.core import compiled

_WORDS = {
    "backlog_through_bind": "of what a bare client binds, backlog",
    "backlog_through_kube": "times as fast as kube-scheduler, backlog",
    "stream_through_kube": "times as fast as kube-scheduler, stream",
    "backlog_without_kwok": "bindings/s without kwok",
    "cpu_ms_a_pod": "ms of processor time a pod",
    "first_decision_s": "s to the first decision of the large cluster",
    "peak_mb": "MB there",
}


class KubeReport(msgspec.Struct, kw_only=True):
    """All results. `head` describes the machine as in the other benchmarks."""

    head: Report
    figures: Figures
    failures: list[str] = []


def new_kube_report(nodes: int, pods: int) -> KubeReport:
    """Return an empty report on this machine; takes a second."""
    made = new_report()
    made.compiled = compiled
    return KubeReport(head=made, figures=Figures(nodes=nodes, pods=pods))


def show_kube(report: KubeReport, console: Console | None = None) -> None:
    """Print a report."""
    console = console or Console(highlight=False)
    for line in head(report.head):
        console.print(line, markup=False)
    figures = report.figures
    if figures.turns:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"{figures.nodes:,} nodes, {figures.pods:,} pods")
        for name in ("figure", "median", "least", "greatest"):
            table.add_column(name, justify="left" if name == "figure" else "right", overflow="fold")
        for name, values in figures.turns.items():
            table.add_row(name.replace("_", " "), *map(_number, (figures.median(name), min(values), max(values))))
        console.print(table)
    if figures.large:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title="the large cluster", show_header=False)
        for name, value in figures.large.items():
            table.add_row(name.replace("_", " "), _number(value))
        console.print(table)
    for verdict in figures.verdicts:
        target = verdict.target
        wanted = f"target {'at most ' if target.at_most else ''}{_number(target.value)} {_WORDS[target.figure]}"
        text = f"{wanted}: {'reached' if verdict.reached else 'missed'}, {_number(verdict.measured)}"
        console.print(text, style="green" if verdict.reached else "red", markup=False)
    for failure in report.failures:
        console.print(failure, style="yellow", markup=False)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"
