"""`--report` of the commands that simulate."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from licorne import _extras
from licorne.cli import run
from report.workloads import QUEUES, small


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    return path


def test_simulate_and_compare_write_the_same_kind_of_page(workload: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = tmp_path / "other.yaml"
    other.write_text(QUEUES.replace("vcore: 4", "vcore: 3"))
    one, two = tmp_path / "one", tmp_path / "two"
    assert run(["simulate", str(workload), "--report", str(one)]) == 0
    assert run(["compare", "own", str(other), str(workload), "--report", str(two)]) == 0
    names = {path.name for path in one.iterdir()}
    assert {"report.html", "report.json", "utilisation.png", "cluster.csv", "cluster.parquet"} <= names
    assert names == {path.name for path in two.iterdir()}
    assert "new (other.yaml)" in (two / "report.html").read_text("utf-8")


@pytest.mark.parametrize("command", [["simulate"], ["compare", "own", "other.yaml"]])
def test_a_file_in_the_place_of_the_folder_is_refused_before_anything_runs(
    workload: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert run([*command, str(workload), "--report", str(workload)]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert "is a file; --report takes a folder" in said.err


def test_without_the_extra_the_command_says_what_to_install(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_extras, "find_spec", lambda name: None if name == "matplotlib" else object())
    assert run(["simulate", str(workload), "--report", str(tmp_path / "out")]) == 3
    assert "pip install 'licorne[report]' (missing: matplotlib)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
