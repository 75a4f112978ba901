"""Measure licorne alone, each case and each kind of figure in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from bench.cases import Case
from bench.measure.churn import ChurnResult
from bench.measure.contest import ContestResult
from bench.measure.footprint import Footprint
from bench.measure.speed import BenchResult, Blocked
from bench.results import CaseResult, judged, main_run
from bench.worker import Task, What

ROOT = Path(__file__).resolve().parent.parent
Kind = TypeVar("Kind", BenchResult, Blocked, ChurnResult, ContestResult, Footprint)


class BenchError(Exception):
    """A measurement that failed; the text says which one, and the error output."""


def measure_case(case: Case, *, repeat: int, interpreted: bool = False, memory: bool = True) -> CaseResult:
    """Measure a case in every way that its kind requires. Raises BenchError if a measurement fails."""
    result = CaseResult(case=case)
    if case.kind == "contest":
        contest = apart(task_of(case, "contest", repeat=repeat), ContestResult, interpreted=interpreted)
        return judged(msgspec.structs.replace(result, contest=contest), compiled=contest.compiled)
    if case.kind == "blocked":
        task = task_of(case, "blocked", repeat=repeat)
        result = msgspec.structs.replace(result, blocked=apart(task, Blocked, interpreted=interpreted))
    else:
        task = task_of(case, "speed", repeat=repeat)
        result = msgspec.structs.replace(result, speed=apart(task, BenchResult, interpreted=interpreted))
    if case.kind == "churn":
        task = task_of(case, "churn")
        result = msgspec.structs.replace(result, churn=apart(task, ChurnResult, interpreted=interpreted))
    if memory:
        task = task_of(case, "memory")
        result = msgspec.structs.replace(result, memory=apart(task, Footprint, interpreted=interpreted))
    run = main_run(result)
    return judged(result, compiled=run is not None and run.compiled)


def task_of(case: Case, what: What, *, repeat: int = 1, file: str = "") -> Task:
    """Return the task for one measurement of a case."""
    return Task(
        what=what,
        workload=case.workload,
        options=case.options(),
        file=file,
        boundary=case.boundary,
        repeat=repeat,
    )


def apart(task: Task, kind: type[Kind], *, interpreted: bool = False) -> Kind:
    """Perform a task in a fresh process. Raises BenchError if it fails."""
    outcome = run_apart(task, folder=ROOT, environment=environment(interpreted=interpreted))
    return msgspec.json.decode(outcome, type=kind)


def run_apart(task: Task, *, folder: Path, environment: Mapping[str, str]) -> bytes:
    """Perform a task by the worker in a folder; return the outcome as JSON. Raises BenchError if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker"],
        input=msgspec.json.encode(task),
        capture_output=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
        raise BenchError(f"{task.workload} ({task.what}): {said}")
    return done.stdout


def environment(*, interpreted: bool) -> Mapping[str, str]:
    """Return the environment of a measuring process."""
    if not interpreted:
        return os.environ
    return {**os.environ, "LICORNE_INTERPRETED": "1"}
