"""Count the instructions that a question takes of the thread that decides, beside those of a decision.

A service with `--follow` runs under callgrind (valgrind), which counts by thread; the process that follows, and answers, is
another one and is not counted. A client gives the service rounds of pods, between which questions are asked by REST. What the
loop does by the clock, such as looking whether it is to end, is counted while it is idle and taken away by the length of each
count, since everything takes fifty times as long here. The rest depends on no other load of the machine.

One question a second is one for as many decisions as the service makes in a second: those are counted without valgrind, in
the same process of clients. The slower the machine, the fewer, so the larger is the share of a question.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final
from urllib.request import urlopen

import msgspec

from bench.run import BenchError
from bench.service.run import Clients, clients
from bench.service.server import Server, serving
from bench.service.tasks import Task
from bench.workloads.generate import Size
from licorne.core import compiled

SIZE: Final = Size(nodes=200, pods=5_000, applications=10, queues=10)
TURNS: Final = 3
QUESTIONS: Final = 30
"""Questions after each round of pods."""
PATHS: Final = ("/api/v1/why", "/api/v1/shares")
IDLE_S: Final = 20.0
CONTROL_S: Final = 120


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted: instructions of the thread that decides.

    `decision`: for a pod that is asked for, placed and released; `question`: for one question by REST and its answer. `pods_per_s`:
    how many pods the service places in a second. `percent`: by how much one question a second raises the instructions of a decision.
    `decisions`, `questions`: of each turn.
    """

    decision: int
    question: int
    pods_per_s: int
    percent: float
    decisions: list[int]
    questions: list[int]


def count_questions(say: Callable[[str], object] = lambda _: None) -> Asked:
    """Count; it takes some minutes.

    Raises:
        BenchError: valgrind is missing, or licorne is not compiled.
    """
    if shutil.which("valgrind") is None or shutil.which("callgrind_control") is None:
        raise BenchError("valgrind is not installed; it counts the instructions")
    if not compiled:
        raise BenchError("licorne is not compiled here, so the count would be the interpreter's: make compile")
    pods_per_s = _rate(say)
    with TemporaryDirectory() as name, ExitStack() as stack:
        out = Path(name) / "out"
        under = ("valgrind", "--tool=callgrind", "--separate-threads=yes", "--instr-atstart=no")
        say("starting a service under valgrind ...")
        service = stack.enter_context(
            serving(
                rest=True,
                options=("--follow",),
                under=(*under, f"--callgrind-out-file={out}"),
                module="bench.service.slowed",
            )
        )
        task = Task(what="turns", address=service.address, size=SIZE, turns=TURNS + 1)
        worker = stack.enter_context(clients(task))
        counts = _Counts(service.pid, out)
        counts.control("--instr=on")
        _round(worker)
        _ask(service)  # what happens once, such as the first import of a module
        idle_per_s = counts.of(lambda: time.sleep(IDLE_S), 0.0) / IDLE_S
        say(f"idle: {idle_per_s:,.0f} instructions a second")
        decisions, questions = [], []
        for turn in range(TURNS):
            decisions.append(round(counts.of(lambda: _round(worker), idle_per_s) / SIZE.pods))
            questions.append(round(counts.of(lambda: _ask(service), idle_per_s) / QUESTIONS))
            say(f"turn {turn + 1}: {decisions[-1]:,} instructions a decision, {questions[-1]:,} a question")
        worker.go()
        worker.outcome()
    decision, question = round(median(decisions)), round(median(questions))
    return Asked(
        decision=decision,
        question=question,
        pods_per_s=pods_per_s,
        percent=round(100 * question / (decision * pods_per_s), 3),
        decisions=decisions,
        questions=questions,
    )


def _rate(say: Callable[[str], object]) -> int:
    say("counting decisions a second ...")
    with serving(rest=True, options=("--follow",)) as service:
        task = Task(what="grpc", address=service.address, size=SIZE, rounds=TURNS)
        with clients(task) as worker:
            worker.go()
            rounds = worker.outcome().rounds
    return round(median(each.allocations / each.seconds for each in rounds))


def _round(worker: Clients) -> None:
    """Let the client have a round of pods."""
    worker.go()
    worker.ready()


def _ask(service: Server) -> None:
    for number in range(QUESTIONS):
        with urlopen(f"http://{service.rest}{PATHS[number % len(PATHS)]}", timeout=120) as answer:
            if json.load(answer)["age_s"] is None:
                raise BenchError("a state dump was asked, as the process does not follow closely enough")


class _Counts:
    """The instructions of the first thread of a process under callgrind."""

    def __init__(self, pid: int, out: Path) -> None:
        self._pid = pid
        self._out = out

    def control(self, option: str) -> None:
        """Send a command to callgrind."""
        command = ["callgrind_control", option, str(self._pid)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CONTROL_S)  # noqa: S603
        if done.returncode or "Error" in done.stdout + done.stderr:
            raise BenchError(f"callgrind_control {option}: {done.stdout}{done.stderr}")

    def of(self, work: Callable[[], object], idle_per_s: float) -> float:
        """Return how many instructions were made during some work, without those that an idle service makes."""
        self.control("--zero")
        before = set(self._files())
        began = time.monotonic()
        work()
        seconds = time.monotonic() - began
        self.control("--dump")
        new = [path for path in self._files() if path not in before]
        found = [
            int(match[1]) for path in new if (match := re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE))
        ]
        if len(found) != 1:
            raise BenchError(f"callgrind wrote {len(found)} counts of the thread that decides")
        return found[0] - idle_per_s * seconds

    def _files(self) -> Iterator[Path]:
        return iter(sorted(self._out.parent.glob(f"{self._out.name}.*-01")))


__all__ = ["Asked", "count_questions"]
