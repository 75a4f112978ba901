"""`licorne reproduce`: its table, its page to cite, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from licorne.sim.papers import rlscheduler
from licorne.sim.papers.reproduction import Cell, DataFile, Reproduced

Command = Callable[..., Any]


def cell(got: float, tolerance: float = 0, decimals: int = 2) -> Cell:
    return Cell(row="r", column="c", expected=1.25, got=got, tolerance=tolerance, decimals=decimals).compared()


@pytest.mark.parametrize(
    ("got", "tolerance", "agrees"),
    [
        (1.25, 0, True),
        (1.2549, 0, True),
        (1.256, 0, False),
        (1.26, 0.01, True),
        (1.2651, 0.01, False),
        (1.24, 0.01, True),
    ],
)
def test_a_cell_agrees_if_it_is_within_its_tolerance_as_published(got: float, tolerance: float, agrees: bool) -> None:
    assert cell(got, tolerance).agrees is agrees


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Let `rlscheduler` return these cells at once."""
    cells = [cell(1.25)]

    def reproduce(folder: Path, small: bool, progress: object) -> Reproduced:
        return Reproduced(
            name="rlscheduler",
            title="numbers" + (" in small" if small else ""),
            source="A Paper",
            data_source="a repository",
            data=[DataFile(folder.name, "12ab")],
            cells=cells,
            simulations=3,
            digest="34cd",
            notes=["a note"],
        )

    monkeypatch.setattr(rlscheduler, "reproduce", reproduce)
    return cells


def test_the_table_says_for_each_cell_whether_it_agrees(licorne: Command, table: list[Cell], tmp_path: Path) -> None:
    outcome = licorne("reproduce", "rlscheduler", tmp_path)
    assert outcome.status == 0
    for words in (
        "numbers",
        "expected",
        "got",
        "tolerance",
        "1.25",
        "yes",
        "note: a note",
        "A Paper",
        "1 of 1 cells agree",
    ):
        assert words in outcome.out
    table.append(cell(2))
    outcome = licorne("reproduce", "rlscheduler", tmp_path, "--small")
    assert outcome.status == 1
    for words in ("numbers in small", "NO", "1 of 2 cells agree"):
        assert words in outcome.out


def test_json_and_the_page_to_cite_have_the_same(licorne: Command, table: list[Cell], tmp_path: Path) -> None:
    cite = tmp_path / "page.md"
    outcome = licorne("reproduce", "rlscheduler", tmp_path, "--json", "--cite", cite)
    found = json.loads(outcome.out)
    assert found["cells"] == [
        {"row": "r", "column": "c", "expected": 1.25, "got": 1.25, "tolerance": 0, "decimals": 2, "agrees": True}
    ]
    text = cite.read_text()
    for words in (
        "A Paper",
        "a repository",
        "| r | c | 1.25 | 1.25 | 0.00 | yes |",
        f"| {tmp_path.name} | 12ab |",
        "34cd",
        "* a note",
    ):
        assert words in text
    again = tmp_path / "again.md"
    licorne("reproduce", "rlscheduler", tmp_path, "--cite", again)
    assert again.read_text() == text


def test_what_it_refuses(licorne: Command, tmp_path: Path) -> None:
    outcome = licorne("reproduce", "nothing", tmp_path)
    assert (outcome.status, outcome.out) == (2, "")
    assert "nothing: no such reproduction; there is: rlscheduler, fgd" in outcome.err
    outcome = licorne("reproduce", "rlscheduler", tmp_path / "missing")
    assert outcome.status == 4
    assert "no such folder; give the one with the paper's data" in outcome.err
    outcome = licorne("reproduce", "rlscheduler", tmp_path)
    assert outcome.status == 4
    assert "lublin-1.swf.gz: no such file; the data are published at github.com/DIR-LAB" in outcome.err
