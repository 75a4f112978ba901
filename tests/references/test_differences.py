"""Every difference from the original is shown by a test: docs/reference/differences.md names it, and it exists.

The last cell of a row names files or folders of `tests/`. Words in parentheses after a file are words of the names of its
tests, or of a worked example in it; a comma separates one test from the next, and a semicolon begins a remark. A row that
no program can test says `no test: ` and the reason.
"""

from __future__ import annotations

import re

import pytest

from references.texts import ROOT

PAGE = "docs/reference/differences.md"
NAMED = re.compile(r"`([\w/.]+)`(?: \(([^;)]*)[^,]*\))?")


def rows(page: str) -> list[tuple[str, str]]:
    """The rows of all tables that have a number: the number and the cell that names the tests."""
    return [
        (match[1], line.removesuffix(" |").rpartition(" | ")[2])
        for line in page.splitlines()
        if (match := re.match(r"\| (\d+) \|", line))
    ]


def faults(cell: str) -> list[str]:
    """What is wrong with a cell that names tests; nothing if all of them exist."""
    if re.match(r"no test: \w", cell):
        return []
    named = NAMED.findall(cell)
    found = [] if named else ["no test"]
    for path, words in named:
        place = ROOT / "tests" / path
        if not (place.is_file() if path.endswith(".py") else any(place.glob("test_*.py"))):
            found.append(f"no tests/{path}")
            continue
        found += [
            f"no test of {path} has the words {each!r}"
            for each in filter(None, words.split(", "))
            if not _has(path, each)
        ]
    return found


def _has(path: str, words: str) -> bool:
    """Tell whether the name of one test, or of a worked example, has all the words."""
    place = ROOT / "tests" / path
    text = "".join(file.read_text(encoding="utf-8") for file in ([place] if place.is_file() else place.glob("*.py")))
    names = re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)
    names += re.findall(r'^    \(?"([^"]+)"[:,]', text, re.MULTILINE)
    return any(set(words.lower().split()) <= set(re.split(r"\W|_", name.lower())) for name in names)


def test_every_difference_names_a_test_that_exists() -> None:
    found = rows((ROOT / PAGE).read_text(encoding="utf-8"))
    assert found
    assert {number: wrong for number, cell in found if (wrong := faults(cell))} == {}


@pytest.mark.parametrize(
    ("cell", "wrong"),
    [
        ("`core/test_sums.py`", []),
        ("`core/test_sums.py` (exact, asks repeat), `parity`", []),
        ("`core/test_sums.py` (exact; more is in `docs`)", []),
        ("no test: it is about the wording of a page", []),
        ("–", ["no test"]),
        ("no test", ["no test"]),
        ("`core/test_none.py`", ["no tests/core/test_none.py"]),
        ("`data`", ["no tests/data"]),
        (
            "`core/test_sums.py` (exact, nothing of this)",
            ["no test of core/test_sums.py has the words 'nothing of this'"],
        ),
    ],
)
def test_a_cell_that_names_no_test_or_one_that_does_not_exist_is_found(cell: str, wrong: list[str]) -> None:
    assert faults(cell) == wrong
