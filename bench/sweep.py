"""Measures what a point of a sweep costs beside its simulation: the same points by processes and by Ray, on this machine.

Points whose run returns at once cost what the engine costs; those of the gangs after the holiday (`examples/gpu-holiday`) are
simulated. Both engines have two processors. Time is wall-clock time, and processor time of this process and all that came of it:
processes of points, or Ray's workers and its other processes. The start of Ray, and of a first few points, is not measured.

How much a second machine brings is measured by points that are simulated for long, on a Ray cluster of one node with one
processor, and on one of two such nodes, all on this machine.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Final

import msgspec

from licorne.lab.sweep import Engine, Outcome, Point, Processes, run_point, run_sweep
from licorne.lab.sweep.engines import Run
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


class NodesFigures(msgspec.Struct, frozen=True):
    """How long points that are each simulated `times` times take on one Ray node with one processor, and on two.

    `ratio`: how many times as fast two nodes are.
    """

    points: int
    times: int
    one_node_s: float
    two_nodes_s: float
    ratio: float


class SweepReport(msgspec.Struct, frozen=True):
    """What points cost, and what a second node brings; None without the extra `ray`."""

    engines: list[SweepFigures]
    nodes: NodesFigures | None


def nothing(point: Point) -> Outcome:
    """Return at once."""
    return Outcome(asks=int(point.load or 0))


def repeated(point: Point, times: int) -> Outcome:
    """Simulate a point several times."""
    return [run_point(point) for _ in range(times)][-1]


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


def measure_nodes(points: int, point_s: float) -> NodesFigures | None:
    """Measure points that take at least so long, on one Ray node and on two; None without the extra `ray`."""
    if find_spec("ray") is None:
        return None
    one = _points(1)
    run_point(one[0])
    began = time.perf_counter()
    run_point(one[0])
    times = ceil(point_s / (time.perf_counter() - began))
    walls: list[float] = []
    for nodes in (1, 2):
        with _ray_nodes(nodes) as engine:
            _run(_points(2 * nodes), engine, run_point)
            walls.append(_run(_points(points), engine, partial(repeated, times=times))[0])
    return NodesFigures(points, times, round(walls[0], 1), round(walls[1], 1), round(walls[0] / walls[1], 2))


def _measured(name: str, engine: Engine, number: int, *, simulated: bool) -> SweepFigures:
    wall, processor = _run(_points(number), engine, run_point if simulated else nothing)
    return SweepFigures(name, simulated, number, round(1000 * wall / number, 1), round(1000 * processor / number, 1))


def _points(number: int) -> list[Point]:
    return [Point(workload=str(GANGS), load=1 + index / number) for index in range(number)]


def _run(points: list[Point], engine: Engine, run: Run) -> tuple[float, float]:
    """Run points; return the seconds of wall-clock and of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = jobs_of(points, Path(folder))
        wall, processor = time.perf_counter(), _processor_s()
        outcomes = run_sweep(jobs, engine=engine, run=run)
        processor, wall = _processor_s() - processor, time.perf_counter() - wall
    assert not any(outcome.error for outcome in outcomes)
    return wall, processor


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
def _ray_nodes(number: int) -> Iterator[Engine]:
    """Start a Ray cluster of nodes with one processor each, on the loopback interface."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    from ray.cluster_utils import Cluster  # noqa: PLC0415  # of the extra `ray`; it reads the environment

    from licorne.lab.sweep.on_ray import Ray  # noqa: PLC0415

    cluster = Cluster()
    try:
        for _ in range(number):
            cluster.add_node(num_cpus=1)
        yield Ray(cluster.address)
    finally:
        cluster.shutdown()


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
