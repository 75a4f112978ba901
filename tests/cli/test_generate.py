"""`licorne generate`: the same bytes wherever they go; standard output is tested with the front door."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

from licorne.sim.workload import read_workload

Command = Callable[..., Any]


def test_a_packed_file_holds_the_same(licorne: Command, tmp_path: Path) -> None:
    path, packed = tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz"
    for out in (path, packed):
        assert licorne("generate", "t", out, "--seed", "4").status == 0
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes()
    assert read_workload(packed) == read_workload(path)


def test_options_reach_the_generator(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    licorne("generate", "t", path, "--shape", "unique", "--order", "app", "--seed", "9", "--nodesort", "binpacking")
    assert read_workload(path).name == "t-unique-fifo-binpacking-app-s9"


def test_the_week_takes_a_seed(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "week.jsonl"
    assert licorne("generate", "week", path, "--seed", "2").status == 0
    assert read_workload(path).name == "week-s2"
