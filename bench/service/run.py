"""The measurements of the service: a server, processes of clients beside it, and figures computed from their reports."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Final
from urllib.request import urlopen

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bench.measure.machine import Meter
from bench.results import Verdict
from bench.run import ROOT, BenchError
from bench.service.cases import ServiceCase
from bench.service.restload import get, slow_get
from bench.service.server import Server, serving
from bench.service.tasks import Outcome, Round, Task, What, times
from licorne.state.recording import Replay, choose_run

SLOW_BYTES_PER_S = 10e6
TURN_S = 1.0
"""Seconds for which the rate is measured without clients of REST, and then with them, each time to the end of the round. They
are few, so that the machine's speed is mostly the same in both, and that no cached answer grows too old meanwhile."""
PROCESSES = 4
"""Services that are measured one after the other, each in turns with recording and without."""
WRITTEN_S = 0.3
"""Seconds between two turns, in which what the one before has recorded is written, so that the next one does not pay for it."""
QUESTION_S = 1.0
"""Seconds between two questions."""
METRICS, DUMP = "/ws/v1/metrics", "/debug/fullstatedump"
Say = Callable[[str], None]
Figures = dict[str, float]


class ServiceResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a case. `busy_cores`: processors kept busy by server, clients and all other processes."""

    case: ServiceCase
    figures: Figures
    rounds: list[Round] = []
    busy_cores: float | None = None
    verdicts: list[Verdict] = []


class Clients:
    """A process of clients, ready to begin."""

    def __init__(self, task: Task) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.service.client"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        self._what = task.what
        self._tell(msgspec.json.encode(task).decode())
        self.ready()

    def ready(self) -> None:
        """Wait until the process is ready. Raises BenchError if it never is."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise self._error()

    def go(self) -> None:
        """Let the process go on."""
        self._tell("go")

    def outcome(self) -> Outcome:
        """Wait for the end of the process; return its outcome. Raises BenchError if it failed."""
        said, complaint = self._process.communicate()
        if self._process.returncode != 0:
            raise BenchError(f"{self._what}: {complaint.strip()[-1000:]}")
        return msgspec.json.decode(said, type=Outcome)

    def end(self) -> None:
        """Kill the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._error() from None

    def _error(self) -> BenchError:
        _, complaint = self._process.communicate()
        return BenchError(f"{self._what}: {complaint.strip()[-1000:]}")


@contextmanager
def clients(task: Task) -> Iterator[Clients]:
    """Yield a process of clients that is ready; it is ended on leaving the context."""
    made = Clients(task)
    try:
        yield made
    finally:
        made.end()


def measure(case: ServiceCase, say: Say) -> ServiceResult:
    """Measure a case. Raises BenchError if something fails."""
    meter = Meter()
    figures, rounds = _MEASURES[case.name](case, say)
    use = meter.read()
    verdicts = [
        Verdict(target=target, measured=figures[target.figure], reached=target.reached(figures[target.figure]))
        for target in case.targets
    ]
    rounded = {name: round(value, 4) for name, value in figures.items()}
    return ServiceResult(case=case, figures=rounded, rounds=rounds, busy_cores=use.other_cores, verdicts=verdicts)


def _per_s(rounds: list[Round]) -> float:
    return median(one.allocations / one.seconds for one in rounds)


# -- one resource manager ------------------------------------------------------------------------------------


def _rounds(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Measure rounds with REST, which keeps events and counters, and without it."""
    figures: Figures = {}
    found: list[Round] = []
    for rest in (True, False):
        say(f"{case.name}: {case.rounds} rounds {'with' if rest else 'without'} REST")
        what: What = "client" if case.name == "client" else "grpc"
        with serving(rest=rest) as server:
            task = Task(what=what, address=server.address, size=case.size, rounds=case.rounds)
            with clients(task) as running:
                before = server.cpu_s()
                running.go()
                outcome = running.outcome()
                pods = sum(one.allocations for one in outcome.rounds)
                busy_s = server.cpu_s() - before
        found = outcome.rounds
        name = "with_rest_per_s" if rest else "pods_per_s"
        figures[name] = _per_s(found)
        figures["server_us_per_pod" + ("_with_rest" if rest else "")] = busy_s * 1e6 / pods
        figures["client_us_per_pod"] = outcome.cpu_s * 1e6 / pods
    figures["least_per_s"] = min(one.allocations / one.seconds for one in found)
    figures["most_per_s"] = max(one.allocations / one.seconds for one in found)
    return figures, found


