"""All planted faults of the tests in one table: each name, what catches it, and after how many examples.

`make nightly PART=faults` prints it, as Markdown. A planted fault is a function of the scheduler that a test replaces by a broken
one, to show that its comparison or its laws would notice. Where random examples must notice it, it is planted in a
process of its own, with the hot modules as plain Python; other faults are planted by the tests themselves, which run as
they are. Exit status: 0; 1 if a fault is not caught.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.progress import track

import checkpoint.faults
import gangs_atomic.faults
import kube.faults
import machine.faults
import parking.faults
import preemption.contests
import preemption.faults
import reference.faults
import report.faults
import sim.device_worlds
import sweep.faults
from common.plain_python import printed_by
from common.planting import LOOKED_AT


class Suite(NamedTuple):
    """Planted faults that one test looks for, by file and function. `module`: run with a fault's name, it prints how it was caught."""

    module: str
    test: str
    names: Iterable[str]


SUITES = (
    Suite("reference.faults", "reference/test_reference.py::test_a_planted_fault_is_caught", reference.faults.FAULTS),
    Suite("parking.faults", "parking/test_parking.py::test_a_lost_wake_up_is_caught", parking.faults.FAULTS),
    Suite(
        "parking.elsewhere",
        "parking/test_parking.py::test_the_test_of_an_event_that_others_do_not_miss_fails_without_it",
        parking.faults.CAUGHT_ELSEWHERE,
    ),
    Suite("machine.faults", "machine/test_faults.py::test_a_planted_fault_is_caught", machine.faults.FAULTS),
    Suite(
        "checkpoint.faults",
        "checkpoint/test_laws.py::test_an_attribute_that_is_not_kept_is_noticed",
        checkpoint.faults.FAULTS,
    ),
    Suite(
        "preemption.contests",
        "preemption/test_brute_force.py::test_a_planted_fault_is_caught",
        preemption.contests.FAULTS,
    ),
    Suite(
        "preemption.faults", "preemption/test_claims_law.py::test_a_planted_fault_is_caught", preemption.faults.FAULTS
    ),
    Suite(
        "gangs_atomic.faults", "gangs_atomic/test_laws.py::test_a_planted_fault_is_caught", gangs_atomic.faults.FAULTS
    ),
    Suite(
        "sim.device_worlds",
        "sim/test_device_worlds.py::test_a_planted_fault_is_caught_in_random_clusters",
        sim.device_worlds.FAULTS,
    ),
    Suite("report.faults", "report/test_folder.py::test_a_planted_fault_is_caught", report.faults.FAULTS),
    Suite("sweep.faults", "sweep/test_running.py::test_a_planted_fault_is_caught", sweep.faults.FAULTS),
    Suite("kube.faults", "kube/test_schedules.py::test_a_planted_fault_is_noticed", kube.faults.FAULTS),
)
OF_TESTS = (
    "answers/test_hours.py::test_a_planted_fault_is_caught",
    "answers/test_proposals.py::test_a_planted_fault_is_caught",
    "answers/test_proposals.py::test_a_planted_fault_is_caught_by_one_scene",
    "answers/test_proposals.py::test_a_planted_fault_is_caught_with_gangs",
    "answers/test_shares.py::test_a_planted_fault_is_caught",
    "cli/test_reproduce.py::test_a_planted_fault_is_caught",
    "config/test_hostile.py::test_a_check_that_costs_more_is_found",
    "core/test_numbering.py::test_a_number_that_is_free_and_read_is_found",
    "core/test_sums.py::test_a_sum_that_forgets_the_amount_beyond_its_bound_is_found",
    "growth/test_growth.py::test_leftovers_of_a_planted_fault_are_found",
    "guard/test_guard.py::test_the_guard_finds_a_planted_slowdown",
    "kube/test_annotation_laws.py::test_a_planted_fault_is_caught",
    "kube/test_changing_over.py::test_a_take_over_that_forgets_what_runs_is_noticed",
    "kube/test_changing_over.py::test_a_take_over_that_makes_all_placeholders_anew_is_noticed",
    "kube/test_changing_over.py::test_a_take_over_where_a_placeholder_says_whose_its_gang_is_is_noticed",
    "kube/test_lease.py::test_a_planted_fault_is_noticed",
    "kube/test_kills.py::test_a_process_that_passes_over_what_runs_is_noticed",
    "kube/test_outages.py::test_a_planted_fault_is_caught",
    "placement/test_unreached.py::test_a_planted_fault_is_caught",
    "preemption/test_examples.py::test_without_that_rule_the_example_has_another_victim",
    "quotachange/test_leafchoice.py::test_planted_faults_are_caught",
    "quotachange/test_seen.py::test_a_start_time_of_a_removed_queue_is_noticed",
    "quotachange/test_seen.py::test_a_start_time_that_no_deadline_reaches_is_noticed",
    "recording/test_retention.py::test_a_planted_fault_is_caught",
    "rest/test_access_law.py::test_a_planted_fault_is_caught",
    "rest/test_health.py::test_a_planted_fault_is_found",
    "service/test_faults.py::test_the_comparison_finds_planted_differences",
    "sim/test_fragmentation.py::test_a_planted_fault_is_caught",
    "sim/test_jobs.py::test_a_planted_fault_is_caught",
    "sim/test_policies.py::test_a_planted_fault_is_caught",
)
"""Tests that plant a fault themselves: if such a test passes, the fault is caught.

A test that looks at more than one example records how many it has looked at, with `record_property(LOOKED_AT, ...)`.
"""


