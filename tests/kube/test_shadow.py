"""licorne beside another scheduler: nothing is written, and what it would have done otherwise is told."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest

from common.virtual import in_virtual_time, run
from kube import ends, schedules
from kube.apiserver import FakeClient
from licorne.kube.manager.commands import Bind
from licorne.kube.objects import PriorityClass
from licorne.kube.runner import Runner
from licorne.kube.settings import RunSettings
from licorne.kube.shadow import DIFFERENCES_MAX, Shadow
from seeds import some_seeds

DRY = RunSettings(dry_run=True)
OTHERS = RunSettings(dry_run=True, scheduler_names=("default-scheduler",))

GUARANTEED = """
partitions:
  - name: default
    preemption: {enabled: true}
    placementrules: [{name: provided}, {name: fixed, value: root.a}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
          - {name: b, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 6}}}
"""
"""Queues of which the second one takes room back from the first."""


class Peer:
    """Another scheduler: some seconds after it sees a pod it binds it to a drawn node with room."""

    def __init__(self, world: schedules.World) -> None:
        self.world = world
        self.client = FakeClient(world.server)
        self.rng = random.Random(world.made)

    async def run(self) -> None:
        """Bind until cancelled."""
        while True:
            for pod in self.world.server.pods():
                nodes = [name for _, name in self.world.server.objects["nodes"] if self.world.fits(pod, name)]
                if not pod.spec.node_name and pod.status.phase == "Pending" and nodes:
                    meta = pod.metadata
                    await self.client.bind(meta.namespace, meta.name, meta.uid, self.rng.choice(nodes))
            await asyncio.sleep(2.0)


@pytest.mark.parametrize("seed", some_seeds("LICORNE_KUBE_SEED", 8))
@in_virtual_time
async def test_beside_another_scheduler_nothing_is_written_and_its_decisions_are_adopted(seed: int) -> None:
    world = schedules.World(seed)
    shadow_client = FakeClient(world.server)
    written: list[str] = []
    for name in ("bind", "create", "delete_pod", "patch_status"):
        setattr(shadow_client, name, lambda *_, name=name, **__: written.append(name))
    runner, task = schedules.start(world, shadow_client, OTHERS)
    await asyncio.sleep(1.0)
    peer = asyncio.create_task(Peer(world).run())
    for _ in range(80):
        if world.rng.random() < 0.5:
            world.add_pod(schedulerName="default-scheduler")
        elif pods := world.server.pods():
            world.end(world.rng.choice(pods))
        world.kubelets()
        await asyncio.sleep(world.rng.expovariate(2.0))
    await asyncio.sleep(30.0)
    peer.cancel()
    shadow = runner.shadow
    assert shadow is not None
    assert written == []
    assert shadow.counts["same"] + shadow.counts["elsewhere"] + shadow.counts["first"] == len(world.bound)
    assert shadow.counts["elsewhere"] > 0
    assert shadow.earlier_s > 0
    check_same_books(world, runner)
    await schedules.stop(task)


def check_same_books(world: schedules.World, runner: Runner) -> None:
    """Check that each pod counts where the other scheduler put it; those that wait may have a place in licorne's view."""
    waiting: dict[str, dict[str, int]] = {}
    for record in runner.manager.records.pods.values():
        node = record.pod.spec.node_name
        if node:
            assert record.node == node
        elif record.node:
            for name, amount in (record.work.ask.resource or {}).items():
                total = waiting.setdefault(record.node, {})
                total[name] = total.get(name, 0) + amount
    for node, counted in ends.state(runner)["nodes"].items():
        expected = world.used(node)
        for name, amount in waiting.get(node, {}).items():
            expected[name] = expected.get(name, 0) + amount
        assert counted == {name: amount for name, amount in expected.items() if amount}


# What happens besides pods of their own; commands of the dry run that show that it was decided there, too.
HAPPENS = {"plain": [], "gangs": ["CreatePod", "Evict"], "preemption": ["Evict"]}


