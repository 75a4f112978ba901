"""Several processes at once: one schedules, and never two."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

import seeds
from common.planting import raised_by_a_law
from common.virtual import VirtualLoop, in_virtual_time, run
from kube import schedules
from kube.apiserver import FakeClient, Trouble
from kube.schedules import Process
from licorne.host.log import no_log
from licorne.kube.configmaps import ConfigurationError
from licorne.kube.lease import DURATION_S, HELD_S, HeldLease, LeaseLostError
from licorne.kube.objects import ConfigMap, ObjectMeta
from licorne.kube.results import Results

SEEDS = range(1, 4)
PLAYED_S = 180.0


def process(world: schedules.World, client: FakeClient | None = None) -> Process:
    """Start a process beside those that run."""
    client, ending = client or FakeClient(world.server), asyncio.Event()
    return Process(client, *schedules.start(world, client, beside=True, ending=ending), ending)


def now() -> float:
    """Return the loop's time."""
    return asyncio.get_running_loop().time()


async def schedule(seed: int) -> tuple[int, int]:
    """Play two processes of which now and then one loses sight of the lease, or ends; return how many were lost and bound."""
    rng = random.Random(seed)
    world = schedules.World(seed)
    world.server.trouble = Trouble(lost=0.05, refused=0.05, stale=0.5)
    processes = [process(world) for _ in range(2)]
    lost = 0
    while now() < PLAYED_S:
        for _ in range(3):
            world.happen()
        await asyncio.sleep(rng.expovariate(1.0))
        for number, one in enumerate(processes):
            if rng.random() < 0.05:
                one.client.lease_cut = not one.client.lease_cut
            if rng.random() < 0.01:
                one.ending.set()
            if one.task.done():
                error = one.task.exception()
                if error is not None and not isinstance(error, LeaseLostError):
                    raise error
                lost += error is not None
                processes[number] = process(world)
    for one in processes:
        await schedules.stop(one.task)
    return lost, len(world.bound)


def test_two_processes_never_give_a_place_twice() -> None:
    """`World.check_binding` fails if a node gets more than it has, `World.check_writing` if a view lacks what was bound."""
    played = [run(schedule(seed)) for seed in SEEDS]
    assert any(lost for lost, _ in played)
    assert min(bound for _, bound in played) > 50


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("held", lambda self: self._until_ns > 0),
        ("_may_write", lambda *_: True),
    ],
    ids=["what was held once is held", "the lease of another process is no reason to wait"],
)
def test_a_planted_fault_is_noticed(method: str, fault: Callable[..., Any]) -> None:
    with patch.object(HeldLease, method, fault), pytest.raises((AssertionError, ExceptionGroup)) as caught:
        _play_some()
    assert raised_by_a_law(caught.value, schedules)


def _play_some() -> None:
    for seed in seeds.some_seeds("LICORNE_KUBE_SEED", 160):
        run(schedule(seed))


class Slow(FakeClient):
    """A client whose bindings arrive late."""

    LATE_S = 3.0

    async def _bind(self, *arguments: str) -> None:
        await asyncio.sleep(self.LATE_S)
        await super()._bind(*arguments)


def test_a_process_that_is_killed_while_it_awaits_answers_leaves_no_error_that_nobody_asks_for() -> None:
    async def lose() -> None:
        raise LeaseLostError("the Lease is lost")

    async def play() -> None:
        one = process(schedules.World(1))
        one.runner.run = lose  # type: ignore[method-assign]
        one.runner._requests.idle.clear()
        await asyncio.sleep(1.0)
        await schedules.stop(one.task)

    run(play())  # an error of a task that nobody has asked for fails the test (`conftest.py`)


@in_virtual_time
async def test_a_process_that_ends_is_followed_at_once_when_what_it_has_sent_is_answered() -> None:
    world = schedules.World(1)
    first = process(world, Slow(world.server))
    await asyncio.sleep(2.0)
    second = process(world)
    await asyncio.sleep(2.0)
    assert not second.runner.reading.begun
    assert second.runner.lease is not None
    assert second.runner.lease.holder == first.runner.lease.identity  # type: ignore[union-attr]
    for _ in range(20):
        world.add_pod()
    await asyncio.sleep(1.0)
    first.ending.set()
    assert not world.bound
    await first.task
    assert len(world.bound) > 3
    await asyncio.sleep(4.0)
    assert second.runner.lease.held(), f"well before the {DURATION_S} s after which the lease would have expired"
    assert second.runner.reading.begun
    for _ in range(20):
        world.add_pod()
    await asyncio.sleep(30.0)
    schedules.check_runs(second.task)
    await schedules.stop(second.task)


