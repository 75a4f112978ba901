"""Measures how fast the scheduler decides, as a resource manager that embeds it would see it.

The clock runs from the first ask handed in to the last allocation handed out, in the form of the chosen boundary
(`boundary.py`): by default as a Python object. Everything goes through the public API in the dialect of 1.9: asks are
`Allocation` messages, made before the clock starts, because they are the resource manager's; they are handed in 1,000
a call; then the scheduler decides until nothing more is possible; the callback keeps every allocation that it is
given. Nodes and applications are in place before.

Two policies belong to a host, and are those of the simulator: the garbage collector is kept from walking what
lives (`collector.py`), and virtual time stands still, so that nothing is decided by the machine's speed. Only with
reservations, which need time to pass, is the real clock used.

When all is decided, the scheduler is called some more times, with nothing changed: these are the idle cycles.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable
from statistics import median

import msgspec

from licorne._machine import Meter, forget_peak, peak_rss_bytes, rss_bytes, warm_memory
from licorne.core import compiled
from licorne.measure.boundary import BoundaryName, Session, feed_of
from licorne.sim.collector import quiet_collector
from licorne.sim.escaping import decision_lines
from licorne.sim.lines import Ask
from licorne.sim.workload import Workload, WorkloadError

WARM_BYTES_PER_ASK = 2_048
"""So much memory for each ask is touched before the clock starts: twice as much as it takes until it is allocated."""
IDLE_CYCLES = 1_000
IDLE_S = 1.0
"""No more idle cycles are begun after so many seconds."""


class BenchRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: allocations made, and seconds in all, until all asks were handed in, and from then on.

    `idle_cycle_us` is the median of calls that found nothing to do, with `pending` asks waiting. `cpu_s`, of it
    `kernel_s` in the kernel, and `other_cores` (processors kept busy by others; None: not known) are of the timed part.
    `peak_bytes` is the peak of the process above what it had before there was a scheduler; the kept allocations are part
    of it.
    """

    allocations: int
    pending: int
    seconds: float
    submit_s: float
    decide_s: float
    allocations_per_s: float
    idle_cycle_us: float
    cpu_s: float
    kernel_s: float
    other_cores: float | None
    peak_bytes: int
    digest: str


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a benchmark measured; figures are medians over the runs, those of memory and of others the highest.

    `expected` is what the workload says that it ends with (0: not known). `peak_rss_bytes` is the whole process's,
    the workload included.
    """

    workload: str
    boundary: str
    asks: int
    allocations: int
    expected: int
    pending: int
    allocations_per_s: float
    seconds: float
    submit_s: float
    decide_s: float
    idle_cycle_us: float
    cpu_s: float
    kernel_s: float
    other_cores: float | None
    peak_bytes: int
    peak_rss_bytes: int
    digest: str
    compiled: bool
    reservations: bool
    python: str
    processors: int
    runs: list[BenchRun]


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with asks that are blocked, and the same without them.

    `decide_ratio`: how many times as long the decisions take from the moment the last ask is handed in, medians of
    both. `submit_us_per_ask` is of the workload with them.
    """

    complete: BenchResult
    without: BenchResult
    decide_ratio: float
    submit_us_per_ask: float


def measure(
    workload: Workload,
    *,
    repeat: int = 1,
    reservations: bool = False,
    boundary: BoundaryName = "objects",
    told: Callable[[BenchRun], None] | None = None,
) -> BenchResult:
    """Run a workload of version 1 as often as wanted, each time in a new scheduler.

    Raises WorkloadError for a workload of version 2, or one of which something is refused, or if two runs decide
    differently.
    """
    bench = _Bench(workload, boundary, reservations)
    for _ in range(repeat):
        bench.run()
        if told is not None:
            told(bench.runs[-1])
    return bench.result()


def measure_blocked(workload: Workload, *, repeat: int = 1, boundary: BoundaryName = "objects") -> Blocked:
    """Measure a workload, and in turn the same without its asks of a priority above 0: what they cost the others.

    In the generated cases e2 and e3 these are the ones that a quota, or the size of the nodes, keeps waiting. Raises
    WorkloadError as `measure`.
    """
    lines = [line for line in workload.lines if not (isinstance(line, Ask) and line.prio > 0)]
    plain = msgspec.structs.replace(workload, name=f"{workload.name}-unblocked", lines=lines)
    with_them, without_them = (_Bench(each, boundary, reservations=False) for each in (workload, plain))
    for _ in range(repeat):
        with_them.run()
        without_them.run()
    complete, without = with_them.result(), without_them.result()
    return Blocked(
        complete=complete,
        without=without,
        decide_ratio=complete.decide_s / without.decide_s if without.decide_s > 0 else 0.0,
        submit_us_per_ask=complete.submit_s * 1e6 / max(1, complete.asks),
    )


