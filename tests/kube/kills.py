"""Kills licorne at one of its awaits: every task of it counts when it is suspended, and at one of these nothing runs on.

A killed process sends nothing more, but what it has sent may still arrive. Both are played: a request that the API server
had not taken yet is lost, or takes effect after the kill.

The day on which it is killed is a fixed one without other trouble, or one drawn from a seed: what users do, and what goes
wrong beside the kill.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any

import msgspec

from common.virtual import run
from kube import ends, kinds, schedules
from kube.apiserver import FakeClient, calm
from licorne.kube.runner import Runner

LATE_S = 0.01
"""How long a request takes to arrive, and its answer to return, on average: so a kill can be before, between and after."""
RESTART_S = 1.0
"""How long until the next process begins to read: what the one before has sent has arrived or is lost by then."""
DAY_S = 16
CALM_S = 90
"""How long after a fixed day everything is at rest."""
SEED = 7
NEVER = 1 << 60


def killed_after(client: FakeClient, writes: int) -> asyncio.Event:
    """Kill the process that writes volumes and bindings with this client at the write after so many; the event says when it is dead."""
    dead = asyncio.Event()
    checked, count = client.on_write, 0

    def on_write(what: str) -> None:
        nonlocal count
        checked(what)
        count += what in ("volume", "bind")
        if count > writes:
            dead.set()
            raise asyncio.CancelledError

    client.on_write = on_write
    return dead


async def play_until_killed(world: schedules.World, writes: int) -> None:
    """Let a process run that is killed at the write after so many (`killed_after`), and end."""
    client = FakeClient(world.server)
    _, task = schedules.start(world, client)
    dead = killed_after(client, writes)
    async with asyncio.timeout(60.0):
        await dead.wait()
    await schedules.stop(task)


class Killed:
    """Counts the awaits of one process, and says when it is dead."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.awaits = 0
        self.dead = asyncio.Event()

    def suspended(self) -> None:
        """Count one."""
        self.awaits += 1
        if self.awaits == self.at:
            self.dead.set()

    async def counted(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine; when the process is dead it never runs on."""
        return await self._stepped(coroutine)  # a task takes only what `async def` makes, from Python 3.12 on

    @types.coroutine
    def _stepped(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            try:
                waits_for = coroutine.send(sent) if thrown is None else coroutine.throw(thrown)
            except StopIteration as ended:
                return ended.value
            self.suspended()
            sent, thrown = None, None
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001  it is passed on
                thrown = error


class MortalClient(FakeClient):
    """The client of a process that is killed: afterwards nothing of it reaches the server, except what is under way.

    `arrives`: whether that takes effect.
    """

    def __init__(self, world: schedules.World, killed: Killed, *, arrives: bool) -> None:
        super().__init__(world.server)
        self._killed = killed
        self._arrives = arrives
        self.under_way: set[asyncio.Future[Any]] = set()

    async def _sent(self, call: Coroutine[Any, Any, Any]) -> Any:
        if self._killed.dead.is_set():
            call.close()
            await asyncio.get_running_loop().create_future()  # for ever
        if not self._arrives:
            return await call
        task = asyncio.ensure_future(call)
        self.under_way.add(task)
        task.add_done_callback(self._has_arrived)
        return await asyncio.shield(task)

    def _has_arrived(self, task: asyncio.Future[Any]) -> None:
        self.under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever has sent it may be dead, and then nobody else asks for its error

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind a pod, if the process is alive."""
        await self._sent(super().bind(namespace, name, uid, node))

    async def delete_pod(self, namespace: str, name: str, uid: str, grace_s: int | None = None) -> None:
        """Delete a pod, if the process is alive."""
        await self._sent(super().delete_pod(namespace, name, uid, grace_s))

    async def patch_status(
        self, kind: Any, namespace: str, name: str, uid: str, status: Any, version: str = ""
    ) -> None:
        """Change the status of an object, if the process is alive."""
        await self._sent(super().patch_status(kind, namespace, name, uid, status, version))

    async def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object, if the process is alive."""
        await self._sent(super().create(path, body))

    async def patch(self, path: str, body: dict[str, Any]) -> bytes:
        """Change an object, if the process is alive."""
        answer: bytes = await self._sent(super().patch(path, body))
        return answer

    async def delete(self, path: str, uid: str, grace_s: int | None = None) -> None:
        """Delete an object, if the process is alive."""
        await self._sent(super().delete(path, uid, grace_s))


def start_mortal(world: schedules.World, killed: Killed, *, arrives: bool) -> tuple[Runner, asyncio.Task[None]]:
    """Start licorne with its awaits counted, those of all tasks that it makes too."""
    loop = asyncio.get_running_loop()
    parent: Any = loop

    def counting(made_in: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        within = asyncio.current_task()
        if within is not None and within not in mortal:
            return asyncio.Task(coroutine, loop=made_in, **more)
        task = asyncio.Task(killed.counted(coroutine), loop=made_in, **more)
        mortal.add(task)
        return task

    mortal: set[asyncio.Task[Any]] = set()
    runner, task = schedules.start(world, MortalClient(world, killed, arrives=arrives))
    mortal.add(task)
    parent.set_task_factory(counting)
    return runner, task


def happen_as_fixed(world: schedules.World, second: int) -> None:
    """Let happen what the fixed day has at a second."""
    if second == 2:
        world.add_gang()
    elif second in (4, 5, 6):
        world.add_pod()
    elif second == 8 and world.server.pods():
        world.end(world.server.pods()[0])
    elif second == 10:
        world.server.remove("pods", "default", world.server.pods()[-1].metadata.name)
    world.kubelets()


def happen_at_random(world: schedules.World, _second: int) -> None:
    """Let a few random things happen."""
    for _ in range(world.rng.randrange(4)):
        world.happen()


async def scenario(at: int, *, arrives: bool, seed: int | None) -> int:
    """Play a day of a cluster, kill licorne at one of its awaits, start it again, and check all laws.

    `seed`: of a random day; None: the fixed one. Returns how many awaits there were before the end.
    """
    world = schedules.World(SEED) if seed is None else schedules.World(seed, kinds.draw(seed))
    trouble = calm() if seed is None else schedules.random_trouble(world.rng)
    world.server.trouble = msgspec.structs.replace(trouble, late_s=LATE_S)
    happen = happen_as_fixed if seed is None else happen_at_random
    killed = Killed(at)
    for _ in range(3):
        world.add_pod()
    runner, task = start_mortal(world, killed, arrives=arrives)
    restarted = False
    for second in range(DAY_S):
        happen(world, second)
        if not restarted:
            try:
                async with asyncio.timeout(1.0):
                    await killed.dead.wait()
                await kill(task)
                world.mend_map()
                runner, task = schedules.start(world)
                restarted = True
            except TimeoutError:
                pass
        else:
            await asyncio.sleep(1.0)
    awaits = killed.awaits
    killed.at = NEVER
    if killed.dead.is_set() and not restarted:  # by the last await of the day
        await kill(task)
        world.mend_map()
        runner, task = schedules.start(world)
    asyncio.get_running_loop().set_task_factory(None)
    calm_s = schedules.calm_down(world)
    for second in range(CALM_S if seed is None else int(calm_s)):
        world.controllers_act = seed is not None and second < schedules.CALM_S - ends.SETTLED_S
        world.kubelets()
        await asyncio.sleep(1.0)
        schedules.check_runs(task)
    ends.check_end(world, runner)
    after = ends.state(runner)
    await schedules.stop(task)
    fresh, task = schedules.start(world)
    await asyncio.sleep(5.0)
    ends.check_same(world, ends.state(fresh), after)
    await schedules.stop(task)
    return awaits


async def kill(task: asyncio.Task[None]) -> None:
    """End what is left of a process that is dead, and wait until what it has sent has arrived or is lost."""
    asyncio.get_running_loop().set_task_factory(None)
    await schedules.stop(task)
    await asyncio.sleep(RESTART_S)


def play(at: int, *, arrives: bool, seed: int | None = None) -> int:
    """Play a day in virtual time, the fixed one or that of a seed; returns how many awaits it had."""
    return run(scenario(at, arrives=arrives, seed=seed))


__all__ = ["NEVER", "play"]
