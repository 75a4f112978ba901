"""Events that YuniKorn posts and licorne only where they are wanted (docs/spec/k8shim.md, section 6): a table of clusters.

Those of a pod and a gang that run are in `kube.cases.running`, on a real control plane.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from common.virtual import run
from kube import schedules
from licorne.kube.objects import Pod

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: a}
          - {name: small, resources: {max: {vcore: "2"}}}
"""
DATA = {"queues.yaml": QUEUES, "licorne.yunikorn-events": "true"}
WANTED, LEFT = "map[memory:1048576 pods:1 vcore:1000]", "map[memory:25768755200 pods:59 vcore:0]"
Step = Callable[[schedules.World], None]


def pod(world: schedules.World, queue: str, cpu: str, app: str = "a", annotations: dict[str, str] | None = None) -> Pod:
    """Create a pod."""
    return world.add_pod(
        metadata={"labels": {"applicationId": app, "queue": queue}, "annotations": annotations or {}},
        containers=[{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}],
    )


def bind(world: schedules.World) -> None:
    pod(world, "root.small", "2")


def fill_the_queue(world: schedules.World) -> None:
    pod(world, "root.small", "1")


def succeed(world: schedules.World) -> None:
    world.end(world.server.pods()[0])


def crash(world: schedules.World) -> None:
    world.set_phase(world.server.pods()[0], "Failed")


def delete(world: schedules.World) -> None:
    world.server.remove("pods", "default", "p1")


def name_no_queue(world: schedules.World) -> None:
    pod(world, "root.none", "1")


def add_node(world: schedules.World) -> None:
    world.add_node("new")


def lose_node(world: schedules.World) -> None:
    world.lose_node("new")


CASES: dict[str, tuple[list[Step], set[tuple[str, str]]]] = {
    "a pod ends": ([bind, succeed], {("TaskCompleted", "Task default/p1 is completed")}),
    "a pod fails": ([bind, crash], {("TaskCompleted", "Task default/p1 is completed")}),
    "a pod is deleted": ([bind, delete], {("TaskCompleted", "Task default/p1 is completed")}),
    "an application is refused, and its pod deleted": (
        [name_no_queue, delete],
        {("TaskFailed", "Task default/p1 is failed")},
    ),
    "a queue is full, and has room again": (
        [bind, fill_the_queue, delete],
        {
            (
                "Informational",
                f"Request 'uid-p2' does not fit in queue 'root.small' (requested {WANTED}, available {LEFT})",
            ),
            ("PodUnschedulable", "The max of queue root.small leaves too little: 1 vcore missing."),
            ("Informational", "Request 'uid-p2' has become schedulable in queue 'root.small'"),
            ("TaskCompleted", "Task default/p1 is completed"),
        },
    ),
    "a node comes and goes": (
        [add_node, lose_node],
        {
            ("Informational", "Node added to the scheduler"),
            ("Informational", "Node removed from the scheduler"),
        },
    ),
}


@pytest.mark.parametrize("wanted", ["at the start", "from later on", "never"])
@pytest.mark.parametrize(("steps", "expected"), CASES.values(), ids=CASES)
def test_events(steps: list[Step], expected: set[tuple[str, str]], wanted: str) -> None:
    async def play() -> None:
        world = schedules.World(1)
        world.put_map({**DATA, "licorne.yunikorn-events": str(wanted == "at the start").lower()}, None)
        _, task = schedules.start(world)
        await asyncio.sleep(2.0)
        world.server.events.clear()
        if wanted == "from later on":
            world.put_map(DATA, None)
            await asyncio.sleep(2.0)
        for step in steps:
            step(world)
            await asyncio.sleep(5.0)
        schedules.check_runs(task)
        reasons = {"TaskCompleted", "TaskFailed", "Informational", "PodUnschedulable"}
        found = [(event["reason"], event["note"]) for event in world.server.events if event["reason"] in reasons]
        assert sorted(found) == sorted(expected if wanted != "never" else set())
        await schedules.stop(task)

    run(play())


def test_that_a_pod_has_its_node_may_be_told_alone() -> None:
    async def play() -> list[str]:
        world = schedules.World(1)
        world.put_map({"queues.yaml": QUEUES, "licorne.scheduled-events": "true"}, None)
        _, task = schedules.start(world)
        world.add_pod(containers=[{"name": "c"}])
        await asyncio.sleep(5.0)
        await schedules.stop(task)
        return [event["reason"] for event in world.server.events]

    assert run(play()) == ["Scheduled"]