@in_virtual_time
async def test_a_process_that_ends_by_a_fault_releases_its_lease() -> None:
    world = schedules.World(1)
    broken = {"queues.yaml": "partitions: [{name: other, queues: [{name: root}]}]"}
    found = ConfigMap(metadata=ObjectMeta(name="yunikorn-configs", namespace="default", uid="m"), data=broken)
    world.server.put("configmaps", found)
    one = process(world)
    await asyncio.sleep(5.0)
    assert isinstance(one.task.exception(), ConfigurationError)
    assert world.server.lease is not None
    assert not world.server.lease.spec.holder_identity


@in_virtual_time
async def test_a_process_that_is_cancelled_is_followed_when_its_lease_has_expired() -> None:
    world = schedules.World(1)
    first = process(world)
    await asyncio.sleep(3.0)
    second = process(world)
    await schedules.stop(first.task)
    await asyncio.sleep(DURATION_S + 5.0)
    assert second.runner.reading.begun
    await schedules.stop(second.task)


@pytest.mark.parametrize("other", [False, True])
@in_virtual_time
async def test_nothing_is_written_from_the_moment_when_the_lease_may_be_lost(*, other: bool) -> None:
    """Without another process it goes on when the lease can be renewed; with one it ends."""
    world = schedules.World(1)
    first = process(world)
    writes: list[float] = []
    check = first.client.on_write

    def note(what: str) -> None:
        writes.append(now())
        check(what)

    first.client.on_write = note
    await asyncio.sleep(5.0)
    second = process(world) if other else None
    first.client.lease_cut, cut_at = True, now()
    while now() < cut_at + 40.0:
        world.add_node(f"more{now()}")
        world.add_pod()
        await asyncio.sleep(0.5)
    assert cut_at + HELD_S - 3.0 < max(writes) < cut_at + HELD_S
    first.client.lease_cut = False
    await asyncio.sleep(5.0)
    if second is None:
        assert max(writes) > cut_at + 40.0
        assert len(world.bound) == world.made
        await schedules.stop(first.task)
        return
    assert isinstance(first.task.exception(), LeaseLostError)
    assert max(writes) < cut_at + HELD_S
    assert len(world.bound) == world.made
    await schedules.stop(second.task)


@in_virtual_time
async def test_a_process_that_was_stopped_asks_who_has_the_lease_before_it_writes() -> None:
    """The lease has been taken meanwhile, so the process that goes on writes nothing."""
    world = schedules.World(1)
    first = process(world)
    await asyncio.sleep(3.0)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    assert world.server.lease is not None
    world.add_pod()
    loop.pass_over(60.0)
    world.server.lease.spec.holder_identity = "another"
    world.server.lease.metadata.resource_version = "77"
    await asyncio.sleep(20.0)
    assert isinstance(first.task.exception(), LeaseLostError)
    assert not world.bound


def test_a_renewal_that_was_under_way_in_a_pause_does_not_count() -> None:
    """A suspended machine: its monotonic clock stands still, so only the pause that the other clock shows tells of the time."""
    clock_ns = 0

    class Suspended(FakeClient):
        suspended = False

        async def patch(self, path: str, body: dict[str, Any]) -> bytes:
            answer = await super().patch(path, body)
            if self.suspended:
                lease.lapse()
            return answer

    async def play() -> None:
        await lease.take()
        assert lease.held()
        client.suspended = True
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await lease.keep()
        assert not lease.held()
        client.suspended = False
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await lease.keep()
        assert lease.held()

    world = schedules.World(1)
    client = Suspended(world.server)
    lease = HeldLease(client, "default", clock=lambda: clock_ns, wall=lambda: 0.0, log=no_log(), results=Results())
    run(play())
