"""A process of clients: reads its task from standard input, prints the outcome (started by `bench.service.run`).

Clients wait for a signal before they begin, except `hold`, which fills its cluster first, and some of them also later. A
waiting client prints `ready` and continues with the next line of its input.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import msgspec

from bench.service.restload import Askers
from bench.service.tasks import Outcome, Round, Task, times
from bench.service.wire import Peer, RefusedError
from bench.service.work import Work, release
from bench.workloads.generate import Size
from licorne.grpc.client import SchedulerClient
from licorne.si import ResourceManagerCallback, v19
from licorne.si.wire import encode
from licorne.sim.collector import quiet_collector

WAIT_S = 300.0
PROBE = "probe"


async def word() -> None:
    """Print `ready`, and wait for a line."""
    print("ready", flush=True)  # noqa: T201
    await line()


async def line() -> None:
    """Wait for a line."""
    await asyncio.to_thread(sys.stdin.readline)


@asynccontextmanager
async def registered(task: Task) -> AsyncIterator[Peer]:
    """Yield a resource manager whose nodes and applications are accepted, and whose asks are ready to be sent."""
    with quiet_collector():
        async with Peer(task.address, Work(task.size, task.rm_id)) as peer:
            await peer.register()
            await peer.prepare()
            discarding = asyncio.create_task(peer.discard())
            await word()
            yield peer
            discarding.cancel()


async def one_round(peer: Peer, turn: int = 0) -> Round:
    """Submit all asks in prepared bytes, 1,000 a message; then release everything."""
    seconds = await peer.place()
    await peer.clear()
    return Round(allocations=peer.work.pods, seconds=seconds, turn=turn)


async def grpc_rounds(task: Task) -> Outcome:
    """Run a number of rounds; if the task has 0, run rounds until told to end."""
    rounds: list[Round] = []
    async with registered(task) as peer:
        ending = None if task.rounds else asyncio.create_task(line())
        while not rounds or len(rounds) < task.rounds or (ending is not None and not ending.done()):
            rounds.append(await one_round(peer))
    return Outcome(rounds=rounds)


async def grpc_turns(task: Task) -> Outcome:
    """Run rounds in each turn until its seconds have passed; the time between two turns belongs to neither."""
    rounds: list[Round] = []
    async with registered(task) as peer:
        for turn in range(task.turns):
            ends = time.perf_counter() + task.seconds
            while not rounds or rounds[-1].turn != turn or time.perf_counter() < ends:
                rounds.append(await one_round(peer, turn))
            await word()
    return Outcome(rounds=rounds)


class _Counting(ResourceManagerCallback):
    """Counts responses."""

    def __init__(self, work: Work) -> None:
        self.left = {
            "node": len(work.node_request.nodes),
            "application": len(work.application_request.new),
            "new": work.pods,
            "released": work.pods,
        }
        self.refused: list[str] = []
        self.done = threading.Condition()

    def _count(self, kind: str, response: Any, number: int) -> None:
        refused = getattr(response, "rejected", None) or getattr(response, "rejected_allocations", None)
        with self.done:
            self.left[kind] -= number
            self.refused += [item.reason for item in refused or ()]
            if self.left[kind] <= 0 or self.refused:
                self.done.notify_all()

    def update_node(self, response: v19.NodeResponse) -> None:
        self._count("node", response, len(response.accepted))

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self._count("application", response, len(response.accepted))

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self._count("new", response, len(response.new))
        self._count("released", response, len(response.released))

    def wait(self, kind: str) -> None:
        with self.done:
            if not self.done.wait_for(lambda: self.left[kind] <= 0 or self.refused, WAIT_S) or self.refused:
                raise RefusedError(self.refused[0] if self.refused else f"{self.left[kind]} {kind} are missing")


def client_rounds(task: Task) -> Outcome:
    """Run rounds with the client library, which takes and returns objects."""
    work = Work(task.size, task.rm_id)
    counting = _Counting(work)
    rounds: list[Round] = []
    with quiet_collector():
        client = SchedulerClient(task.address)
        client.register_resource_manager(work.registration, counting)
        client.update_node(work.node_request)
        client.update_application(work.application_request)
        counting.wait("node")
        counting.wait("application")
        asyncio.run(word())
        for _ in range(task.rounds):
            counting.left |= {"new": work.pods, "released": work.pods}
            began = time.perf_counter()
            for request in work.requests:
                client.update_allocation(request)
            counting.wait("new")
            rounds.append(Round(allocations=work.pods, seconds=time.perf_counter() - began))
            for data in work.releases:
                client.update_allocation(data)
            counting.wait("released")
        client.close()
    return Outcome(rounds=rounds)


async def many_managers(task: Task) -> Outcome:
    """Start many resource managers at the same moment: each registers, adds its cluster, and gets its pods."""
    works = [Work(task.size, f"{task.rm_id}-{number:04}") for number in range(task.managers)]
    await word()
    began = time.perf_counter()
    over = asyncio.Event()
    finished: asyncio.Queue[float] = asyncio.Queue()

    async def life(work: Work) -> None:
        async with Peer(task.address, work) as peer:
            await peer.register()
            await peer.prepare()
            discarding = asyncio.create_task(peer.discard())
            await peer.place()
            finished.put_nowait(time.perf_counter() - began)
            await over.wait()
            discarding.cancel()

    async def until_all_have() -> list[float]:
        found = [await finished.get() for _ in works]
        if task.stay:
            await word()
        over.set()
        return found

    with quiet_collector():
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(life(work))
            finishing = group.create_task(until_all_have())
    times_s = finishing.result()
    pods = sum(work.pods for work in works)
    return Outcome(
        rounds=[Round(allocations=pods, seconds=max(times_s))], finished_s=[round(one, 4) for one in times_s]
    )


async def hold(task: Task) -> Outcome:
    """Fill a cluster; then, until told to end, ask for one pod after the other if the task wants that."""
    work = Work(task.size, task.rm_id, tagged=task.tagged)
    taken: list[float] = []
    async with Peer(task.address, work) as peer:
        await peer.register()
        await peer.prepare()
        discarding = asyncio.create_task(peer.discard())
        seconds = await peer.place()
        ending = asyncio.create_task(word())
        first = work.requests[0].allocations[0]
        pod = v19.Allocation(
            allocation_key=PROBE,
            application_id=first.application_id,
            partition_name="default",
            resource_per_alloc={"vcore": 1},
        )
        ask = encode(v19.AllocationRequest(rm_id=work.rm_id, allocations=[pod]))
        gone = encode(
            v19.AllocationRequest(
                rm_id=work.rm_id, releases=v19.AllocationReleasesRequest(allocations_to_release=[release(pod)])
            )
        )
        while not ending.done():
            if task.probes_a_s:
                taken.append(await peer.one(ask, gone))
            await asyncio.sleep(1 / task.probes_a_s if task.probes_a_s else 0.05)
        discarding.cancel()
    return Outcome(rounds=[Round(allocations=work.pods, seconds=seconds)], probes=times(taken))


async def rest_clients(task: Task) -> Outcome:
    """Send requests to REST from one signal to the next, in each turn."""
    askers = Askers(task.rest, rest_paths(task.rm_id, task.size), task.clients)
    for _ in range(task.turns):
        await word()
        over = asyncio.Event()
        asking = asyncio.create_task(askers.ask(over))
        await word()
        over.set()
        await asking
    await word()
    askers.close()
    return Outcome(answers_s=askers.taken, failures=askers.failures)


def rest_paths(rm_id: str, size: Size) -> list[tuple[str, str]]:
    """Return paths of queues, nodes, applications of a queue and users in turn; each time of the next queue."""
    home = f"/ws/v1/partition/%5B{rm_id}%5Ddefault"
    workload = Work(Size(1, size.applications, size.applications, size.queues), rm_id).application_request
    queues = sorted({app.queue_name for app in workload.new})
    return [
        one
        for queue in queues
        for one in (
            ("queues", f"{home}/queues"),
            ("nodes", f"{home}/nodes"),
            ("applications", f"{home}/queue/{queue}/applications"),
            ("users", f"{home}/usage/users"),
        )
    ]


def perform(task: Task) -> Outcome:
    """Perform a task."""
    match task.what:
        case "grpc":
            return asyncio.run(grpc_rounds(task))
        case "turns":
            return asyncio.run(grpc_turns(task))
        case "client":
            return client_rounds(task)
        case "managers":
            return asyncio.run(many_managers(task))
        case "hold":
            return asyncio.run(hold(task))
        case "rest":
            return asyncio.run(rest_clients(task))


def main() -> int:
    """Read a task, perform it, print the outcome; return the exit status."""
    task = msgspec.json.decode(sys.stdin.readline(), type=Task)
    before = time.process_time()
    outcome: Outcome | None = None
    try:
        outcome = perform(task)
    except* (RefusedError, grpc.RpcError) as errors:
        error = errors.exceptions[0]
        print(error, file=sys.stderr)  # noqa: T201
    if outcome is None:
        return 1
    outcome = msgspec.structs.replace(outcome, cpu_s=round(time.process_time() - before, 3))
    print(msgspec.json.encode(outcome).decode(), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
