"""The same inputs give the same decisions: under any hash seed, compiled and as plain Python.

Source: docs/spec/design.md, rule 2.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.workloads.generate import Options, benchmark

from licorne.workload.workload import write_workload

pytestmark = pytest.mark.gate

HISTORY = Path(__file__).with_name("history.py")
WAYS = {
    "one hash seed": {"PYTHONHASHSEED": "1"},
    "another hash seed": {"PYTHONHASHSEED": "2"},
    "plain Python": {"PYTHONHASHSEED": "3", "LICORNE_INTERPRETED": "1"},
}
"""Where nothing was compiled, or is out of date, all of these are plain Python."""


def run(way: str, *arguments: str) -> str:
    environment = {**os.environ, **WAYS[way]}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(folder: Path, options: Options) -> Path:
    """Write the benchmark's case a, and return the file."""
    path = folder / "workload.jsonl"
    with path.open("wb") as stream:
        write_workload(benchmark("a", options), stream)
    return path


@pytest.fixture(scope="module")
def histories() -> dict[str, list[str]]:
    return {way: run(way, str(HISTORY)).split() for way in WAYS}


def test_a_long_history_is_the_same_every_time(histories: dict[str, list[str]]) -> None:
    assert len({tuple(words[1:]) for words in histories.values()}) == 1, histories
    assert histories["plain Python"][0] == "interpreted"


def test_the_history_has_many_decisions(histories: dict[str, list[str]]) -> None:
    _, said, allocations, *digests = histories["one hash seed"]
    assert int(said) > 2000 and int(allocations) > 500
    assert len(set(digests)) == 2


def test_a_generated_workload_is_decided_the_same_every_time(tmp_path: Path) -> None:
    workload = written(tmp_path, Options(shape="unique", nodesort="binpacking", appsort="fair", demand=1.2))
    results = [
        json.loads(run(way, "-m", "licorne.cli", "simulate", str(workload), "--json"))
        for way in ("one hash seed", "plain Python")
    ]
    assert len({result["digest"] for result in results}) == 1
    assert results[0]["placed"] > 1000 and results[0]["never_placed"] > 0


@pytest.mark.parametrize(("policy", "demand"), [("fair", 1.3), ("binpacking", 0.9)])
def test_the_node_index_changes_no_decision(tmp_path: Path, policy: str, demand: float) -> None:
    workload = written(tmp_path, Options(shape="unique", nodesort=policy, demand=demand))
    simulate = ("simulate", str(workload), "--json")
    indexed = json.loads(run("one hash seed", "-m", "licorne.cli", *simulate))
    plain = json.loads(run("plain Python", str(HISTORY.with_name("without_index.py")), *simulate))
    assert indexed["digest"] == plain["digest"]
    assert indexed["placed"] > 1000