# -- many ----------------------------------------------------------------------------------------------------


def _managers(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Start many resource managers at once; then measure one that is busy while the others are idle."""
    assert case.beside is not None
    with serving(rest=False) as server:
        busy = Task(what="grpc", address=server.address, rm_id="busy", size=case.beside, rounds=case.rounds)
        with clients(busy) as alone:
            say(f"managers: {case.rounds} rounds of one alone")
            alone.go()
            before = _per_s(alone.outcome().rounds)
        task = Task(what="managers", address=server.address, size=case.size, managers=case.managers, stay=True)
        with clients(task) as many:
            say(f"managers: {case.managers} at once")
            cpu_s = server.cpu_s()
            many.go()
            many.ready()
            cpu_s = server.cpu_s() - cpu_s
            with clients(busy) as beside:
                say(f"managers: {case.rounds} rounds of one beside {case.managers} that are idle")
                beside.go()
                after = _per_s(beside.outcome().rounds)
            many.go()
            outcome = many.outcome()
    finished = sorted(outcome.finished_s)
    pods = sum(one.allocations for one in outcome.rounds)
    figures: Figures = {
        "pods_per_s": pods / finished[-1],
        "first_s": finished[0],
        "median_s": median(finished),
        "last_s": finished[-1],
        "server_us_per_pod": cpu_s * 1e6 / pods,
        "alone_per_s": before,
        "beside_idle_per_s": after,
    }
    return figures, outcome.rounds


# -- state dump ----------------------------------------------------------------------------------------------


def _dump(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Read the dump of a large state, fast and then slowly, while single pods and a whole workload are decided."""
    assert case.beside is not None
    figures: Figures = {"allocations": case.beside.pods}
    with serving(rest=True) as server:
        say(f"dump: filling with {case.beside.pods:,} allocations")
        hold = Task(what="hold", address=server.address, rm_id="large", size=case.beside, probes_a_s=case.changes_a_s)
        busy = Task(what="grpc", address=server.address, rm_id="busy", size=case.size, rounds=0)
        with clients(hold) as large, clients(busy) as working:
            working.go()
            waits(server)  # resets the maxima, so that they count from now on
            before = server.peak_bytes()
            for name, how in (("dump", get), ("slow_dump", slowly)):
                say(f"dump: {name.replace('_', ' ')}")
                meter = Meter()
                figures[f"{name}_bytes"] = len(asyncio.run(how(server.rest, DUMP)))
                figures[f"{name}_s"] = meter.read().wall_s
                figures |= {f"{name}_{what}": value for what, value in waits(server).items()}
            figures["more_bytes"] = server.peak_bytes() - before
            working.go()
            rounds = working.outcome().rounds
            large.go()
            probes = large.outcome().probes
    assert probes is not None
    figures["longest_gap_ms"] = max(figures["dump_longest_gap_ms"], figures["slow_dump_longest_gap_ms"])
    figures["probe_p99_ms"], figures["probe_longest_ms"] = probes.p99_ms, probes.most_ms
    return figures, rounds


async def slowly(address: str, target: str) -> bytes:
    """Read an answer slowly; return as many zeros as it has bytes."""
    return bytes(await slow_get(address, target, SLOW_BYTES_PER_S))


def waits(server: Server) -> Figures:
    """Return the longest waits of the loop, and of decisions, since the last call."""
    text = asyncio.run(get(server.rest, METRICS)).decode()
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("licorne_") and sample.name.endswith("_seconds_max")
    }
    return {
        "longest_gap_ms": found["licorne_decision_gap_seconds_max"] * 1e3,
        "longest_lag_ms": found["licorne_loop_lag_seconds_max"] * 1e3,
    }


