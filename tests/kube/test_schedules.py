"""Random schedules of a cluster: no node over-committed, no pod forgotten, all that fits bound in the end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

import seeds
from common.examples import scaled
from common.plain_python import printed_by
from common.virtual import VirtualLoop, in_virtual_time, run
from kube import faults, schedules
from kube.apiserver import FakeClient, Server, Trouble
from licorne.kube.api import ApiError, Kind, WatchEvent
from licorne.kube.binder import AT_ONCE
from rings import first_in_gate

MORE, PARTS = 2000, 10
"""How many schedules a night plays, of two to three seconds of processor time each: as many as 45 minutes allow."""
FEW = 2
"""How many schedules are played before each commit; the gate plays all."""


def first() -> int:
    """Return the first seed; LICORNE_KUBE_SEED takes one of before."""
    return seeds.first_seed("LICORNE_KUBE_SEED")


def say(seed: int) -> None:
    """Say how a schedule is played again."""
    sys.stdout.write(f"to run this again, first: LICORNE_KUBE_SEED={seed}\n")


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=pytest.mark.gate if n >= FEW else ()) for n in range(scaled(100))]
)
def test_a_cluster_comes_to_rest(number: int) -> None:
    seed = first() + number
    say(seed)
    schedules.play(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_thousands_more(part: int, new_seed: int) -> None:
    first_of_part = new_seed + part * (MORE // PARTS)
    for seed in range(first_of_part, first_of_part + MORE // PARTS):
        say(seed)
        schedules.play(seed)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Trouble(stale=1.0), id="caches behind"),
        pytest.param(Trouble(late_s=20.0), id="late watches", marks=pytest.mark.gate),
        pytest.param(Trouble(stale=1.0, forgets=0.1), id="and lists read anew", marks=pytest.mark.gate),
        pytest.param(Trouble(stale=1.0, cut=0.3), id="and watches that break off", marks=pytest.mark.gate),
    ],
)
def test_nothing_is_decided_on_a_view_older_than_an_own_binding(trouble: Trouble) -> None:
    """Old news do not let a place be given twice: it is taken from the decision on (`World.check_writing`)."""

    async def play() -> int:
        world = schedules.World(1)
        world.server.trouble = trouble
        _, task = schedules.start(world)
        for _ in range(60):
            world.add_pod()
        await asyncio.sleep(900.0)
        await schedules.stop(task)
        return len(world.bound)

    assert run(play()) >= 10


@pytest.mark.parametrize("name", first_in_gate(faults.FAULTS))
def test_a_planted_fault_is_noticed(name: str) -> None:
    printed = printed_by("kube.faults", name) if name in faults.HOT else faults.caught(name)
    assert printed.startswith("caught after ")


def test_a_paused_process_writes_nothing_before_it_has_read_the_present() -> None:
    """Bindings that were decided before a pause, and not sent, are decided anew; no request is made for pods that are gone."""

    class SlowToAnswer(FakeClient):
        async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
            await super().bind(namespace, name, uid, node)
            await asyncio.sleep(5.0)

    async def play() -> None:
        world = schedules.World(3)
        runner, task = schedules.start(world, SlowToAnswer(world.server))
        await asyncio.sleep(3.0)
        for number in range(20):
            world.add_node(f"more{number}")
        await asyncio.sleep(3.0)
        pods = [world.add_pod() for _ in range(70)]
        await asyncio.sleep(1.0)
        begun = world.server.writes["bind"]
        assert begun == AT_ONCE
        assert len(runner.binder) > AT_ONCE + 20
        gone = {
            pod.metadata.uid for pod in pods if pod.metadata.uid not in world.bound and pod.metadata.name[-1] in "13579"
        }
        assert gone
        for pod in pods:
            if pod.metadata.uid in gone:
                world.server.remove("pods", "default", pod.metadata.name)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.pass_over(300.0)
        await asyncio.sleep(60.0)
        await schedules.stop(task)
        assert not gone & set(world.bound)
        assert len(world.bound) == len(pods) - len(gone)
        assert world.server.writes["bind"] == len(world.bound), (
            "one request for each pod, and none for those that are gone"
        )
        reasons = {event["reason"] for event in world.server.events}
        assert "PodBindFailure" not in reasons, "that a decision is taken back is no failure"

    run(play())


@in_virtual_time
async def test_a_pause_while_the_cluster_is_read_again_makes_it_read_once_more() -> None:
    world = schedules.World(3)
    _, task = schedules.start(world)
    await asyncio.sleep(3.0)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    world.server.trouble = Trouble(late_s=3.0)
    for _ in range(10):
        world.add_pod()
        loop.pass_over(20.0)
        await asyncio.sleep(1.0)  # `World.check_writing` checks each request
    world.server.trouble = Trouble()
    await asyncio.sleep(60.0)
    await schedules.stop(task)
    assert len(world.bound) >= 5


def test_nothing_is_bound_after_a_pause_while_the_cluster_may_not_be_read() -> None:
    class Refuses(FakeClient):
        refuses = False

        async def watch(self, kind: Kind[Any], *arguments: Any, **more: Any) -> AsyncGenerator[list[WatchEvent[Any]]]:
            if self.refuses and kind.plural in ("pods", "nodes"):
                raise ApiError(403, "Forbidden", "not now")
            async for batch in super().watch(kind, *arguments, **more):
                yield batch

    async def play() -> None:
        world = schedules.World(4)
        client = Refuses(world.server)
        _, task = schedules.start(world, client)
        await asyncio.sleep(3.0)
        client.refuses = True
        pod = world.add_pod()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.pass_over(60.0)
        await asyncio.sleep(100.0)  # `World.check_writing` checks each request
        assert not world.bound
        client.refuses = False
        await asyncio.sleep(100.0)
        await schedules.stop(task)
        assert pod.metadata.uid in world.bound

    run(play())


def test_bindings_go_on_while_no_other_write_is_answered() -> None:
    class Hangs(FakeClient):
        async def patch_status(self, *_: Any) -> None:
            await asyncio.Event().wait()

        async def create(self, path: str, body: dict[str, Any]) -> None:
            await (super().create(path, body) if path.endswith("/leases") else asyncio.Event().wait())

    async def play() -> None:
        world = schedules.World(1)
        runner, task = schedules.start(world, Hangs(world.server))
        await asyncio.sleep(1.0)
        for _ in range(80):
            world.add_pod()
        await asyncio.sleep(60.0)
        first = len(world.bound)
        assert first
        assert len(runner.writer), "conditions of the pods without room wait to be written"
        for number in range(3):
            world.add_node(f"more-{number}")
        await asyncio.sleep(10.0)
        await schedules.stop(task)
        assert len(world.bound) > first

    run(play())


def test_a_placeholder_that_nobody_saw_is_made_again() -> None:
    """It is deleted while no watch is open, so no watch tells of it, neither that it came nor that it went."""

    class LosesTheFirst(FakeClient):
        def __init__(self, server: Server) -> None:
            super().__init__(server)
            self.names: list[str] = []

        async def create(self, path: str, body: dict[str, Any]) -> None:
            await super().create(path, body)
            if not path.endswith("/pods"):
                return
            self.names.append(body["metadata"]["name"])
            if len(self.names) == 1:
                self.server.remove("pods", body["metadata"]["namespace"], body["metadata"]["name"])
                del self.server.history[-2:]

    async def play() -> None:
        world = schedules.World(5)
        client = LosesTheFirst(world.server)
        _, task = schedules.start(world, client)
        await asyncio.sleep(1.0)
        world.add_gang(timeout_s=60)  # longer than the wait for the one that was not seen
        await asyncio.sleep(60.0)
        await schedules.stop(task)
        assert client.names.count(client.names[0]) == 2

    run(play())


def test_each_placeholder_of_a_large_gang_is_asked_for_once_from_a_slow_server() -> None:
    """The first ones have been there for minutes when the last ones are created, and are looked for meanwhile."""

    class Slow(FakeClient):
        def __init__(self, server: Server) -> None:
            super().__init__(server)
            self.names: list[str] = []

        async def create(self, path: str, body: dict[str, Any]) -> None:
            if path.endswith("/pods"):
                self.names.append(body["metadata"]["name"])
                await asyncio.sleep(5.0)
            await super().create(path, body)

    async def play() -> None:
        world = schedules.World(5)
        client = Slow(world.server)
        runner, task = schedules.start(world, client)
        await asyncio.sleep(1.0)
        world.add_gang(100, timeout_s=900)
        await asyncio.sleep(150.0)
        assert len(client.names) == 100
        assert len(set(client.names)) == 100
        assert len(runner.writer) == 0
        await schedules.stop(task)

    run(play())


@pytest.mark.parametrize("restart", [False, True], ids=["seen", "while licorne is down"])
@in_virtual_time
async def test_a_placeholder_that_fails_is_replaced(restart: bool) -> None:
    """Its object stays there, under the name that licorne gave it, and no watch of licorne shows it."""
    world = schedules.World(5)
    for name in ("n0", "n1", "n2"):
        world.server.remove("nodes", "", name)
    _, task = schedules.start(world)
    await asyncio.sleep(1.0)
    world.add_gang(3, timeout_s=900)
    await asyncio.sleep(1.0)
    failed = next(pod for pod in world.server.pods() if pod.metadata.name.startswith("tg-"))
    if restart:
        await schedules.stop(task)
    status = msgspec.structs.replace(failed.status, phase="Failed")
    world.server.put("pods", msgspec.structs.replace(failed, status=status))
    if restart:
        _, task = schedules.start(world)
    await asyncio.sleep(1.0)
    for number in range(3):
        world.add_node(f"more-{number}")
    for _ in range(120):
        await asyncio.sleep(1.0)
        for pod in world.server.pods():
            if pod.metadata.deletion_timestamp:  # its kubelet has ended it
                world.server.remove("pods", pod.metadata.namespace, pod.metadata.name)
    members = [pod for pod in world.server.pods() if "tg-" not in pod.metadata.name]
    assert [bool(pod.spec.node_name) for pod in members] == [True] * 3
    told = {event["reason"] for event in world.server.events if event["type"] == "Warning"}
    assert "GangScheduling" not in told, "the gang did not give up"
    await schedules.stop(task)


@in_virtual_time
async def test_a_refused_configuration_keeps_the_one_before_and_says_so() -> None:
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
