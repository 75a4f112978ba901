"""How the tests themselves run: what a seed settles (`seeds`, `conftest`), and where a time budget ends (`budget`)."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PATHS = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])

DRAWS = """
from hypothesis import given, settings, strategies as st

drawn = []

@settings(max_examples=100, database=None)
@given(st.integers())
def test_draw(number):
    drawn.append(number)

def test_show(new_seed):
    print("drawn:", drawn, "new seed:", new_seed)
"""

SWALLOWS = """
import time

def test_it():
    for _ in range(2):
        try:
            time.sleep(30)
        except BaseException:
            pass
    raise AssertionError
"""

COLLECTS = """
import gc
import time

def test_it():
    def callback(phase, info):
        if phase == "start":
            time.sleep(30)  # what is raised here goes nowhere

    gc.callbacks.append(callback)
    gc.collect()
    gc.callbacks.remove(callback)
    time.sleep(30)
"""

SLEEPS = """
import time

def test_first():
    pass

def test_second():
    try:
        time.sleep(60)
    finally:
        1 / 0  # what an interrupted test may do

def test_third():
    raise AssertionError
"""

FAILS_LATE = """
import time
from hypothesis import given, settings, strategies as st

@settings(deadline=None)
@given(st.lists(st.integers()))
def test_found(numbers):
    time.sleep(0.3)
    assert sum(numbers) < 10

def test_never():
    pass
