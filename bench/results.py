"""The results of a benchmark: figures, verdicts on them, and the machine that they belong to."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec

import licorne
from bench.cases import Case, Target
from bench.measure.churn import ChurnResult
from bench.measure.contest import ContestResult
from bench.measure.footprint import Footprint
from bench.measure.machine import Meter, cpu_model
from bench.measure.speed import BenchResult, Blocked
from bench.ratio import Ratio, Spread, spread

FOLDER = Path(__file__).resolve().parent / "results"
BUSY_CORES = 0.1
"""If other processes kept more processors busy than this, the figures are not reliable."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine of a measurement, and how many processors others kept busy in the second before it."""

    cpu: str
    processors: int
    memory_bytes: int
    system: str
    other_cores: float | None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A target and the measured figure. `bound`: the true figure is this one or greater."""

    target: Target
    measured: float
    reached: bool
    bound: bool = False


class PeerRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result that the driver of the peer prints for a run (`peer/result.go`)."""

    allocs: int
    asks: int
    expect: int
    seconds: float
    capped: bool
    allocs_per_s: float
    own_cpu_s: float
    other_cores: float
    rss_loaded_mb: int
    rss_peak_mb: int
    predicate_calls: int = 0


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One run of each program on the same workload, and how many times as fast licorne was."""

    licorne: BenchResult
    peer: PeerRun
    ratio: Ratio


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """All results of one case."""

    case: Case
    speed: BenchResult | None = None
    blocked: Blocked | None = None
    churn: ChurnResult | None = None
    contest: ContestResult | None = None
    memory: Footprint | None = None
    pairs: list[Pair] = []
    ratios: Spread | None = None
    verdicts: list[Verdict] = []


class Report(msgspec.Struct, kw_only=True):
    """A whole benchmark. `compiled` is None until something was measured; `failures` are cases that could not be."""

    made: str
    licorne: str
    python: str
    compiled: bool | None
    machine: Machine
    peer: str = ""
    cases: list[CaseResult] = []
    failures: list[str] = []

    def add(self, result: CaseResult) -> None:
        """Add the result of a case."""
        self.cases.append(result)
        run = main_run(result) or result.contest
        if run is not None:
            self.compiled = run.compiled


def new_report(peer: str = "") -> Report:
    """Return an empty report on this machine. Takes a second, in which it measures how busy other processes are."""
    return Report(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        licorne=licorne.__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        compiled=None,
        machine=_machine(),
        peer=peer,
    )


def _machine() -> Machine:
    meter = Meter()
    time.sleep(1)
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        memory = 0
    return Machine(
        cpu=cpu_model(),
        processors=os.cpu_count() or 1,
        memory_bytes=memory,
        system=f"{platform.system()} {platform.machine()}",
        other_cores=meter.read().other_cores,
    )


def main_run(result: CaseResult) -> BenchResult | None:
    """Return the run that the case's allocations per second are taken from."""
    if result.blocked is not None:
        return result.blocked.complete
    if result.speed is None and result.pairs:
        return result.pairs[-1].licorne
    return result.speed


def figures(result: CaseResult) -> dict[str, float]:
    """Return the figures of a case by the names that targets use for them."""
    found: dict[str, float] = {}
    run = main_run(result)
    if run is not None:
        found["allocations_per_s"] = run.allocations_per_s
        found["idle_cycle_us"] = run.idle_cycle_us
        found["peak_rss_bytes"] = run.peak_rss_bytes
        found["submit_us_per_ask"] = run.submit_s * 1e6 / max(1, run.asks)
    if result.pairs:
        found["allocations_per_s"] = median(pair.licorne.allocations_per_s for pair in result.pairs)
    if result.blocked is not None:
        found["decide_ratio"] = result.blocked.decide_ratio
    if result.churn is not None:
        found["release_us"] = result.churn.release_us_mean
    if result.contest is not None:
        found[f"{result.contest.counted}_per_s"] = result.contest.per_s
    if result.memory is not None:
        found["pending_ask_bytes"] = result.memory.pending_ask_bytes
        found["allocation_bytes"] = result.memory.allocation_bytes
    if result.ratios is not None:
        found["ratio"] = result.ratios.median.value
    return found


def judged(result: CaseResult, *, compiled: bool) -> CaseResult:
    """Return the result with a verdict on each target for which there is a figure."""
    if result.pairs:
        result = msgspec.structs.replace(result, ratios=spread([pair.ratio for pair in result.pairs]))
    found = figures(result)
    targets = result.case.targets if compiled else result.case.targets_interpreted()
    verdicts = [
        Verdict(
            target=target,
            measured=found[target.figure],
            reached=target.reached(found[target.figure]),
            bound=target.figure == "ratio" and result.ratios is not None and result.ratios.median.bound,
        )
        for target in targets
        if target.figure in found
    ]
    return msgspec.structs.replace(result, verdicts=verdicts)


def store(report: msgspec.Struct, path: Path) -> None:
    """Write a report as JSON. Called again after every case, so that an interruption loses nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
