"""Metrics of `licorne kube`: what has been decided since it started."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from typing import TYPE_CHECKING

from common.virtual import in_virtual_time
from kube import schedules
from kube.apiserver import FakeClient
from kube.test_settings import served
from licorne.host.log import make_log
from licorne.kube.api import ApiError
from licorne.kube.runner import Clients, Runner
from licorne.kube.settings import RunSettings

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


async def test_what_is_decided_is_counted() -> None:
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


async def test_each_end_of_a_pod_that_had_a_node_is_counted_once() -> None:
    """Counted are those that succeed, fail, are deleted or lose their node, not one that waited (docs/spec/metrics.md)."""
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


class Denied(FakeClient):
    """A client without the right to write about pods."""

    denied = True

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Be refused."""
        if self.denied:
            raise ApiError(403, "Forbidden", "pods/binding is forbidden")
        await super().bind(namespace, name, uid, node)

    async def patch_status(self, *_: object) -> None:
        """Be refused."""
        raise ApiError(403, "Forbidden", "pods/status is forbidden")


@in_virtual_time
async def test_writes_that_fail_are_seen_in_log_metrics_and_health() -> None:
    written, world = io.StringIO(), Cluster("500m", "500m")
    client, loop = Denied(world.server), asyncio.get_running_loop()
    clients = Clients(client, client, client)
    log = make_log(written, form="json")
    clock = lambda: int(loop.time() * 1e9)  # noqa: E731
    runner = Runner(clients, RunSettings(), log=log, clock=clock, wall=world.now_s)
    task = asyncio.create_task(runner.run())
    await asyncio.sleep(90.0)
    counts = runner.health.figures()["licorne_writes"]
    assert counts["binding", "refused"] >= 4
    assert counts["condition", "refused"] >= 2
    assert counts["condition", "left_out"] >= 2
    assert counts["binding", "done"] == 0
    assert counts["event", "done"] >= 1
    lines = [one for one in map(json.loads, written.getvalue().splitlines()) if one["event"] == "a write failed"]
    assert all(one["level"] == "error" for one in lines)
    told = [one for one in lines if one["kind"] == "binding"]
    assert told[0]["object"] == "default/p1"
    assert told[0]["reason"] == "403 Forbidden: pods/binding is forbidden"
    assert 2 <= len(told) <= 10, "one line in ten seconds"
    checks = {one.name: one for one in runner.health.checks()}
    assert not checks["Writes"].succeeded
    assert "every binding: 403 Forbidden" in checks["Writes"].message
    assert all(one.succeeded for one in checks.values() if one.readiness)
    client.denied = False
    await asyncio.sleep(120.0)
    assert counts["binding", "done"] == len(world.bound) == 2
    assert not [one for one in runner.results.failing() if "binding" in one]
    await schedules.stop(task)


@in_virtual_time
async def test_old_news_are_seen_in_metrics_and_readiness() -> None:
    world = Cluster()
    runner, task = schedules.start(world)
    await asyncio.sleep(300.0)
    assert max(runner.health.figures()["licorne_news_age_seconds"].values()) < 70.0
    messages = {one.name: one.message for one in runner.health.checks() if one.succeeded}
    assert messages.keys() == {"Lease", "Cluster", "News", "Writes"}
    assert messages["Cluster"] == "The cluster has been read"
    assert (messages["News"], messages["Writes"]) == ("Kinds without news: []", "Writes that fail: []")
    world.server.news = lambda _: asyncio.sleep(1e6)  # type: ignore[assignment, method-assign]  # watches hang
    await asyncio.sleep(600.0)
    assert runner.health.figures()["licorne_news_age_seconds"]["pods",] > 180.0
    assert "News" in {one.name for one in runner.health.checks() if one.readiness and not one.succeeded}
    await schedules.stop(task)


async def test_a_process_that_waits_for_the_lease_is_alive_and_not_ready() -> None:
    world = Cluster("500m")
    stack = contextlib.AsyncExitStack()
    first, rest = await stack.enter_async_context(served(world))
    async with stack, served(world) as (second, other):
        await asyncio.sleep(0.5)
        assert (await asyncio.to_thread(rest.get, "/readyz")).text == "ok\n"
        assert (await asyncio.to_thread(other.get, "/ws/v1/version")).status_code == 200
        answer = await asyncio.to_thread(other.get, "/readyz")
        assert answer.status_code == 503
        assert first.lease is not None
        assert f"The lease is held by {first.lease.identity}" in answer.text
        assert ((await read(rest))["licorne_lease_held"], (await read(other))["licorne_lease_held"]) == (1.0, 0.0)
        assert second.monitor is not None
        await second.monitor.check_health()
        assert second.monitor.health is not None
        assert not second.monitor.health.healthy
        await stack.aclose()
        await first.lease.release()
        answers = [answer]
        while answers[-1].status_code != 200:
            await asyncio.sleep(0.1)
            answers.append(await asyncio.to_thread(other.get, "/readyz"))
