"""Laws that hold for every text: no traceback, one verdict, positions within the text."""

from __future__ import annotations

import inspect
import re
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config import ConfigError, as_data, check, load

SEED = """\
partitions:
  - name: default
    placementrules:
      - {name: fixed, value: root.a, create: true, filter: {type: deny, users: [u*]}}
      - name: tag
        value: namespace
        parent: &rule {name: user, create: true}
      - *rule
    limits: [{groups: [dev, "*"], maxresources: {memory: 10G}}]
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            maxapplications: 20
            properties: {application.sort.policy: fair, priority.offset: "5"}
            resources:
              guaranteed: {vcore: 10, memory: 40Gi}
              max: {vcore: 40, memory: 160Gi}
            limits:
              - {users: [alice], maxapplications: 10, maxresources: {vcore: 20}}
              - {users: ["*"], maxapplications: 5}
          - name: b
            parent: true
            childtemplate: {maxapplications: 4, resources: {max: {vcore: 8}}}
    nodesortpolicy: {type: fair, resourceweights: {vcore: 1.5}}
"""
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
PIECES = st.sampled_from(
    ["&x ", "*x", "*rule", "<<: ", "!!int ", "!", "|\n", ">", "'", '"', "[", "]", "{", "}", ":", ": ", ",", "- ", "?",
     "? ", "#", "\n", "\r", "\t", "\n---\n", "\n...\n", "%YAML 1.1", "\x85", "\u2028", "\ufeff", "\ud800", "\0", "é",
     "~", "null", "-1.5", "0x1F", "1e9", ".inf", "yes", "a b c", "10K", "root", "*", "9" * 30, "@recovery@", "\\"]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The seed with pieces put in, taken out and doubled."""
    text = SEED
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(PIECES | st.just(text[start:end] * 2) | st.text(max_size=3)) + text[end:]
    return text


@given(mutated() | st.text(max_size=60))
def test_check_never_raises_and_agrees_with_load(text: str) -> None:
    report = check(text, file="f.yaml")
    if report.faults:
        with pytest.raises(ConfigError) as refusal:
            load(text, file="f.yaml")
        assert refusal.value.problems == report.faults
    else:
        assert load(text).text == text
        assert load(written(text)).partitions == load(text).partitions


def written(text: str) -> str:
    """Return a configuration read as data and written again."""
    return msgspec.yaml.encode(as_data(text)).decode()


@given(st.dictionaries(st.text(), st.text()))
def test_data_keeps_every_text(properties: dict[str, str]) -> None:
    data = {"partitions": [{"queues": [{"name": "root", "properties": properties}]}]}
    assert as_data(msgspec.yaml.encode(data).decode()) == data


@given(mutated())
def test_places_are_within_the_text(text: str) -> None:
    lines = LINE_BREAK.split(text)
    report = check(text)
    for problem in report.faults + report.warnings:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 2
        assert str(problem).startswith(f"<config>:{problem.line}:{problem.column}: ")


def test_the_seed_is_sound() -> None:
    assert check(SEED).faults == ()
    assert load(SEED) == load(SEED)


def test_a_stack_that_is_used_up_is_a_fault_like_any_other() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 25)
    try:
        report = check(SEED)
    finally:
        sys.setrecursionlimit(limit)
    assert [fault.rule for fault in report.faults] == ["yaml-depth"]
