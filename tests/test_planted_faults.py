"""The table of planted faults names every test that plants one."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planted_faults import OF_TESTS, SUITES, Suite

pytestmark = pytest.mark.gate

TESTS = Path(__file__).resolve().parent
TABLES = {"FAULTS", "CAUGHT_ELSEWHERE"}
LAWS = {"AssertionError", "InvariantError", "BaseExceptionGroup", "ExceptionGroup"}
IS_CAUGHT = re.compile(r"_(is|are)_(caught|found|noticed)(_|$)")
PLANTS_NONE = {
    "kube/test_applications.py::test_a_pod_that_runs_counts_whatever_is_refused": "a refusal is planted, which must do no harm",
    "kube/test_bad_pods.py::test_a_pod_whose_resources_cannot_be_read_waits_and_is_told_why": "faults of pods, not of the product",
    "parking/test_parking.py::test_a_lost_wake_up_is_caught_from_any_seed": "the faults of test_a_lost_wake_up_is_caught again",
    "parking/test_parking.py::test_every_event_is_dropped_by_a_planted_fault_or_by_a_test": "looks at the table of faults",
    "test_rings.py::test_faults_that_random_examples_must_notice_are_planted_at_night": "looks at their markers",
    "samples/test_programs.py::test_another_output_is_found": "a fault of a page, not of the product",
}
"""Tests that look as if they planted a fault, and plant none in the product, or none that is not listed, and why."""


def names(node: ast.AST) -> set[str]:
    """Return all names in a piece of code, those of attributes too."""
    found = (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in ast.walk(node))
    return set(found) - {""}


def plants(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a test plants a fault: it says so, uses a table of faults, or expects that a law breaks."""
    raises = [node for node in ast.walk(test) if isinstance(node, ast.Call) and "raises" in names(node.func)]
    used = names(test)
    return (
        "plant" in f"{test.name} {ast.get_docstring(test)}".lower()
        or bool(used & (TABLES | {"a_law_breaks", "raised_by_a_law"}))
        or any(names(call) & LAWS for call in raises)
        or ("setattr" in used and IS_CAUGHT.search(test.name) is not None)
    )


def planting(file: Path) -> Iterator[str]:
    """Yield the tests of a file that plant faults, as pytest names them."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_") and plants(node):
            yield f"{file.relative_to(TESTS).as_posix()}::{node.name}"


def test_no_test_that_plants_faults_is_missing_from_the_table() -> None:
    itself = {Path(__file__), TESTS / "common" / "test_planting.py"}
    found = {test for file in TESTS.rglob("test_*.py") if file not in itself for test in planting(file)}
    listed = {suite.test for suite in SUITES} | set(OF_TESTS)
    assert sorted(found - listed - PLANTS_NONE.keys()) == []
    assert sorted(PLANTS_NONE.keys() - found) == [], "these no longer look as if they planted a fault"
    assert sorted(PLANTS_NONE.keys() & listed) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_a_planted_fault(): pass", True),
        ("def test_x():\n    'Planted: a report with another user.'", True),
        ("@pytest.mark.parametrize('name', faults.FAULTS)\ndef test_x(name): pass", True),
        ("def test_x():\n    with pytest.raises((KeyError, AssertionError)): check()", True),
        ("def test_x():\n    with a_law_breaks(laws): check()", True),
        ("async def test_x_is_noticed(monkeypatch):\n    monkeypatch.setattr(a, 'b', c)", True),
        ("def test_x_is_found(): assert find('x')", False),
        ("def test_x(monkeypatch):\n    monkeypatch.setattr(a, 'b', c)", False),
        ("def test_x():\n    with pytest.raises(KeyError): assert check()", False),
    ],
)
def test_a_test_that_plants_a_fault_is_known_by_its_text(text: str, expected: bool) -> None:
    (test,) = ast.parse(text).body
    assert isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef)
    assert plants(test) is expected


def test_no_module_of_planted_faults_is_missing_from_the_table() -> None:
    modules = {
        path.relative_to(TESTS).with_suffix("").as_posix().replace("/", ".") for path in TESTS.rglob("faults.py")
    }
    assert modules - {suite.module for suite in SUITES} == set()


@pytest.mark.parametrize("test", [*(suite.test for suite in SUITES), *OF_TESTS])
def test_a_test_in_the_table_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.module)
def test_what_a_planted_fault_replaces_exists(suite: Suite) -> None:
    """By the text of its module, as a compiled class does not show all its functions."""
    table = getattr(sys.modules.get(suite.module), "FAULTS", {})
    for where, name, *_ in (fault for fault in table.values() if isinstance(fault, tuple)):
        modules = [each.__module__ for each in where.__mro__] if isinstance(where, type) else [where.__name__]
        files = [TESTS.parent / "src" / f"{module.replace('.', '/')}.py" for module in modules if "licorne" in module]
        nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
        stored = {node.id for node in nodes if isinstance(node, ast.Name)}
        named = {getattr(node, "name", "") for node in nodes}  # of functions and of what is imported
        assert name in stored | named, f"{modules[0]}: {name}"