class Row(NamedTuple):
    """A fault, the file of the test that looks for it, and how it was caught: "caught ..." if it was."""

    test: str
    fault: str
    how: str


def of_many_examples() -> Iterator[Row]:
    """Plant the faults that random examples must notice."""
    planted = [(suite, name) for suite in SUITES for name in suite.names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda each: _planted(each[0].module, each[1]), planted)
        done = track(zip(planted, found, strict=True), "planted faults", len(planted), console=Console(stderr=True))
        for (suite, name), printed in done:
            yield Row(suite.test.partition("::")[0], name, printed.strip().splitlines()[0].removeprefix(f"{name}: "))


def _planted(module: str, name: str) -> str:
    """Plant a fault in a process of its own; return what that prints."""
    try:
        return printed_by(module, name)
    except AssertionError as error:
        return f"not caught: {str(error).splitlines()[-1]}"


def of_tests() -> Iterator[Row]:
    """Run the tests that plant a fault themselves."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # The default family of reports has no properties of tests.
        options = ["-p", "no:randomly", "-q", "-m", "", "-o", "junit_family=xunit1", f"--junitxml={report}"]
        environment = {"LICORNE_HYPOTHESIS": "fixed", **os.environ}
        command = [sys.executable, "-m", "pytest", *options, *OF_TESTS]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314  pytest has written it just now
    for test in OF_TESTS:
        file, _, function = test.partition("::")
        examples = [
            (case.get("name", "").removeprefix(function), how_caught(case))
            for case in cases
            if case.get("file", "").endswith(f"tests/{file}") and case.get("name", "").partition("[")[0] == function
        ]
        for example, how in examples or [("", "not caught: not run")]:
            yield Row(file, f"{function.removeprefix('test_').replace('_', ' ')}{example}", how)


def how_caught(case: ET.Element) -> str:
    """Tell from pytest's report of a test how the fault was caught that the test plants."""
    for outcome in ("failure", "error", "skipped"):
        if case.find(outcome) is not None:
            return f"not caught: {outcome}"
    looked_at = case.find(f"properties/property[@name='{LOOKED_AT}']")
    return "caught by its own test" if looked_at is None else f"caught after {looked_at.get('value')}"


def table() -> int:
    """Plant all faults and print the table; return the exit status."""
    rows = [*of_many_examples(), *of_tests()]
    sys.stdout.write("| test | fault | caught |\n|---|---|---|\n")
    for row in rows:
        how = row.how.removeprefix("caught ").replace("|", "/")[:90]
        sys.stdout.write(f"| `{row.test}` | {row.fault} | {how} |\n")
    lost = sum(not row.how.startswith("caught") for row in rows)
    sys.stdout.write(f"\n{len(rows)} planted faults, {lost} of them not caught.\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(table())
