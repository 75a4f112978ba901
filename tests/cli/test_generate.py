"""`licorne generate`: the same bytes in every kind of file; standard output is tested in `test_front_door.py`."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pytest

from licorne import cli
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
    assert (outcome.status, outcome.out) == (2, "")
    assert f"the case {case} has no options but shape and seed" in outcome.err


def test_the_week_takes_no_option_be_it_the_default_of_others(licorne: Command) -> None:
    outcome = licorne("generate", "week", "--nodesort", "fair")
    assert outcome.status == 2
    assert "the case week has no options but --seed" in outcome.err


def test_help_explains_each_case(licorne: Command) -> None:
    shown = re.sub(r"[│\s]+", " ", licorne("generate", "--help").out)
    for case in (
        "t: 10, 200",
        "e2, e3: 10,000",
        "churn:",
        "constraints:",
        "tree:",
        "gangs-atomic:",
        "preempt:",
        "week:",
    ):
        assert case in shown, case


def test_an_interrupted_file_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object, stream: BinaryIO) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    (tmp_path / "there.jsonl").write_text("as it was")
    monkeypatch.setattr("licorne.cli.generate.write", interrupted)
    for name in ("new.jsonl", "new.jsonl.gz", "there.jsonl"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["generate", "t", str(tmp_path / name)])
        assert ended.value.code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["there.jsonl"]
    assert (tmp_path / "there.jsonl").read_text() == "as it was"
