"""Show a report as tables on a terminal, with warnings: targets missed, a machine that was not idle."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.cases import Target
from bench.ratio import Timed, not_done, shown
from bench.results import BUSY_CORES, CaseResult, Pair, Report, Verdict, main_run

_MIB = 1 << 20
_FIGURES = {
    "allocations_per_s": "allocations/s",
    "ratio": "times the peer",
    "decide_ratio": "times the decisions without blocked asks",
    "submit_us_per_ask": "µs an ask to hand in",
    "release_us": "µs a release",
    "evictions_per_s": "evictions/s",
    "members_per_s": "members of gangs/s",
    "idle_cycle_us": "µs an idle cycle",
    "peak_rss_bytes": "GB, the whole process",
    "pending_ask_bytes": "bytes a pending ask",
    "allocation_bytes": "bytes an allocation",
}


def show(report: Report, console: Console | None = None) -> None:
    """Print a report."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # in a file, wide tables are better than broken words
    for line in head(report):
        console.print(line, markup=False)
    contests = [result for result in report.cases if result.contest is not None]
    if contests:
        console.print(_contests(contests))
    alone = [result for result in report.cases if not result.pairs and result.contest is None]
    if alone:
        console.print(_alone(alone))
        for result in alone:
            for note in _notes(result):
                console.print(f"{result.case.name}: {note}", markup=False)
    compared = [result for result in report.cases if result.pairs]
    if compared:
        console.print(_compared(compared, report.peer))
    for result in report.cases:
        for verdict in result.verdicts:
            style = "green" if verdict.reached else "red"
            console.print(f"{result.case.name}: {sentence(verdict)}", style=style, markup=False)
    for line in warnings(report):
        console.print(line, style="yellow", markup=False)


def head(report: Report) -> Iterator[str]:
    """Yield lines that say which program was measured, and on which machine."""
    kind = {True: ", compiled", False: ", interpreted", None: ""}[report.compiled]
    machine = report.machine
    yield f"licorne {report.licorne}{kind}, {report.python}" + (f"; {report.peer}" if report.peer else "")
    memory = f"{machine.memory_bytes / (1 << 30):.1f} GiB"
    yield f"{machine.cpu}, {machine.processors} processors, {memory}, {machine.system}; {report.made}"


def warnings(report: Report) -> Iterator[str]:
    """Yield what makes the figures doubtful, and what is missing."""
    yield from report.failures
    if (report.machine.other_cores or 0) >= BUSY_CORES:
        yield f"the machine was not idle: before the start others kept {report.machine.other_cores:.1f} processors busy"
    busy = {result.case.name: cores for result in report.cases if (cores := other_cores(result)) >= BUSY_CORES}
    if busy:
        names = ", ".join(f"{name} ({cores:.1f})" for name, cores in busy.items())
        yield f"others kept processors busy while these were measured: {names}; they count for little"
    for result in report.cases:
        run = main_run(result)
        if run is not None and run.expected and run.expected != run.allocations:
            yield f"{result.case.name}: {run.allocations:,} allocations, where the workload expects {run.expected:,}"
        contest = result.contest
        if contest is not None and contest.placed != contest.expected:
            yield f"{result.case.name}: {contest.placed:,} pods run in the end, where {contest.expected:,} should"


def other_cores(result: CaseResult) -> float:
    """Return the most processors that other processes kept busy during any run of a case; 0 where it is not known."""
    run = main_run(result)
    seen = [run.other_cores if run is not None else None]
    if result.blocked is not None:
        seen.append(result.blocked.without.other_cores)
    if result.churn is not None:
        seen.append(result.churn.other_cores)
    if result.contest is not None:
        seen.append(result.contest.other_cores)
    for pair in result.pairs:
        seen += [pair.licorne.other_cores, pair.peer.other_cores]
    return max((cores for cores in seen if cores is not None), default=0.0)


def sentence(verdict: Verdict) -> str:
    """Return a verdict as text, like `target 150,000 allocations/s: missed, 92,000`."""
    target = verdict.target
    wanted = f"target {'at most ' if target.at_most else ''}{_figure(target, target.value)} {_FIGURES[target.figure]}"
    measured = f"{'≥ ' if verdict.bound else ''}{_figure(target, verdict.measured)}"
    if not verdict.reached and verdict.bound:
        return f"{wanted}: open, {measured}, as the peer was cut off"
    return f"{wanted}: {'reached' if verdict.reached else 'missed'}, {measured}"


