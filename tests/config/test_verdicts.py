"""Every recorded verdict of the original on a configuration, and on what it stopped first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from licorne.config import ConfigError, check, load

# licorne refuses weights that are no finite numbers, which the original accepts (config.md, 13.6).
WANTED_DIFFERENCE = re.compile(r"\.(?:nan|inf)\b", re.IGNORECASE)

# What the original's message says, and the rule that licorne's first fault breaks then.
FIRST_FAULTS = (
    (r"mapping key .* already defined", "yaml-key-duplicate"),
    (r"field \S+ not found in type", "yaml-key-unknown"),
    (r"cannot unmarshal", "yaml-type"),
    (r"^yaml: ", "yaml-syntax"),
    (r"duplicate partition name", "partition-duplicate"),
    (r"queue config is not set", "queues-missing"),
    (r"cannot be created without root", "root-spelling"),
    (r"queue must not have resource limits", "root-resources"),
    (r"invalid queue name", "queue-name"),
    (r"duplicate child name", "queue-duplicate"),
    (r"multiple spaces found in ACL", "acl-parts"),
    (r"invalid quantity: overflow", "quantity-overflow"),
    (r"invalid quantity", "quantity-invalid"),
    (r"invalid suffix", "quantity-suffix"),
    (r"^guaranteed resource of parent", "guaranteed-sum-above-parent"),
    (r"^guaranteed resource .* is larger than maximum", "guaranteed-above-max"),
    (r"^max resource of parent", "max-above-parent"),
    (r"^max resource .* of the children", "guaranteed-sum-above-max"),
    (r"not equivalent", "limit-partition-root"),
    (r"empty user and group lists", "limit-nobody"),
    (r"all resource limits are null", "limit-empty"),
    (r"should be greater than zero", "limit-zero"),
    (r"invalid limit (?:user|group) name", "limit-name"),
    (r"duplicated (?:user|group) name", "limit-duplicate"),
    (r"after wildcard (?:user|group) limit", "limit-after-wildcard"),
    (r"only one group limit that is using the wildcard", "limit-group-wildcard-alone"),
    (r"invalid MaxApplications settings", "limit-above-queue-applications"),
    (r"invalid MaxResources settings", "limit-above-queue-max"),
    (r"^(?:user|group) .* max resource", "limit-above-parent-max"),
    (r"^(?:user|group) .* max applications", "limit-above-parent-applications"),
    (r"maxApplications", "max-applications-above-parent"),
    (r"invalid rule name", "rule-name"),
    (r"invalid rule filter type", "filter-type"),
    (r"not a proper list or regexp", "filter-entry"),
    (r"illegal fully qualified", "rule-fixed-parent"),
    (r"because the last queue .* is a leaf", "rule-path-below-leaf"),
    (r"non-existing queues", "rule-path-missing"),
    (r"\(fixed->.*which is not a leaf", "rule-path-leaf"),
    (r"which is not a leaf", "rule-path-not-leaf"),
    (r"undefined policy", "node-sort-policy"),
    (r"negative resource weight", "node-sort-weight"),
)


def expected_rule(message: str) -> str:
    text = message.removeprefix("[validate] ").removeprefix("configured queue creation failed: \n")
    text = text.removeprefix("yaml: unmarshal errors:\n").strip().partition("\n")[0]
    return next((rule for pattern, rule in FIRST_FAULTS if re.search(pattern, text)), f"? {text}")


@pytest.fixture(scope="module")
def verdicts(shared: Path) -> list[dict[str, str]]:
    path = shared / "parity" / "config-verdicts.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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
        elif verdict == "ERR" and first != expected_rule(row["message"]):
            different.append((row["id"], expected_rule(row["message"]), first))
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
