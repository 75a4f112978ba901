"""`licorne shares`: text, JSON and exit statuses. The sums are tested in `tests/answers`."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from licorne.answers.shares import UNGUARANTEED, Loan, PartitionShares, Shares
from licorne.cli.shares_text import _matrix, show

Command = Callable[..., Any]
DUMP = str(Path(__file__).resolve().parents[2] / "examples" / "pods-wait" / "dump.json")


def test_the_same_as_text_and_as_json(licorne: Command) -> None:
    said = licorne("shares", "--from", DUMP)
    assert said.status == 0
    [part] = json.loads(licorne("shares", "--from", DUMP, "--json").out)["partitions"]
    assert {row["queue"] for row in part["queues"]} == {"root", "root.ads", "root.research", "root.search"}
    for words in ("who uses whose guarantee", "root.search", "user sue", "(unguaranteed)"):
        assert words in said.out


@pytest.mark.parametrize(("columns", "queues"), [(10, 3), (10, 40), (2, 40), (1, 2)])
def test_lines_and_columns_of_the_matrix_sum_up(columns: int, queues: int) -> None:
    loans = [
        Loan("gpu", f"root.l{lender}" if lender else UNGUARANTEED, f"root.b{borrower}", 1 + lender * borrower % 7)
        for lender in range(queues)
        for borrower in range(queues)
        if lender % 3 != borrower % 3
    ]
    sheet = _matrix("gpu", loans, columns)
    lines = [[int(cell.replace("-", "0").replace(",", "")) for cell in row[1:]] for row in sheet.rows]
    assert all(sum(line[:-1]) == line[-1] for line in lines)
    assert [sum(column) for column in zip(*lines[:-1], strict=True)] == lines[-1]
    assert lines[-1][-1] == sum(loan.amount for loan in loans)
    names = [row[0] for row in sheet.rows]
    assert len(names) == len(set(names)) == min(queues, 10) + (queues > 10) + 1
    assert len(sheet.columns) == len(set(sheet.columns)) == 1 + min(queues, columns) + (queues > columns) + 1
    assert (f"{queues - columns} others" in sheet.columns) == (queues - columns > 1)


def test_a_narrow_terminal_sums_the_lenders_for_whom_there_is_no_room() -> None:
    names = [f"root.department-{index}.team-of-{index}" for index in range(6)]
    part = PartitionShares("default", (), (), tuple(Loan("vcore", name, "root.x", 1000) for name in names))
    out = StringIO()
    show(Shares((part,), 0.0, ()), Console(file=out, force_terminal=True, width=80, color_system=None))
    assert "root.department-0.team-of-0" in out.getvalue()
    assert "5 others" in out.getvalue()
    assert "6 cores" in out.getvalue()


def test_another_configuration_has_other_bounds(licorne: Command) -> None:
    raised = str(Path(DUMP).parent / "raised.yaml")
    said = licorne("shares", "--from", DUMP, "--config", raised).out
    assert said.splitlines()[0] == f"What runs and waits now, beside the bounds of {raised}:"
    for text, bound in ((said, "24 cores"), (licorne("shares", "--from", DUMP).out, "20 cores")):
        [of_sue] = [line for line in text.splitlines() if "root.search" in line and "%   root" in line]
        assert bound in of_sue.replace("20 cores", "", 1)  # what is used stands first


def test_an_unknown_partition_is_named(licorne: Command) -> None:
    done = licorne("shares", "--from", DUMP, "--partition", "gpu")
    assert (done.status, done.out) == (1, "")
    assert "there is no partition 'gpu'; there are: default" in done.err


def test_what_was_used_over_a_time_of_a_recording(licorne: Command, tmp_path: Path) -> None:
    holiday = Path(DUMP).parents[1] / "gpu-holiday" / "workload.jsonl"
    assert licorne("simulate", holiday, "--record", tmp_path / "rec").status == 0
    said = licorne("shares", "--from", tmp_path / "rec", "--since", "0", "--at", "7200").out
    assert "used in 2 h" in said
    assert "nvidia.com/gpu hours" in said
    hours = json.loads(licorne("shares", "--from", tmp_path / "rec", "--since", "3600", "--at", "7200", "--json").out)[
        "hours"
    ]
    assert (hours["since_s"], hours["until_s"]) == (3600, 7200)
    refused = licorne("shares", "--from", DUMP, "--since", "0")
    assert "only a recording knows the time before" in refused.err
    assert "is not before --at 5" in licorne("shares", "--from", tmp_path / "rec", "--since", "9", "--at", "5").err
