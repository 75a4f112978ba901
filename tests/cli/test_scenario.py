"""`licorne scenario`, and scenarios as the input of `licorne simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from licorne import simulate
from licorne.cli import run
from licorne.cli.statuses import Status
from licorne.workload import load_workload

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/scenarios"
NOISY = str(EXAMPLES / "noisy-tenant.yaml")


def out(capsys: pytest.CaptureFixture[str], *command: str, status: int = 0) -> str:
    assert run(list(command)) == status
    return capsys.readouterr().out


def test_check_says_what_a_scenario_comes_to(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(out(capsys, "scenario", "check", NOISY, "--json"))
    assert (found["nodes"], found["events"], found["capacity"]["vcore"]) == (10, 0, 160_000)
    prod, noisy = found["classes"]
    assert (noisy["applications"], noisy["pods"]) == (80, 1600)
    assert found["load"]["vcore"] == pytest.approx((prod["demand"]["vcore"] + noisy["demand"]["vcore"]) / 160_000)
    text = out(capsys, "scenario", "check", NOISY, "--load", "0.5")
    assert ["noisy", "40", "800"] in [line.split()[:3] for line in text.splitlines()]


def test_mistakes_are_printed_and_are_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "scenario", "check", str(EXAMPLES / "mistakes/mistakes.yaml"), status=Status.NO)
    assert [line.split(": ")[0].rpartition("/")[2] for line in text.splitlines()] == [
        "mistakes.yaml:5:47", "mistakes.yaml:8:30", "mistakes.yaml:11:11", "mistakes.yaml:15:10",
    ]  # fmt: skip
    out(capsys, "scenario", "check", "none.yaml", status=Status.FILE)
    out(capsys, "scenario", "check", NOISY, "--max-asks", "10", status=1)


def test_warnings_are_printed_and_are_no_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    unused = str(EXAMPLES / "mistakes/unused.yaml")
    text = out(capsys, "scenario", "check", unused)
    assert [line.split(": ")[0].rpartition("/")[2] for line in text.splitlines() if "(warning)" in line] == [
        "unused.yaml:11:12", "unused.yaml:15:23",
    ]  # fmt: skip
    assert len(json.loads(out(capsys, "scenario", "check", unused, "--json"))["warnings"]) == 2


def test_a_workload_is_written_and_simulated_alike(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    written = tmp_path / "w.jsonl.gz"
    choices = ("--seed", "3", "--load", "0.3")
    assert run(["convert", NOISY, "-o", str(written), *choices]) == 0
    direct = out(capsys, "convert", NOISY, *choices)
    digests = {
        json.loads(out(capsys, "simulate", str(written), "--json"))["digest"],
        simulate(load_workload(NOISY, seed=3, load=0.3)).digest,
    }
    assert len(digests) == 1
    assert direct.splitlines()[0] == (
        '{"t":"meta","name":"a noisy tenant","expect":0,"version":2,"replace":true,'
        '"notes":["scenario of seed 3 and load 0.3"]}'
    )


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Arrivals" in json.loads(out(capsys, "scenario", "schema"))["$defs"]


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (("convert", "examples/migration/small.jsonl", "--seed", "1"), 2, "a seed and a load are for a scenario"),
        (("simulate", "examples/migration/queues.yaml"), 1, "this is no scenario: it begins with `scenario:`"),
    ],
)
def test_options_that_do_not_fit(
    command: tuple[str, ...],
    status: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXAMPLES.parents[1])
    assert run(list(command)) == status
    assert said in capsys.readouterr().err
