"""Two states of licorne measured in turn: the interval of their ratio, and the command from end to end on the smallest workload."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest
from bench.cases import CASES
from bench.results import new_report
from bench.run import BenchError, task_of
from bench.turns import (
    SERVICE_S,
    Compared,
    Interval,
    Run,
    State,
    Turn,
    TurnsReport,
    compare,
    in_words_of,
    interval,
    name_and_figure,
    service_cases,
    state_of,
)
from bench.turnsreport import show_turns, verdict
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from licorne.core import compiled

ROOT = Path(__file__).resolve().parents[2]
RATES = st.lists(st.floats(1, 1e6), min_size=2, max_size=12)


@given(RATES, st.floats(0.5, 2))
def test_twice_the_same_rates_have_a_ratio_that_is_exact(rates: list[float], factor: float) -> None:
    found = interval(rates, [rate * factor for rate in rates])
    assert found.ratio == pytest.approx(factor)
    assert found.low <= found.ratio * (1 + 1e-9)
    assert found.high >= found.ratio * (1 - 1e-9)


@pytest.mark.gate
def test_the_interval_contains_the_true_ratio_as_often_as_it_claims() -> None:
    """Rates drift together within a turn, as on a machine whose speed changes."""
    draw = random.Random(7)
    held = 0
    for _ in range(100):
        old, new = [], []
        for _ in range(10):
            drift = draw.uniform(0.5, 1)
            old.append(1000 * drift * draw.gauss(1, 0.02))
            new.append(950 * drift * draw.gauss(1, 0.02))
        found = interval(old, new)
        held += found.low <= 0.95 <= found.high
    assert held >= 85


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.90, 0.96, "slower"),
        (0.95, 0.98, "not shown to be slower"),
        (0.98, 1.01, "not slower"),
        (1.01, 1.03, "faster"),
    ],
)
def test_a_verdict(low: float, high: float, expected: str) -> None:
    turn = Turn(old=Run(rate=1.0), new=Run(rate=1.0))
    case = Compared(
        case="t", figure="per_s", turns=[turn], interval=Interval(ratio=(low + high) / 2, low=low, high=high)
    )
    assert verdict(case, 0.97) == expected
    report = TurnsReport(head=new_report(), old="a", new="b", cases=[case])
    assert bool(report.slower(0.97)) is (expected == "slower")


class Steady(State, frozen=True):
    """A state whose runs take no time and have the rates that are given, one after the other, again and again."""

    rates: list[float]
    made: list[str]

    def run(self, case: Any, repeat: int) -> Run:
        self.made.append(self.name)
        mine = self.made.count(self.name) - 1
        return Run(rate=self.rates[mine % len(self.rates)], digest="d")


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([100.0, 101.0], 4),  # as narrow as is wanted at once
        ([100.0, 150.0, 50.0], 9),  # never
    ],
)
def test_there_are_more_turns_while_the_interval_is_wide(rates: list[float], expected: int) -> None:
    order: list[str] = []
    old = Steady(name="old", folder=ROOT, rates=[100.0], made=order)
    new = Steady(name="new", folder=ROOT, rates=rates, made=order)
    found = compare(old, new, CASES["t"], least=4, most=9, repeat=1)
    assert len(found.turns) == expected
    assert order[:8] == ["old", "new", "new", "old"] * 2
    assert found.interval.ratio == median(turn.new.rate for turn in found.turns) / 100
    assert found.same_decisions


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["service"], ["service-grpc", "service-client", "service-rest", "service-rest-changing"]),
        (["b", "service-rest"], ["service-rest"]),
        (["service-grpc", "service"], ["service-grpc", "service-client", "service-rest", "service-rest-changing"]),
        (["b", "service-memory", "grpc"], []),
    ],
)
def test_cases_of_the_service_are_named(names: list[str], expected: list[str]) -> None:
    assert [name_and_figure(case)[0] for case in service_cases(names)] == expected


def test_a_case_of_the_service_is_measured_in_the_folder_of_its_state(tmp_path: Path) -> None:
    """A state of which `bench.service` says what it was asked, in place of a service that decides."""
    folder = tmp_path / "bench" / "service"
    folder.mkdir(parents=True)
    (folder / "cases.py").write_text(
        "from msgspec import Struct\n"
        "class Case(Struct):\n    rounds: int = 0\n    seconds: float = 0\n    targets: tuple = (1,)\n"
        "SERVICE_CASES = {'grpc': Case(), 'rest': Case()}\n"
    )
    (folder / "run.py").write_text(
        "def measure(case, say):\n    assert not case.targets\n"
        "    return {'figures': {'pods_per_s': case.rounds, 'with_per_s': case.seconds}}\n"
    )
    state = State(name="s", folder=tmp_path)
    grpc, rest = service_cases(["service-grpc", "service-rest"])
    assert state.run(grpc, 7) == Run(rate=7)
    assert state.run(rest, 7) == Run(rate=SERVICE_S)
    (folder / "run.py").write_text("def measure(case, say):\n    raise OSError('it has ended')\n")
    with pytest.raises(BenchError, match=r"(?s)^s: .*it has ended$"):
        state.run(grpc, 1)


@pytest.mark.nightly
@pytest.mark.skipif(not compiled, reason="two states are compared compiled")
def test_two_states_are_compared_from_end_to_end(tmp_path: Path) -> None:
    out = tmp_path / "turns.json"
    command = [sys.executable, "-m", "bench", "turns", ".", ".", "t", "--least", "2", "--most", "2", "--bound", "0.1"]
    done = subprocess.run([*command, "--out", out], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = msgspec.json.decode(out.read_bytes(), type=TurnsReport)
    (case,) = report.cases
    assert len(case.turns) == 2
    assert case.same_decisions
    assert "new : old" in done.stdout
    assert "the two decide differently" not in done.stdout


def test_slower_and_doubtful_cases_are_named() -> None:
    turn = Turn(old=Run(rate=100, digest="d", other_cores=0.5), new=Run(rate=50, digest="e"))
    case = Compared(case="t", figure="per_s", turns=[turn], interval=Interval(ratio=0.5, low=0.4, high=0.6))
    text = io.StringIO()
    show_turns(TurnsReport(head=new_report(), old="a", new="b", cases=[case]), 0.97, Console(file=text, width=160))
    for expected in (
        "slower, 0.500 of",
        "decide differently",
        "leave an interval of 0.200",
        "kept 0.2 processors busy",
    ):
        assert expected in text.getvalue()


@pytest.mark.parametrize("name", ["no-such-commit", "--help", "tests"])
def test_a_name_of_neither_a_commit_nor_a_folder_is_refused(name: str) -> None:
    with pytest.raises(BenchError, match=f"{name}: neither a commit of this repository nor a folder"):
        state_of(name, print)


def test_a_folder_whose_code_would_not_be_measured_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "worker.py").touch()
    with pytest.raises(BenchError, match="would be measured in place of"):
        state_of(str(tmp_path), print)


@pytest.mark.gate
def test_an_older_state_is_measured_with_its_own_boundary_names(tmp_path: Path) -> None:
    case = next(case for case in CASES.values() if case.boundary == "first-bytes")
    task = task_of(case, "speed")
    assert in_words_of(ROOT, task) == task
    older = tmp_path / "src" / "licorne" / "sim" / "boundary.py"
    older.parent.mkdir(parents=True)
    older.write_text('FEEDS = {"bytes": 1, "seed-bytes": 2}', encoding="utf-8")
    assert in_words_of(tmp_path, task) == msgspec.structs.replace(task, boundary="seed-bytes")
