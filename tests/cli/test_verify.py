"""`licorne simulate --policy` and `--verify`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from licorne.cli import main
from licorne.cli.statuses import Status
from licorne.sim.verification import Difference, first_difference

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKLOAD = str(EXAMPLES / "gpu-holiday" / "workload.jsonl")
CHEAP = str(EXAMPLES / "policies" / "cheap_nodes.py") + ":CheapNodes"

UNSTEADY = """
import itertools, os, random
import licorne

class Random(licorne.Policy):
    def node_key(self, pod, node):
        return random.SystemRandom().random()

class Hashes(licorne.Policy):
    def node_key(self, pod, node):
        return hash(node.id + pod.key)

class Fails(licorne.Policy):
    def node_key(self, pod, node):
        return 0 if os.environ.get("PYTHONHASHSEED") != "1" else None

class Ends(licorne.Policy):
    def node_key(self, pod, node):
        if os.environ.get("PYTHONHASHSEED") == "1":
            os._exit(9)
        return 0
"""


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", WORKLOAD, *arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def unsteady(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    path = tmp_path / "unsteady.py"
    path.write_text(UNSTEADY)
    return str(path)


def test_the_result_names_the_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--policy", CHEAP, "--json") == Status.DONE
    (policy,) = json.loads(capsys.readouterr().out)["policies"]
    assert (policy["name"], policy["decides"], len(policy["digest"])) == (CHEAP, ["node_key"], 64)
    assert run("--policy", CHEAP) == Status.DONE
    assert f"policy {CHEAP}: node_key; digest {policy['digest']}" in capsys.readouterr().out


def test_a_steady_policy_is_verified(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    decisions = tmp_path / "decisions"
    assert run("--policy", CHEAP, "--verify", "--decisions", str(decisions)) == Status.DONE
    assert "note: verified: a second run, in a process of its own, took the same decisions" in capsys.readouterr().out
    assert len(decisions.read_text().splitlines()) > 60


@pytest.mark.parametrize("name", ["Random", "Hashes"])
def test_a_policy_that_decides_otherwise_the_second_time_is_found(
    capsys: pytest.CaptureFixture[str], unsteady: str, name: str
) -> None:
    assert run("--policy", f"{unsteady}:{name}", "--verify") == Status.NO
    assert "two runs differ; first in decision " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [("Fails", "in the second run: policy"), ("Ends", "the second run has ended without a result")],
)
def test_what_goes_wrong_in_the_second_run_is_told(
    capsys: pytest.CaptureFixture[str], unsteady: str, name: str, message: str
) -> None:
    assert run("--policy", f"{unsteady}:{name}", "--verify") == Status.NO
    assert message in capsys.readouterr().err


def test_a_policy_that_goes_wrong_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("--policy", "no.py:Such") == Status.NO
    assert "policy no.py:Such: no.py: no such file" in capsys.readouterr().err
    assert run("--policy", CHEAP, "--record", str(tmp_path / "r")) == Status.USAGE
    assert "--record is not for --policy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "", None),
        ("a\tn\n", "a\tn\n", None),
        ("a\tn\nb\tn\n", "a\tn\nb\tm\n", Difference(2, "b\tn", "b\tm")),
        ("a\tn\n", "", Difference(1, "a\tn", "")),
        ("", "a\tn\n", Difference(1, "", "a\tn")),
    ],
)
def test_the_first_difference_is_found(tmp_path: Path, first: str, second: str, expected: Difference | None) -> None:
    (tmp_path / "1").write_text(first)
    (tmp_path / "2").write_text(second)
    assert first_difference(tmp_path / "1", tmp_path / "2") == expected
