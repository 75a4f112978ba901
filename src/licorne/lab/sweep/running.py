"""Runs the points of a sweep that a folder does not have yet, each in a process of its own, as many at a time as wanted.

Each outcome is a file of its own, named by the point's key, which has its name only when it is complete. So a sweep that was
interrupted, in whatever way, goes on where it was. A process for each point costs a tenth of a second, and a point that takes
all memory or crashes ends alone: the others go on, and it is recorded as failed.

A process ends when the one that started it has: it watches for that, because a process that is killed cannot end its own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from licorne.lab.sweep.plan import Keys, Point
from licorne.lab.sweep.point import Outcome, run_point
from licorne.workload.finished import finished_file

FOLDER = "points"
ENDING_S = 5.0
"""How long a process that is to end has for it."""
Run = Callable[[Point], Outcome]
Progress = Callable[[int, int], None]


class Kept(msgspec.Struct, frozen=True):
    """The content of the file that keeps the result of a point of a sweep."""

    point: Point
    outcome: Outcome


class Job(NamedTuple):
    """A point, and the file of its outcome."""

    point: Point
    path: Path

    def outcome(self) -> Outcome | None:
        """Return the outcome, None if there is none yet; a file that is not one does not count."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Kept).outcome
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def keep(self, outcome: Outcome) -> None:
        """Write the outcome."""
        with finished_file(self.path) as part:
            part.write_bytes(msgspec.json.format(msgspec.json.encode(Kept(self.point, outcome))) + b"\n")


def jobs_of(points: Sequence[Point], folder: Path) -> list[Job]:
    """Return the points with the files of their outcomes, in order. Raises OSError if an input cannot be read."""
    keys = Keys()
    return [Job(point, folder / FOLDER / f"{keys.of(point)}.json") for point in points]


def run_sweep(
    jobs: Sequence[Job],
    *,
    processes: int = 1,
    again: bool = False,
    run: Run = run_point,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the points without an outcome, and return the outcomes of all, in order.

    With 1 of `processes` they run in this process, one after the other; the outcomes are the same. `again`: points that failed
    are run once more. `run`, a function of a module, runs one point. `progress` is called with the points done and their number.
    """
    known = {job.path: job.outcome() for job in jobs}
    missing = [job for job in jobs_by_path(jobs) if _wanted(known[job.path], again=again)]
    done = len(jobs) - len(missing)
    if missing:
        missing[0].path.parent.mkdir(parents=True, exist_ok=True)

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(jobs))

    if progress is not None:
        progress(done, len(jobs))
    if processes == 1:
        for job in missing:
            job.keep(run(job.point))
            tell()
    else:
        _by_processes(missing, processes, run, tell)
    return [job.outcome() or Outcome(error="there is no outcome") for job in jobs]


def jobs_by_path(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs without those whose file another one has."""
    return list({job.path: job for job in jobs}.values())


def _wanted(outcome: Outcome | None, *, again: bool) -> bool:
    return outcome is None or (again and bool(outcome.error))


def _by_processes(missing: Sequence[Job], processes: int, run: Run, tell: Callable[[], None]) -> None:
    start = _starter()
    waiting = list(reversed(missing))
    running: dict[Any, tuple[BaseProcess, Job]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop()
                job.path.unlink(missing_ok=True)
                process = start(target=_work, args=(job, run), daemon=True)
                process.start()
                running[process.sentinel] = process, job
            for sentinel in wait(list(running)):
                process, job = running.pop(sentinel)
                process.join()
                if job.outcome() is None:
                    job.keep(Outcome(error=_ended(process.exitcode)))
                tell()
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join(ENDING_S)
            if process.is_alive():
                process.kill()


def _starter() -> Callable[..., BaseProcess]:
    """Return what makes processes: from one that has loaded the simulator, where there is such a thing, else each anew."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn").Process
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context.Process


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; was there too little memory?"
    return f"its process ended with status {code}"


def _work(job: Job, run: Run) -> None:
    """Run one point, in its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        outcome = run(job.point)
    except Exception as error:  # noqa: BLE001  # a fault of the simulator is that of this point, not of the others
        outcome = Outcome(error=f"{type(error).__name__}: {error}")
    job.keep(outcome)
    sys.stdout.flush()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
