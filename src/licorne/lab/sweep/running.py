"""Runs the points of a sweep that a folder does not have yet, on an engine.

Each outcome is a file of its own, named by the point's key, which has its name only when it is complete. So a sweep that was
interrupted, in whatever way, goes on where it was; and what an engine runs twice, after it has lost a machine, counts once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from licorne.lab.sweep.engines import Engine, Processes, Run
from licorne.lab.sweep.plan import Keys, Point
from licorne.lab.sweep.point import Outcome, run_point
from licorne.workload.finished import finished_file

FOLDER = "points"
Progress = Callable[[int, int], None]


class Kept(msgspec.Struct, frozen=True):
    """The content of the file that keeps the result of a point of a sweep."""

    point: Point
    outcome: Outcome


class Job(NamedTuple):
    """A point of a sweep that is to be simulated, and the path of the file to which its outcome is written."""

    point: Point
    path: Path

    def outcome(self) -> Outcome | None:
        """Return the outcome, None if there is none yet; a file that is not one does not count."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Kept).outcome
        except (FileNotFoundError, UnicodeDecodeError, msgspec.MsgspecError):
            return None

    def keep(self, outcome: Outcome) -> None:
        """Write the outcome."""
        with finished_file(self.path) as part:
            part.write_bytes(msgspec.json.format(msgspec.json.encode(Kept(self.point, outcome))) + b"\n")


def jobs_of(points: Sequence[Point], folder: Path) -> list[Job]:
    """Return the points with the files of their outcomes, in order. Raises OSError if an input cannot be read."""
    keys = Keys()
    return [Job(point, folder / FOLDER / f"{keys.of(point)}.json") for point in points]


def join_outcomes(jobs: Sequence[Job], folder: Path) -> None:
    """Take the outcomes that another folder has, for the points without one. Raises FileNotFoundError if it is no such folder."""
    if not (folder / FOLDER).is_dir():
        raise FileNotFoundError(errno.ENOENT, f"no folder of a sweep, which has a folder {FOLDER}", str(folder))
    for job in jobs:
        outcome = job._replace(path=folder / FOLDER / job.path.name).outcome()
        if outcome is not None and job.outcome() is None:
            job.path.parent.mkdir(parents=True, exist_ok=True)
            job.keep(outcome)


def run_sweep(
    jobs: Sequence[Job],
    *,
    engine: Engine | None = None,
    again: bool = False,
    run: Run = run_point,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the points without an outcome, and return the outcomes of all, in order.

    `engine` is where they run, without one in this process, one after the other; the outcomes are the same. `again`: points that
    failed are run once more. `run`, a function of a module, runs one point. `progress` is called with the points done and their
    number.

    Raises:
        EngineError: the engine cannot run points; those that have ended are kept.
    """
    known = {job.path: job.outcome() for job in jobs}
    missing = [job for job in {job.path: job for job in jobs}.values() if _wanted(known[job.path], again=again)]
    done = len(jobs) - len(missing)
    if missing:
        missing[0].path.parent.mkdir(parents=True, exist_ok=True)
    if progress is not None:
        progress(done, len(jobs))
    with closing((engine or Processes(1)).outcomes([job.point for job in missing], run)) as outcomes:
        for number, outcome in outcomes:
            missing[number].keep(outcome)
            done += 1
            if progress is not None:
                progress(done, len(jobs))
    return [job.outcome() or Outcome(error="there is no outcome") for job in jobs]


def _wanted(outcome: Outcome | None, *, again: bool) -> bool:
    return outcome is None or (again and bool(outcome.error))
