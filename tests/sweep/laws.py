"""The laws of sweeps.

A table does not depend on how many processes run, on the order in which points end, or on what ran before in the same process;
and a sweep that goes on has the table of one that began anew, whatever was cut off or changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from licorne.lab.sweep import Outcome, Point, Sweep, run_point, running
from licorne.lab.sweep.engines import Processes
from report.workloads import QUEUES, small

POLICY = """
from licorne import Policy


class Chosen(Policy):
    def node_key(self, pod, node):
        return -int(node.id.removeprefix("n"))
"""


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
        needed(old in text, f"{name} does not hold {old}")
        yield partial((folder / name).write_text, text.replace(old, new))


def needed(condition: bool, message: str) -> None:
    """Refuse inputs by which the laws could not be seen; that is no broken law, but an error of the test."""
    if not condition:
        raise RuntimeError(message)


def check(folder: Path, simulated: Callable[[Point], Outcome]) -> None:
    """Run sweeps in a folder, and compare their outcomes. `simulated`: simulates a point where several processes run."""

    def run(points: list[Point], into: Path, processes: int) -> list[Outcome]:
        jobs = running.jobs_of(points, into)
        return running.run_sweep(jobs, engine=Processes(processes), run=simulated if processes > 1 else run_point)

    points = inputs(folder)
    first = run(points, folder / "one", 1)
    needed(not any(each.error for each in first), "a point failed")
    assert run(points, folder / "three", 3) == first, "by processes the outcomes are others"
    assert run(points[::-1], folder / "reversed", 1)[::-1] == first, "in the other order the outcomes are others"
    needed(len({each.decisions for each in first}) > len(points) / 2, "points have the same outcome")
    begun = running.jobs_of(points, folder / "one")
    begun[1].path.unlink()
    begun[2].path.write_bytes(begun[2].path.read_bytes()[:40])
    assert run(points, folder / "one", 2) == first, "what went on has other outcomes than what was not interrupted"
    assert run(points[2:], folder / "one", 2) == first[2:], "a part of the points has the outcomes of others"
    for number, change in enumerate(changes(folder)):
        before = run(points, folder / "one", 1)
        change()
        fresh = run(points, folder / f"fresh-{number}", 1)
        needed(fresh != before, "a change changes nothing")
        assert run(points, folder / "one", 1) == fresh, "what went on after a change has outcomes of before it"
