"""Runs a sweep on a Dask cluster: `python examples/sweeps/on_dask.py SWEEP.yaml FOLDER tcp://SCHEDULER:8786`.

All machines have the same version of licorne, and the files of the sweep under the same names.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec
from distributed import Client, KilledWorker, as_completed

from licorne.lab.sweep import Outcome, Point, read_sweep, run_sweep
from licorne.lab.sweep.engines import Run, outcome_of
from licorne.lab.sweep.running import jobs_of
from licorne.lab.sweep.table import rows, write_table

LOST = "its worker was lost; was there too little memory?"


class Dask:
    """Runs points on the cluster of a client; Dask runs those of a lost worker again."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def outcomes(self, points: Sequence[Point], run: Run) -> Generator[tuple[int, Outcome]]:
        """Run points; see `licorne.lab.sweep.Engine.outcomes`."""
        futures = {self.client.submit(outcome_of, point, run, pure=False): i for i, point in enumerate(points)}
        try:
            for future in as_completed(futures):
                lost = isinstance(future.exception(), KilledWorker)
                outcome = Outcome(error=LOST) if lost else future.result()
                yield futures[future], outcome
        finally:
            self.client.cancel(list(futures))


if __name__ == "__main__":
    sweep, folder = Path(sys.argv[1]), Path(sys.argv[2])
    # Dask runs points in threads, where a call of a policy that takes too long cannot be ended.
    found = [msgspec.structs.replace(point, policy_timeout_s=None) for point in read_sweep(sweep).points()]
    with Client(sys.argv[3]) as client:
        write_table(folder, rows(found, run_sweep(jobs_of(found, folder), engine=Dask(client))), parquet=False)
