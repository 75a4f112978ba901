"""Wrong usage has one exit status in all commands, 2, and one message: options that do not fit, and `-` in its places."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench.__main__ import app
from bench.__main__ import main as bench

from licorne.cli.statuses import Status
from licorne.workload.workload import read_workload

Command = Callable[..., Any]
WORKLOAD = Path(__file__).resolve().parents[2] / "examples" / "migration" / "small.jsonl"
QUEUES = WORKLOAD.with_name("queues.yaml")
SCENARIO = WORKLOAD.parents[1] / "scenarios" / "halved-queue.yaml"
UNFIT = [
    ("compare own own W", "own and own are the same configuration"),
    ("compare own Q W --setting x", "--setting 'x': is written KEY=VALUE"),
    ("compare own Q W --setting reservation.dealy=2s", "--setting 'reservation.dealy': no such setting"),
    ("simulate W --setting x", "--setting 'x': is written KEY=VALUE"),
    ("sweep -o OUT", "nothing to simulate: give workloads"),
    ("sweep W W -o OUT", "is given twice"),
    ("place --config Q --user ann --tag x", "--tag 'x': is written KEY=VALUE"),
    ("report OUT -o OUT", "give the folders of two reports or more"),
    ("convert -o OUT", "give a source, or - for standard input"),
    ("why --at 2026-11-03 --from W", "only a recording has other moments"),
    ("shares --since 2026-11-03 --from W", "only a recording knows the time before"),
    ("reproduce nothing OUT", "no such reproduction"),
    ("reproduce fgd OUT --small --all", "--small and --all: give one of them"),
]
"""Options and arguments that a command refuses, and what it says; those of simulate and convert are in their own tests. W: a workload, Q: a configuration, OUT: a folder."""


def words(text: str, folder: Path) -> list[str]:
    """Return the words of a command line."""
    names = {"W": str(WORKLOAD), "Q": str(QUEUES), "OUT": str(folder / "out")}
    return [re.sub(r"\b(W|Q|OUT)$", lambda found: names[found[0]], word) for word in text.split()]


@pytest.mark.parametrize(("line", "complaint"), UNFIT)
def test_options_that_do_not_fit_are_wrong_usage(licorne: Command, tmp_path: Path, line: str, complaint: str) -> None:
    outcome = licorne(*words(line, tmp_path))
    assert (outcome.status, outcome.out) == (Status.USAGE, "")
    assert complaint in " ".join(outcome.err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("run nothing", "nothing: "),
        ("service nothing", "nothing: "),
        ("soak nothing", "nothing: "),
        ("generate week OUT --shape same", "the case week has no options but seed"),
        ("generate gangs OUT --demand 2", "the case gangs has no options but shape and seed"),
        ("generate t OUT --demand 1000", "demand: 1000 is not between 0.01 and 100"),
        ("generate nothing OUT", "case: 'nothing' is none of"),
    ],
)
def test_so_does_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    monkeypatch.setattr("bench.__main__.app", partial(app, words(line, tmp_path)))
    assert bench() == Status.USAGE
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_benchmark_writes_the_workload_of_a_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "generate t OUT --shape unique --order app --seed 9 --nodesort binpacking"
    monkeypatch.setattr("bench.__main__.app", partial(app, words(line, tmp_path)))
    assert bench() == Status.DONE
    assert read_workload(tmp_path / "out").name == "t-unique-fifo-binpacking-app-s9"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("config check --bogus Q", "Unknown option: --bogus."),
        ("config check --strcit Q", "Unknown option: --strcit. Did you mean --strict?"),
        ("config check - -", "standard input (-) is given 2 times, and can be read only once"),
        ("config check - --from -", "standard input (-) is given 2 times, and can be read only once"),
        ("compare - Q -", "standard input (-) is given 2 times, and can be read only once"),
        ("simulate --config=- -", "standard input (-) is given 2 times, and can be read only once"),
        ("why -", "why: - (standard input) is not read here; see licorne why --help"),
        ("scenario check -", "scenario check: - (standard input) is not read here"),
        ("shares root.search", '"root.search": more than the command takes. Write: licorne shares; it takes no name'),
        ("serve x y", '"x", "y": more than the command takes. See: licorne serve --help'),
        (
            "place --from W",
            "--config requires an argument. Write: licorne place --config queues.yaml --user NAME; it reads no",
        ),
        ("place --config Q --user ann --from W", "Unknown option: --from. Write: licorne place --config queues.yaml"),
        ("config check --from W", "FILE requires an argument. Write: licorne config check queues.yaml; --from besides"),
        ("simulate W --pods -", "parameter --pods requires an argument"),
        (
            "simulate W --since soon",
            "Invalid value for --since: soon: give seconds, like 90, or a duration, like 1m30s or 168h",
        ),
        ("convert http://x -o OUT --for 0s", "--for"),
    ],
)
def test_the_message_says_what_to_do_once(licorne: Command, tmp_path: Path, line: str, complaint: str) -> None:
    outcome = licorne(*words(line, tmp_path))
    said = " ".join(outcome.err.replace("│", " ").split())
    assert (outcome.status, outcome.out) == (Status.USAGE, "")
    assert said.count(complaint) == 1
    assert said.count("bogus") == complaint.count("bogus")


@pytest.mark.parametrize(
    "line", ["simulate - --config Q", "simulate --config Q -", "simulate --config=Q --verify -", "compare own Q -"]
)
def test_a_workload_may_come_from_standard_input(
    licorne: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(WORKLOAD.read_bytes())))
    outcome = licorne(*words(line, tmp_path), "--json")
    assert (outcome.status, outcome.err) == (Status.DONE, "")
    assert '"placed": 2' in outcome.out


def test_a_workload_is_written_to_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from licorne.cli import run  # noqa: PLC0415  # its output is bytes

    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out, flush=lambda: None))
    monkeypatch.chdir(tmp_path)
    assert run(["convert", str(SCENARIO)]) == Status.DONE
    assert out.getvalue().startswith(b'{"t":"meta"')
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "seconds"), [("40", 40), ("40s", 40), ("0.5m", 30), ("1m30s", 90), ("1e1", 10)])
def test_a_time_is_seconds_or_a_duration(licorne: Command, text: str, seconds: float) -> None:
    given, plain = (
        licorne("simulate", WORKLOAD, "--config", QUEUES, "--until", each, "--json") for each in (text, seconds)
    )
    assert given.status == Status.DONE
    found, expected = (json.loads(each.out) for each in (given, plain))
    assert found["window_s"] == expected["window_s"] == [0, seconds]
