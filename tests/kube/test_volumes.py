"""Volumes on a played API server: what is decided with claims, what is written for it, and what becomes of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from common.examples import scaled
from common.virtual import in_virtual_time, run
from kube import kills, schedules
from kube.apiserver import calm
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import CSINode, Pod, StorageClass
from licorne.kube.objects.volumes import SELECTED_NODE, SINGLE_POD

from .places import Places
from .provisioner import (
    CLASS,
    LOCAL,
    Provisioner,
    check_held_once,
    check_limit,
    check_volumes,
    claim,
    persistent_volume,
    uses,
)

HOST = "kubernetes.io/hostname"
LIMIT = 2
SMALL = [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}]


class Storage:
    """A world with three nodes in two zones, two storage classes, and a provisioner; its laws are checked with each binding."""

    def __init__(self, seed: int = 1, limit: int | None = None) -> None:
        self.world = schedules.World(seed)
        self.server = self.world.server
        self.provisioner = Provisioner(self.server, random.Random(seed))
        self.limit = limit
        checked = self.server.on_bind
        for number in range(3):
            node = self.world.node(f"n{number}")
            labels = {HOST: f"n{number}", "topology.kubernetes.io/zone": f"z{number % 2}"}
            meta = msgspec.structs.replace(node.metadata, labels=labels)
            self.server.put("nodes", msgspec.structs.replace(node, metadata=meta))
            drivers = [{"name": "disk.example.com", "allocatable": {"count": limit}}] if limit else []
            body = {"metadata": {"name": f"n{number}"}, "spec": {"drivers": drivers}}
            self.server.put("csinodes", msgspec.convert(body, CSINode))
        for name, of in (("made", CLASS), ("local", LOCAL), ("now", {**CLASS, "volumeBindingMode": "Immediate"})):
            self.server.put("storageclasses", msgspec.convert({"metadata": {"name": name}, **of}, StorageClass))

        def check(pod: Pod, node: str) -> None:
            checked(pod, node)
            check_volumes(self.provisioner, pod, node)
            check_held_once(self.provisioner)

        self.server.on_bind = check

    def claim(self, name: str, storage_class: str = "made", *modes: str) -> None:
        self.server.put("persistentvolumeclaims", claim(name, storage_class, *modes))

    def local(self, name: str, node: str, size: str = "10Gi") -> None:
        volume = persistent_volume(name, HOST, node, "local", capacity={"storage": size}, csi=None)
        self.server.put("persistentvolumes", volume)

    def pod(self, *claims: str, **more: Any) -> Pod:
        return self.world.add_pod(containers=SMALL, volumes=uses(*claims), **more)

    def node_of(self, pod: Pod) -> str:
        return self.world.bound.get(pod.metadata.uid, "")

    def end(self, pod: Pod) -> None:
        """Let a pod succeed, if it runs."""
        for one in self.server.pods():
            if one.metadata.uid == pod.metadata.uid:
                self.world.end(one)

    def check_limits(self) -> None:
        for number in range(3 if self.limit else 0):
            check_limit(self.provisioner, f"n{number}", self.limit or 0)

    def told(self, what: str) -> list[str]:
        """Return the notes of the events with a reason."""
        return [one["note"] for one in self.server.events if one["reason"] == what]


def played(steps: Callable[[Storage], Any], **kwargs: Any) -> Storage:
    """Run licorne and the provisioner beside the steps of a test."""
    storage = Storage(**kwargs)

    async def play() -> None:
        _, task = schedules.start(storage.world)
        provisioning = asyncio.create_task(storage.provisioner.run())
        await asyncio.sleep(3.0)
        await steps(storage)
        schedules.check_runs(task)
        provisioning.cancel()
        await schedules.stop(task)

    run(play())
    return storage


def test_a_claim_gets_the_node_and_the_pod_waits_until_its_volume_is_made() -> None:
    async def steps(storage: Storage) -> None:
        storage.provisioner.off = True
        storage.claim("a")
        pod = storage.pod("a")
        await asyncio.sleep(30.0)
        selected = storage.provisioner.claims()[0].annotation(SELECTED_NODE)
        assert selected in ("n0", "n1", "n2")
        assert not storage.node_of(pod)
        storage.provisioner.off = False
        await asyncio.sleep(5.0)
        assert storage.node_of(pod) == selected

    played(steps)


def test_claims_get_the_smallest_volumes_that_suffice_each_once() -> None:
    async def steps(storage: Storage) -> None:
        for node in ("n0", "n1", "n2"):
            storage.local(f"large-{node}", node, "100Gi")
            storage.local(f"small-{node}", node)
        pods = []
        for number in range(4):
            storage.claim(f"c{number}", "local")
            pods.append(storage.pod(f"c{number}"))
        await asyncio.sleep(30.0)
        assert all(map(storage.node_of, pods))
        given = sorted(one.spec.volume_name for one in storage.provisioner.claims())
        assert len(set(given)) == 4

    played(steps)


def test_what_the_provisioner_refuses_is_tried_again() -> None:
    async def steps(storage: Storage) -> None:
        storage.provisioner.refuses = 2
        storage.claim("a")
        pod = storage.pod("a")
        await asyncio.sleep(60.0)
        assert storage.node_of(pod)

    storage = played(steps)
    assert storage.provisioner.refused == 2
    assert storage.told("PodVolumesBindFailure")[0].startswith(
        "storage class made could make no volume for claim a on node n"
    )


def test_a_place_is_given_back_when_time_is_up() -> None:
    async def steps(storage: Storage) -> None:
        storage.provisioner.off = True
        storage.claim("a")
        pod = storage.pod("a")
        await asyncio.sleep(700.0)
        assert storage.told("PodVolumesBindFailure") == [
            "its claims did not get their volumes and devices within 600 s"
        ]
        storage.provisioner.off = False
        await asyncio.sleep(60.0)
        assert storage.node_of(pod)

    played(steps)


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (lambda _: None, 'persistentvolumeclaim "a" not found'),
        (lambda storage: storage.claim("a", "now"), "pod has unbound immediate PersistentVolumeClaims"),
        (lambda storage: storage.claim("a", "none"), "pod has unbound immediate PersistentVolumeClaims"),
        (lambda storage: storage.claim("a", "local"), "no volume"),
    ],
)
def test_a_pod_waits_and_is_told_why(before: Callable[[Storage], None], why: str) -> None:
    async def steps(storage: Storage) -> None:
        before(storage)
        pod = storage.pod("a")
        await asyncio.sleep(30.0)
        (found,) = (one for one in storage.server.pods() if one.metadata.uid == pod.metadata.uid)
        said = " ".join(one.message for one in found.status.conditions or ())
        assert why in said
        storage.server.remove("persistentvolumeclaims", "default", "a")
        await asyncio.sleep(1.0)
        storage.claim("a")
        await asyncio.sleep(30.0)
        assert storage.node_of(pod)

    played(steps)


def test_a_claim_for_a_single_pod_is_for_one_after_the_other() -> None:
    async def steps(storage: Storage) -> None:
        storage.claim("a", "made", SINGLE_POD)
        first, second = storage.pod("a"), storage.pod("a")
        await asyncio.sleep(30.0)
        bound = [pod for pod in (first, second) if storage.node_of(pod)]
        assert len(bound) == 1
        storage.end(bound[0])
        await asyncio.sleep(30.0)
        assert storage.node_of(first) and storage.node_of(second)

    played(steps)


def test_pods_with_one_claim_that_waits_are_where_its_volume_is() -> None:
    async def steps(storage: Storage) -> None:
        storage.claim("a", "made", "ReadWriteMany")
        pods = [storage.pod("a") for _ in range(5)]
        await asyncio.sleep(60.0)
        assert all(map(storage.node_of, pods))

    played(steps)


@pytest.mark.parametrize("writes", range(3))
@in_virtual_time
async def test_a_process_that_is_killed_between_writes_is_followed_by_one_that_goes_on(writes: int) -> None:
    """One of two claims gets a volume that exists, the other one a new one."""
    storage = Storage()
    storage.local("v", "n1")
    storage.claim("a", "local")
    storage.claim("b")
    pod = storage.pod("a", "b")
    provisioning = asyncio.create_task(storage.provisioner.run())
    await kills.play_until_killed(storage.world, writes)
    _, task = schedules.start(storage.world)
    await asyncio.sleep(60.0)
    provisioning.cancel()
    await schedules.stop(task)
    assert storage.node_of(pod) == "n1"


def test_a_claim_that_is_deleted_on_the_way_gives_the_place_back() -> None:
    async def steps(storage: Storage) -> None:
        storage.provisioner.off = True
        storage.claim("a")
        storage.pod("a")
        await asyncio.sleep(10.0)
        storage.server.remove("persistentvolumeclaims", "default", "a")
        await asyncio.sleep(10.0)
        assert storage.told("PodVolumesBindFailure") == ["claim a has been deleted"]

    played(steps)


# -- in one call of the scheduler --------------------------------------------------------------------------------


def test_pods_of_one_call_are_counted_by_drivers_each_volume_once_a_node() -> None:
    made = Places()
    for name in ("n0", "n1"):
        body = {"metadata": {"name": name}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": LIMIT}}]}}
        made.manager.named_seen(msgspec.convert(body, CSINode))
        made.node(name)
    for number in range(6):
        volume = persistent_volume(f"v{number}", "x", "", "", csi={"driver": "d", "volumeHandle": f"h{number}"})
        volume.spec.node_affinity = None
        made.manager.named_seen(volume)
        bound = claim(f"c{number}", "", namespace="ns", annotations={"pv.kubernetes.io/bind-completed": "yes"})
        bound.spec.volume_name = f"v{number}"
        made.manager.named_seen(bound)
        made.pod(f"p{number}", volumes=uses(f"c{number}"))
    assert len(made.run()) == 2 * LIMIT
    for number in range(4):
        made.pod(f"again{number}", volumes=uses("c0"))
    assert len(made.run()) == 4, "a volume that is there costs nothing"
    (waits, _) = made.waiting()
    made.no_pod(
        next(name for name, pod in made.pods.items() if pod["spec"].get("nodeName") and name != "p0" and name[0] == "p")
    )
    assert waits.metadata.name in made.run()


def test_two_pods_of_one_call_never_share_a_claim_for_a_single_pod() -> None:
    made = Places()
    made.node("n0")
    made.node("n1")
    volume = persistent_volume("v", HOST, "n1", "")
    made.manager.named_seen(volume)
    bound = claim("c", "", SINGLE_POD, namespace="ns", annotations={"pv.kubernetes.io/bind-completed": "yes"})
    bound.spec.volume_name = "v"
    made.manager.named_seen(bound)
    for number in range(3):
        made.pod(f"p{number}", volumes=uses("c"))
    ((first, node),) = made.run().items()
    assert node == "n1"
    made.no_pod(first)
    assert len(made.run()) == 1


def test_a_pod_that_finds_no_node_passes_its_turn_on() -> None:
    made, now_s = Places(), 0.0
    made.manager.outbox.now_s = lambda: now_s
    made.node("n0")
    made.manager.named_seen(msgspec.convert({"metadata": {"name": "local"}, **LOCAL}, StorageClass))
    for name in ("a", "b"):
        made.manager.named_seen(persistent_volume(name, HOST, "n0", "local"))
        made.manager.named_seen(claim(name, "local", namespace="ns"))
    huge = [{"name": "c", "resources": {"requests": {"cpu": "1000"}}}]
    made.pod("first", volumes=uses("a"), containers=huge)
    made.pod("second", volumes=uses("b"))
    made.run()
    waits = made.manager.records.pods["second"]
    assert made.manager.lifecycle.waiting.why_held(waits) == (
        "The pod waits until pod ns/first has a node, with which it has claims or volumes in common."
    )
    now_s = 3.0
    made.manager.lifecycle.pass_turns()
    made.run()
    assert (waits.node, waits.stage) == ("n0", Stage.AWAITS_CLAIMS)


# -- random schedules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.gate if n else ()) for n in range(scaled(20))])
@in_virtual_time
async def test_a_cluster_with_volumes_comes_to_rest(seed: int) -> None:
    """Whatever goes wrong and whenever licorne is killed: the laws hold with each binding, and in the end all that fits is bound."""
    rng = random.Random(seed)
    storage = Storage(seed, limit=5)
    world, provisioner = storage.world, storage.provisioner
    for number in range(6):
        storage.local(f"v{number}", f"n{number % 3}", rng.choice(("10Gi", "20Gi")))
    storage.server.trouble = schedules.random_trouble(rng)
    _, task = schedules.start(world)
    pods: list[Pod] = []
    for number in range(60):
        await asyncio.sleep(rng.expovariate(1.0))
        match rng.randrange(7):
            case 0 | 1:
                mode = rng.choice(("ReadWriteOnce", "ReadWriteMany", SINGLE_POD))
                storage.claim(f"c{number}", rng.choice(("made", "made", "local")), mode)
                claims = [f"c{number}", *([f"c{rng.randrange(number)}"] if number and rng.random() < 0.3 else [])]
                pods.append(storage.pod(*claims))
            case 2 if pods:
                storage.end(rng.choice(pods))
            case 3:
                provisioner.refuses = rng.randrange(2)
            case 4:
                provisioner.off = rng.random() < 0.3
                provisioner.only_makes = rng.random() < 0.3
            case 5 if rng.random() < 0.3:
                await schedules.stop(task)
                _, task = schedules.start(world)
        provisioner.step()
        storage.check_limits()
        check_held_once(provisioner)
        schedules.check_runs(task)
    storage.server.trouble = calm()
    provisioner.off = provisioner.only_makes = False
    provisioner.refuses = 0
    for number in range(120):
        if not any(one.metadata.name == f"c{number}" for one in provisioner.claims()) and number < 60:
            storage.claim(f"c{number}")
        await asyncio.sleep(5.0)
        provisioner.step()
        storage.check_limits()
    schedules.check_runs(task)
    waiting = [pod for pod in storage.server.pods() if not pod.spec.node_name]
    await schedules.stop(task)
    _, task = schedules.start(world)
    await asyncio.sleep(60.0)
    again = [pod.metadata.name for pod in waiting if storage.node_of(pod)]
    assert not again, "a process that is started anew finds more"
    await schedules.stop(task)
