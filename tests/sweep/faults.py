"""Planted faults of sweeps, which the laws in `sweep.laws` must notice.

Run as a program with the name of a fault, this plants it and prints how it is caught. The processes of a sweep import this
module for `simulated`, and plant the same fault.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from common.planting import Faults, raised_by_a_law, replace
from licorne.lab.sweep import Outcome, Point, plan, point, run_point, running
from sweep import laws

PLANTED = "LICORNE_PLANTED"
FAULTS = Faults()


@FAULTS.add
def outcomes_come_in_the_order_in_which_points_ended() -> None:
    real = running.run_sweep

    def run_sweep(jobs: Any, **more: Any) -> Any:
        found = real(jobs, **more)
        ended = [job.path.stat().st_mtime_ns for job in jobs]
        return [found[index] for index in sorted(range(len(found)), key=ended.__getitem__)]

    replace(running, "run_sweep", run_sweep)


@FAULTS.add
def a_process_keeps_what_the_last_point_set() -> None:
    real = point._workload
    seen: list[float] = []

    def workload(given: Point) -> Any:
        seen.append(given.load or 1.0)
        return real(msgspec.structs.replace(given, load=max(seen)))

    replace(point, "_workload", workload)


@FAULTS.add
def outcomes_depend_on_the_seed_of_hashes() -> None:
    real = point.outcome
    replace(point, "outcome", lambda *given: msgspec.structs.replace(real(*given), scarcest=str(hash("vcore"))))


@FAULTS.add
def a_key_is_without_the_load() -> None:
    real = plan.Keys.of
    replace(plan.Keys, "of", lambda self, given: real(self, msgspec.structs.replace(given, load=None)))


@FAULTS.add
def a_key_is_of_the_name_of_an_input() -> None:
    replace(plan.Keys, "_digest", lambda _, name: name)


@FAULTS.add
def a_key_is_of_the_name_of_a_policy() -> None:
    replace(plan.Keys, "digest_of_policy", lambda _, given: given.policy)


@FAULTS.add
def a_key_leaves_out_what_a_scenario_names() -> None:
    replace(plan, "named_files", lambda _: [])


@FAULTS.add
def what_was_cut_off_counts() -> None:
    real = running.Job.outcome

    def outcome(self: running.Job) -> Outcome | None:
        return real(self) or (Outcome() if self.path.is_file() else None)

    replace(running.Job, "outcome", outcome)


@FAULTS.add
def a_file_is_skipped_by_its_place() -> None:
    real = running.jobs_of

    def jobs(points: Any, folder: Path) -> Any:
        return [job._replace(path=job.path.with_name(f"{at}.json")) for at, job in enumerate(real(points, folder))]

    replace(running, "jobs_of", jobs)


def simulated(given: Point) -> Outcome:
    """Simulate a point; those of low loads, which come first, end last."""
    time.sleep(0.3 / (given.load or 1.0))
    return run_point(given)


def caught() -> str:
    """The message of the law that fails; empty if all hold. Other errors are raised."""
    with tempfile.TemporaryDirectory() as name:
        try:
            laws.check(Path(name), simulated)
        except Exception as error:
            if not raised_by_a_law(error, laws):
                raise
            return f"caught after 1 run: {type(error).__name__} {str(error).splitlines()[0][:100]}"
    return ""


if os.environ.get(PLANTED):
    FAULTS[os.environ[PLANTED]]()

if __name__ == "__main__":
    planted = sys.argv[1:]
    if planted:
        os.environ[PLANTED] = planted[0]
        FAULTS[planted[0]]()
    sys.stdout.write(f"{planted[0] if planted else 'nothing'}: {caught() or 'not caught'}\n")
