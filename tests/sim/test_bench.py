"""The benchmark measures what it says; how fast is no test's business."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from licorne.sim.bench import measure, peak_rss_bytes
from licorne.sim.generate import Options, benchmark
from licorne.sim.lines import Ask
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


def test_memory_is_counted_in_bytes() -> None:
    assert 10_000_000 < peak_rss_bytes() < 100_000_000_000
