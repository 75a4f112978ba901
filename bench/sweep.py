"""Measures what a point of a sweep costs beside its simulation: the same points by processes and by Ray, on this machine.

Points whose run returns at once cost what the engine costs; those of the gangs after the holiday (`examples/gpu-holiday`) are
simulated. Both engines have two processors. Time is wall-clock time, and processor time of this process and all that came of it:
processes of points, or Ray's workers and its other processes. The start of Ray, and of a first few points, is not measured.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from licorne.lab.sweep import Engine, Outcome, Point, Processes, run_point, run_sweep
from licorne.lab.sweep.running import jobs_of

PROCESSORS: Final = 2
GANGS: Final = Path(__file__).resolve().parent.parent / "examples/gpu-holiday/workload.jsonl"
_PER_S: Final = os.sysconf("SC_CLK_TCK")


class SweepFigures(msgspec.Struct, frozen=True):
    """What a point costs, in milliseconds of wall-clock and of processor time; `simulated`: it is simulated, not nothing."""

    engine: str
    simulated: bool
    points: int
    wall_ms: float
    processor_ms: float


def nothing(point: Point) -> Outcome:
    """Return at once."""
    return Outcome(asks=int(point.load or 0))


def measure_sweep(points: int, simulated: int) -> list[SweepFigures]:
    """Measure points that do nothing, and points that are simulated; without the extra `ray` by processes alone."""
    found: list[SweepFigures] = []
    for name, started in _ENGINES.items():
        if name == "ray" and find_spec("ray") is None:
            continue
        with started() as engine:
            _measured(name, engine, 2 * PROCESSORS, simulated=True)
            found.append(_measured(name, engine, points, simulated=False))
            found.append(_measured(name, engine, simulated, simulated=True))
    return found


def _measured(name: str, engine: Engine, number: int, *, simulated: bool) -> SweepFigures:
    points = [Point(workload=str(GANGS), load=1 + index / number) for index in range(number)]
    with tempfile.TemporaryDirectory() as folder:
        jobs = jobs_of(points, Path(folder))
        wall, processor = time.perf_counter(), _processor_s()
        outcomes = run_sweep(jobs, engine=engine, run=run_point if simulated else nothing)
        processor, wall = _processor_s() - processor, time.perf_counter() - wall
    assert not any(outcome.error for outcome in outcomes)
    return SweepFigures(name, simulated, number, round(1000 * wall / number, 1), round(1000 * processor / number, 1))


def _processor_s() -> float:
    """Return the processor time of this process, its descendants, and those of these that have ended and were waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        process = int(path.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))

    def ours(process: int) -> bool:
        while process and process != os.getpid():
            process = parents.get(process, 0)
        return process != 0

    return sum(count for process, count in ticks.items() if ours(process)) / _PER_S


@contextmanager
def _processes() -> Iterator[Engine]:
    yield Processes(PROCESSORS)


@contextmanager
def _ray() -> Iterator[Engine]:
    import ray  # noqa: PLC0415  # of the extra `ray`

    from licorne.lab.sweep.on_ray import Ray  # noqa: PLC0415

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=PROCESSORS, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    try:
        yield Ray()
    finally:
        ray.shutdown()


_ENGINES: Final[dict[str, Callable[[], AbstractContextManager[Engine]]]] = {"processes": _processes, "ray": _ray}
