from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import settings

from common.examples import examples, scaled

TESTS = Path(__file__).resolve().parent.parent
PROFILES = "common/examples.py"
"""The one file that may say how many examples there are."""
NUMBERS = ("max_examples", "stateful_step_count")


def fixed_numbers(text: str) -> list[int]:
    """List the lines in which a number of examples, or of steps in one of them, is written out."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    keywords = [keyword for call in calls for keyword in call.keywords if keyword.arg in NUMBERS]
    return [keyword.value.lineno for keyword in keywords if isinstance(keyword.value, ast.Constant)]


@pytest.mark.gate
def test_no_test_fixes_its_number_of_examples() -> None:
    """`@examples(60)` grows with the profile, `@settings(max_examples=60)` does not."""
    paths = {path.relative_to(TESTS).as_posix(): path for path in TESTS.rglob("*.py")}
    found = {name: fixed_numbers(path.read_text(encoding="utf-8")) for name, path in sorted(paths.items())}
    assert {name: lines for name, lines in found.items() if lines and name != PROFILES} == {}


def test_a_fixed_number_is_found() -> None:
    assert fixed_numbers("one = 1\n@settings(max_examples=60)\ndef two(): ...\n") == [2]
    assert fixed_numbers("settings(\n    deadline=None,\n    stateful_step_count=60,\n)\n") == [3]
    assert fixed_numbers("settings(max_examples=ROUND)\nexamples(60)\n") == []


@pytest.mark.parametrize(("profile", "expected"), [("short", 15), ("fixed", 60), ("random", 60), ("long", 1200)])
def test_a_number_of_examples_grows_with_the_profile(profile: str, expected: int) -> None:
    before = settings.get_current_profile_name()
    settings.load_profile(profile)
    try:
        assert (scaled(60), examples(60).max_examples) == (expected, expected)
    finally:
        settings.load_profile(before)
