"""The garbage collector: the scheduler leaves nothing to it, and all of a resource manager is freed when it is gone."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from common.waiting import eventually
from licorne import SchedulerAPI
from licorne.core.cluster import Cluster
from licorne.grpc.service import Web
from licorne.host import memory
from licorne.host.memory import Memory, taken_apart
from licorne.si import v19
from service.peers import Peer, service

CREATE = v19.ActionFromRM.CREATE
PODS = 3_000


@pytest.fixture
def collector() -> Iterator[None]:
    """Without the collector, and with it again."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def asks(rm_id: str = "rm") -> v19.AllocationRequest:
    return v19.AllocationRequest(
        rm_id=rm_id,
        allocations=[
            v19.Allocation(allocation_key=f"k{n}", application_id=f"a{n % 9}", resource_per_alloc={"vcore": 1 + n % 7})
            for n in range(PODS)
        ],
    )


def ends(rm_id: str = "rm") -> v19.AllocationRequest:
    gone = [
        v19.AllocationRelease(partition_name="default", application_id=f"a{n % 9}", allocation_key=f"k{n}")
        for n in range(PODS)
    ]
    return v19.AllocationRequest(rm_id=rm_id, releases=v19.AllocationReleasesRequest(allocations_to_release=gone))


def filled(rm_id: str = "rm", *, watched: bool = False) -> SchedulerAPI:
    api = SchedulerAPI(on_output=lambda _rm, _outputs: None)
    if watched:
        api.cluster.recorder = lambda _rm, _event: None
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id=rm_id))
    nodes = [v19.NodeInfo(node_id=f"n{n}", action=CREATE, schedulable_resource={"vcore": 10**6}) for n in range(20)]
    api.update_node(v19.NodeRequest(rm_id=rm_id, nodes=nodes))
    apps = [
        v19.AddApplicationRequest(
            application_id=f"a{n}", ugi=v19.UserGroupInformation(user="ann"), tags={"namespace": "x"}
        )
        for n in range(9)
    ]
    api.update_application(v19.ApplicationRequest(rm_id=rm_id, new=apps))
    return api


@pytest.mark.parametrize("watched", [True, pytest.param(False, marks=pytest.mark.gate)])
@pytest.mark.usefixtures("collector")
def test_asks_decisions_and_releases_leave_no_cycles(watched: bool) -> None:
    api = filled(watched=watched)
    gc.collect()
    for _ in range(2):
        api.update_allocation(asks())
        assert api.schedule() == PODS
        api.update_allocation(ends())
        api.schedule()
        assert gc.collect() < 20
    removed = [v19.RemoveApplicationRequest(application_id=f"a{n}", partition_name="default") for n in range(9)]
    api.update_application(v19.ApplicationRequest(rm_id="rm", remove=removed))
    assert gc.collect() < 20
    api.validate()


@pytest.mark.usefixtures("collector")
def test_a_dismantled_resource_manager_is_freed_without_the_collector() -> None:
    api = filled()
    api.update_allocation(asks())
    api.schedule()
    manager = api.cluster.managers["rm"]
    (partition,) = manager.ordered
    api.stop("rm")
    before = len(gc.get_objects())
    steps = list(taken_apart(manager))
    assert len(steps) > PODS // 100
    assert sum(steps) < PODS  # what is left to the collector
    assert before - len(gc.get_objects()) >= PODS
    assert not any(app.allocations for app in partition.applications.values())
    assert not any(node.allocations for node in partition.nodes.values())


class Clock:
    """A clock that is set, and how long nothing was to do."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.idle = 0.0


def looked_after(cluster: Cluster) -> tuple[Memory, Clock]:
    clock = Clock()
    return Memory(cluster, lambda: clock.idle, lambda: clock.now), clock


def test_a_full_collection_runs_when_there_is_garbage_and_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = 0

    def collect() -> None:
        nonlocal walks
        walks += 1

    monkeypatch.setattr(gc, "collect", collect)
    found, clock = looked_after(SchedulerAPI().cluster)
    clock.idle = 100.0
    found.look()
    assert walks == 0  # no reason
    found._garbage = memory.GARBAGE_MIN
    clock.idle = 0.0
    found.look()
    assert walks == 0  # no moment
    clock.idle = memory.IDLE_S
    found.look()
    found.look()
    assert walks == found.walks == 1
    clock.idle = 0.0
    found._garbage = memory.GARBAGE_MIN
    found.look()
    clock.now += memory.OVERDUE_S
    found.look()
    assert walks == 2  # it is not put off for ever
    clock.now += memory.LONGEST_S
    found.look()
    assert walks == 2
    clock.idle = memory.IDLE_S
    found.look()
    assert walks == 3  # for cycles that nobody knows of


def test_little_garbage_among_many_live_objects_starts_no_collection() -> None:
    api = filled()
    api.update_allocation(asks())
    api.schedule()
    found, clock = looked_after(api.cluster)
    assert found._live() > 2 * PODS
    found._garbage, clock.idle = 1000, 100.0
    found.look()
    assert found.walks == 0


async def test_the_collector_is_set_for_a_service_and_restored_afterwards() -> None:
    before = gc.get_threshold()
    found, _ = looked_after(SchedulerAPI().cluster)
    with found.running():
        assert gc.get_threshold() == memory.THRESHOLDS
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


async def test_what_closed_connections_to_rest_leave_is_counted() -> None:
    async with service(web=Web(addresses=("127.0.0.1:0",))) as serving:
        assert serving.web is not None
        host, _, port = serving.web.addresses[0].rpartition(":")
        for _ in range(3):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
        await eventually(lambda: serving.memory._garbage >= 3 * memory.CONNECTION)


async def test_a_service_dismantles_removed_resource_managers() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        await peer.asks(*(f"k{n}" for n in range(500)))
        await peer.allocations(500)
        partition = serving.api.cluster.partition("rm")
        app = partition.applications["app"]
        assert len(app.allocations) == 500
        async with Peer(serving.addresses[0]) as again:
            await again.running()
            await eventually(lambda: not app.allocations)
            assert serving.api.cluster.partition("rm") is not partition
            gone = weakref.ref(serving.api.cluster.managers["rm"])
            other = serving.api.cluster.partition("rm").applications["app"]
            await again.asks("k")
            await again.allocations(1)
            serving.sessions.stop(serving.sessions.by_id["rm"], "for a test")
            await eventually(lambda: not other.allocations)
            gc.collect()
            await eventually(lambda: gone() is None)
        serving.api.validate()
