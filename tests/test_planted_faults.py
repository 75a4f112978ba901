"""The table of planted faults names every test that plants one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planted_faults import OF_ONE_EXAMPLE, SUITES

TESTS = Path(__file__).resolve().parent
LOOKS_FOR_ONE = re.compile(r"faults\.FAULTS\b|def test_\w*planted|[Pp]lanted fault")


def planting() -> set[str]:
    """The files of tests that plant faults, by their text."""
    texts = {path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py")}
    return {name for name, text in texts.items() if LOOKS_FOR_ONE.search(text)} - {Path(__file__).name}


def test_no_test_that_plants_faults_is_missing_from_the_table() -> None:
    listed = {suite.test for suite in SUITES} | {test.partition("::")[0] for test in OF_ONE_EXAMPLE}
    assert planting() - listed == set()
    assert [name for name in sorted(listed) if not (TESTS / name).is_file()] == []


def test_no_module_of_planted_faults_is_missing_from_the_table() -> None:
    modules = {
        path.relative_to(TESTS).with_suffix("").as_posix().replace("/", ".") for path in TESTS.rglob("faults.py")
    }
    assert modules - {suite.module for suite in SUITES} == set()


@pytest.mark.parametrize("test", OF_ONE_EXAMPLE)
def test_a_test_in_the_table_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")
