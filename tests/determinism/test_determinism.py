"""The same inputs give the same decisions: under any hash seed, compiled and as plain Python.

Source: docs/spec/design.md, rule 2.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