@pytest.mark.parametrize("what", HAPPENS)
@pytest.mark.parametrize("seed", some_seeds("LICORNE_KUBE_SEED", 8))
@in_virtual_time
async def test_beside_licorne_itself_there_is_no_difference(seed: int, what: str) -> None:
    world = schedules.World(seed)
    if what == "preemption":
        known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
        data = {**schedules.DATA, "queues.yaml": GUARANTEED}
        world.server.put("configmaps", msgspec.structs.replace(known, data=data))
    shadow, shadow_task = schedules.start(world, settings=DRY)
    await asyncio.sleep(0.5)
    _, task = schedules.start(world)
    await asyncio.sleep(0.5)
    if what == "preemption":
        for number in range(26):  # the first queue takes all there is, before the second one asks for its guarantee
            queue = "a" if number < 24 else "b"
            container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
            labels = {"applicationId": f"of-{queue}", "queue": f"root.{queue}"}
            world.add_pod(metadata={"labels": labels}, containers=[container])
            await asyncio.sleep(0.1)
        await asyncio.sleep(3.0)
    if what == "gangs":
        world.add_gang()  # while there is room, so that at least its placeholders are replaced
    for _ in range(80):
        happens = world.rng.random()
        if what == "gangs" and happens < 0.1:
            world.add_gang()
        elif happens < 0.55:
            world.add_pod()
        elif pods := world.server.pods():
            world.end(world.rng.choice(pods))
        world.kubelets()
        await asyncio.sleep(world.rng.expovariate(2.0))
    for _ in range(60):  # what was evicted ends
        world.kubelets()
        await asyncio.sleep(1.0)
    assert shadow.shadow is not None
    report = shadow.shadow.report()
    assert report["differences"] == []
    assert report["pods"]["same"] == len(world.bound) > 0
    assert report["onlyLicorne"] == 0
    assert all(report["notWritten"].get(name) for name in HAPPENS[what])
    await schedules.stop(task)
    await schedules.stop(shadow_task)


def test_what_is_found_is_in_the_state_dump() -> None:
    async def play() -> dict[str, Any]:
        world = schedules.World(1)
        runner, task = schedules.start(world, settings=DRY)
        await asyncio.sleep(1.0)
        pod = world.add_pod()
        await asyncio.sleep(3.0)
        chosen = runner.manager.records.pods[pod.metadata.uid].node
        other = next(name for _, name in world.server.objects["nodes"] if name != chosen)
        await FakeClient(world.server).bind("default", pod.metadata.name, pod.metadata.uid, other)
        await asyncio.sleep(1.0)
        [found] = runner.api.diagnostics().values()
        assert found["shadow"]["differences"] == [
            {"pod": f"default/{pod.metadata.name}", "licorne": chosen, "other": other, "earlierSeconds": 3.0}
        ]
        assert runner.manager.records.pods[pod.metadata.uid].node == other
        await schedules.stop(task)
        return found

    assert run(play())["shadow"]["pods"] == {"same": 0, "elsewhere": 1, "first": 0, "gone": 0}


def test_memory_is_bounded() -> None:
    shadow = Shadow(lambda: 0.0)
    world_pod = run(_a_pod())
    for number in range(DIFFERENCES_MAX + 10):
        shadow.take(Bind("default", "p", str(number), "n"))
        shadow.bound(world_pod)
    assert len(shadow.differences) == DIFFERENCES_MAX


async def _a_pod() -> Any:
    return schedules.World(1).add_pod(nodeName="n0")


def test_without_dry_run_the_same_test_would_notice_writes() -> None:
    async def play() -> int:
        world = schedules.World(1)
        _, task = schedules.start(world)
        world.add_pod()
        await asyncio.sleep(3.0)
        await schedules.stop(task)
        return world.server.writes.get("bind", 0)

    assert run(play()) == 1


@in_virtual_time
async def test_a_pod_whose_priority_class_is_not_known_is_decided_too() -> None:
    world = schedules.World(1)
    known = {"metadata": {"name": "system-cluster-critical"}, "value": 2000000000}
    world.server.put("priorityclasses", msgspec.convert(known, PriorityClass))
    runner, task = schedules.start(world, settings=DRY)
    await asyncio.sleep(1.0)
    world.add_pod(priorityClassName="gone")
    await asyncio.sleep(2.0)
    assert runner.shadow is not None
    assert runner.shadow.report()["onlyLicorne"] == 1
    await schedules.stop(task)
