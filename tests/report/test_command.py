"""Reports of the commands that simulate."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from licorne import _extras, simulate
from licorne.cli import run
from licorne.lab.report import Collector, write_report
from report.workloads import QUEUES, small


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report; it takes seconds to write one."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("report")
    (folder / "small.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    assert run(["simulate", str(folder / "small.jsonl"), "--report", str(folder / "one")]) == 0
    return folder / "one"


@pytest.mark.gate
def test_simulate_and_compare_write_the_same_kind_of_page(workload: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = tmp_path / "other.yaml"
    other.write_text(QUEUES.replace("vcore: 4", "vcore: 3"))
    one, two = tmp_path / "one", tmp_path / "two"
    assert run(["simulate", str(workload), "--report", str(one)]) == 0
    assert run(["compare", "own", str(other), str(workload), "-o", str(two)]) == 0
    names = {path.name for path in one.iterdir()}
    assert {"report.html", "report.json", "utilisation.png", "cluster.csv", "cluster.parquet"} <= names
    assert names == {path.name for path in two.iterdir()}
    page = (two / "report.html").read_text("utf-8")
    assert "new (other.yaml)" in page
    assert f"<code>licorne compare own {other} {workload} -o {two}</code>" in page


@pytest.mark.parametrize("command", [["simulate", "--report"], ["compare", "own", "other.yaml", "-o"]])
def test_a_file_in_the_place_of_the_folder_is_refused_before_anything_runs(
    workload: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    *words, option = command
    assert run([*words, str(workload), option, str(workload)]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert "is a file, and a report is a folder" in said.err


def test_without_the_extra_the_command_says_what_to_install(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_extras, "find_spec", lambda name: None if name == "matplotlib" else object())
    clone = Path(__file__).resolve().parents[2]
    for folder, wanted in ((clone, f"--editable '{clone}[report]'"), (tmp_path, "'licorne[report]'")):
        monkeypatch.setattr(_extras, "CLONE", folder)
        assert run(["simulate", str(workload), "--report", str(tmp_path / "out")]) == 3
        assert f"pip install {wanted} (missing: matplotlib)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
def test_reports_that_are_there_are_put_side_by_side_as_if_they_had_been_written_together(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(
        "licorne.lab.report.collector.NEVER_PLACED_MAX", 1
    )  # of more, the figures have only the first one
    full = tmp_path / "full.jsonl"
    late = [
        {"t": "app", "id": "late", "queue": "root.a", "user": "ann", "at": 150},
        {"t": "ask", "app": "late", "key": "too-big", "at": 150, "res": {"vcore": 900_000}},
    ]
    full.write_bytes(b"\n".join([workload.read_bytes(), *map(msgspec.json.encode, late)]))
    expected = []
    for name, path in (("one", workload), ("two", full)):
        collector = Collector()
        result = simulate(path, observers=[collector])
        words = ["simulate", str(path), "--report", str(tmp_path / name)]
        command = " ".join(["licorne", *words])
        figures = msgspec.structs.replace(collector.figures(result, name), command=command)
        expected.append((figures, collector.never_placed()))
        assert run(words) == 0
    assert len(expected[1][1]) > 1, "more is never placed than the figures have"
    write_report(
        tmp_path / "together",
        [figures for figures, _ in expected],
        never_placed={figures.label: never_placed for figures, never_placed in expected},
    )
    capsys.readouterr()
    assert run(["report", str(tmp_path / "one"), str(tmp_path / "two"), "-o", str(tmp_path / "joined")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'joined' / 'report.html'}\n"
    names = {path.name for path in (tmp_path / "together").iterdir()}
    assert names == {path.name for path in (tmp_path / "joined").iterdir()}
    for name in names:
        ours, others = ((tmp_path / folder / name).read_bytes() for folder in ("joined", "together"))
        if name == "report.html":  # it has the date
            ours, others = (re.sub(rb"[0-9-]{10} [0-9:]{5} UTC", b"", page) for page in (ours, others))
        assert ours == others, name


@pytest.mark.nightly
def test_a_report_of_several_runs_can_be_joined_with_others(workload: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    other = tmp_path / "other.yaml"
    other.write_text(QUEUES.replace("vcore: 4", "vcore: 3"))
    assert run(["compare", "own", str(other), str(workload), "--output", str(tmp_path / "a" / "same")]) == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    folders = [str(tmp_path / name / "same") for name in ("a", "b")]
    assert run(["report", *folders, "--output", str(tmp_path / "all")]) == 0
    labels = [each["label"] for each in msgspec.json.decode((tmp_path / "all" / "report.json").read_bytes())]
    assert labels == [f"{folder}: {label}" for folder in folders for label in ("old (own)", "new (other.yaml)")]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("missing", "no report: No such file or directory; give a folder with a report"),
        ("no JSON", "no report that can be read"),
        ("version", "a report of version 99, and not of 2: make it anew"),
        ("cut", "no report that can be read"),
        ("row", "no report that can be read"),
    ],
)
def test_what_is_no_report_is_refused_and_nothing_is_written(
    report: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: str, said: str
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        shutil.copytree(report, folder)
    figures = folders[1] / "report.json"
    data = figures.read_bytes()
    match spoil:
        case "missing":
            figures.unlink()
        case "no JSON":
            figures.write_bytes(b"x")
        case "version":
            figures.write_bytes(data.replace(b'"version": 2', b'"version": 99', 1))
        case "cut":
            figures.write_bytes(data[: len(data) // 2])
        case "row":
            (folders[1] / "never-placed.csv").write_text("run,key\nsmall,x\n")
    capsys.readouterr()
    assert run(["report", *map(str, folders), "-o", str(tmp_path / "joined")]) == 4
    assert said in capsys.readouterr().err
    assert not (tmp_path / "joined").exists()


@pytest.mark.parametrize("folders", [["one"], ["one", "one"], ["one", "out"]])
def test_fewer_than_two_different_reports_are_wrong_usage(tmp_path: Path, folders: list[str]) -> None:
    paths = [str(tmp_path / name) for name in folders]
    assert run(["report", *paths, "-o", str(tmp_path / "out")]) == 2