def _figure(target: Target, value: float) -> str:
    if target.figure == "peak_rss_bytes":
        return f"{value / 1e9:.2f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _alone(results: list[CaseResult]) -> Table:
    table = columns(
        "case", "allocs/s", "least", "most", "allocations", "pending", "in µs/ask", "deciding s",
        "kernel s", "idle µs", "peak MiB", "B/ask", "B/alloc", "others",
    )  # fmt: skip
    for result in results:
        run = main_run(result)
        if run is None:
            continue
        rates = [each.allocations_per_s for each in run.runs]
        memory = result.memory
        table.add_row(
            result.case.name,
            f"{run.allocations_per_s:,.0f}",
            f"{min(rates):,.0f}",
            f"{max(rates):,.0f}",
            f"{run.allocations:,}",
            f"{run.pending:,}",
            f"{run.submit_s * 1e6 / max(1, run.asks):.2f}",
            f"{run.decide_s:.3f}",
            f"{run.kernel_s:.2f}",
            f"{run.idle_cycle_us:,.1f}",
            f"{run.peak_bytes / _MIB:,.0f}",
            "-" if memory is None else f"{memory.pending_ask_bytes:,.0f}",
            "-" if memory is None else f"{memory.allocation_bytes:,.0f}",
            f"{other_cores(result):.2f}",
        )
    table.caption = (
        "in: handing in; kernel: of all that; idle: a cycle with nothing to do; peak: above the loaded workload, what is handed out included; "
        "B/ask, B/alloc: bytes for a pending ask, for an allocation; others: processors that others kept busy"
    )
    return table


def _contests(results: list[CaseResult]) -> Table:
    table = columns(
        "case", "counted", "a second", "least", "most", "deciding only", "evictions", "pods placed", "in s", "deciding s",
        "answers s", "virtual s", "others",
    )  # fmt: skip
    for result in results:
        contest = result.contest
        if contest is None:
            continue
        rates = [
            (run.evictions if contest.counted == "evictions" else run.placed) / run.seconds for run in contest.runs
        ]
        table.add_row(
            result.case.name,
            contest.counted,
            f"{contest.per_s:,.0f}",
            f"{min(rates):,.0f}",
            f"{max(rates):,.0f}",
            f"{contest.decided_per_s:,.0f}",
            f"{contest.evictions:,}",
            f"{contest.placed:,}",
            f"{contest.submit_s:.3f}",
            f"{contest.decide_s:.3f}",
            f"{contest.answer_s:.3f}",
            f"{contest.virtual_s:,.1f}",
            f"{other_cores(result):.2f}",
        )
    table.caption = (
        "deciding only: a second of calls that decide; in: handing in; answers: what the resource manager confirms, and "
        "hands in when a gang runs; virtual: virtual time that passed; others: processors that others kept busy"
    )
    return table


def _notes(result: CaseResult) -> Iterator[str]:
    """Yield the figures of a case that have no column in the table."""
    if (blocked := result.blocked) is not None:
        yield f"without blocked asks: deciding {blocked.without.decide_s:.3f} s, ratio {blocked.decide_ratio:.2f}"
    if (churn := result.churn) is not None:
        yield (
            f"{churn.releases:,} releases: mean {churn.release_us_mean:,.1f} µs, median {churn.release_us_median:,.1f},"
            f" p99 {churn.release_us_p99:,.1f}; {churn.allowed:,} allowed an allocation ({churn.allocations:,} in all)"
        )


def _compared(results: list[CaseResult], peer: str) -> Table:
    table = columns(
        "case", "licorne, allocations/s", f"{peer}, allocations/s", "ratio, median", "least", "greatest",
        "licorne, peak MiB", "peer, peak MiB", "idle cycle, µs", "others, cores",
    )  # fmt: skip
    for result in results:
        ratios = result.ratios
        if ratios is None:
            continue
        table.add_row(
            result.case.name,
            ", ".join(f"{pair.licorne.allocations_per_s:,.0f}" for pair in result.pairs),
            ", ".join(peer_rate(pair) for pair in result.pairs),
            *(str(each) for each in (ratios.median, ratios.least, ratios.greatest)),
            f"{max(pair.licorne.peak_bytes for pair in result.pairs) / _MIB:,.0f}",
            f"{max(pair.peer.rss_peak_mb - pair.peer.rss_loaded_mb for pair in result.pairs):,}",
            f"{result.pairs[-1].licorne.idle_cycle_us:,.1f}",
            f"{other_cores(result):.2f}",
        )
    table.caption = "peak: above the loaded workload"
    if any(result.ratios is not None and result.ratios.greatest.bound for result in results):
        table.caption += (
            "; ≤ and ≥: the peer was stopped before it had placed what licorne placed, so its time is a lower bound"
        )
    return table


def peer_rate(pair: Pair) -> str:
    """Return the peer's allocations per second; if it was cut off, an upper bound.

    The bound assumes that the peer had placed in its time everything that licorne placed.
    """
    ours = Timed(pair.licorne.allocations, pair.licorne.seconds)
    theirs = Timed(pair.peer.allocs, pair.peer.seconds, cut_off=pair.peer.capped)
    if not not_done(ours, theirs):
        return shown(theirs.per_s)
    return f"≤ {shown(Timed(ours.allocations, theirs.seconds).per_s)}"


def columns(*names: str) -> Table:
    """Return an empty table whose first column is for names and whose others are for numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    for index, column in enumerate(names):
        table.add_column(column, justify="right" if index else "left", overflow="fold")
    return table
