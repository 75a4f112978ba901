"""Measures how long the page of a moment takes, of a recorded week of 5,000 nodes and some 50,000 pods at a time (`bench/large.yaml`).

The week is recorded with the checkpoints that `licorne serve` has (`bench.moment`). Each moment is asked for as a scheduler that runs asks:
of a process of its own, which begins with the question. So a time is that of a first look, with the start of Python, which `start_s` has alone;
who looks at more moments has a process that runs. The moments that take longest are those just before a checkpoint, and are measured too.
Processor times mean something on a machine that does other work too.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import msgspec

from bench.moment import LENGTH_NS, SECOND_NS, SEED, Recorded, record
from bench.run import BenchError
from licorne.host.web.page import past
from licorne.sim.collector import quiet_collector
from licorne.state.recording.checkpoints import read

SCENARIO: Final = Path(__file__).with_name("large.yaml")
DRAWN: Final = 6
VIEWS: Final = ("/", "/queues", "/nodes")
STARTS: Final = 3


class Moments(msgspec.Struct, frozen=True):
    """What was measured: seconds of a processor from a request to its page, and by the clock; `start_s`: of these until Python has started."""

    recorded: Recorded
    start_s: float
    median_s: float
    most_s: float
    most_by_the_clock_s: float


def measure_past(load: float = 1.0, say: Callable[[str], object] = lambda _: None) -> Moments:
    """Record the week, with `load` times its arrivals, and measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with quiet_collector():
            recorded, run, checkpoints = record(SCENARIO, folder, load, say)
        random, begins_ns = Random(SEED), run.begins_ns or 0
        moments = [begins_ns + random.randrange(LENGTH_NS) for _ in range(DRAWN)]
        moments += [read(path).now_ns - SECOND_NS for path in random.sample(checkpoints, min(DRAWN, len(checkpoints)))]
        start_s = min(asyncio.run(_asked(folder, "/static/page.css", ""))[0] for _ in range(STARTS))
        found = []
        for number, at_ns in enumerate(moments):
            view = VIEWS[number % len(VIEWS)]
            found.append(asyncio.run(_asked(folder, view, f"t={at_ns / SECOND_NS:.3f}")))
            day = (at_ns - begins_ns) / SECOND_NS / 86_400
            say(f"  {view:8} {day:5.2f} d: {found[-1][0]:.2f} s of a processor, {found[-1][1]:.2f} s by the clock")
        return Moments(
            recorded=recorded,
            start_s=round(start_s, 2),
            median_s=round(median(took for took, _ in found), 2),
            most_s=round(max(took for took, _ in found), 2),
            most_by_the_clock_s=round(max(clock for _, clock in found), 2),
        )


async def _asked(folder: Path, path: str, query: str) -> tuple[float, float]:
    """Return what the page of a moment took: seconds of a processor of the process, from its start to its end, and by the clock."""
    before, began, ending = _of_children(), time.perf_counter(), asyncio.Event()
    response = await past.Past(folder, ending).page(path, query)
    clock_s = time.perf_counter() - began
    if response.status_code != 200:
        raise BenchError(f"{path}?{query}: {response.status_code}")
    ending.set()
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    return _of_children() - before, clock_s


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


__all__ = ["Moments", "measure_past"]