"""


def run(folder: Path, text: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a file of tests in a folder of its own, in the order in which they stand there."""
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LICORNE_", "PYTEST_"))}
    program = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "--randomly-dont-reorganize"]
    return subprocess.run(
        [*program, "-p", "conftest", "-s", *options],
        cwd=folder,
        env={**environment, "PYTHONPATH": PATHS, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def drawn(folder: Path, text: str = DRAWS, **variables: str) -> str:
    """Return the line that shows what was drawn."""
    done = run(folder, text, **variables)
    assert done.returncode == 0, done.stdout
    return next(line for line in done.stdout.splitlines() if "drawn:" in line).partition("drawn:")[2]


@pytest.mark.nightly
@pytest.mark.parametrize("profile", ["random", "long"])
def test_the_seed_of_the_run_gives_the_examples_of_a_random_profile(tmp_path: Path, profile: str) -> None:
    first = drawn(tmp_path, LICORNE_HYPOTHESIS=profile, LICORNE_SEED="1")
    assert first == drawn(tmp_path, LICORNE_HYPOTHESIS=profile, LICORNE_SEED="1")
    assert first.partition("new seed")[0] != drawn(tmp_path, LICORNE_HYPOTHESIS=profile).partition("new seed")[0]


@pytest.mark.gate
def test_by_default_the_examples_are_the_same_whatever_the_seed(tmp_path: Path) -> None:
    first = drawn(tmp_path, LICORNE_SEED="1")
    assert first.endswith("new seed: 1")
    assert first.replace("new seed: 1", "new seed: 2") == drawn(tmp_path, LICORNE_SEED="2")


@pytest.mark.gate
def test_by_default_the_examples_are_the_same_whatever_was_imported_before(tmp_path: Path) -> None:
    """Hypothesis also draws numbers that stand in imported modules; which those are, depends on the tests that ran before."""
    (tmp_path / "numbers_of_ours.py").write_text(f"NUMBERS = {list(range(1001, 9001, 80))}\n", encoding="utf-8")
    importing = "import numbers_of_ours\n" + DRAWS
    assert drawn(tmp_path, LICORNE_SEED="1") == drawn(
        tmp_path, importing, LICORNE_SEED="1", PYTHONPATH=f"{PATHS}{os.pathsep}{tmp_path}"
    )


@pytest.mark.gate
def test_a_failure_says_how_to_draw_the_same_again(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_it():\n    assert False\n", LICORNE_HYPOTHESIS="random", LICORNE_SEED="5")
    assert done.returncode == 1
    assert "to draw the same again: LICORNE_HYPOTHESIS=random LICORNE_SEED=5" in done.stdout


@pytest.mark.nightly
def test_the_run_ends_with_its_budget_and_fails_only_by_its_tests(tmp_path: Path) -> None:
    done = run(tmp_path, SLEEPS, LICORNE_MINUTES="0.05")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "within 0.05 minutes 2 of 3 tests had their turn, 1 of them not to their end"


@pytest.mark.nightly
def test_a_test_that_catches_everything_is_interrupted_again(tmp_path: Path) -> None:
    done = run(tmp_path, SWALLOWS, LICORNE_MINUTES="0.02")
    assert done.returncode == 0, done.stdout
    assert "1 of 1 tests had their turn, 1 of them not to their end" in done.stdout


@pytest.mark.nightly
def test_an_interruption_in_a_callback_of_the_collector_is_no_error(tmp_path: Path) -> None:
    done = run(tmp_path, COLLECTS, "-W", "error", LICORNE_MINUTES="0.02")
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
def test_a_failure_within_the_budget_counts(tmp_path: Path) -> None:
    done = run(tmp_path, SLEEPS, "--deselect", "test_it.py::test_second", LICORNE_MINUTES="0.2")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "within 0.2 minutes 2 of 2 tests had their turn"


@pytest.mark.nightly
def test_a_failing_example_that_is_found_before_the_time_is_over_counts(tmp_path: Path) -> None:
    done = run(tmp_path, FAILS_LATE, LICORNE_MINUTES="0.15")
    assert done.returncode == 1, done.stdout
    assert "Hypothesis was making a failing example smaller, which raised AssertionError" in done.stdout


@pytest.mark.nightly
def test_a_tests_own_timeout_goes_on_beside_the_budget(tmp_path: Path) -> None:
    done = run(tmp_path, SLEEPS, "--timeout", "1", "-k", "test_second", LICORNE_MINUTES="0.3")
    assert done.returncode == 1
    assert "Timeout (>1.0s)" in done.stdout


CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "process_time", "thread_time"}
WAITS = {"communicate", "join", "result", "settimeout", "timeout", "wait", "wait_for"}
HTTPX = {f"httpx.{name}" for name in ("get", "post", "put", "stream", "Client", "AsyncClient")}
SHORTEST_S = 60
OWN_TIME = {
    "benchmark/test_sweep.py": "works for a time of the processor",
    "budget.py": "ends a run when its time is over, which is no failure",
    "capture/played.py": "a program that records",
    "common/waiting.py": "the waits of all others",
    "kube/cases/place.py": "for how long something stays as it is",
    "kube/cluster.py": "a wait that tells what there was instead",
    "kube/test_end_to_end.py": "shows how long each case took",
    "reference/test_found.py": "waits in the time of the scheduler",
    "samples/shell.py": "a wait that shows what was printed last",
    "service/test_guesses.py": "a lower bound",
    "service/test_soak.py": "runs for a time that is given",
    "sweep/runs.py": "makes names that differ",
    "sweep/test_ray.py": "shows what a point costs",
}
HURRIES = [
    "assert time.monotonic() - began < 5",
    "process.wait(30)",
    "subprocess.run(command, timeout=20)",
    "asyncio.wait_for(story(), 30)",
    "httpx.get(url)",
    "@pytest.mark.timeout(300)\ndef test_it(): ...",
    "for _ in range(400):\n    if holds():\n        break\n    time.sleep(0.025)",
]


def hurried(text: str, timeout_s: float) -> list[int]:
    """Return the lines of a module of tests that may fail because the machine is slow."""
    in_virtual_time = {"asyncio.timeout", "asyncio.wait_for"} if "from common.virtual import" in text else set()
    found: list[int] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS and ast.unparse(node.value) == "time":
            found.append(node.lineno)
        elif isinstance(node, ast.For) and ast.unparse(node.iter).startswith("range("):
            sleeps = re.search(r"\b(time|asyncio)\.sleep\(", ast.unparse(node))
            if sleeps and any(isinstance(one, (ast.Break, ast.Return)) for one in ast.walk(node)):
                found.append(node.lineno)
        elif isinstance(node, ast.Call) and (called := ast.unparse(node.func)) not in in_virtual_time:
            bounds = [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
            bounds += node.args if called.rpartition(".")[2] in WAITS else []
            least_s = timeout_s if called == "pytest.mark.timeout" else SHORTEST_S
            numbers = [one.value for one in bounds if isinstance(one, ast.Constant)]
            given = {keyword.arg for keyword in node.keywords} & {"timeout", "transport", None}
            if any(isinstance(one, (int, float)) and one < least_s for one in numbers) or (
                called in HTTPX and not given
            ):
                found.append(node.lineno)
    return found


@pytest.mark.gate
def test_no_test_fails_because_the_machine_is_slow(pytestconfig: pytest.Config) -> None:
    """No test compares durations, or gives up after a short time: `common.waiting` waits, `common.virtual` is another clock."""
    timeout_s = float(pytestconfig.getini("timeout"))
    assert [text for text in HURRIES if not hurried(text, timeout_s)] == []
    found = {
        path.relative_to(TESTS).as_posix(): lines
        for path in sorted(TESTS.rglob("*.py"))
        if (lines := hurried(path.read_text(encoding="utf-8"), timeout_s))
    }
    assert {path: lines for path, lines in found.items() if path not in OWN_TIME} == {}
    assert set(OWN_TIME) <= set(found), "these need no exception any more"
