"""The engine for Dask of the examples, on a cluster of two processes on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from licorne.lab.sweep import Point, read_sweep, run_sweep
from licorne.lab.sweep.running import jobs_of
from licorne.lab.sweep.table import rows, write_table
from sweep import runs

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/sweeps"
GANGS = str(ROOT / "examples/gpu-holiday/workload.jsonl")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs dask and distributed: make nightly PART=ray"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster on which what its worker does not survive is not tried again."""
    import dask  # noqa: PLC0415
    from distributed import LocalCluster  # noqa: PLC0415

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as made,
    ):
        yield made


def test_the_program_writes_the_table_of_one_process(cluster: Any, tmp_path: Path) -> None:
    sweep = EXAMPLES / "holiday.yaml"
    found = read_sweep(sweep).points()
    (expected,) = write_table(tmp_path, rows(found, run_sweep(jobs_of(found, tmp_path))), parquet=False)
    program = [sys.executable, EXAMPLES / "on_dask.py", sweep, tmp_path / "dask", cluster.scheduler_address]
    subprocess.run(program, check=True)
    assert (tmp_path / "dask/table.csv").read_bytes() == expected.read_bytes()


def test_a_point_that_fails_or_whose_worker_dies_is_recorded(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from distributed import Client  # noqa: PLC0415
    from on_dask import LOST, Dask  # type: ignore[import-not-found]  # noqa: PLC0415  # of the examples

    errors = []
    with Client(cluster) as client:
        for load in (3, 2, 1):
            jobs = jobs_of([Point(workload=GANGS, load=load)], tmp_path)
            errors += [outcome.error for outcome in run_sweep(jobs, engine=Dask(client), run=runs.fragile)]
    assert errors == [LOST, "RuntimeError: a fault of the simulator", ""]
