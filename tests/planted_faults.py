"""All planted faults of the tests in one table: each name, what catches it, and after how many examples.

`make faults` prints it, as Markdown. A planted fault is a function of the scheduler that a test replaces by a broken
one, to show that its comparison or its laws would notice. Where random examples must notice it, it is planted in a
process of its own, with the hot modules as plain Python; where one example must, the test itself plants it, and runs as
it is. Exit status: 0; 1 if a fault is not caught.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

import checkpoint.faults
import gangs.faults
import gangs_atomic.faults
import kube.faults
import machine.faults
import parking.faults
import preemption.contests
import preemption.faults
import quotachange.faults
import reference.faults
import report.faults
import sim.device_worlds
import sweep.faults
from common.plain_python import printed_by


class Suite(NamedTuple):
    """Planted faults that one test looks for. `module`: run with a fault's name, it prints how it was caught."""

    module: str
    test: str
    names: Iterable[str]


SUITES = (
    Suite("reference.faults", "reference/test_reference.py", reference.faults.FAULTS),
    Suite("parking.faults", "parking/test_parking.py", parking.faults.FAULTS),
    Suite("parking.elsewhere", "parking/test_parking.py", parking.faults.CAUGHT_ELSEWHERE),
    Suite("machine.faults", "machine/test_faults.py", machine.faults.FAULTS),
    Suite("checkpoint.faults", "checkpoint/test_laws.py", checkpoint.faults.FAULTS),
    Suite("preemption.contests", "preemption/test_brute_force.py", preemption.contests.FAULTS),
    Suite("preemption.faults", "preemption/test_claims_law.py", preemption.faults.FAULTS),
    Suite("quotachange.faults", "quotachange/test_laws.py", quotachange.faults.FAULTS),
    Suite("gangs.faults", "gangs/test_laws.py", gangs.faults.FAULTS),
    Suite("gangs_atomic.faults", "gangs_atomic/test_laws.py", gangs_atomic.faults.FAULTS),
    Suite("sim.device_worlds", "sim/test_device_worlds.py", sim.device_worlds.FAULTS),
    Suite("report.faults", "report/test_folder.py", report.faults.FAULTS),
    Suite("sweep.faults", "sweep/test_running.py", sweep.faults.FAULTS),
    Suite("kube.faults", "kube/test_schedules.py", kube.faults.FAULTS),
)
OF_ONE_EXAMPLE = (
    "answers/test_hours.py::test_a_planted_fault_is_caught",
    "answers/test_proposals.py::test_a_planted_fault_is_caught",
    "answers/test_proposals.py::test_a_planted_fault_is_caught_with_gangs",
    "answers/test_shares.py::test_a_planted_fault_is_caught",
    "cli/test_reproduce.py::test_a_planted_fault_is_caught",
    "config/test_hostile.py::test_a_check_that_costs_more_is_found",
    "growth/test_growth.py::test_leftovers_of_a_planted_fault_are_found",
    "guard/test_guard.py::test_the_guard_finds_a_planted_slowdown",
    "placement/test_unreached.py::test_a_planted_fault_is_caught",
    "preemption/test_examples.py::test_without_that_rule_the_example_has_another_victim",
    "quotachange/test_leafchoice.py::test_planted_faults_are_caught",
    "recording/test_retention.py::test_a_planted_fault_is_caught",
    "rest/test_health.py::test_a_planted_fault_is_found",
    "sim/test_devices.py::test_a_planted_fault_is_caught",
    "sim/test_fragmentation.py::test_a_planted_fault_is_caught",
    "sim/test_jobs.py::test_a_planted_fault_is_caught",
    "sim/test_policies.py::test_a_planted_fault_is_caught",
    "service/test_faults.py::test_the_comparison_finds_planted_differences",
)
"""Tests that plant a fault and look at one example: if such a test passes, the fault is caught."""


class Row(NamedTuple):
    """A fault, the test that looks for it, and how it was caught: "caught after ..." if it was."""

    test: str
    fault: str
    how: str


def of_many_examples() -> Iterator[Row]:
    """Plant the faults that random examples must notice."""
    planted = [(suite, name) for suite in SUITES for name in suite.names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda each: printed_by(each[0].module, each[1]), planted)
        done = track(zip(planted, found, strict=True), "planted faults", len(planted), console=Console(stderr=True))
        for (suite, name), printed in done:
            yield Row(suite.test, name, printed.strip().splitlines()[0].removeprefix(f"{name}: "))


def of_one_example() -> Iterator[Row]:
    """Run the tests that plant a fault for one example."""
    pytest = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-q", "-rA", *OF_ONE_EXAMPLE]
    printed = subprocess.run(pytest, capture_output=True, text=True, check=False).stdout
    for test in OF_ONE_EXAMPLE:
        file, _, name = test.partition("::")
        outcomes = re.findall(rf"^([A-Z]+) {re.escape(test)}(\[.*\])?(?: - .*)?$", printed, re.MULTILINE)
        for outcome, example in outcomes or [("NOT RUN", "")]:
            how = "caught after 1 example" if outcome == "PASSED" else f"not caught: {outcome.lower()}"
            yield Row(file, f"{name.removeprefix('test_').replace('_', ' ')}{example}", how)


def table() -> int:
    """Plant all faults and print the table; return the exit status."""
    rows = [*of_many_examples(), *of_one_example()]
    sys.stdout.write("| test | fault | caught |\n|---|---|---|\n")
    for row in rows:
        how = row.how.removeprefix("caught ").replace("|", "/")[:90]
        sys.stdout.write(f"| `{row.test}` | {row.fault} | {how} |\n")
    lost = sum(not row.how.startswith("caught") for row in rows)
    sys.stdout.write(f"\n{len(rows)} planted faults, {lost} of them not caught.\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(table())
