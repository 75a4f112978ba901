"""Metrics of `licorne kube`: what has been decided since it started."""

from __future__ import annotations

import asyncio

from kube import schedules
from kube.test_settings import served


def test_what_is_decided_is_counted() -> None:
    async def play() -> None:
        world = schedules.World(1)
        labels = {"applicationId": "a", "queue": "root.a"}
        containers = [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]
        for _ in range(3):
            world.add_pod(metadata={"labels": labels}, containers=containers)
        async with served(world) as (_, rest):
            await asyncio.sleep(1.0)
            assert len(world.bound) == 3
            answer = await asyncio.to_thread(rest.get, "/ws/v1/metrics")
        figures = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
        expected = {
            'yunikorn_scheduler_container_allocation_attempt_total{state="allocated"}': 3,
            'yunikorn_scheduler_application_submission_total{result="new"}': 1,
            'yunikorn_scheduler_application_submission_total{result="accepted"}': 1,
            'yunikorn_root_a_queue_container{state="allocated"}': 3,
            "licorne_decisions_total": 3,
        }
        assert {name: float(figures[name]) for name in expected} == expected

    asyncio.run(play())