class _Bench:
    """A workload that is run again and again."""

    def __init__(self, workload: Workload, boundary: BoundaryName, reservations: bool) -> None:
        self.workload = workload
        self.boundary = boundary
        self.reservations = reservations
        self.feed = feed_of(workload, boundary)
        self.runs: list[BenchRun] = []
        self.peak_rss_bytes = 0

    def run(self) -> None:
        """Hand in and decide everything once, in a new scheduler."""
        self.peak_rss_bytes = max(self.peak_rss_bytes, peak_rss_bytes())
        warm_memory(self.feed.asks * WARM_BYTES_PER_ASK)
        forget_peak()
        loaded_bytes = rss_bytes()
        session = self.feed.connect(keep=True, reservations=self.reservations)
        with quiet_collector():
            meter = Meter()
            started_ns = time.perf_counter_ns()
            for batch in self.feed.batches:
                session.hand_in(batch)
            submitted_ns = time.perf_counter_ns()
            session.decide()
            use = meter.read()
            peak = peak_rss_bytes()
            idle_cycle_us = _idle_cycle_us(session)
        self.peak_rss_bytes = max(self.peak_rss_bytes, peak)
        session.check(self.workload.name, "asks ")
        ended_ns = max(session.last_ns, submitted_ns)
        seconds = (ended_ns - started_ns) / 1e9
        sha = hashlib.sha256()
        for decision in session.decisions():
            sha.update(decision_lines((decision,)).encode())
        self.runs.append(
            BenchRun(
                allocations=session.made,
                pending=self.feed.asks - session.made,
                seconds=seconds,
                submit_s=(submitted_ns - started_ns) / 1e9,
                decide_s=(ended_ns - submitted_ns) / 1e9,
                allocations_per_s=session.made / seconds if seconds > 0 else 0.0,
                idle_cycle_us=idle_cycle_us,
                cpu_s=use.cpu_s,
                kernel_s=use.kernel_s,
                other_cores=use.other_cores,
                peak_bytes=max(0, peak - loaded_bytes),
                digest=sha.hexdigest(),
            )
        )

    def result(self) -> BenchResult:
        """The runs together."""
        runs, name = self.runs, self.workload.name
        if len({run.digest for run in runs}) > 1 and not self.reservations:
            raise WorkloadError(f"{name}: two runs decided differently, which must never happen: please report it")
        return BenchResult(
            workload=name,
            boundary=self.boundary,
            asks=self.feed.asks,
            allocations=runs[-1].allocations,
            expected=self.workload.expect,
            pending=runs[-1].pending,
            allocations_per_s=median(run.allocations_per_s for run in runs),
            seconds=median(run.seconds for run in runs),
            submit_s=median(run.submit_s for run in runs),
            decide_s=median(run.decide_s for run in runs),
            idle_cycle_us=median(run.idle_cycle_us for run in runs),
            cpu_s=median(run.cpu_s for run in runs),
            kernel_s=median(run.kernel_s for run in runs),
            other_cores=max((run.other_cores for run in runs if run.other_cores is not None), default=None),
            peak_bytes=max(run.peak_bytes for run in runs),
            peak_rss_bytes=self.peak_rss_bytes,
            digest=runs[-1].digest,
            compiled=compiled,
            reservations=self.reservations,
            python=platform.python_version(),
            processors=os.cpu_count() or 1,
            runs=runs,
        )


def _idle_cycle_us(session: Session) -> float:
    """The median of calls that find nothing to do."""
    schedule, clock = session.api.schedule, time.perf_counter_ns
    times_ns: list[int] = []
    begun_ns = clock()
    while len(times_ns) < IDLE_CYCLES and clock() - begun_ns < IDLE_S * 1e9:
        started_ns = clock()
        schedule()
        times_ns.append(clock() - started_ns)
    return median(times_ns) / 1e3
