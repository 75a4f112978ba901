"""Random schedules of a cluster: no node over-committed, no pod forgotten, all that fits bound in the end."""

from __future__ import annotations

import asyncio
import sys

import msgspec
import pytest

import seeds
from kube import faults, schedules
from kube.apiserver import Trouble
from kube.virtual import VirtualLoop, run


def first() -> int:
    """Return the first seed; LICORNE_KUBE_SEED takes one of before."""
    return seeds.first_seed("LICORNE_KUBE_SEED")


def say(seed: int) -> None:
    """Say how a schedule is played again."""
    sys.stdout.write(f"to run this again, first: LICORNE_KUBE_SEED={seed}\n")


@pytest.mark.parametrize("number", range(40))
def test_a_cluster_comes_to_rest(number: int) -> None:
    seed = first() + number
    say(seed)
    schedules.play(seed)


@pytest.mark.long
def test_thousands_more(new_seed: int) -> None:
    for seed in range(new_seed, new_seed + 5000):
        say(seed)
        schedules.play(seed)


def test_nothing_is_decided_on_a_view_older_than_an_own_binding() -> None:
    """Watches that are late do not let a place be given twice: it is taken from the decision on."""

    async def play() -> int:
        world = schedules.World(1)
        world.server.trouble = Trouble(late_s=20.0)
        _, task = schedules.start(world)
        for _ in range(60):
            world.add_pod()
        await asyncio.sleep(900.0)
        await schedules.stop(task)
        return len(world.bound)

    assert run(play()) >= 10


@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_planted_fault_is_noticed(name: str) -> None:
    assert faults.caught(name).startswith("caught after ")


def test_a_paused_process_writes_nothing_before_it_has_read_the_present() -> None:
    """What was decided before a pause is not bound when the pod is gone, and the watch had no time to say so."""

    async def play() -> dict[str, int]:
        world = schedules.World(3)
        runner, task = schedules.start(world)
        await asyncio.sleep(3.0)
        runner.binder.hold()  # as if stopped between decision and binding
        pod = world.add_pod()
        await asyncio.sleep(0.5)
        assert len(runner.binder) > 0
        world.server.remove("pods", "default", pod.metadata.name)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.pass_over(300.0)
        await asyncio.sleep(30.0)
        await schedules.stop(task)
        assert pod.metadata.uid not in world.bound
        return world.server.writes

    run(play())


def test_a_refused_configuration_keeps_the_one_before_and_says_so() -> None:
    async def play() -> None:
        world = schedules.World(4)
        _, task = schedules.start(world)
        await asyncio.sleep(1.0)
        known = world.server.objects["configmaps"]["default", "yunikorn-configs"]
        broken = msgspec.structs.replace(known, data={"queues.yaml": "partitions: ["})
        world.server.put("configmaps", broken)
        await asyncio.sleep(1.0)
        assert any(event["reason"] == "ConfigurationRefused" for event in world.server.events)
        world.add_pod()
        await asyncio.sleep(5.0)
        assert len(world.bound) == 1
        await schedules.stop(task)

    run(play())
