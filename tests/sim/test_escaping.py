"""Names in decision lines: whatever their characters, different decisions have different lines and a different digest."""

from __future__ import annotations

from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from licorne.sim.runner import simulate
from licorne.workload.escaping import decision_lines, escaped
from licorne.workload.workload import parse_workload

NAMES = st.text(st.sampled_from("ab\\\t\n\r tnr"), max_size=4)
DECISIONS = st.lists(st.tuples(NAMES, NAMES), max_size=4)
ORDINARY = st.text(st.characters(exclude_characters="\\\t\n\r", exclude_categories=["Cs"]))


@given(DECISIONS, DECISIONS)
def test_different_decisions_have_different_lines(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    assert (decision_lines(one) == decision_lines(other)) == (one == other)


@given(DECISIONS)
def test_each_decision_is_a_line_of_two_fields(decisions: list[tuple[str, str]]) -> None:
    lines = decision_lines(decisions).split("\n")
    assert lines.pop() == ""
    assert [tuple(line.split("\t")) for line in lines] == [(escaped(key), escaped(node)) for key, node in decisions]


@given(ORDINARY)
def test_ordinary_names_stand_for_themselves(name: str) -> None:
    assert escaped(name) == name
    assert decision_lines([(name, name)]) == f"{name}\t{name}\n"


def _simulated(decisions: Path, *keys: str) -> tuple[str, str]:
    lines = [
        {"t": "meta", "name": "w", "version": 2},
        {"t": "node", "id": "n1", "res": {"vcore": 2}},
        {"t": "app", "id": "x\t", "queue": "", "user": "u", "tags": {"namespace": "dev"}},
        *({"t": "ask", "key": key, "app": "x\t", "res": {"vcore": 1}} for key in keys),
        {"t": "release", "app": "", "key": "", "at": 0},
    ]
    result = simulate(parse_workload([msgspec.json.encode(line) + b"\n" for line in lines]), decisions=decisions)
    assert result.placed == len(keys)
    return decisions.read_text(), result.digest


def test_one_name_cannot_pass_for_two_decisions(tmp_path: Path) -> None:
    """`k`, a tab, `n1`, a line feed and `X` was written as if `k` and `X` had been placed."""
    forged, digest = _simulated(tmp_path / "a", "k\tn1\nX")
    assert forged == "k\\tn1\\nX\tn1\n"
    honest, other = _simulated(tmp_path / "b", "k", "X")
    assert honest == "k\tn1\nX\tn1\n"
    assert digest != other
