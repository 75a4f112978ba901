"""The model of random schedules, where what it says of a node or an eviction is easily wrong."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import pytest

from common.virtual import in_virtual_time, run
from kube import books, ends, kinds, schedules
from kube.books import Limits
from kube.kinds import Kind
from kube.watched import Decision
from licorne.core.preemption.evictions import Outcome
from licorne.kube.objects import Pod
from licorne.kube.objects.nodes import Taint

LIMITS = Limits(guaranteed={"root.b": {"vcore": 8000, "memory": 20 << 30}})


def _pod(world: schedules.World, queue: str, cpu: str, node: str = "") -> Pod:
    labels = {"applicationId": f"{queue}-0", "queue": queue}
    requests = {"cpu": cpu, "memory": "256Mi"}
    container = {"name": "c", "resources": {"requests": requests}}
    return world.add_pod(metadata={"labels": labels}, containers=[container], nodeName=node)


def _world(kind: Kind, nodes: tuple[str, ...]) -> schedules.World:
    """Return a world with these nodes of the first three, where queue b has a guarantee."""
    world = schedules.World(1, kind)
    world.put_map(kinds.configuration(kind, LIMITS), LIMITS)
    for name in {"n0", "n1", "n2"} - {*nodes}:
        world.server.remove("nodes", "", name)
    return world


@pytest.mark.parametrize(
    ("vcore", "later", "later_vcore", "too_much"),
    [
        pytest.param(800, True, 800, True, id="small all the time"),
        pytest.param(800, True, 2000, False, id="grown when the other one was decided, whose binding was faster"),
        pytest.param(800, False, 2000, True, id="shrunk before it was decided"),
        pytest.param(2000, True, 800, False, id="shrunk while its binding was under way"),
    ],
)
@in_virtual_time
async def test_what_a_node_had_when_places_there_were_chosen_counts(
    vcore: int, later: bool, later_vcore: int, too_much: bool
) -> None:
    world = schedules.World(1, Kind(shrinks=True))
    slow, fast = _pod(world, "root.a", "250m"), _pod(world, "root.a", "700m")
    for pod, at, has in ((slow, 1.0, vcore), (fast, 2.0 if later else 0.0, later_vcore)):
        room = {"vcore": has, "memory": 8 << 30, "pods": 20, books.DEVICE: 0}
        world.decisions[pod.metadata.uid] = Decision("n0", at, frozenset(), pod, room, Limits(), exchanged=False)
    world.check_binding(fast, "n0")
    world.server.put("pods", msgspec.structs.replace(fast, spec=msgspec.structs.replace(fast.spec, node_name="n0")))
    with pytest.raises(schedules.OvercommittedError) if too_much else contextlib.nullcontext():
        world.check_binding(slow, "n0")


@in_virtual_time
async def test_a_member_takes_room_on_another_node_until_its_placeholder_has_ended() -> None:
    """So the victim is needed that goes for a pod which would fit beside the other pods that have a node."""
    world = _world(Kind(preemption=True, places=True), ("n0",))
    _pod(world, "root.b", "3250m", "n0")
    _, task = schedules.start(world)
    world.add_gang(2, timeout_s=900)
    await asyncio.sleep(2.0)  # one placeholder has room
    found = world.node("n0")
    spec = msgspec.structs.replace(found.spec, taints=(Taint(**kinds.TAINT),))
    world.server.put("nodes", msgspec.structs.replace(found, spec=spec))
    await asyncio.sleep(1.0)
    world.add_node("n3")
    _pod(world, "root.p.d", "3", "n3")
    await asyncio.sleep(2.0)  # one member waits there for the end of the placeholder on n0
    view = world.alive[0].view()
    assert view.used("n3")["vcore"] == 3000 + 500 + 500
    assert view.in_queue["root.b"]["vcore"] == 3250 + 500 + 500, "the placeholders alone"
    _pod(world, "root.b", "500m")
    await asyncio.sleep(5.0)
    await schedules.stop(task)
    assert len(world.evictions) == 1


@in_virtual_time
async def test_a_member_that_others_have_bound_counts_for_its_gang_also_when_it_has_ended_since() -> None:
    world = _world(Kind(atomic=True, foreign=True), ("n0",))
    _, task = schedules.start(world)
    world.add_atomic_gang(2, 3000)
    await asyncio.sleep(2.0)  # one of both has room
    first = world.server.pods()[0]
    spec = msgspec.structs.replace(first.spec, node_name="n0")
    bound = world.server.put("pods", msgspec.structs.replace(first, spec=spec))
    world.add_node("n3")
    await asyncio.sleep(2.0)
    world.end(bound)
    await asyncio.sleep(2.0)
    world.alive[0].check_gangs(ends=True)
    await schedules.stop(task)
    assert list(world.bound.values()) == ["n3"]


@pytest.mark.parametrize(
    ("before", "evicted"),
    [
        pytest.param(False, [Outcome.VICTIM, Outcome.VICTIM], id="one after the other"),
        pytest.param(True, [], id="both, which a process before has evicted"),
    ],
)
def test_a_pod_waits_for_victims_that_hang(before: bool, evicted: list[Outcome]) -> None:
    async def play() -> list[Any]:
        world = _world(Kind(preemption=True, hangs=True), ("n0", "n1"))
        for node in ("n0", "n1"):
            pod = _pod(world, "root.p.d", "3", node)
            if before:
                world.mark_deleted(pod)
            world.hanging[pod.metadata.uid] = schedules.NEVER_S
        _pod(world, "root.b", "3")
        world.may_hang = False
        runner, task = schedules.start(world)
        await asyncio.sleep(schedules.CALM_S + schedules.hung_s(world))
        ends.check_end(world, runner)
        await schedules.stop(task)
        return [one.outcome for one in runner.api.cluster.partition(runner.manager.outbox.rm_id).evictions]

    assert run(play()) == evicted


@pytest.mark.parametrize("restarts", [False, True])
@in_virtual_time
async def test_a_victim_whose_node_comes_again_is_still_going(restarts: bool) -> None:
    """The node has room for the pod when the victim has ended, so nobody else is evicted there."""
    world = _world(Kind(preemption=True, hangs=True), ("n0",))
    old, victim = _pod(world, "root.p.d", "3", "n0"), _pod(world, "root.p.d", "1", "n0")
    world.may_hang = False
    world.hanging[victim.metadata.uid] = schedules.NEVER_S
    _, task = schedules.start(world)
    _pod(world, "root.b", "1")
    await asyncio.sleep(2.0)
    deleted = [pod.metadata.uid for pod in world.server.pods() if pod.metadata.deletion_timestamp]
    assert deleted == [victim.metadata.uid]
    if restarts:
        await schedules.stop(task)
    node = world.node("n0")
    world.server.remove("nodes", "", "n0")
    again = msgspec.structs.replace(node.metadata, uid="again")
    world.server.put("nodes", msgspec.structs.replace(node, metadata=again))
    world.end(old)
    _pod(world, "root.p.d", "3", "n0")  # younger than the victim, so it would go first
    if restarts:
        _, task = schedules.start(world)
    await asyncio.sleep(20.0)
    await schedules.stop(task)
    assert len(world.evictions) == 1
