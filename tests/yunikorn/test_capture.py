"""`licorne convert` beside a running yunikorn-core: the workload that it makes is the one that was played."""

from __future__ import annotations

from pathlib import Path

import pytest

from capture.played import LASTS_S, assert_agrees, workload
from cli.conftest import Command, licorne
from licorne.state.recording import Names
from licorne.state.source import Server
from licorne.workload.capture import Options, capture
from licorne.workload.workload import read_workload
from yunikorn.original import PROGRAM, REASON, playing

__all__ = ["licorne"]

pytestmark = [pytest.mark.gate, pytest.mark.skipif(not PROGRAM.exists(), reason=REASON)]


def test_the_workload_is_the_one_that_was_played(tmp_path: Path, licorne: Command) -> None:
    file = tmp_path / "week.jsonl"
    with playing(workload(), tmp_path) as core:
        done = licorne("convert", core.url, "-o", file, "--for", f"{LASTS_S}s", "--every", "1")
    assert done.status == 0, done.err
    captured = read_workload(file)
    assert_agrees(captured, workload())
    assert any("lived between two polls; their priority" in note for note in captured.notes)
    assert any("applications were rejected" in note for note in captured.notes)
    assert all(note in done.err for note in captured.notes)
    simulated = licorne("simulate", file, "--json")
    assert simulated.status == 0, simulated.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["played.jsonl", "week.jsonl"]


def test_without_names(tmp_path: Path) -> None:
    file = tmp_path / "week.jsonl"
    with playing(workload(), tmp_path, speed=2) as core:
        capture(Server(core.url), file, Options(for_s=3.0, every_s=0.3), names=Names())
    text = file.read_text(encoding="utf-8")
    assert [
        name for name in ('"ann"', '"bob"', '"cem"', '"dan"', '"dev"', '"ops"', "[bob]", "- bob") if name in text
    ] == []
