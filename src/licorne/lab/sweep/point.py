"""One point of a sweep: simulate it, and return its figures in one row. Nothing here knows how points are distributed."""

from __future__ import annotations

from math import fsum
from pathlib import Path

import msgspec
from msgspec.structs import replace

from licorne._files import file_text
from licorne.config import ConfigError
from licorne.config.manifest import queue_source
from licorne.core.api import RegistrationError
from licorne.core.base.setting_table import SettingsError
from licorne.lab.report.collector import Collector
from licorne.lab.report.figures import Figures
from licorne.lab.sweep.plan import OWN, Point
from licorne.sim.policies.interface import PolicyError
from licorne.sim.policies.watch import watch_calls
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.workload.lines import Line
from licorne.workload.reading import is_scenario, load_workload
from licorne.workload.workload import Workload, WorkloadError


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a point came to; `error` says why it failed, and then all figures are None.

    Times are in seconds, shares fractions of 1. `wait_…` are of the pods that were placed, `completion_…` and `slowdown_…` (the
    bounded slowdown) of those that ended. `use` is the mean use of `scarcest`, the resource that is used most. `guarantee_missing`
    is the part of their guarantees that queues lacked on average while they had demand; `evenness` the mean of Jain's index;
    `fragmented` the mean share of devices that are fragmented. `policy_digest` is SHA-256 of the file of the policy, None without
    one; `decisions` is the digest of all decisions.
    """

    error: str = ""
    policy_digest: str | None = None
    asks: int | None = None
    placed: int | None = None
    never_placed: int | None = None
    rejected_applications: int | None = None
    preempted: int | None = None
    wait_mean_s: float | None = None
    wait_p50_s: float | None = None
    wait_p95_s: float | None = None
    wait_p99_s: float | None = None
    completion_mean_s: float | None = None
    slowdown_mean: float | None = None
    slowdown_p95: float | None = None
    use: float | None = None
    scarcest: str | None = None
    evenness: float | None = None
    guarantee_missing: float | None = None
    lost_pod_h: float | None = None
    fragmented: float | None = None
    simulated_s: float | None = None
    decisions: str | None = None


def run_point(point: Point) -> Outcome:
    """Simulate a point; return its figures, or why it cannot be simulated.

    The same point and the same files give the same outcome, in any process and in any thread. A point with a policy has to be run
    in the main thread of a process, since calls can be ended only there; with None for its `policy_timeout_s` it runs in any.

    Raises:
        PolicyError: the calls of the point's policy have a limit, and cannot be ended here.
    """
    if point.policy != OWN:
        watch_calls(point.policy_timeout_s)
    try:
        return _simulated(point)
    except (ConfigError, PolicyError, WorkloadError, RegistrationError, SettingsError, OSError, ValueError) as error:
        return Outcome(error=str(error))


def _simulated(point: Point) -> Outcome:
    workload = _workload(point)
    if point.device_policy:
        if not workload.devices:
            raise WorkloadError(f"{point.workload}: this workload has no devices, so device_policies is not for it")
        workload.device_policy = point.device_policy  # type: ignore[assignment]  # the sweep's reader knows the names
    config = None
    if point.configuration != OWN:
        config = queue_source(file_text(Path(point.configuration)), point.configuration).text
    collector = Collector()
    result = simulate(
        workload,
        config=config,
        settings=point.settings,
        policies=[] if point.policy == OWN else [point.policy],
        policy_timeout_s=point.policy_timeout_s,
        observers=[collector],
        since_s=point.since_s,
        until_s=point.until_s,
        pods=False,
    )
    return outcome(result, collector.figures(result))


def _workload(point: Point) -> Workload:
    path = Path(point.workload)
    if is_scenario(path):
        return load_workload(path, load=point.load, seed=point.seed, asks_max=point.max_asks)
    if point.seed is not None:
        raise WorkloadError(f"{path}: nothing of this workload is drawn, so `seeds` is not for it")
    workload = load_workload(path, asks_max=point.max_asks)
    load = point.load
    if load is None:
        return workload
    return msgspec.structs.replace(workload, lines=[_sooner(line, load) for line in workload.lines])


def _sooner(line: Line, load: float) -> Line:
    """Return a line that comes `load` times as early."""
    return line if not line.at else replace(line, at=line.at / load)


def outcome(result: Result, figures: Figures) -> Outcome:
    """Return the row of a simulation."""
    everything = figures.everything
    waits, completions, slowdowns = everything.waiting_s, everything.completion_s, everything.slowdown
    scarcest = max(result.utilisation, key=lambda row: (row.mean, row.resource), default=None)
    short = [row.mean / row.guaranteed for row in figures.shortfalls if row.guaranteed and row.demand_s]
    fragmented: list[float] = []
    if figures.fragmentation is not None:
        fragmented = [value for value in figures.fragmentation.of_capacity if value is not None]
    return Outcome(
        policy_digest=result.policies[0].digest if result.policies else None,
        asks=result.asks,
        placed=result.placed,
        never_placed=result.never_placed,
        rejected_applications=result.applications_rejected,
        preempted=result.preempted,
        wait_mean_s=waits.mean if waits.number else None,
        wait_p50_s=waits.p50 if waits.number else None,
        wait_p95_s=waits.p95 if waits.number else None,
        wait_p99_s=waits.p99 if waits.number else None,
        completion_mean_s=completions.mean if completions.number else None,
        slowdown_mean=slowdowns.mean if slowdowns.number else None,
        slowdown_p95=slowdowns.p95 if slowdowns.number else None,
        use=scarcest.mean if scarcest is not None else None,
        scarcest=scarcest.resource if scarcest is not None else None,
        evenness=figures.evenness_mean,
        guarantee_missing=_mean(short),
        lost_pod_h=round(fsum(row.lost_pod_s for row in result.evictions) / 3600, 6),
        fragmented=_mean(fragmented),
        simulated_s=result.simulated_s,
        decisions=result.digest,
    )


def _mean(values: list[float]) -> float | None:
    return round(fsum(values) / len(values), 6) if values else None