# -- REST ----------------------------------------------------------------------------------------------------


class Turn(msgspec.Struct, frozen=True):
    """Whole rounds: pods placed per second, and microseconds of the server's processor time for each and its release."""

    per_s: float
    server_us: float


def _rest(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Measure the rate of deciding a workload without clients of REST and with them, and how long these clients wait.

    The two alternate, as a machine's speed may change within seconds: each turn with clients is compared with the turns
    without them just before and just after.
    """
    assert case.beside is not None
    turns = max(1, round(case.seconds / TURN_S))
    with serving(rest=True) as server:
        say(f"{case.name}: filling what the clients look at")
        hold = Task(what="hold", address=server.address, rm_id="watched", size=case.beside, probes_a_s=case.changes_a_s)
        ask = msgspec.structs.replace(hold, what="rest", rest=server.rest, clients=case.clients, turns=turns)
        seconds = case.seconds / turns
        busy = Task(
            what="turns", address=server.address, rm_id="busy", size=case.size, turns=2 * turns + 1, seconds=seconds
        )
        with clients(hold) as watched, clients(ask) as asking, clients(busy) as working:
            say(
                f"{case.name}: {turns} times {seconds:g} s with {case.clients} clients, and as long without them around each"
            )
            waits(server)
            spent_s = []
            for turn in range(busy.turns):
                before_s = server.cpu_s()
                if turn % 2:
                    asking.go()
                    asking.ready()
                working.go()
                working.ready()
                if turn % 2:
                    asking.go()
                    asking.ready()
                spent_s.append(server.cpu_s() - before_s)
            figures = waits(server)
            working.go()
            rounds = working.outcome().rounds
            asking.go()
            asked = asking.outcome()
            watched.go()
            watched.outcome()
    if asked.failures:
        raise BenchError(f"{case.name}: {len(asked.failures)} requests failed, the first: {asked.failures[0]}")
    for kind, answers_s in asked.answers_s.items():
        prefix, found = "rest" if kind == "all" else kind, times(answers_s)
        figures |= {f"{prefix}_median_ms": found.median_ms, f"{prefix}_p99_ms": found.p99_ms}
        figures |= {f"{prefix}_longest_ms": found.most_ms, f"{prefix}_requests": found.count}
    found_turns = [_turn([one for one in rounds if one.turn == turn], cpu_s) for turn, cpu_s in enumerate(spent_s)]
    return figures | lost(found_turns), rounds


def _turn(rounds: list[Round], cpu_s: float) -> Turn:
    pods = sum(one.allocations for one in rounds)
    return Turn(pods / sum(one.seconds for one in rounds), cpu_s * 1e6 / pods)


def lost(turns: list[Turn]) -> Figures:
    """Return what clients of REST cost: of the rate, and of the server's processor time for each pod, in percent.

    The turns are alternately without and with them; the first and the last are without. Each turn with them is compared with
    the mean of its neighbours, and the median of these counts.
    """
    without, beside = turns[::2], turns[1::2]
    around = list(pairwise(without))
    rates = [100 * (1 - b.per_s / fmean((a.per_s, c.per_s))) for b, (a, c) in zip(beside, around, strict=True)]
    work = [
        100 * (1 - fmean((a.server_us, c.server_us)) / b.server_us) for b, (a, c) in zip(beside, around, strict=True)
    ]
    return {
        "without_per_s": median(one.per_s for one in without),
        "with_per_s": median(one.per_s for one in beside),
        "lost_percent": median(rates),
        "lost_percent_least": min(rates),
        "lost_percent_most": max(rates),
        "server_us_per_pod": median(one.server_us for one in without),
        "server_us_per_pod_with_clients": median(one.server_us for one in beside),
        "server_percent_of_rest": median(work),
    }


# -- memory --------------------------------------------------------------------------------------------------


def _memory(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Measure the memory of a service without pods, and with many that run and have two tags each."""
    with serving(rest=False) as server:
        empty = server.resident_bytes()
        say(f"{case.name}: filling with {case.size.pods:,} pods")
        with clients(Task(what="hold", address=server.address, size=case.size, tagged=True)) as filled:
            held = server.resident_bytes()
            filled.go()
            rounds = filled.outcome().rounds
    return {"process_bytes": empty, "bytes_per_pod": (held - empty) / rounds[0].allocations}, rounds


# -- recording -----------------------------------------------------------------------------------------------


def _record(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Measure what recording costs the thread that decides, in turns with it and without; and replay a recording.

    Two processes differ by more than a recording costs, so turns of one process are compared, which is told when to
    record: each two that follow each other are a pair, of which one records. There are several processes, since what a
    recording costs may depend on how memory happens to be laid out.
    """
    turns = 2 * max(1, round(case.seconds / PROCESSES / TURN_S / 2))
    pairs: list[tuple[float, float]] = []
    for number in range(PROCESSES):
        say(f"{case.name}: process {number + 1} of {PROCESSES}: {turns} turns of {TURN_S:g} s")
        pairs += _pairs_of_turns(case, turns)
    percent = [100 * (recording / plain - 1) for plain, recording in pairs]
    with TemporaryDirectory() as folder:
        say(f"{case.name}: a whole recording")
        recording = Path(folder) / "recording"
        with serving(rest=False, options=("--record", str(recording))) as server:
            task = Task(what="grpc", address=server.address, size=case.size, rounds=case.rounds)
            with clients(task) as worker:
                worker.go()
                rounds = worker.outcome().rounds
        replayed = _replayed(case, recording, say)
    return {
        "loop_us_per_pod": median(plain for plain, _ in pairs),
        "loop_us_per_pod_recording": median(recording for _, recording in pairs),
        "loop_percent": median(percent),
        "loop_percent_least": min(percent),
        "loop_percent_most": max(percent),
        **replayed,
    }, rounds


def _pairs_of_turns(case: ServiceCase, turns: int) -> list[tuple[float, float]]:
    """Return, of pairs of turns of one service, the microseconds of the deciding thread for a pod without recording and with it.

    Every other pair begins with recording, so that a drift of the machine's speed counts for neither.
    """
    with TemporaryDirectory() as folder:
        options = ("--record", str(Path(folder) / "recording"))
        with serving(rest=False, options=options, module="bench.service.switched") as server:
            task = Task(what="turns", address=server.address, size=case.size, turns=turns, seconds=TURN_S)
            with clients(task) as worker:
                spent_s = []
                for turn in range(turns):
                    server.record(on=turn % 4 in (1, 2))
                    time.sleep(WRITTEN_S)
                    spent_s.append(_spent_s(server, worker))
                worker.go()
                rounds = worker.outcome().rounds
    loop_us = _loop_us(rounds, spent_s)
    return [
        (first, second) if begin % 4 == 0 else (second, first)
        for begin, first, second in zip(range(0, turns, 2), loop_us[::2], loop_us[1::2], strict=True)
    ]


def _spent_s(server: Server, worker: Clients) -> float:
    """Have clients do one turn; return the seconds that the deciding thread took for it."""
    before_s = server.loop_s()
    worker.go()
    worker.ready()
    return server.loop_s() - before_s


def _replayed(case: ServiceCase, folder: Path, say: Say) -> Figures:
    """Replay a recording, and return its figures."""
    say(f"{case.name}: replaying")
    began = time.perf_counter()
    outcome = Replay(choose_run(folder)).run()
    replay_s = time.perf_counter() - began
    size = sum(path.stat().st_size for path in folder.rglob("segment-*"))
    if outcome.remark or outcome.checked != outcome.messages:
        raise BenchError(f"{case.name}: the recording is not complete: {outcome}")
    return {
        "decisions": outcome.allocations,
        "bytes_per_decision": size / outcome.allocations,
        "replayed_per_s": outcome.allocations / replay_s,
    }


def _in_turns(
    stack: ExitStack,
    case: ServiceCase,
    services: Sequence[Server],
    say: Say,
    beside: Callable[[int], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> tuple[list[list[Round]], list[list[float]]]:
    """Give services work in turn; return of each the rounds, and by turn the microseconds of its deciding thread for each pod.

    `beside` is entered while the service with this number works.
    """
    turns = max(1, round(case.seconds / TURN_S))
    seconds = case.seconds / turns
    tasks = [
        Task(what="turns", address=each.address, size=case.size, turns=turns, seconds=seconds) for each in services
    ]
    workers = [stack.enter_context(clients(task)) for task in tasks]
    say(f"{case.name}: {turns} turns of {TURN_S:g} s of {len(services)} services")
    spent_s: list[list[float]] = [[] for _ in services]
    for turn in range(turns):
        for which in range(len(services))[:: 1 if turn % 2 == 0 else -1]:
            with beside(which):
                spent_s[which].append(_spent_s(services[which], workers[which]))
    rounds = []
    for worker in workers:
        worker.go()
        rounds.append(worker.outcome().rounds)
    return rounds, [_loop_us(some, spent) for some, spent in zip(rounds, spent_s, strict=True)]


# -- questions -----------------------------------------------------------------------------------------------

ASKING: Final = {
    "alone": (False, False),
    "followed": (True, False),
    "followed_asked": (True, True),
    "dumped": (False, True),
}
"""Services by whether a process follows them, and whether they are asked."""


def _follow(case: ServiceCase, say: Say) -> tuple[Figures, list[Round]]:
    """Measure what a process that follows, and questions, cost the thread that decides, with services in turn."""
    with ExitStack() as stack:
        services = [
            stack.enter_context(serving(rest=True, options=("--follow",) if follows else ()))
            for follows, _ in ASKING.values()
        ]
        asked = [is_asked for _, is_asked in ASKING.values()]
        ages_s: list[float] = []
        rounds, loop_us = _in_turns(
            stack,
            case,
            services,
            say,
            lambda which: _asking(services[which].rest, ages_s) if asked[which] else nullcontext(),
        )
    alone, followed, followed_asked, dumped = loop_us
    grown = {
        "follow_percent": zip(alone, followed, strict=True),
        "question_percent": zip(followed, followed_asked, strict=True),
        "question_by_dump_percent": zip(alone, dumped, strict=True),
    }
    return {
        "loop_us_per_pod": median(alone),
        **{name: median(100 * (after / before - 1) for before, after in pairs) for name, pairs in grown.items()},
        "questions": float(len(ages_s)),
        "state_age_s": max(ages_s, default=0.0),
    }, rounds[2]


@contextmanager
def _asking(address: str, ages_s: list[float]) -> Iterator[None]:
    """Ask a question a second; note of each answer that a process has given which follows, how old its state was."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(QUESTION_S):
            with contextlib.suppress(OSError), urlopen(f"http://{address}/api/v1/shares", timeout=60) as answer:
                age_s = json.load(answer)["age_s"]
                if age_s is not None:
                    ages_s.append(age_s)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        ended.set()
        asking.join()


def _loop_us(rounds: list[Round], spent_s: list[float]) -> list[float]:
    """Return the microseconds of the deciding thread for each pod, by turn."""
    pods = [sum(one.allocations for one in rounds if one.turn == turn) for turn in range(len(spent_s))]
    return [1e6 * spent / number for spent, number in zip(spent_s, pods, strict=True)]


_MEASURES: dict[str, Callable[[ServiceCase, Say], tuple[Figures, list[Round]]]] = {
    "grpc": _rounds,
    "client": _rounds,
    "managers": _managers,
    "dump": _dump,
    "rest": _rest,
    "rest-changing": _rest,
    "memory": _memory,
    "record": _record,
    "follow": _follow,
}
