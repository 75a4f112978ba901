"""Which tests run when. There are three rings (`docs/notes/tests.md`), and each test belongs to one of them.

`make test` runs what is fast and what a change most often breaks. The gate adds what takes long or starts a program that is
built or installed first. The night adds what needs many examples, and what shows that tests find faults.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

import nightly
from planted_faults import SUITES
from rings import RINGS

ROOT = Path(__file__).resolve().parent.parent
ALL_FOLDERS = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
SLOW = {
    "tests/determinism": "the same in several processes",
    "tests/site": "the documentation site, and a browser",
    "tests/yunikorn": "a running yunikorn-core",
}
"""Folders of which no test is run before each commit, and why."""
STARTS = re.compile(r"\bControlPlane\(|\bsync_playwright\(|\bNotebookClient\(|\byunikorn\.original\b")
"""What a test does that starts a program which is built or installed first, or that is slow to start."""


@pytest.fixture(scope="module")
def rings(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """By test, its markers; only where all tests were collected."""
    found = request.config.stash[RINGS]
    if len({test.partition("::")[0].rpartition("/")[0] for test in found}) < len(ALL_FOLDERS) - 5:
        pytest.skip("needs a run of the whole folder `tests`")
    return found


def test_no_test_is_in_two_rings(rings: dict[str, list[str]]) -> None:
    assert [test for test, markers in rings.items() if len(markers) > 1] == []


def test_each_concept_is_tested_before_each_commit(rings: dict[str, list[str]]) -> None:
    tested = {test.partition("::")[0].rpartition("/")[0] for test, markers in rings.items() if not markers}
    assert ALL_FOLDERS - tested == set(SLOW)


def test_faults_that_random_examples_must_notice_are_planted_at_night(rings: dict[str, list[str]]) -> None:
    """The gate plants one of each suite, so that its program still starts; the night all."""
    for suite in SUITES:
        markers = sorted(found for test, found in rings.items() if test.partition("[")[0] == f"tests/{suite.test}")
        assert markers in ([["gate"]], [["gate"], *[["nightly"]] * (len(markers) - 1)]), suite.test


def test_what_starts_a_program_is_not_run_before_each_commit(rings: dict[str, list[str]]) -> None:
    by_file: defaultdict[str, list[list[str]]] = defaultdict(list)
    for test, markers in rings.items():
        by_file[test.partition("::")[0]].append(markers)
    starting = [file for file in by_file if STARTS.search((ROOT / file).read_text(encoding="utf-8"))]
    assert len(starting) >= 4
    assert [file for file in starting if file != "tests/test_rings.py" and [] in by_file[file]] == []


def test_each_ring_is_run_by_its_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert options["addopts"][-2:] == ["-m", "not gate and not nightly"]  # `make test`
    assert re.search(r"^test-all: test .*\n(\t.*\n)*\t.*-m gate ", makefile, re.MULTILINE)
    assert "make test-all" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    commands = " ".join(command for part in nightly.PARTS.values() for command in part.commands)
    assert "-m nightly -k 'not planted'" in commands
    assert "-m planted_faults" in commands


def test_each_folder_is_in_one_part() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    parts = re.findall(r"^(?:scheduler|laboratory|hosts|front) := (.*)", makefile, re.MULTILINE)
    assert sorted(" ".join(parts).split()) == sorted(one.removeprefix("tests/") for one in ALL_FOLDERS - {"tests"})


def test_each_package_can_be_tested_by_its_name() -> None:
    variables = dict(
        re.findall(r"^(\w+) := (.*)", (ROOT / "Makefile").read_text("utf-8").replace("\\\n", ""), re.MULTILINE)
    )
    for package in (path.parent.name for path in (ROOT / "src/licorne").glob("*/__init__.py")):
        named = str(variables.get(package, package))
        folders = str(variables.get(named.strip("$()"), named)).split()
        assert {f"tests/{folder}" for folder in folders} <= ALL_FOLDERS, package


def test_each_part_of_the_night_is_a_job_and_on_the_page() -> None:
    """Other Pythons have their jobs on each push."""
    page = (ROOT / "docs/notes/tests.md").read_text(encoding="utf-8")
    assert [name for name, part in nightly.PARTS.items() if f"\n| `{name}` | {part.what} |\n" not in page] == []
    jobs = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["part"]["strategy"]["matrix"]["part"] == [part for part in nightly.PARTS if part != "versions"]
