"""`licorne reproduce`: its table, its page to cite, and what it refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from licorne.lab.papers import fgd, rlscheduler
from licorne.lab.papers.placements import Curve, Shares
from licorne.lab.papers.reproduction import Cell, DataFile, Part, Reproduced

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

    def reproduce(folder: Path, part: Part, at_once: int, progress: object) -> Reproduced:
        return Reproduced(
            name="rlscheduler",
            title=f"numbers, {part}, by {at_once}",
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
    outcome = licorne("reproduce", "rlscheduler", tmp_path, "--small", "--jobs", "3")
    assert outcome.status == 1
    for words in ("numbers, small, by 3", "NO", "1 of 2 cells agree"):
        assert words in outcome.out
    assert f"numbers, all, by {os.cpu_count()}" in licorne("reproduce", "rlscheduler", tmp_path, "--all").out


def test_json_and_the_page_to_cite_have_the_same(licorne: Command, table: list[Cell], tmp_path: Path) -> None:
    cite = tmp_path / "page.md"
    outcome = licorne("reproduce", "rlscheduler", tmp_path, "--json", "--output", cite)
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
    licorne("reproduce", "rlscheduler", tmp_path, "-o", again)
    assert again.read_text() == text


def test_what_it_refuses(licorne: Command, tmp_path: Path) -> None:
    outcome = licorne("reproduce", "nothing", tmp_path)
    assert (outcome.status, outcome.out) == (2, "")
    assert "nothing: no such reproduction; there is: rlscheduler, fgd" in outcome.err
    outcome = licorne("reproduce", "fgd")
    assert (outcome.status, outcome.out) == (2, "")
    assert "fgd: give the folder with the paper's data, published at github.com/hkust-adsl/" in outcome.err
    outcome = licorne("reproduce", "rlscheduler", tmp_path / "missing")
    assert outcome.status == 4
    assert "no such folder; give the one with the paper's data" in outcome.err
    outcome = licorne("reproduce", "rlscheduler", tmp_path)
    assert outcome.status == 4
    assert "lublin-1.swf.gz: no such file; the data are published at github.com/DIR-LAB" in outcome.err


# -- laws about the tables, and planted faults -------------------------------------------------------------------------

PUBLISHED, STARTS, ORDERS, CELLS = rlscheduler.PUBLISHED, rlscheduler.STARTS, rlscheduler.ORDERS, fgd._cells
OFF = ("lublin-2", True, "SJF", 4022)
"""The stretch whose value is off."""
OFF_BY = 0.2
"""By how much: a tenth of that in the mean of ten stretches, which is more than half of the last decimal."""


def one_stretch_that_is_off(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """All stretches are as published, with differences that cancel out; one is off: its cell disagrees, and no other."""
    for name in rlscheduler.LISTS:
        (folder / f"{name}.swf.gz").write_bytes(b"")
    starts = sorted(STARTS)
    away = {start: 3.0 * (2 * rank - 9) for rank, start in enumerate(starts)}

    def run_stretch(log: str, start: int, *, order: str, backfill: bool) -> rlscheduler.Stretch:
        value = dict(zip(ORDERS, PUBLISHED[log, backfill], strict=True))[order.upper()] + away[start]
        return rlscheduler.Stretch(value + OFF_BY * ((log, backfill, order.upper(), start) == OFF), order)

    monkeypatch.setattr(rlscheduler, "read_log", lambda path: path.name.removesuffix(".swf.gz"))
    monkeypatch.setattr(rlscheduler, "run_stretch", run_stretch)
    found = rlscheduler.reproduce(folder)
    wrong = [each for each in found.cells if not each.agrees]
    assert [(each.row, each.column) for each in wrong] == [("lublin-2, backfill", "SJF")]
    assert (wrong[0].expected, wrong[0].got) == pytest.approx((91.99, 91.99 + OFF_BY / 10))
    assert [each.expected for each in found.cells] == [value for row in PUBLISHED.values() for value in row]
    assert found.simulations == 200


def one_metric_that_is_off(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Two runs whose mean is what was published, but for one value of one of them."""
    del monkeypatch, folder
    values: fgd.Values = {
        ("default", "42", "FGD", metric): {percent: (percent / 2 + at, 0.011) for percent in fgd.PERCENTS}
        for at, metric in enumerate(Shares._fields)
    }
    curves = [
        Curve({percent: Shares(*(percent / 2 + at + side for at in range(3))) for percent in fgd.PERCENTS}, [], "")
        for side in (-1, 1)
    ]
    shares = dict(curves[1].shares)
    shares[110] = shares[110]._replace(fragmented_pct_of_idle=shares[110].fragmented_pct_of_idle + 0.04)
    cells = list(fgd._cells(("default", "42", "FGD"), "row", [curves[0], Curve(shares, [], "")], values))
    assert len(cells) == 3 * len(fgd.PERCENTS)
    wrong = [each for each in cells if not each.agrees]
    assert [value for each in wrong for value in (each.expected, each.got)] == pytest.approx([57, 57.02])


LAWS = (one_stretch_that_is_off, one_metric_that_is_off)


@pytest.mark.parametrize("law", LAWS)
def test_a_value_that_is_off_is_told_in_its_cell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, law: Callable[[pytest.MonkeyPatch, Path], None]
) -> None:
    law(monkeypatch, tmp_path)


def generous(self: Cell) -> Cell:
    return msgspec.structs.replace(self, agrees=abs(self.got - self.expected) <= self.tolerance + 0.05)


def itself(self: Cell) -> Cell:
    return msgspec.structs.replace(self, got=self.expected, agrees=True)


FAULTS: dict[str, tuple[object, str, object, Any]] = {
    "every value is within the tolerance": (
        Cell, "compared", lambda self: msgspec.structs.replace(self, agrees=True), LAWS[0],
    ),
    "every value of fgd is within the tolerance": (
        Cell, "compared", lambda self: msgspec.structs.replace(self, agrees=True), LAWS[1],
    ),
    "a tolerance is added to another": (Cell, "compared", generous, LAWS[0]),
    "a cell is compared with itself": (Cell, "compared", itself, LAWS[0]),
    "a cell of fgd is compared with itself": (Cell, "compared", itself, LAWS[1]),
    "a cell is of the first stretch": (rlscheduler, "STARTS", STARTS[:1], LAWS[0]),
    "a cell of fgd is of the first run": (
        fgd, "_cells", lambda key, row, curves, values: CELLS(key, row, curves[:1], values), LAWS[1],
    ),
    "cells are compared with another row": (
        rlscheduler, "PUBLISHED", {key: PUBLISHED[key[0], False] for key in PUBLISHED}, LAWS[0],
    ),
}  # fmt: skip
"""What is replaced by what, and a law that must not hold then."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str) -> None:
    owner, name, broken, law = FAULTS[fault]
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(AssertionError):
        law(monkeypatch, tmp_path)
