"""Measure how fast the scheduler decides, as seen by a resource manager that embeds it.

The clock runs from the first ask submitted to the last allocation returned, in the form of the chosen boundary
(`boundary.py`): by default as a Python object. Everything goes through the public API in the dialect of 1.9. Asks are
`Allocation` messages, made before the clock starts because they belong to the resource manager. They are submitted 1,000 in
a call; then the scheduler decides until nothing more is possible; the callback keeps every allocation that it receives.
Nodes and applications are in place before.

Two policies are the host's, and are those of the simulator: the garbage collector is kept from walking live objects
(`collector.py`), and virtual time stands still, so that no decision depends on the machine's speed. Only with reservations,
which need time to pass, is the real clock used.

When all is decided, the scheduler is called some more times with nothing changed: these are the idle cycles.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import time
from collections.abc import Callable
from statistics import median

import msgspec

from bench.measure.boundary import BoundaryName, Session, feed_of
from bench.measure.machine import Meter, forget_peak, warm_memory
from licorne._machine import peak_rss_bytes, rss_bytes
from licorne.core import compiled
from licorne.sim.collector import quiet_collector
from licorne.workload.escaping import decision_lines
from licorne.workload.lines import Ask
from licorne.workload.workload import Workload, WorkloadError

WARM_BYTES_PER_ASK = 2_048
"""Memory touched before the clock starts, for each ask: twice what it takes until it is allocated."""
IDLE_CYCLES = 1_000
IDLE_S = 1.0
"""No idle cycle is started after this many seconds of them."""


class BenchRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run: allocations made, and seconds in all, until all asks were submitted, and from then on.

    `idle_cycle_us` is the median of calls that found nothing to do, with `pending` asks waiting. `cpu_s`, the part
    `kernel_s` of it spent in the kernel, and `other_cores` (processors kept busy by other processes; None: not known) are
    those of the timed part. `peak_bytes` is the peak of the process above its memory before there was a scheduler; it
    includes the allocations that the callback keeps.
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
    """The result of a benchmark: medians over the runs, but of memory and `other_cores` the highest.

    `expected` is the number of allocations that the workload states (0: not known). `peak_rss_bytes` is the peak of the
    whole process, including the workload.
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
    """The results for a workload with asks that are blocked, and for the same workload without them.

    `decide_ratio`: time of the decisions after the last ask was submitted, with the blocked asks divided by without, as
    medians. `submit_us_per_ask` is of the workload with them.
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
    """Run a workload of version 1 `repeat` times, each time in a new scheduler.

    Raises WorkloadError for a workload of version 2, if any part of it is refused, or if two runs decide differently.
    """
    bench = _Bench(workload, boundary, reservations)
    for _ in range(repeat):
        bench.run()
        if told is not None:
            told(bench.runs[-1])
    return bench.result()


def measure_blocked(workload: Workload, *, repeat: int = 1, boundary: BoundaryName = "objects") -> Blocked:
    """Measure what asks with a priority above 0 cost the others: run the workload with and without them, in turn.

    In the generated cases e2 and e3 these are the asks that a quota, or the size of the nodes, keeps waiting. Raises
    WorkloadError as `measure` does.
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
    """Runs a workload repeatedly and collects the results."""

    def __init__(self, workload: Workload, boundary: BoundaryName, reservations: bool) -> None:
        self.workload = workload
        self.boundary = boundary
        self.reservations = reservations
        self.feed = feed_of(workload, boundary)
        self.runs: list[BenchRun] = []
        self.peak_rss_bytes = 0

    def run(self) -> None:
        """Submit and decide everything once, in a new scheduler."""
        self.peak_rss_bytes = max(self.peak_rss_bytes, peak_rss_bytes())
        warm_memory(self.feed.asks * WARM_BYTES_PER_ASK)
        forget_peak()
        loaded_bytes = rss_bytes()
        session = self.feed.connect(keep=True, reservations=self.reservations)
        gc.collect()  # the scheduler of the run before is part of cycles; its memory serves this run
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
        """Return the result over all runs."""
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
    """Return the median duration, in microseconds, of calls that find nothing to do."""
    schedule, clock = session.api.schedule, time.perf_counter_ns
    times_ns: list[int] = []
    begun_ns = clock()
    while len(times_ns) < IDLE_CYCLES and clock() - begun_ns < IDLE_S * 1e9:
        started_ns = clock()
        schedule()
        times_ns.append(clock() - started_ns)
    return median(times_ns) / 1e3
