# ruff: noqa: S603, S607  # what is started is git, Python and what they hold
"""Measures two states of licorne in turn: does a change make a case slower?

The speed of a machine drifts by more than most changes gain or cost, so runs of the two states alternate, old new, new
old, each in a fresh process, and what counts is the ratio of their medians. Its 95 % interval comes from a bootstrap
over the turns: the two runs of a turn are drawn together, since what slows the machine down meets both. A case is run
until that interval is narrow enough, or the limit of turns is reached. A case *is slower* if the whole interval lies
below a bound; an interval that contains 1 shows no difference.

A commit is unpacked and compiled in a folder of its own below `build/turns`, once; a folder that is given is taken as it
is. Each state is measured by its own `bench.worker`, of which only the `Task` that goes in, and the names of the figures
that come out, must be the same in both; a boundary that has been renamed goes in by the name that the state knows.
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
from bench.worker import Task, What

FOLDER = ROOT / "build" / "turns"
FIGURES: Mapping[What, str] = {"speed": "allocations_per_s", "churn": "release_us_mean", "contest": "per_s"}
"""The figure that is compared, by kind of measurement. A time, `…_us_mean`, counts by its inverse: more is faster."""
DRAWS = 2_000
RENAMED: Mapping[str, str] = {"first-bytes": "seed-bytes"}
"""What a boundary was called in older states of licorne, by its name now."""
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
    """A ratio of medians, new through old, and the interval in which it lies with a probability of 95 %."""

    ratio: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """How much is left open."""
        return self.high - self.low


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """All turns of a case. `figure` is what was measured; rates are in units of it a second, or its inverse for times."""

    case: str
    figure: str
    turns: list[Turn]
    interval: Interval

    @property
    def same_decisions(self) -> bool:
        """Did all runs of both states decide the same?"""
        return len({run.digest for turn in self.turns for run in (turn.old, turn.new)}) == 1


class TurnsReport(msgspec.Struct, kw_only=True):
    """A whole comparison. `head` says when and on which machine; `failures` is what could not be measured."""

    head: Report
    old: str
    new: str
    cases: list[Compared] = []
    failures: list[str] = []

    def slower(self, bound: float) -> list[Compared]:
        """The cases that are slower: their whole interval lies below the bound."""
        return [case for case in self.cases if case.interval.high < bound]


def new_turns_report(old: State, new: State) -> TurnsReport:
    """An empty report on this machine; takes a second."""
    head = new_report()
    head.compiled = True
    return TurnsReport(head=head, old=old.name, new=new.name)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A state of licorne: what it is called, and the folder in which it stands."""

    name: str
    folder: Path

    def run(self, case: Case, repeat: int) -> Run:
        """Measure a case once, in a fresh process. Raises BenchError if that fails."""
        what = kind_of(case)
        task = in_words_of(self.folder, task_of(case, what, repeat=repeat))
        found = msgspec.json.decode(run_apart(task, folder=self.folder, environment=environment(self.folder)))
        value = found[FIGURES[what]]
        rate = 1e6 / value if FIGURES[what].endswith("_us_mean") else value
        return Run(rate=rate, digest=found.get("digest", ""), other_cores=found.get("other_cores"))


def in_words_of(folder: Path, task: Task) -> Task:
    """The task as the state in a folder understands it: an older one may know the boundary by another name."""
    known = "".join(path.read_text(encoding="utf-8") for path in (folder / "src" / "licorne").rglob("boundary.py"))
    if f'"{task.boundary}"' in known:
        return task
    return msgspec.structs.replace(task, boundary=RENAMED.get(task.boundary, task.boundary))


def kind_of(case: Case) -> What:
    """How a case is measured here: what blocked asks cost is seen in its allocations per second as well."""
    return "speed" if case.kind == "blocked" else case.kind


def compare(
    old: State,
    new: State,
    case: Case,
    *,
    least: int,
    most: int,
    repeat: int,
    told: Callable[[Sequence[Turn], Interval], None] | None = None,
) -> Compared:
    """Run both states in turn on a case, until the interval is narrow enough. Raises BenchError if a run fails."""
    turns: list[Turn] = []
    while True:
        if len(turns) % 2:  # who comes second may find a warmer, or a hotter, machine
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
            return Compared(case=case.name, figure=FIGURES[kind_of(case)], turns=turns, interval=found)


def interval(old: Sequence[float], new: Sequence[float]) -> Interval:
    """The ratio of the medians, and its 95 % interval by a bootstrap over pairs; the same for the same figures."""
    draw = random.Random(1)  # noqa: S311  drawn again the same way
    number = len(old)
    ratios = []
    for _ in range(DRAWS):
        picked = draw.choices(range(number), k=number)
        ratios.append(median([new[i] for i in picked]) / median([old[i] for i in picked]))
    ratios.sort()
    return Interval(ratio=median(new) / median(old), low=ratios[int(0.025 * DRAWS)], high=ratios[int(0.975 * DRAWS)])


# -- the two states --------------------------------------------------------------------------------------


def state_of(text: str, say: Callable[[str], None]) -> State:
    """The state that a user names: a folder with a checkout, or a commit. Raises BenchError for anything else."""
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
    """Make the folder of a commit, compiled; nothing is left behind if that fails."""
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
    """What a process that measures this folder finds in its environment: the folder's code goes before installed code."""
    return {**os.environ, "PYTHONPATH": str(folder / "src")}


def git(*arguments: str) -> bytes:
    """What git prints; empty if it refuses."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False).stdout
