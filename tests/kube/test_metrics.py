"""Metrics of `licorne kube`: what has been decided since it started."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kube import schedules
from kube.test_settings import served

if TYPE_CHECKING:
    import httpx


ATTEMPTS = 'yunikorn_scheduler_container_allocation_attempt_total{state="%s"}'
OF_QUEUE = 'yunikorn_root_a_queue_container{state="%s"}'


class Cluster(schedules.World):
    """A cluster of three nodes with pods of one application."""

    def __init__(self, *cpus: str) -> None:
        super().__init__(1)
        labels = {"applicationId": "a", "queue": "root.a"}
        for cpu in cpus:
            containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
            self.add_pod(metadata={"labels": labels}, containers=containers)


async def read(rest: httpx.Client) -> dict[str, float]:
    """Return the value of each series."""
    answer = await asyncio.to_thread(rest.get, "/ws/v1/metrics")
    lines = (line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def test_what_is_decided_is_counted() -> None:
    async def play() -> None:
        world = Cluster("500m", "500m", "500m")
        async with served(world) as (_, rest):
            await asyncio.sleep(1.0)
            assert len(world.bound) == 3
            figures = await read(rest)
        expected = {
            ATTEMPTS % "allocated": 3,
            'yunikorn_scheduler_application_submission_total{result="new"}': 1,
            'yunikorn_scheduler_application_submission_total{result="accepted"}': 1,
            OF_QUEUE % "allocated": 3,
            "licorne_decisions_total": 3,
        }
        assert {name: figures[name] for name in expected} == expected

    asyncio.run(play())


def test_each_end_of_a_pod_that_had_a_node_is_counted_once() -> None:
    """Counted are those that succeed, fail, are deleted or lose their node, not one that waited (docs/spec/metrics.md)."""

    async def play() -> None:
        world = Cluster("4", "1", "1", "1", "1", "5")  # the first one fills a node, the last one fits on none
        async with served(world) as (_, rest):
            await asyncio.sleep(1.0)
            lost, succeeds, fails, deleted, _, waits = world.server.pods()
            assert sorted(world.bound) == [f"uid-p{number}" for number in range(1, 6)]
            world.set_phase(succeeds, "Succeeded")
            world.set_phase(fails, "Failed")
            for pod in (deleted, waits):
                world.server.remove("pods", "default", pod.metadata.name)
            world.lose_node(lost.spec.node_name)
            await asyncio.sleep(1.0)
            figures = await read(rest)
        expected = {ATTEMPTS % "released": 4, OF_QUEUE % "allocated": 5, OF_QUEUE % "released": 4}
        assert {name: figures[name] for name in expected} == expected

    asyncio.run(play())
