"""The benchmark measures what it says; how fast is no test's business."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from licorne.sim.bench import measure, measure_blocked
from licorne.sim.churn import churn
from licorne.sim.footprint import footprint
from licorne.sim.generate import Options, Size, benchmark
from licorne.sim.lines import Ask
from licorne.sim.machine import Meter, cpu_model, peak_rss_bytes, rss_bytes
from licorne.sim.runner import simulate
from licorne.sim.week import week
from licorne.sim.workload import WorkloadError


def test_it_places_what_the_workload_expects() -> None:
    result = measure(benchmark("t"), repeat=2)
    assert (result.asks, result.allocations, result.expected) == (200, 200, 200)
    assert len(result.runs) == 2
    assert result.seconds > 0
    assert result.allocations_per_s > 0
    for run in result.runs:
        assert run.seconds == pytest.approx(run.submit_s + run.decide_s)
        assert run.allocations_per_s == pytest.approx(run.allocations / run.seconds)


def test_it_decides_as_the_simulator_does(tmp_path: Path) -> None:
    workload = benchmark("t", Options(shape="unique", appsort="fair"))
    path = tmp_path / "decisions"
    digest = simulate(workload, decisions=path).digest
    assert measure(workload).digest == digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_reservations_can_be_on() -> None:
    assert measure(benchmark("t"), reservations=True).allocations == 200


def test_only_version_1_is_measured() -> None:
    with pytest.raises(WorkloadError, match="only workloads of version 1"):
        measure(week())


def test_a_refused_ask_is_no_measurement() -> None:
    workload = benchmark("t")
    workload.lines.append(Ask(key="k", app="nobody", res={"vcore": 1}))
    with pytest.raises(WorkloadError, match="1 asks refused, the first: failed to find application nobody"):
        measure(workload)


def test_a_run_tells_of_its_idle_cycle_and_of_the_machine() -> None:
    result = measure(benchmark("t", Options(demand=20)))
    assert result.pending == 200 - result.allocations > 0
    assert 0 < result.idle_cycle_us < 1e6
    assert result.cpu_s > 0
    assert 0 <= result.peak_bytes < result.peak_rss_bytes
    assert result.boundary == "objects"


def test_an_unknown_boundary_is_refused() -> None:
    with pytest.raises(WorkloadError, match="boundary: 'telepathy' is none of objects"):
        measure(benchmark("t"), boundary="telepathy")  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ["e2", "e3"])
def test_blocked_asks_are_measured_against_none(case: str) -> None:
    result = measure_blocked(benchmark(case, size=Size(20, 1_100, 11, 2) if case == "e3" else Size(50, 1_200, 60, 2)))
    blocked = 100 if case == "e3" else 1_000
    assert result.complete.asks - result.without.asks == blocked == result.complete.pending
    assert result.complete.allocations == result.without.allocations == result.without.asks
    assert result.decide_ratio == pytest.approx(result.complete.decide_s / result.without.decide_s)
    assert result.submit_us_per_ask == pytest.approx(result.complete.submit_s / result.complete.asks * 1e6)


def test_each_end_makes_room_for_one_that_waits() -> None:
    result = churn(benchmark("churn", Options(shape="unique"), Size(20, 320, 16, 2)), releases=30)
    assert (result.releases, result.allowed) == (30, 30)
    assert 30 <= result.allocations <= 60
    assert result.waiting > 60
    assert 0 < result.release_us_median <= result.release_us_p99


def test_a_churn_ends_when_its_time_is_up() -> None:
    assert churn(benchmark("churn", size=Size(20, 320, 16, 2)), limit_s=0).releases == 1


def test_a_churn_needs_something_that_can_end() -> None:
    workload = benchmark("t")
    workload.lines = [line for line in workload.lines if not isinstance(line, Ask)]
    with pytest.raises(WorkloadError, match="nothing was allocated"):
        churn(workload)


def test_memory_is_told_for_asks_and_allocations() -> None:
    result = footprint(benchmark("a", Options(shape="unique")))
    assert (result.asks, result.allocations) == (10_000, 10_000)
    # Wide bounds: the process has a past, and allocators reuse what it gave back.
    assert result.pending_ask_bytes < 20_000
    assert result.peak_bytes < 1 << 30


def test_memory_is_counted_in_bytes() -> None:
    assert 10_000_000 < rss_bytes() < 100_000_000_000
    assert 10_000_000 < peak_rss_bytes() < 100_000_000_000


def test_the_machine_is_told_apart_from_this_process() -> None:
    meter = Meter()
    sum(range(2_000_000))
    use = meter.read()
    assert use.cpu_s > 0
    assert use.wall_s > 0
    assert use.other_cores is None or use.other_cores >= 0
    assert cpu_model()
