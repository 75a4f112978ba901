"""A guard against slowing down that noise cannot fool: counted work against a committed baseline, no seconds.

Two kinds of counts. The scheduler counts for itself what it looks at (`Partition.work`): the same numbers on every
machine, compiled or not. A test fails if one of these exceeds `baseline.json` by more than 2 % (`baseline.py` says
exactly). Where more work is right, renew the baseline with `PYTHONPATH=tests:. python -m guard.renew`, and say in the commit why.

And plain Python counts the called functions and executed lines of the scheduler's text, in a process of its own
(`lines.py`): that sees whatever has no counter, and is the same for one minor version of Python. It is advice only, since
these counts grow as well where a helper is extracted and the work is the same: a test that failed for them would forbid
that. Such a test ends as skipped, with what has grown, since that is what pytest shows of a test that does not fail; so
does one whose counts are far below the baseline, with the hint to renew.

With LICORNE_GUARD_CALLGRIND=1, and valgrind, the instructions of the compiled modules are counted too (`callgrind.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache

import pytest

from guard import callgrind
from guard.baseline import INSTRUCTIONS, LINES, PYTHON, WORK, Verdict, compare, lines_of, load, work_of
from guard.cases import CASES, Counts, prepare, run
from guard.worker import count
from licorne import core

BASELINE = load()
PLANTED_IN = "identical shapes"


def judge(work: Sequence[Verdict], lines: Sequence[Verdict] = ()) -> None:
    """Fail if counted work grew; skip with advice if only lines grew, or with a hint if anything has fallen far."""
    counted, run = _together(work), _together(lines)
    if counted.faults:
        pytest.fail(counted.complaint(), pytrace=False)
    if run.faults:
        pytest.skip(run.advice())
    if fallen := [*counted.fallen, *run.fallen]:
        pytest.skip(Verdict(fallen=fallen).hint())


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    return Verdict([f for each in verdicts for f in each.faults], [f for each in verdicts for f in each.fallen])


@pytest.mark.parametrize("case", CASES)
def test_the_scheduler_does_no_more_counted_work_than_before(case: str) -> None:
    judge([compare(case, work_of(BASELINE, case), run(CASES[case], prepare(CASES[case])))])


@pytest.mark.gate
def test_plain_python_counts_no_more_work_and_tells_of_more_lines() -> None:
    if PYTHON not in BASELINE.get(LINES, {}):
        pytest.skip(
            f"the baseline has no lines of Python {PYTHON}; the scheduler's own counters are compared all the same"
        )
    counted = count()
    judge(
        [compare(case, work_of(BASELINE, case), work) for case, (work, _) in counted.items()],
        [compare(case, lines_of(BASELINE, case), lines) for case, (_, lines) in counted.items()],
    )


def test_the_baseline_has_no_cases_that_are_gone() -> None:
    assert BASELINE[WORK].keys() == CASES.keys()
    assert [version for version, cases in BASELINE[LINES].items() if cases.keys() != CASES.keys()] == []


@cache
def without_a_plant() -> tuple[Counts, Counts]:
    """Count anew without a planted fault: the baseline may be out of date, which is for another test to find."""
    return count([PLANTED_IN])[PLANTED_IN]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("plant", "counter"),
    [("parking_off", "asks attempted"), ("searching_twice", "blocks scanned"), ("scoring_twice", None)],
)
def test_the_guard_finds_a_planted_slowdown(plant: str, counter: str | None) -> None:
    """A test fails if one of the scheduler's counters counts such work; if none does, the lines are the advice to look."""
    planted_work, planted_lines = count([PLANTED_IN], plant)[PLANTED_IN]
    sound_work, sound_lines = without_a_plant()
    work = compare(PLANTED_IN, sound_work, planted_work)
    lines = compare(PLANTED_IN, sound_lines, planted_lines)
    phase = f"{PLANTED_IN}, 3 decisions"
    assert any(f.startswith(f"{phase}: lines run") for f in lines.faults)
    ends = pytest.fail.Exception if counter else pytest.skip.Exception
    with pytest.raises(ends, match=f"{phase}: {counter or 'lines run'}"):
        judge([work], [lines])


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


def test_lines_alone_are_advice_and_never_a_fault() -> None:
    grown = compare("case", {"1 phase: lines run": 100}, {"1 phase: lines run": 200})
    fallen = compare("case", {"1 phase: nodes": 100}, {"1 phase: nodes": 50})
    with pytest.raises(pytest.skip.Exception, match=r"100 -> 200(.|\n)*python -m guard\.renew"):
        judge([Verdict()], [grown])
    with pytest.raises(pytest.skip.Exception, match="far below the baseline"):
        judge([fallen], [Verdict()])
    judge([Verdict()], [Verdict()])


def test_a_case_without_baseline_is_a_fault() -> None:
    verdict = compare("new", None, {"nodes": 1})
    assert "new: the baseline has no such case" in verdict.complaint()
    assert "python -m guard.renew" in verdict.complaint()


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
    judge([compare("instructions", BASELINE[INSTRUCTIONS][toolchain], counted)])
