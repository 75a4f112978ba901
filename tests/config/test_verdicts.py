"""Every recorded verdict of the original on a configuration, and the first fault at which the original stopped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from licorne.config import ConfigError, check, load

# licorne refuses weights that are no finite numbers, which the original accepts (docs/spec/config.md, section 13.6).
WANTED_DIFFERENCE = re.compile(r"\.(?:nan|inf)\b", re.IGNORECASE)

RECORDED = Path(__file__).resolve().parents[1] / "data" / "verdicts.jsonl"


@pytest.fixture(scope="module")
def verdicts() -> list[dict[str, str]]:
    return [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]


def test_verdicts_and_first_faults_agree(verdicts: list[dict[str, str]]) -> None:
    assert len(verdicts) == 1100
    different: list[tuple[str, ...]] = []
    wanted = 0
    for row in verdicts:
        report = check(row["yaml"])
        verdict = "ERR" if report.faults else "OK"
        first = report.faults[0].rule if report.faults else ""
        if first == "node-sort-weight" and WANTED_DIFFERENCE.search(row["yaml"]):
            wanted += row["verdict"] == "OK"  # where it is ERR, the original went on to another fault
        elif verdict != row["verdict"]:
            different.append((row["id"], row["verdict"], verdict, first))
        elif verdict == "ERR" and first != row["rule"]:
            different.append((row["id"], row["rule"], first))
    assert different == []
    assert wanted == 8, "eight recorded configurations are refused only for a weight that is not finite"


def test_load_refuses_what_check_finds_at_fault(verdicts: list[dict[str, str]]) -> None:
    for row in verdicts[::10]:
        report = check(row["yaml"], file="queues.yaml")
        if report.faults:
            with pytest.raises(ConfigError) as refusal:
                load(row["yaml"], file="queues.yaml")
            assert refusal.value.problems == report.faults, row["id"]
        else:
            load(row["yaml"], file="queues.yaml")
