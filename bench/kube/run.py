"""Measures licorne in a cluster: turns of a bare client, licorne and kube-scheduler on one control plane, and a large one.

What a turn measures, each with as many new pods: `bind`, what a client reaches that has nothing to decide; `backlog`, pods
that are all there before the scheduler starts, from the first binding to the last; `stream`, pods that are created
while the scheduler runs, from the first creation to the last binding. All of it once with kwok, which plays the kubelets
and keeps the API server busy, and once without.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec

from bench.cases import Target
from bench.kube.api import Loader, loader
from bench.kube.plane import Licorne, Plane
from bench.kube.playing import measure_large
from bench.results import Verdict

LICORNE, KUBE = "yunikorn", "default-scheduler"
SETTLE_S = 3.0
"""How long a scheduler has to read the cluster before a stream begins."""


class Figures(msgspec.Struct, kw_only=True):
    """The figures of all turns, by name, and those of the large cluster."""

    nodes: int
    pods: int
    turns: dict[str, list[float]] = {}
    large: dict[str, float] = {}
    verdicts: list[Verdict] = []

    def add(self, name: str, value: float) -> None:
        """Add a figure of a turn."""
        self.turns.setdefault(name, []).append(round(value, 3))

    def median(self, name: str) -> float:
        """Return the median over the turns."""
        return median(self.turns[name])


class Measurement:
    """The turns on one control plane.

    Parameters:
        plane: the control plane.
        figures: where the results are added.
        say: told of progress.
    """

    def __init__(self, plane: Plane, figures: Figures, say: Callable[[str], None]) -> None:
        self._plane = plane
        self._figures = figures
        self._say = say
        self._log = plane.run / "log" / "licorne.log"

    async def turn(self, number: int, *, kwok: bool) -> None:
        """Measure everything once; schedulers take turns in being the first."""
        schedulers = (LICORNE, KUBE) if number % 2 == 0 else (KUBE, LICORNE)
        suffix = "" if kwok else "_without_kwok"
        async with loader(self._plane.kubeconfig) as client:
            await self._bind(client, f"bind{suffix}")
            for scheduler in schedulers:
                await self._backlog(client, scheduler, suffix)
            for scheduler in schedulers:
                await self._stream(client, scheduler, suffix)

    def _names(self) -> list[str]:
        return [f"b{time.time_ns() // 1_000_000}-{number}" for number in range(self._figures.pods)]

    def _add(self, name: str, value: float) -> None:
        self._figures.add(name, value)
        self._say(f"  {name}: {value:,.2f}")

    async def _bind(self, client: Loader, name: str) -> None:
        names = self._names()
        await client.create(names, "nobody")
        async with client.watching(names):
            cpu_s = time.process_time()
            self._add(name, await client.bind(names, await client.nodes()))
            await client.all_bound()
            self._add(f"{name}_cpu_ms_a_pod", 1000 * (time.process_time() - cpu_s) / len(names))
        await client.clear()

    async def _backlog(self, client: Loader, scheduler: str, suffix: str) -> None:
        names = self._names()
        await client.create(names, scheduler)
        async with client.watching(names):
            program = self._start(scheduler)
            await client.all_bound()
            self._end(program)
        self._add(f"{_program(scheduler)}_backlog{suffix}", client.rate())
        await client.clear()

    async def _stream(self, client: Loader, scheduler: str, suffix: str) -> None:
        names = self._names()
        program = self._start(scheduler)
        await asyncio.sleep(SETTLE_S)
        async with client.watching(names):
            cpu_s, began = program.cpu_s(), time.perf_counter()
            await client.create(names, scheduler)
            await client.all_bound()
            used_s, took_s = program.cpu_s() - cpu_s, time.perf_counter() - began
            peak = program.peak_bytes()
            self._end(program)
        name = _program(scheduler)
        self._add(f"{name}_stream{suffix}", len(names) / took_s)
        self._add(f"{name}_cpu_ms_a_pod{suffix}", 1000 * used_s / len(names))
        self._add(f"{name}_peak_mb{suffix}", peak / 1e6)
        await client.clear()

    def _start(self, scheduler: str) -> Licorne | _KubeScheduler:
        if scheduler == LICORNE:
            return Licorne(self._plane.kubeconfig, self._log)
        return _KubeScheduler(self._plane)

    def _end(self, program: Licorne | _KubeScheduler) -> None:
        program.end()


class _KubeScheduler:
    """kube-scheduler, with the methods of `Licorne`."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._process = plane.kube_scheduler()
        self.cpu_s = self._process.cpu_s
        self.peak_bytes = self._process.peak_bytes

    def end(self) -> None:
        """End it."""
        self._plane.end_program("kube-scheduler")


def _program(scheduler: str) -> str:
    return "licorne" if scheduler == LICORNE else "kube"


def measure_turns(figures: Figures, programs: Path, turns: int, say: Callable[[str], None]) -> None:
    """Measure all turns, with kwok and then without."""
    with tempfile.TemporaryDirectory(prefix="licorne-bench-") as folder:
        plane = Plane(Path(folder), programs, figures.nodes)
        try:
            measurement = Measurement(plane, figures, say)
            for kwok in (True, False):
                if not kwok:
                    plane.end_program("kwok")
                for number in range(turns):
                    say(f"turn {number + 1} of {turns}, {'with' if kwok else 'without'} kwok")
                    asyncio.run(measurement.turn(number, kwok=kwok))
        finally:
            plane.down()


def judge(figures: Figures) -> None:
    """Compare the medians with the targets."""
    found: list[tuple[Target, float]] = []
    if figures.turns:
        of = figures.median
        found += [
            (Target("backlog_through_bind", 0.85), of("licorne_backlog") / of("bind")),
            (Target("backlog_through_kube", 1.3), of("licorne_backlog") / of("kube_backlog")),
            (Target("stream_through_kube", 1.0), of("licorne_stream") / of("kube_stream")),
            (Target("backlog_without_kwok", 1200), of("licorne_backlog_without_kwok")),
            (Target("cpu_ms_a_pod", 0.6, at_most=True), of("licorne_cpu_ms_a_pod_without_kwok")),
        ]
    if figures.large:
        found += [
            (Target("first_decision_s", 15, at_most=True), figures.large["first_decision_s"]),
            (Target("peak_mb", 1000, at_most=True), figures.large["peak_mb"]),
        ]
    figures.verdicts = [
        Verdict(target=target, measured=value, reached=target.reached(value)) for target, value in found
    ]


def measure_kube(
    figures: Figures, programs: Path, turns: int, large: tuple[int, int], say: Callable[[str], None]
) -> None:
    """Measure turns (0: none) and the large cluster (nodes and running pods; none if 0), and judge."""
    if turns:
        measure_turns(figures, programs, turns, say)
    if large[0]:
        figures.large = measure_large(*large, say)
    judge(figures)
