"""The same input gives the same decisions: under two hash seeds, compiled and interpreted, in one step or as time passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from bench.workloads.generate import Options, benchmark
from bench.workloads.week import week

from licorne.core import compiled
from licorne.sim.runner import simulate
from licorne.workload.lines import Ask
from licorne.workload.workload import Mode, write_workload

TWO_DAYS_S = 2 * 86_400


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first two days of the sample's week: an interpreted scheduler takes its time."""
    workload = week()
    workload.lines = [line for line in workload.lines if line.at is None or line.at < TWO_DAYS_S]
    path = tmp_path_factory.mktemp("determinism") / "two-days.jsonl"
    with path.open("wb") as stream:
        write_workload(workload, stream)
    return path


def result_of(workload: Path, **environment: str) -> dict[str, object]:
    """The result that another process comes to, without what may differ."""
    command = [sys.executable, "-m", "licorne.cli", "simulate", str(workload), "--json"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, check=True)
    result: dict[str, object] = json.loads(done.stdout)
    del result["real_s"], result["compiled"]
    return result


@pytest.mark.gate
def test_hash_seeds_and_compilation_make_no_difference(two_days: Path) -> None:
    first = result_of(two_days, PYTHONHASHSEED="1")
    assert first["placed"] == first["asks"] != 0
    assert result_of(two_days, PYTHONHASHSEED="2") == first
    if compiled:
        assert result_of(two_days, PYTHONHASHSEED="3", LICORNE_INTERPRETED="1") == first


@pytest.mark.parametrize(
    ("case", "options"),
    [("t", Options()), ("a", Options(shape="unique", appsort="fair")), ("a", Options(demand=2)), ("e3", Options())],
)
def test_a_moment_of_a_timed_simulation_decides_as_version_1(case: str, options: Options) -> None:
    """Asks that arrive at one moment are decided as if time stood still; time alone does not help those that wait then."""
    workload = benchmark(case, options)
    together = simulate(workload)
    timed = msgspec.structs.replace(
        workload,
        mode=Mode.TIMED,
        lines=[msgspec.structs.replace(line, at=0) if isinstance(line, Ask) else line for line in workload.lines],
    )
    as_time_passes = simulate(timed)
    assert as_time_passes.digest == together.digest
    assert as_time_passes.placed == together.placed
