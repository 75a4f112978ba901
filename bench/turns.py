# ruff: noqa: S603, S607  # the programs started are git, and Python with code of this repository
"""Measure two states of licorne in turn: does a change make a case slower?

The speed of a machine drifts by more than most changes gain or cost. So runs of the two states alternate, old new, new
old, each in a fresh process, and the ratio of their medians counts. Its 95 % interval comes from a bootstrap over the
turns: the two runs of a turn are drawn together, since a slow machine affects both. A case is run until that interval is
narrow enough, or the limit of turns is reached. A case *is slower* if the whole interval lies below a bound; an interval
that contains 1 shows no difference.

A commit is unpacked and compiled once, in a folder of its own below `build/turns`. A given folder is used as it is: one
that was compiled with less optimization (`LICORNE_CFLAGS=-O1`) is about 5 % slower. Each state is measured by its own
`bench.worker`. Only the `Task` that goes in and the names of the figures that come out must be the same in both; a
renamed boundary is passed by the name that the state knows. The service is measured by each state's own `bench.service`.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from bench.cases import Case
from bench.results import Report, new_report
from bench.run import ROOT, BenchError, run_apart, task_of
from bench.service.cases import SERVICE_CASES, ServiceCase
from bench.worker import Task, What

FOLDER = ROOT / "build" / "turns"
FIGURES: Mapping[What, str] = {"speed": "allocations_per_s", "churn": "release_us_mean", "contest": "per_s"}
"""The figure compared, by kind of measurement. A time (`…_us_mean`) is inverted, so that more is faster."""
SERVICE: Mapping[str, str] = {
    "grpc": "pods_per_s",
    "client": "pods_per_s",
    "rest": "with_per_s",
    "rest-changing": "with_per_s",
}
"""The cases of the service that can be compared, each with its figure: the rate, with clients of REST where there are any."""
SERVICE_S = 12.0
"""Seconds for which a run of a case with clients of REST decides beside them, and again as long without them."""
SERVICE_PROGRAM = """
import sys
import msgspec
from bench.service.cases import SERVICE_CASES
from bench.service.run import measure

name, rounds, seconds = sys.argv[1:]
case = msgspec.structs.replace(SERVICE_CASES[name], rounds=int(rounds), seconds=float(seconds), targets=())
sys.stdout.buffer.write(msgspec.json.encode(measure(case, lambda text: None)))
"""
"""What measures a case of the service once, in the folder of a state."""
DRAWS = 2_000
RENAMED: Mapping[str, str] = {"first-bytes": "seed-bytes"}
"""Names of boundaries in older states of licorne, by their names now."""
SLOWER = 0.97
WIDTH = 0.04


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One process: the rate that it measured, and the digest of its decisions (empty where the case has none)."""

    rate: float
    digest: str = ""
    other_cores: float | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One run of each state."""

    old: Run
    new: Run


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """The ratio of medians, new divided by old, with its 95 % interval."""

    ratio: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval."""
        return self.high - self.low


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """All turns of a case. `figure` is what was measured; rates are in its units per second, or inverted for times."""

    case: str
    figure: str
    turns: list[Turn]
    interval: Interval

    @property
    def same_decisions(self) -> bool:
        """Whether all runs of both states made the same decisions."""
        return len({run.digest for turn in self.turns for run in (turn.old, turn.new)}) == 1


class TurnsReport(msgspec.Struct, kw_only=True):
    """A whole comparison. `head` has time and machine; `failures` are cases that could not be measured."""

    head: Report
    old: str
    new: str
    cases: list[Compared] = []
    failures: list[str] = []

    def slower(self, bound: float) -> list[Compared]:
        """Return the cases whose whole interval lies below the bound."""
        return [case for case in self.cases if case.interval.high < bound]


