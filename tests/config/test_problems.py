"""Faults are found all at once, and each has its position."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from licorne.config import ConfigError, check, load
from licorne.config.problems import MAX_PROBLEMS
from licorne.config.rules import FAULT_RULES, WARNING_RULES

MANY_FAULTS = """\
partitions:
  - name: default
    placementrules:
      - name: fixed
        value: nowhere
    queues:
      - name: root
        queues:
          - name: batch
            submitacl: a b c
            resources:
              guaranteed: {vcore: 2}
              max: {vcore: 1, nvidia.com/gpu: 4X}
          - name: Batch
            limits:
              - limit: nobody
                maxapplications: 3
              - users: [alice, 9bad, "*"]
                maxresources: {memory: 10K}
    nodesortpolicy:
      type: random
  - name: gpu
"""


def test_all_faults_are_reported_at_once_with_their_positions() -> None:
    found = [(fault.line, fault.column, fault.path, fault.value, fault.rule) for fault in check(MANY_FAULTS).faults]
    batch, other = "partitions[0].queues[0].queues[0]", "partitions[0].queues[0].queues[1]"
    assert found == [
        (14, 19, f"{other}.name", "Batch", "queue-duplicate"),
        (10, 24, f"{batch}.submitacl", "a b c", "acl-parts"),
        (16, 17, f"{other}.limits[0]", "", "limit-nobody"),
        (18, 32, f"{other}.limits[1].users[1]", "9bad", "limit-name"),
        (19, 40, f"{other}.limits[1].maxresources.memory", "10K", "quantity-suffix"),
        (13, 47, f'{batch}.resources.max["nvidia.com/gpu"]', "4X", "quantity-invalid"),
        (12, 27, f"{batch}.resources.guaranteed", "", "guaranteed-above-max"),
        (5, 16, "partitions[0].placementrules[0].value", "nowhere", "rule-path-missing"),
        (21, 13, "partitions[0].nodesortpolicy.type", "random", "node-sort-policy"),
        (22, 5, "partitions[1]", "", "queues-missing"),
    ]


def test_the_error_reads_like_a_compiler_s() -> None:
    with pytest.raises(ConfigError) as refusal:
        load("partitions:\n  - name: default\n    queue: []\n", file="queues.yaml")
    first, second = str(refusal.value).splitlines()
    assert first == (
        "queues.yaml:2:5: partition default: a partition needs queues, if only an empty list [queues-missing]"
    )
    assert second.startswith("queues.yaml:3:5: partition default: unknown key 'queue', did you mean 'queues'?"[:60])
    assert second.endswith("[yaml-key-unknown]")
    assert [problem.line for problem in refusal.value.problems] == [3, 2]  # the decisive one first


def test_a_broken_element_is_not_also_reported_missing() -> None:
    text = """\
partitions:
  - queues:
      name: q
  - name: b
    queues:
      - name: root
        maxapplications: 3
        queues:
          - {name: [x], maxapplications: many}
        limits:
          - {users: alice, maxapplications: 1}
          - {users: [bob], maxapplications: '1'}
"""
    assert [(fault.line, fault.rule) for fault in check(text).faults] == [
        (3, "yaml-type"),
        (9, "yaml-type"),
        (9, "yaml-type"),
        (11, "yaml-type"),
        (12, "yaml-type"),
    ]


def test_a_path_in_place_of_the_text_is_told_from_other_texts() -> None:
    advice = "give the text of the configuration, not the path of its file"
    for text, said in (("own/A.yaml", True), ("queues.yml", True), ("hello", False), ("partitions: a.yaml", False)):
        assert (advice in str(check(text).faults[0])) == said, text


def test_a_long_value_is_cut_and_the_number_of_faults_is_bounded() -> None:
    fault = check(f"partitions: [{{queues: [{{name: {'a' * 500}}}]}}]").faults[0]
    assert len(fault.value) < 100
    queues = ", ".join(f"{{name: a.{number}}}" for number in range(MAX_PROBLEMS + 50))
    assert len(check(f"partitions: [{{queues: [{queues}]}}]").faults) == MAX_PROBLEMS


def test_every_rule_is_documented() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "config-rules.md"
    faults, warnings = page.read_text(encoding="utf-8").split("## Warnings")
    for table, names in ((faults, FAULT_RULES), (warnings, WARNING_RULES)):
        assert sorted(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == sorted(names)
