# ruff: noqa: T201  # errors are printed
"""One measurement in a process of its own, so that none reuses the memory of another; started by `bench.run`.

It reads a `Task` as JSON from standard input and prints the result as JSON. If the workload is not usable, the reason is
printed on standard error, and the exit status is 1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import msgspec

from bench.measure.boundary import BoundaryName
from bench.measure.churn import ChurnResult, churn
from bench.measure.contest import ContestResult, measure_contest
from bench.measure.footprint import Footprint, footprint
from bench.measure.speed import BenchResult, Blocked, measure, measure_blocked
from bench.workloads.contended import contended
from bench.workloads.generate import Options, Size, benchmark
from licorne import RegistrationError
from licorne.workload.workload import Workload, WorkloadError, read_workload

What = Literal["speed", "blocked", "churn", "contest", "memory"]
Outcome = BenchResult | Blocked | ChurnResult | ContestResult | Footprint


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement: its kind, and a case of the generator, or a workload file if one is named."""

    what: What
    workload: str
    options: Options = Options()
    file: str = ""
    boundary: BoundaryName = "objects"
    repeat: int = 1


def perform(task: Task) -> Outcome:
    """Perform the measurement. Raises WorkloadError for a workload that cannot be measured."""
    if task.what == "contest":
        return measure_contest(contended(task.workload, task.options), repeat=task.repeat)
    workload = _workload(task)
    match task.what:
        case "speed":
            return measure(workload, repeat=task.repeat, boundary=task.boundary)
        case "blocked":
            return measure_blocked(workload, repeat=task.repeat, boundary=task.boundary)
        case "churn":
            return churn(workload, seed=task.options.seed)
        case "memory":
            return footprint(workload, task.boundary)


def _workload(task: Task) -> Workload:
    return read_workload(Path(task.file)) if task.file else prepared(task.workload, task.options)


def prepared(case: str, options: Options, size: Size | None = None) -> Workload:
    """Return the workload of a case with preemption disabled; without a setting in the configuration it would be enabled."""
    workload = benchmark(case, options, size)
    before, partition, after = (workload.config or "").partition("  - name: default\n")
    assert partition and before == "partitions:\n", "the generator begins a configuration in another way"
    workload.config = f"{before}{partition}    preemption: {{enabled: false}}\n{after}"
    return workload


def main() -> int:
    """Read a task, perform it, print the outcome; return the exit status."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    try:
        outcome = perform(task)
    except (RegistrationError, WorkloadError) as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