def new_turns_report(old: State, new: State) -> TurnsReport:
    """Return an empty report on this machine; takes a second."""
    head = new_report()
    head.compiled = True
    return TurnsReport(head=head, old=old.name, new=new.name)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A state of licorne: its name, and the folder that contains it."""

    name: str
    folder: Path

    def run(self, case: Case | ServiceCase, repeat: int) -> Run:
        """Measure a case once, in a fresh process. Raises BenchError if that fails."""
        if isinstance(case, ServiceCase):
            return self._run_service(case, repeat)
        what = kind_of(case)
        task = in_words_of(self.folder, task_of(case, what, repeat=repeat))
        found = msgspec.json.decode(run_apart(task, folder=self.folder, environment=environment(self.folder)))
        value = found[FIGURES[what]]
        rate = 1e6 / value if FIGURES[what].endswith("_us_mean") else value
        return Run(rate=rate, digest=found.get("digest", ""), other_cores=found.get("other_cores"))

    def _run_service(self, case: ServiceCase, rounds: int) -> Run:
        command = [sys.executable, "-c", SERVICE_PROGRAM, case.name, str(rounds), str(SERVICE_S)]
        done = subprocess.run(
            command, cwd=self.folder, env=environment(self.folder), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise BenchError(f"{self.name}: {done.stderr.strip()[-2000:]}")
        return Run(rate=msgspec.json.decode(done.stdout)["figures"][SERVICE[case.name]])


def in_words_of(folder: Path, task: Task) -> Task:
    """Return the task as the state in a folder understands it: an older one may know the boundary by another name."""
    places = [place for part in ("src", "bench") for place in (folder / part).rglob("boundary.py")]
    known = "".join(path.read_text(encoding="utf-8") for path in places)
    if f'"{task.boundary}"' in known:
        return task
    return msgspec.structs.replace(task, boundary=RENAMED.get(task.boundary, task.boundary))


def service_cases(names: Sequence[str]) -> list[ServiceCase]:
    """Return the cases of the service among these names: `service` are all that can be compared, `service-grpc` is one."""
    return [SERVICE_CASES[name] for name in SERVICE if {"service", f"service-{name}"} & set(names)]


def name_and_figure(case: Case | ServiceCase) -> tuple[str, str]:
    """Return what a case is called here, and the figure that is compared."""
    if isinstance(case, ServiceCase):
        return f"service-{case.name}", SERVICE[case.name]
    return case.name, FIGURES[kind_of(case)]


def kind_of(case: Case) -> What:
    """Return how a case is measured here; the cost of blocked asks shows in allocations per second as well."""
    return "speed" if case.kind == "blocked" else case.kind


def compare(
    old: State,
    new: State,
    case: Case | ServiceCase,
    *,
    least: int,
    most: int,
    repeat: int,
    told: Callable[[Sequence[Turn], Interval], None] | None = None,
) -> Compared:
    """Run both states in turn on a case, until the interval is narrow enough. Raises BenchError if a run fails."""
    turns: list[Turn] = []
    while True:
        if len(turns) % 2:  # alternate the order: the second run may find a warmer, or a hotter, machine
            second = new.run(case, repeat)
            first = old.run(case, repeat)
        else:
            first = old.run(case, repeat)
            second = new.run(case, repeat)
        turns.append(Turn(old=first, new=second))
        found = interval([turn.old.rate for turn in turns], [turn.new.rate for turn in turns])
        if told is not None:
            told(turns, found)
        if len(turns) >= most or (len(turns) >= least and found.width < WIDTH):
            name, figure = name_and_figure(case)
            return Compared(case=name, figure=figure, turns=turns, interval=found)


def interval(old: Sequence[float], new: Sequence[float]) -> Interval:
    """Return the ratio of the medians, and its 95 % interval by a bootstrap over pairs; deterministic."""
    draw = random.Random(1)
    number = len(old)
    ratios = []
    for _ in range(DRAWS):
        picked = draw.choices(range(number), k=number)
        ratios.append(median([new[i] for i in picked]) / median([old[i] for i in picked]))
    ratios.sort()
    return Interval(ratio=median(new) / median(old), low=ratios[int(0.025 * DRAWS)], high=ratios[int(0.975 * DRAWS)])


# -- the two states --------------------------------------------------------------------------------------


def state_of(text: str, say: Callable[[str], None]) -> State:
    """Return the state that a user names: a folder with a checkout, or a commit. Raises BenchError for anything else."""
    folder = Path(text)
    if (folder / "bench" / "worker.py").is_file():
        state = State(name=text, folder=folder.resolve())
    else:
        commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}").decode().strip()
        if not commit:
            raise BenchError(f"{text}: neither a commit of this repository nor a folder with a checkout of it")
        state = State(name=commit[:10], folder=FOLDER / commit)
        if not state.folder.exists():
            say(
                f"{text}: unpacking and compiling it in {state.folder.relative_to(ROOT)}; this takes a minute or two ..."
            )
            unpack(commit, state.folder)
    check(state)
    return state


def unpack(commit: str, folder: Path) -> None:
    """Make the folder of a commit, compiled; no folder remains if that fails."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit))) as archive:
        archive.extractall(partial, filter="data")
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    settings = {**os.environ, "LICORNE_REQUIRE_COMPILED": "1"}
    done = subprocess.run(command, cwd=partial, env=settings, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(partial)
        raise BenchError(f"{commit}: cannot be compiled: {done.stderr.strip()[-2000:]}")
    partial.rename(folder)


def check(state: State) -> None:
    """Raise BenchError unless a process in the state's folder runs its own code, compiled."""
    program = "import licorne, licorne.core; print(licorne.__file__); print(licorne.core.compiled)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=state.folder,
        env=environment(state.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"{state.name}: {done.stderr.strip()[-2000:]}")
    file, compiled = done.stdout.splitlines()
    if not Path(file).is_relative_to(state.folder):
        raise BenchError(f"{state.name}: {file} would be measured in place of {state.folder}")
    if compiled != "True":
        raise BenchError(f"{state.name}: it is not compiled; run `make compile` in {state.folder}")


def environment(folder: Path) -> Mapping[str, str]:
    """Return the environment of a process that measures this folder: the folder's code precedes installed code."""
    return {**os.environ, "PYTHONPATH": str(folder / "src")}


def git(*arguments: str) -> bytes:
    """Return the output of a git command; empty if it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False).stdout
