"""`licorne generate`: the same bytes in every kind of file; standard output is tested in `test_front_door.py`."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from licorne.sim.contended import CONTENDED
from licorne.sim.workload import read_workload

Command = Callable[..., Any]


def test_a_packed_file_holds_the_same(licorne: Command, tmp_path: Path) -> None:
    path, packed = tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz"
    for out in (path, packed):
        assert licorne("generate", "t", out, "--seed", "4").status == 0
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()
    assert read_workload(packed) == msgspec.structs.replace(
        read_workload(path), file=str(packed), config_place=f"{packed}:2"
    )


def test_options_reach_the_generator(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    licorne("generate", "t", path, "--shape", "unique", "--order", "app", "--seed", "9", "--nodesort", "binpacking")
    assert read_workload(path).name == "t-unique-fifo-binpacking-app-s9"


def test_the_week_takes_a_seed(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "week.jsonl"
    assert licorne("generate", "week", path, "--seed", "2").status == 0
    assert read_workload(path).name == "week-s2"


@pytest.mark.parametrize("case", CONTENDED)
def test_contests_are_cases_of_the_command_too(licorne: Command, case: str) -> None:
    """Only how a wrong option is refused is seen here: the cases themselves are big."""
    outcome = licorne("generate", case, "--appsort", "fair")
    assert (outcome.status, outcome.out) == (1, "")
    assert f"the case {case} has no options but shape and seed" in outcome.err
    assert f"python -m bench run {case}" in licorne("bench", case).err
