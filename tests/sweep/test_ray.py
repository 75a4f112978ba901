"""Sweeps on a Ray cluster of two nodes on this machine: the table of one process to the byte, whatever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from common.waiting import wait_for
from licorne.lab.sweep import EngineError, Point, Processes, Sweep, run_sweep
from licorne.lab.sweep.running import jobs_of
from licorne.lab.sweep.table import rows, write_table
from sweep import runs

ROOT = Path(__file__).resolve().parents[2]
GANGS = str(ROOT / "examples/gpu-holiday/workload.jsonl")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra `ray`: make nightly PART=ray"),
]
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        (str(ROOT / "tests"), str(ROOT / "src"), *sys.path)
    ),  # workers import what these tests do
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # as there, so that Ray listens on the loopback interface alone
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two nodes with a processor each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        from ray.cluster_utils import Cluster  # noqa: PLC0415  # it reads the environment

        made = Cluster()
        try:
            started(made)
            started(made)
            yield made
        finally:
            made.shutdown()


def started(cluster: Any, tries: int = 10) -> Any:
    """Start a node with a processor. Ray waits half a minute for one, which on a busy machine may be too short."""
    try:
        return cluster.add_node(num_cpus=1)
    except Exception as error:
        if tries == 1 or "timed out during startup" not in str(error):
            raise
        return started(cluster, tries - 1)


@pytest.fixture
def engine(cluster: Any) -> Any:
    from licorne.lab.sweep.on_ray import Ray  # noqa: PLC0415

    return Ray(cluster.address)


def points(number: int = 12) -> list[Point]:
    configurations = ("own", str(ROOT / "examples/gpu-holiday/no-preemption.yaml"))
    return Sweep(
        workloads=(GANGS,), configurations=configurations, loads=[1 + n / 10 for n in range(number // 2)]
    ).points()


def table(folder: Path, found: list[Point], engine: Any, **more: Any) -> bytes:
    (path,) = write_table(folder, rows(found, run_sweep(jobs_of(found, folder), engine=engine, **more)), parquet=False)
    return path.read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return table(tmp_path_factory.mktemp("expected"), points(), Processes(1))


def test_the_table_is_that_of_one_process(engine: Any, expected: bytes, tmp_path: Path) -> None:
    assert table(tmp_path, points(), engine) == expected


def test_a_node_that_is_killed_costs_nothing_but_time(
    cluster: Any, engine: Any, expected: bytes, tmp_path: Path
) -> None:
    node = started(cluster)

    def progress(done: int, _: int) -> None:
        if done == 3:
            cluster.remove_node(node, allow_graceful=False)

    assert table(tmp_path, points(), engine, progress=progress) == expected


PROGRAM = """
import sys
from pathlib import Path
from licorne.lab.sweep import run_sweep
from licorne.lab.sweep.on_ray import Ray
from licorne.lab.sweep.running import jobs_of
from sweep import runs, test_ray
run_sweep(jobs_of(test_ray.points(), Path(sys.argv[2])), engine=Ray(sys.argv[1]), run=runs.slow)
"""


def test_a_driver_that_is_killed_goes_on_where_it_was(engine: Any, expected: bytes, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, engine.address, str(tmp_path)]) as driver:
        wait_for(lambda: len(list(tmp_path.glob("points/*.json"))) >= 2)
        driver.send_signal(signal.SIGKILL)
    kept = len(list(tmp_path.glob("points/*.json")))
    assert 2 <= kept < 12
    told: list[int] = []
    assert table(tmp_path, points(), engine, progress=lambda done, _: told.append(done)) == expected
    assert told[0] == kept


def test_a_point_whose_worker_dies_is_recorded_and_the_others_go_on(engine: Any, tmp_path: Path) -> None:
    found = [Point(workload=GANGS, load=float(load)) for load in (1, 2, 3, 4)]
    outcomes = run_sweep(jobs_of(found, tmp_path), engine=engine, run=runs.fragile)
    lost = "its worker was lost 4 times; was there too little memory?"
    assert [outcome.error for outcome in outcomes] == ["", "RuntimeError: a fault of the simulator", lost, lost]


def test_a_point_costs_little(engine: Any, tmp_path: Path) -> None:
    """Printed, not bounded, since it is the machine's speed: at most 20 ms are wanted on a quiet one."""
    found = [Point(workload=GANGS, load=float(load)) for load in range(1, 1001)]
    run_sweep(jobs_of(found[:8], tmp_path / "warm"), engine=engine, run=runs.nothing)
    began = time.perf_counter()
    run_sweep(jobs_of(found, tmp_path), engine=engine, run=runs.nothing)
    sys.stdout.write(f"\n{time.perf_counter() - began:.1f} ms a point\n")  # of a thousand


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:6379"])
def test_a_wrong_address_is_told(address: str, tmp_path: Path) -> None:
    from licorne.lab.sweep.on_ray import Ray  # noqa: PLC0415

    with pytest.raises(EngineError, match=f"the Ray cluster at {address} cannot be reached: .*`ray status`"):
        run_sweep(jobs_of(points(2), tmp_path), engine=Ray(address))


def test_a_worker_with_another_version_runs_nothing(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from licorne.lab.sweep import on_ray  # noqa: PLC0415

    monkeypatch.setattr(on_ray, "__version__", "9.9")
    with pytest.raises(EngineError, match=r"the worker on .* has licorne .*: install licorne\[ray\]==9.9 there"):
        run_sweep(jobs_of(points(2), tmp_path), engine=engine)
