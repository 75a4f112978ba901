"""Planted faults of sweeps, and the laws that must notice them.

The laws: a table does not depend on how many processes run, on the order in which points end, or on what ran before in the same
process; and a sweep that goes on has the table of one that began anew, whatever was cut off or changed meanwhile. Run as a
program with the name of a fault, this plants it and prints how it is caught. The processes of a sweep import this module for
`simulated`, and plant the same fault.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from common.planting import Faults, replace
from licorne.sweep import Outcome, Point, Sweep, plan, point, run_point, running
from report.workloads import QUEUES, small

PLANTED = "LICORNE_PLANTED"
FAULTS = Faults()
POLICY = """
from licorne import Policy


class Chosen(Policy):
    def node_key(self, pod, node):
        return -int(node.id.removeprefix("n"))
"""


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
    replace(plan.Keys, "_policy", lambda _, name, __: name)


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


def inputs(folder: Path) -> list[Point]:
    """Write a workload, configurations, a policy and a scenario into a folder; return the points of sweeps of them."""
    workload = folder / "small.jsonl"
    workload.write_bytes(b"\n".join(map(msgspec.json.encode, small())))
    (folder / "other.yaml").write_text(QUEUES.replace("vcore: 4", "vcore: 3"))
    (folder / "mine.py").write_text(POLICY)
    (folder / "queues").mkdir()
    (folder / "queues" / "own.yaml").write_text(QUEUES)
    (folder / "scenarios").mkdir()
    scenario = folder / "scenarios" / "named.yaml"
    scenario.write_text(
        "scenario: named\nlength: 10m\ncluster:\n  n: {nodes: 2, size: {vcore: 2}}\nqueues: ../queues/own.yaml\n"
        "arrivals:\n  job: {rate: 60/h, queue: root.b, size: {vcore: 1}, duration: 5m}\n"
    )
    policy = f"{folder / 'mine.py'}:Chosen"
    varied = Sweep(
        workloads=(str(workload),),
        configurations=("own", str(folder / "other.yaml")),
        loads=(0.5, 2),
        policies=("own", policy),
    )
    return [*varied.points(), Point(workload=str(scenario), load=1.0, seed=1)]


def changes(folder: Path) -> Iterator[Callable[[], object]]:
    """Yield what changes the inputs one by one, such that some outcomes are others."""
    for name, old, new in (
        ("small.jsonl", '"duration_s":100', '"duration_s":200'),
        ("other.yaml", "vcore: 3", "vcore: 1"),
        ("mine.py", "-int", "int"),
        ("queues/own.yaml", "vcore: 4", "vcore: 1"),
    ):
        text = (folder / name).read_text()
        assert old in text
        yield partial((folder / name).write_text, text.replace(old, new))


def run(points: list[Point], folder: Path, processes: int) -> list[Outcome]:
    return running.run_sweep(
        running.jobs_of(points, folder), processes=processes, run=simulated if processes > 1 else run_point
    )


def check(folder: Path) -> None:
    """Run sweeps in a folder, and compare their outcomes."""
    points = inputs(folder)
    first = run(points, folder / "one", 1)
    assert [each.error for each in first] == [""] * len(points), "a point failed"
    assert run(points, folder / "three", 3) == first, "by processes the outcomes are others"
    assert run(points[::-1], folder / "reversed", 1)[::-1] == first, "in the other order the outcomes are others"
    assert len({each.decisions for each in first}) > len(points) / 2, "points have the same outcome"
    begun = running.jobs_of(points, folder / "one")
    begun[1].path.unlink()
    begun[2].path.write_bytes(begun[2].path.read_bytes()[:40])
    assert run(points, folder / "one", 2) == first, "what went on has other outcomes than what was not interrupted"
    assert run(points[2:], folder / "one", 2) == first[2:], "a part of the points has the outcomes of others"
    for number, change in enumerate(changes(folder)):
        before = run(points, folder / "one", 1)
        change()
        fresh = run(points, folder / f"fresh-{number}", 1)
        assert fresh != before, "a change changes nothing"
        assert run(points, folder / "one", 1) == fresh, "what went on after a change has outcomes of before it"


def caught() -> str:
    """The message of the law that fails; empty if all hold."""
    with tempfile.TemporaryDirectory() as name:
        try:
            check(Path(name))
        except Exception as error:  # noqa: BLE001  a fault may end in any way
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
