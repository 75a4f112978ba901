"""`licorne config check`: a line for each fault, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
GOOD = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
BAD = GOOD + "        maxapplications: many\n        colour: red\n"


@pytest.mark.parametrize(("text", "status"), [(GOOD, 0), (BAD, 1)])
def test_the_exit_status_is_the_verdict(licorne: Command, tmp_path: Path, text: str, status: int) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    assert licorne("config", "check", path).status == status
    assert licorne("config", "check", path, "--json").status == status


def test_a_fault_is_a_line_with_its_place(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(BAD)
    outcome = licorne("config", "check", path)
    lines = outcome.out.splitlines()
    assert any(line.startswith(f"{path}:6:") for line in lines)
    assert any(line.startswith(f"{path}:7:") for line in lines)
    report = json.loads(licorne("config", "check", path, "--json").out)
    assert {fault["line"] for fault in report["faults"]} >= {6, 7}
    assert len(lines) == len(report["faults"]) + len(report["warnings"])


def test_a_warning_refuses_nothing(licorne: Command, tmp_path: Path) -> None:
    path = tmp_path / "queues.yaml"
    path.write_text(
        "partitions:\n  - name: default\n    placementrules:\n      - name: fixed\n        value: root.a\n"
        "        filter: {type: DENY, users: [u1]}\n    queues:\n      - name: root\n        submitacl: '*'\n"
        "        queues:\n          - name: a\n"
    )
    outcome = licorne("config", "check", path)
    assert outcome.status == 0
    assert "(warning)" in outcome.out
