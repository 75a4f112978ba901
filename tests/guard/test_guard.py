"""A guard against slowing down that noise cannot fool: counted work against a committed baseline, no seconds.

Two kinds of counts. The scheduler counts for itself what it looks at (`Partition.work`): the same numbers on every
machine, compiled or not. And plain Python counts the called functions and executed lines of the scheduler's text, in a
process of its own (`lines.py`): that sees whatever has no counter, and is the same for one minor version of Python.

A count may exceed `baseline.json` by 2 % (`baseline.py` says exactly). Where more work is right, renew the baseline with
`cd tests && python -m guard.renew`, and say in the commit why. Counts far below the baseline are no fault: such a test
ends as skipped, with the hint to renew, since that is what pytest shows of a test that does not fail.

With LICORNE_GUARD_CALLGRIND=1, and valgrind, the instructions of the compiled modules are counted too (`callgrind.py`).
"""

from __future__ import annotations

import os
import sys
from functools import cache

import pytest

from guard import callgrind
from guard.baseline import INSTRUCTIONS, LINES, PYTHON, WORK, Verdict, compare, lines_of, load, work_of
from guard.cases import CASES, Counts, prepare, run
from guard.worker import count
from licorne import core

BASELINE = load()
PLANTED_IN = "identical shapes"


def judge(*verdicts: Verdict) -> None:
    """Fail if anything grew; hint if anything has fallen far."""
    together = Verdict([f for each in verdicts for f in each.faults], [f for each in verdicts for f in each.fallen])
    if together.faults:
        pytest.fail(together.complaint(), pytrace=False)
    if together.fallen:
        pytest.skip(together.hint())


@pytest.mark.parametrize("case", CASES)
def test_the_scheduler_does_no_more_counted_work_than_before(case: str) -> None:
    judge(compare(case, work_of(BASELINE, case), run(CASES[case], prepare(CASES[case]))))


def test_plain_python_runs_no_more_lines_than_before() -> None:
    if PYTHON not in BASELINE.get(LINES, {}):
        pytest.skip(
            f"the baseline has no lines of Python {PYTHON}; the scheduler's own counters are compared all the same"
        )
    counted = count()
    verdicts = [compare(case, lines_of(BASELINE, case), lines) for case, (_, lines) in counted.items()]
    judge(*verdicts, *(compare(case, work_of(BASELINE, case), work) for case, (work, _) in counted.items()))


def test_the_baseline_has_no_cases_that_are_gone() -> None:
    assert BASELINE[WORK].keys() == CASES.keys()
    assert [version for version, cases in BASELINE[LINES].items() if cases.keys() != CASES.keys()] == []


@cache
def without_a_plant() -> tuple[Counts, Counts]:
    """Count anew without a planted fault: the baseline may be out of date, which is for another test to find."""
    return count([PLANTED_IN])[PLANTED_IN]


@pytest.mark.parametrize(
    ("plant", "counter"),
    [("parking_off", "asks attempted"), ("searching_twice", "blocks scanned"), ("scoring_twice", None)],
)
def test_the_guard_finds_a_planted_slowdown(plant: str, counter: str | None) -> None:
    """A planted slowdown is found: by plain Python each time, by the scheduler's counters if one of them counts such work."""
    planted_work, planted_lines = count([PLANTED_IN], plant)[PLANTED_IN]
    work, lines = without_a_plant()
    phase = f"{PLANTED_IN}, 3 decisions"
    assert any(f.startswith(phase) for f in compare(PLANTED_IN, lines, planted_lines).faults)
    faults = compare(PLANTED_IN, work, planted_work).faults
    assert any(f.startswith(f"{phase}: {counter}") for f in faults) if counter else faults == []


@pytest.mark.parametrize(
    ("was", "now", "outcome"),
    [
        (1000, 1000, "as before"),
        (1000, 1020, "as before"),
        (1000, 1021, "fault"),
        (1000, 900, "as before"),
        (1000, 899, "fallen"),
        (20, 25, "as before"),
        (20, 26, "fault"),
        (0, 5, "as before"),
        (0, 6, "fault"),
        (20, 15, "as before"),
        (20, 14, "fallen"),
        (None, 0, "fault"),
        (0, None, "fault"),
    ],
)
def test_a_count_far_from_its_baseline_is_a_fault_or_fallen(was: int | None, now: int | None, outcome: str) -> None:
    sides = ({} if number is None else {"nodes": number} for number in (was, now))
    verdict = compare("case", *sides)
    assert (len(verdict.faults), len(verdict.fallen)) == (outcome == "fault", outcome == "fallen")


def test_a_case_without_baseline_is_a_fault() -> None:
    verdict = compare("new", None, {"nodes": 1})
    assert "new: the baseline has no such case" in verdict.complaint()
    assert "python -m guard.renew" in verdict.complaint()


@pytest.mark.timeout(1200)
@pytest.mark.skipif(
    os.environ.get(callgrind.VARIABLE) != "1", reason=f"counts instructions with {callgrind.VARIABLE}=1"
)
def test_the_compiled_modules_take_no_more_instructions() -> None:
    if not core.compiled or not callgrind.available():
        pytest.skip("the core is not compiled, or valgrind is missing")
    toolchain = callgrind.toolchain()
    counted = callgrind.instructions()
    sys.stdout.write("".join(f"{case}: {number:,} instructions\n" for case, number in counted.items()))
    if toolchain not in BASELINE.get(INSTRUCTIONS, {}):
        pytest.skip(f"the baseline has no instructions of {toolchain}; counted: {counted}")
    judge(compare("instructions", BASELINE[INSTRUCTIONS][toolchain], counted))
