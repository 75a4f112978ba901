"""From another scheduler to licorne and back, as docs/use/kubernetes.md has it, on a played API server.

Each of the two is stopped while pods run, pods wait, and a gang has some of its placeholders placed. `World` checks that no
pod is bound twice and no node over-committed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

import pytest

from common.planting import a_law_breaks
from common.virtual import run
from kube import ends, faults, schedules
from kube.apiserver import FakeClient
from licorne.kube.manager import applications, gangs
from licorne.kube.manager.lifecycle import PodLifecycle
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Pod
from licorne.kube.pods import keys
from licorne.kube.runner import Runner
from licorne.kube.settings import RunSettings

MEMBERS = 5
USER = {keys.USER_INFO: '{"user":"ann","groups":["dev"]}'}
MAKER = {keys.USER_INFO: '{"user":"system:serviceaccount:yunikorn:yunikorn-admin"}'}
"""What an admission controller writes into pods: who has created them."""
MEMBER = [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}]


class Other:
    """Another scheduler, which knows gangs: it makes placeholders, and when all run, its pods take their places."""

    def __init__(self, world: schedules.World) -> None:
        self.world = world
        self.client = FakeClient(world.server)

    async def run(self) -> None:
        """Bind until cancelled."""
        while True:
            for pod in self.world.server.pods():
                if pod.spec.node_name or pod.metadata.deletion_timestamp:
                    continue
                if is_member(pod):
                    await self._place_member(pod)
                else:
                    await self._bind(pod, *self.world.server.objects["nodes"])
            await asyncio.sleep(1.0)

    async def _bind(self, pod: Pod, *nodes: tuple[str, str]) -> None:
        meta = pod.metadata
        found = next((name for _, name in nodes if self.world.fits(pod, name)), None)
        if found is not None:
            await self.client.bind(meta.namespace, meta.name, meta.uid, found)

    async def _place_member(self, pod: Pod) -> None:
        application = application_of(pod)
        gang = [one for one in self.world.server.pods() if application_of(one) == application]
        placeholders = [one for one in gang if is_placeholder(one)]
        if not placeholders and not any(one.spec.node_name for one in gang):
            self._make_placeholders(pod)
        elif placeholders and all(one.spec.node_name for one in placeholders):
            meta = placeholders[0].metadata
            await self.client.delete_pod(meta.namespace, meta.name, meta.uid, grace_s=0)
            await self._bind(pod, ("", placeholders[0].spec.node_name))

    def _make_placeholders(self, pod: Pod) -> None:
        meta = pod.metadata
        given = meta.annotations or {}
        (group,) = json.loads(given[keys.TASK_GROUPS])
        for number in range(group["minMember"]):
            name = f"tg-{application_of(pod)}-{number}"
            self.world.add_pod(
                metadata={
                    "name": name,
                    "uid": f"uid-{name}",
                    "labels": meta.labels,
                    "annotations": {**given, **MAKER, keys.PLACEHOLDER: "true"},
                    "ownerReferences": [{"kind": "Pod", "name": meta.name, "uid": meta.uid}],
                },
                containers=MEMBER,
            )


def application_of(pod: Pod) -> str:
    labels = pod.metadata.labels or {}
    return labels.get(keys.APP_ID) or labels["applicationId"]


def is_placeholder(pod: Pod) -> bool:
    return keys.PLACEHOLDER in (pod.metadata.annotations or {})


def is_member(pod: Pod) -> bool:
    return keys.TASK_GROUPS in (pod.metadata.annotations or {}) and not is_placeholder(pod)


async def pass_time(world: schedules.World, seconds: int) -> None:
    for _ in range(seconds):
        world.kubelets()
        await asyncio.sleep(1.0)


async def stop_half_way(world: schedules.World) -> set[str]:
    """Fill three nodes but for one placeholder each, and have a gang and two more pods wait. Returns the UIDs of all."""
    cores = [{"name": "c", "resources": {"requests": {"cpu": "3400m", "memory": "256Mi"}}}]
    core = [{"name": "c", "resources": {"requests": {"cpu": "1000m", "memory": "256Mi"}}}]
    made = [world.add_pod(containers=cores) for _ in range(3)]
    await pass_time(world, 3)
    before = {pod.metadata.uid for pod in world.server.pods()}
    world.add_gang(MEMBERS, USER)
    made += [pod for pod in world.server.pods() if pod.metadata.uid not in before]
    made += [world.add_pod(containers=core) for _ in range(2)]
    await pass_time(world, 4)
    assert len(placeholders(world)) == MEMBERS
    assert len([name for name, node in placeholders(world).items() if node]) == 3
    assert not {pod.metadata.uid for pod in made[3:]} & set(world.bound), "none of the others has room"
    return {pod.metadata.uid for pod in made}


def placeholders(world: schedules.World) -> dict[str, str]:
    """Return the nodes of the placeholders, by name."""
    return {pod.metadata.name: pod.spec.node_name for pod in world.server.pods() if is_placeholder(pod)}


async def check_goes_on(world: schedules.World, all_pods: set[str]) -> None:
    """Check that who has taken over leaves everything where it is, and places the rest when there is room."""
    bound, reserved = dict(world.bound), placeholders(world)
    await pass_time(world, 5)
    assert (world.bound, placeholders(world)) == (bound, reserved)
    world.end(next(pod for pod in world.server.pods() if pod.status.phase == "Running" and not is_placeholder(pod)))
    await pass_time(world, 20)
    assert all_pods <= set(world.bound), "one of them is lost"
    assert placeholders(world) == {}
    for pod in world.server.pods():
        assert pod.spec.node_name == world.bound[pod.metadata.uid]


def check_taken_over(world: schedules.World, runner: Runner) -> None:
    """Check that licorne knows what runs as running where it runs, and what waits as waiting."""
    for pod in world.server.pods():
        record = runner.manager.records.pods[pod.metadata.uid]
        assert record.node == pod.spec.node_name
        assert (record.stage is Stage.BOUND) == bool(pod.spec.node_name)
    applications = runner.api.cluster.partition(runner.manager.outbox.rm_id).applications
    gangs_users = {applications[application_of(pod)].user for pod in world.server.pods() if is_member(pod)}
    assert gangs_users == {"ann"}
    for _, node in world.server.objects["nodes"]:
        assert ends.state(runner)["nodes"][node] == world.used(node)


async def there_and_back() -> None:
    """Play the steps of the page, and check what is promised at each."""
    world = schedules.World(1)
    other = asyncio.create_task(Other(world).run())

    # Watching it
    client, written = FakeClient(world.server), list[str]()
    shadow, watching = schedules.start(world, client, RunSettings(dry_run=True))
    client.on_write = written.append
    await pass_time(world, 2)
    pods = await stop_half_way(world)
    assert shadow.shadow is not None
    counts = shadow.shadow.counts
    assert counts["same"] + counts["elsewhere"] + counts["first"] == len(world.bound) == 6
    assert written == []
    await schedules.stop(watching)

    # Instead of it
    await schedules.stop(other)
    runner, licorne = schedules.start(world)
    await pass_time(world, 2)
    check_taken_over(world, runner)
    await check_goes_on(world, pods)
    for pod in world.server.pods():
        world.end(pod)
    await pass_time(world, 5)
    pods = await stop_half_way(world)

    # Back
    await schedules.stop(licorne)
    other = asyncio.create_task(Other(world).run())
    await check_goes_on(world, pods)
    await schedules.stop(other)


def test_to_licorne_and_back() -> None:
    run(there_and_back())


def test_a_take_over_that_forgets_what_runs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PodLifecycle, "report", lambda _manager, _record: None)
    with a_law_breaks(sys.modules[__name__], *faults.LAWS):
        run(there_and_back())


def test_a_take_over_where_a_placeholder_says_whose_its_gang_is_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "_creator", lambda record: record)
    with pytest.raises(AssertionError, match="yunikorn-admin"):
        run(there_and_back())


def test_a_take_over_that_makes_all_placeholders_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gangs, "Counter", lambda _present: Counter[str]())
    with a_law_breaks(sys.modules[__name__], *faults.LAWS):
        run(there_and_back())
