"""Extended resources that a device class backs: which devices a pod gets for them, what is written, and what becomes of it."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from common.virtual import in_virtual_time
from kube import kills, schedules
from licorne.core.constants import SUM_MAX
from licorne.kube.api import ApiError
from licorne.kube.manager.commands import CLAIM_STATUS, DROPPED, CreatePod, Evict, WriteClaim
from licorne.kube.objects import DeviceClass, Pod, ResourceClaim
from licorne.kube.objects.devices import DeviceRequest, ResourceClaimStatus
from licorne.kube.pods import keys
from licorne.kube.pods.device_claims import OF_CLASS
from licorne.kube.pods.devices import UNLIMITED_MAX
from licorne.kube.pods.extended import ANNOTATION, FINALIZER, IMPLICIT, Extended, claim_key, extended_of

from .drivers import CLASS, DRIVER, RESOURCE, containers, places, resource_claim, resource_slice, wants
from .places import Places
from .test_device_steps import steps_of
from .test_devices import SMALL, World, played


def device_class(name: str = "gpu", created: str | None = None) -> DeviceClass:
    return msgspec.convert({**CLASS, "metadata": {"name": name, "creationTimestamp": created}}, DeviceClass)


# -- what is requested -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "main", "requests", "uses"),
    [
        ([], containers(2), {"0-1": 2}, ["c0 0-1"]),
        ([], containers(1, 0, 3), {"0-1": 1, "2-1": 3}, ["c0 0-1", "c2 2-1"]),
        (containers(1), containers(2), {"1-1": 2}, ["c0 1-1", "c0 1-1"]),
        (containers(3), containers(2), {"0-1": 1, "1-1": 2}, ["c0 1-1", "c0 1-1", "c0 0-1"]),
        (containers(3, 5), containers(1), {"1-1": 4, "2-1": 1}, ["c0 2-1", "c0 2-1", "c0 1-1", "c1 2-1", "c1 1-1"]),
        (containers(2, restartPolicy="Always"), containers(1), {"0-1": 2, "1-1": 1}, ["Always0 0-1", "c0 1-1"]),
        (
            [*containers(2, restartPolicy="Always"), *containers(2)],
            containers(1),
            {"0-1": 2, "1-1": 1, "2-1": 1},
            ["Always0 0-1", "c0 2-1", "c0 2-1", "c0 1-1"],
        ),
    ],
)
def test_each_container_that_stays_has_its_devices_and_init_containers_share_theirs(
    first: list[Any], main: list[Any], requests: dict[str, int], uses: list[str]
) -> None:
    spec = {"initContainers": first, "containers": main}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec}, Pod)
    found = extended_of(pod, {"gpu": device_class()})
    assert found == Extended(pod, {RESOURCE: "gpu"})
    claim = msgspec.convert(found.body(claim_key(pod), {}), ResourceClaim)
    counts = {one.name: one.exactly.count for one in claim.spec.devices.requests or () if one.exactly}
    said = found.status(claim)["requestMappings"]
    prefixed = {f"container-{name.replace('-', '-request-')}": count for name, count in requests.items()}
    assert counts == prefixed
    short = [
        f"{one['containerName']} {one['requestName'].replace('container-', '').replace('request-', '')}" for one in said
    ]
    assert short == uses
    assert {one["resourceName"] for one in said} == {RESOURCE}
    assert not found.parts({RESOURCE: "4"})


@pytest.mark.parametrize(
    ("resource", "of_class"),
    [
        (RESOURCE, "new"),
        ("deviceclass.resource.kubernetes.io/old", "old"),
        ("deviceclass.resource.kubernetes.io/none", ""),
        ("example.com/other", ""),
        ("cpu", ""),
    ],
)
def test_the_class_that_was_created_last_backs_a_resource(resource: str, of_class: str) -> None:
    known = [device_class("old", created="2026-01-01T00:00:00Z"), device_class("new", created="2026-01-02T00:00:00Z")]
    spec = {"containers": containers(1, resource=resource)}
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    found = extended_of(pod, {one.metadata.name: one for one in known})
    assert (found.classes if found else {}) == ({resource: of_class} if of_class else {})


def test_the_name_of_a_claim_is_one_for_the_longest_name_of_a_pod() -> None:
    meta = {"name": "a" * 199 + ".b" * 20, "namespace": "ns", "uid": "u"}
    pod = msgspec.convert({"metadata": meta, "spec": {"containers": []}}, Pod)
    assert claim_key(pod)[1].startswith("a" * 199 + "-extended-resources-")


# -- on an API server --------------------------------------------------------------------------------------------


def asks(made: World, *counts: int, resource: str = RESOURCE, **more: Any) -> Pod:
    return made.world.add_pod(containers=containers(*counts, resource=resource), **more)


def check_claim(made: World, pod: Pod) -> None:
    """Check that a pod that is bound has a claim with as many devices as it requests, and says so."""
    (now,) = (one for one in made.server.pods() if one.metadata.uid == pod.metadata.uid)
    (claim,) = (one for one in made.controller.claims() if one.metadata.name == claim_key(pod)[1])
    said = now.status.extended_resource_claim_status or {}
    assert said["resourceClaimName"] == claim.metadata.name
    assert (claim.metadata.annotations or {})[ANNOTATION] == "true"
    assert claim.metadata.finalizers == (FINALIZER,)
    assert [one.uid for one in claim.status.reserved_for or ()] == [pod.metadata.uid]
    allocation = claim.status.allocation
    assert allocation is not None
    wanted = sum(one.exactly.count for one in claim.spec.devices.requests or () if one.exactly)
    assert len(allocation.devices.results or ()) == wanted
    assert {one.driver for one in allocation.devices.results or ()} == {DRIVER}


def test_pods_get_devices_where_nodes_do_not_list_the_resource_until_they_end() -> None:
    async def steps(made: World) -> None:
        pods = [asks(made, 1, resource=name) for name in [RESOURCE, IMPLICIT + "gpu"] * 4]
        await asyncio.sleep(30.0)
        bound = [pod for pod in pods if made.node_of(pod)]
        assert len(bound) == 6
        for pod in bound:
            check_claim(made, pod)
        (why,) = {made.said_of(pod) for pod in pods if not made.node_of(pod) and RESOURCE in made.said_of(pod)}
        assert f"no devices (for {RESOURCE}, which the node does not list)" in why
        made.end(bound[0])
        await asyncio.sleep(60.0)
        assert len([pod for pod in pods if made.node_of(pod)]) == 7
        assert len(made.controller.claims()) == 6, "the claim goes with its pod"

    played(steps)


def test_a_pod_waits_until_a_class_backs_what_it_requests() -> None:
    async def steps(made: World) -> None:
        made.server.remove("deviceclasses", "", "gpu")
        pod = asks(made, 2)
        await asyncio.sleep(30.0)
        assert not made.node_of(pod)
        made.server.put("deviceclasses", device_class())
        await asyncio.sleep(30.0)
        assert made.node_of(pod)
        check_claim(made, pod)

    played(steps)


@pytest.mark.parametrize("writes", [0, 1, 2, 3, 5])
@in_virtual_time
async def test_a_process_that_is_killed_between_writes_leaves_no_claim_behind(writes: int) -> None:
    """The claim is made, gets its devices, the status of the pod names it; then the pod is bound.

    The fifth write takes the finalizer off the claim, as the pod could not be bound.
    """
    made = World()
    pod = asks(made, 2)
    checked, refused = made.server.on_bind, list[str]()

    def refuses(pod: Pod, node: str) -> None:
        if writes == 5 and not refused:
            refused.append(node)
            raise ApiError(422, "Invalid", "the test wants it")
        checked(pod, node)

    made.server.on_bind = refuses
    await kills.play_until_killed(made.world, writes)
    was = {one.metadata.uid for one in made.controller.claims()}
    _, task = schedules.start(made.world)
    await asyncio.sleep(60.0)
    assert made.node_of(pod)
    check_claim(made, pod)
    (claim,) = made.controller.claims()
    assert (claim.metadata.uid in was) is (writes >= 2), "one that has its devices is used, another one removed"
    schedules.check_runs(task)
    await schedules.stop(task)


# -- in one call of the scheduler --------------------------------------------------------------------------------


def test_a_node_that_lists_the_resource_serves_it_as_an_amount() -> None:
    made = places(2, 1)
    made.node("listing", allocatable={RESOURCE: "2"})
    for number in range(5):
        made.pod(f"p{number}", containers=containers(1))
    made.run()
    nodes = {record.uid: record.node for record in made.manager.records.pods.values()}
    assert sorted(nodes.values()) == ["", "listing", "listing", "n0", "n1"]
    store = made.manager.lifecycle.devices.store
    assert {nodes[one.pod.metadata.uid] for one in store.extended.values()} == {"", "n0", "n1"}
    made.manager.named_gone(device_class())
    made.pod("late", containers=containers(1), nodeSelector={"kubernetes.io/hostname": "n0"})
    made.run()
    capacity = made.api.cluster.partition("rm").nodes["n0"].capacity
    assert RESOURCE not in capacity.named(made.api.cluster.partition("rm").types)


def test_the_claim_of_a_pod_that_could_not_be_bound_is_removed_and_made_anew() -> None:
    async def steps(made: World) -> None:
        client = made.server
        pod = asks(made, 1)
        checked, claims = client.on_bind, list[str]()

        def once(pod: Pod, node: str) -> None:
            claims.extend(one.metadata.uid for one in made.controller.claims())
            if len(claims) == 1:
                raise ApiError(422, "Invalid", "the test wants it")
            checked(pod, node)

        client.on_bind = once
        await asyncio.sleep(60.0)
        assert made.node_of(pod)
        check_claim(made, pod)
        assert len({*claims}) == 2

    played(steps)


def test_a_claim_that_bears_the_name_of_the_one_of_a_pod_but_was_not_made_for_it_is_left_alone() -> None:
    async def steps(made: World) -> None:
        pod = asks(made, 1)
        made.claim(claim_key(pod)[1])
        await asyncio.sleep(30.0)
        assert [one.metadata.uid for one in made.controller.claims()] == [f"uid-{claim_key(pod)[1]}"]
        assert "was not made for the extended resources of the pod" in made.said_of(pod)

    played(steps)


def test_a_claim_that_is_made_by_somebody_else_at_the_same_time_gets_no_devices_from_licorne() -> None:
    made = places(1, 1)
    made.pod("p", containers=containers(1))
    made.run()
    (key,) = made.manager.lifecycle.devices.store.decided
    made.manager.named_seen(resource_claim(key[1], namespace="ns"))
    written = [one for one in made.manager.flush() if isinstance(one, WriteClaim)]
    assert not [one for one in written if key[1] in one.path]
    assert not made.manager.lifecycle.devices.store.decided


def test_a_pod_that_names_the_claim_of_another_pod_does_not_have_it_removed() -> None:
    async def steps(made: World) -> None:
        first = asks(made, 1)
        second = made.pod(claim_key(first)[1])
        more = [asks(made, 1) for _ in range(6)]
        await asyncio.sleep(60.0)
        bound = [pod for pod in (first, *more) if made.node_of(pod)]
        assert len(bound) == len(made.controller.claims()) == 6
        assert made.node_of(second) == made.node_of(first)

    played(steps)


def test_the_claim_of_a_pod_that_runs_stays_when_another_one_that_shares_it_is_not_bound() -> None:
    async def steps(made: World) -> None:
        checked, refused = made.server.on_bind, list[str]()
        second: list[Pod] = []

        def refuses(pod: Pod, node: str) -> None:
            if not second:  # the claim of the first has its device
                second.append(made.pod(claim_key(first)[1]))
                raise ApiError(500, "InternalError", "the test wants it")
            if pod.metadata.uid == second[0].metadata.uid:
                refused.append(made.node_of(first))
                raise ApiError(422 if made.node_of(first) else 500, "Invalid", "the test wants it")
            checked(pod, node)

        made.server.on_bind = refuses
        first = asks(made, 1)
        await asyncio.sleep(40.0)
        assert refused[-1] == made.node_of(first) != ""
        (claim,) = made.controller.claims()
        assert first.metadata.uid in [one.uid for one in claim.status.reserved_for or ()]

    played(steps)


def test_a_pod_whose_status_names_a_claim_gets_no_node_that_lists_the_resource() -> None:
    """Kubelet would wait for the claim of the attempt before, which is gone, and the API server keeps its name in the status."""

    async def steps(made: World) -> None:
        checked, told = made.server.on_bind, list[str]()

        def once(pod: Pod, node: str) -> None:
            if not told:
                told.append((pod.status.extended_resource_claim_status or {})["resourceClaimName"])
                for number in range(3):
                    made.server.remove("resourceslices", "", f"n{number}")
                known = made.world.node("n0")
                listed = {**(known.status.allocatable or {}), RESOURCE: "4"}
                status = msgspec.structs.replace(known.status, allocatable=listed)
                made.server.put("nodes", msgspec.structs.replace(known, status=status))
                raise ApiError(422, "Invalid", "the test wants it")
            checked(pod, node)

        made.server.on_bind = once
        pod = asks(made, 1)
        await asyncio.sleep(60.0)
        assert told == [claim_key(pod)[1]]
        assert (made.node_of(pod), made.controller.claims()) == ("", [])
        assert "the node lists the resources for which the status of the pod names a claim" in made.said_of(pod)
        other = asks(made, 1)
        made.server.put("resourceslices", resource_slice("n1", "d0"))
        await asyncio.sleep(60.0)
        assert (made.node_of(pod), made.node_of(other)) == ("n1", "n0")
        check_claim(made, pod)

    played(steps)


def test_where_the_api_server_drops_the_status_only_nodes_that_list_a_resource_have_it() -> None:
    async def steps(made: World) -> None:
        made.server.dropped.add(CLAIM_STATUS)
        pod = asks(made, 1)
        await asyncio.sleep(60.0)
        assert (made.node_of(pod), made.controller.claims()) == ("", [])
        assert f"No node has {RESOURCE}" in made.said_of(pod)
        assert len([one for one in made.server.events if DROPPED in one["note"]]) == 1
        writes = made.server.writes["volume"]
        known = made.world.node("n0")
        listed = {**(known.status.allocatable or {}), RESOURCE: "4"}
        made.server.put(
            "nodes", msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, allocatable=listed))
        )
        await asyncio.sleep(30.0)
        assert made.node_of(pod) == "n0"
        assert made.server.writes["volume"] == writes

    played(steps)


@pytest.mark.parametrize("backs", ["", "example.com/other"])
def test_the_claim_of_a_pod_that_waits_is_removed_when_no_class_backs_its_resource_any_more(backs: str) -> None:
    async def steps(made: World) -> None:
        checked, now = made.server.on_bind, list[str]()

        def refuses(pod: Pod, node: str) -> None:
            if not now:  # the pod has its claim, and goes back to those that wait
                now.append(node)
                made.server.remove("deviceclasses", "", "gpu")
                if backs:
                    spec = {**CLASS, "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": backs}}
                    made.server.put("deviceclasses", msgspec.convert(spec, DeviceClass))
                raise ApiError(422, "Invalid", "the test wants it")
            checked(pod, node)

        made.server.on_bind = refuses
        pod = asks(made, 1)
        await asyncio.sleep(60.0)
        assert now
        assert not made.node_of(pod)
        assert not made.controller.claims()
        made.server.put("deviceclasses", device_class())
        await asyncio.sleep(60.0)
        assert made.node_of(pod)
        check_claim(made, pod)

    played(steps)


# -- quotas ------------------------------------------------------------------------------------------------------


class Limited(Places):
    """A queue whose pods may have two devices of a class."""

    queues = """
partitions:
  - name: default
    placementrules: [{name: fixed, value: root.all}]
    queues: [{name: root, submitacl: "*", queues: [{name: all, resources: {max: {gpu.deviceclass.resource.k8s.io/devices: 2}}}]}]
"""


def used(made: Places) -> int:
    partition = made.api.cluster.partition("rm")
    return partition.tree.root.children["all"].allocated.named(partition.types).get("gpu" + OF_CLASS, 0)


def test_a_queue_limits_the_devices_of_a_class() -> None:
    made = places(1, 10, Limited())
    for number in range(3):
        made.manager.named_seen(resource_claim(f"c{number}", namespace="ns", owner=f"p{number}"))
        made.pod(f"p{number}", resourceClaims=wants(f"c{number}"))
    steps_of(made)
    assert used(made) == 2
    ((_, _, why),) = made.api.cluster.partition("rm").waiting()
    assert "gpu" + OF_CLASS in str(why)


@pytest.mark.parametrize(
    ("requests", "counted"),
    [
        ([{"count": 3}], {"gpu": 3}),
        ([{}, {"allocationMode": "All", "deviceClassName": "big"}], {"gpu": 1, "big": 32}),
    ],
)
def test_what_a_claim_counts_for_in_quotas(requests: list[dict[str, Any]], counted: dict[str, int]) -> None:
    made = places(1, 1)
    made.manager.named_seen(device_class("big"))
    claim = resource_claim("c", *requests, namespace="ns")
    first = {"name": "f", "firstAvailable": [{"name": f"{n}", "deviceClassName": "gpu", "count": n} for n in (2, 5)]}
    devices = claim.spec.devices
    devices.requests = (*(devices.requests or ()), msgspec.convert(first, DeviceRequest))
    made.manager.named_seen(claim)
    made.pod("p", resourceClaims=wants("c", "c"))
    counted["gpu"] += 5
    found = made.manager.records.pods["p"].work.ask.resource or {}
    assert {name: n for name, n in found.items() if name.endswith(OF_CLASS)} == {
        name + OF_CLASS: n for name, n in counted.items()
    }


def test_nodes_have_what_pods_count_that_run_when_licorne_starts() -> None:
    made = places(1, 1)
    made.manager.named_seen(resource_claim("c", namespace="ns"))
    made.pod("p", resourceClaims=wants("c"), nodeName="n0")
    made.run()
    partition = made.api.cluster.partition("rm")
    assert partition.nodes["n0"].allocated.named(partition.types)["gpu" + OF_CLASS] == 1
    assert partition.nodes["n0"].capacity.named(partition.types)["gpu" + OF_CLASS] == SUM_MAX


def test_a_claim_of_classes_that_are_not_there_bars_no_other_pod() -> None:
    made = places(1, 4)
    absent = resource_claim("absent", namespace="ns")
    absent.spec.devices.requests = tuple(
        msgspec.convert(
            {"name": f"r{i}", "firstAvailable": [{"name": f"s{j}", "deviceClassName": f"x{i}-{j}"} for j in range(8)]},
            DeviceRequest,
        )
        for i in range(UNLIMITED_MAX // 8)
    )
    for claim in (absent, resource_claim("present", namespace="ns")):
        made.manager.named_seen(claim)
        made.pod(claim.metadata.name, resourceClaims=wants(claim.metadata.name))
        steps_of(made)
    made.pod("extended", containers=containers(1))
    made.run()
    nodes = {record.uid: record.node for record in made.manager.records.pods.values()}
    assert nodes == {"absent": "", "present": "n0", "extended": "n0"}


def test_a_shared_claim_counts_once_and_for_the_next_pod_when_the_first_has_ended() -> None:
    made = places(1, 10, Limited())
    made.manager.named_seen(resource_claim("c", {"count": 2}, namespace="ns"))
    for name in "pq":
        made.pod(name, resourceClaims=wants("c"))
    steps_of(made)
    assert used(made) == 2
    assert all(record.node for record in made.manager.records.pods.values())
    claim = made.manager.lifecycle.devices.store.claims["ns", "c"]
    first, *others = claim.status.reserved_for or ()
    for name in "pq":
        made.pods[name]["spec"]["nodeName"] = "n0"
        made.show(name)
    made.no_pod(first.uid)
    made.manager.flush()
    made.manager.named_seen(
        msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=tuple(others)))
    )
    made.manager.flush()
    assert used(made) == 2
    made.no_pod(others[0].uid)
    made.manager.flush()
    assert used(made) == 0


# -- gangs with placeholders -------------------------------------------------------------------------------------


def gang(made: World, resource: dict[str, Any], **spec: Any) -> list[Pod]:
    """Add the two pods of a gang with placeholders of these resources."""
    groups = msgspec.json.encode([{"name": "g", "minMember": 2, "minResource": resource}]).decode()
    annotations = {keys.TASK_GROUPS: groups, keys.TASK_GROUP_NAME: "g"}
    meta = {"labels": {keys.APP_ID: "gang", keys.QUEUE: "root.a"}, "annotations": annotations}
    return [made.world.add_pod(metadata={**meta}, **spec) for _ in range(2)]


def test_members_of_a_gang_with_placeholders_get_the_devices_of_their_claims() -> None:
    async def steps(made: World) -> None:
        spec = {"containers": SMALL, "resourceClaims": wants(template="one")}
        pods = gang(made, {"cpu": "100m", "memory": "1Mi"}, **spec)
        await asyncio.sleep(30.0)
        leaving = [one for one in made.server.pods() if one.metadata.deletion_timestamp]
        assert len(leaving) == 2, "the placeholders"
        for one in leaving:
            made.server.remove("pods", "default", one.metadata.name)
        await asyncio.sleep(30.0)
        assert {made.node_of(pod) for pod in pods} == {one.spec.node_name for one in leaving}
        assert len(made.controller.claims()) == 2

    played(steps)


@pytest.mark.parametrize("members", [2, 3])
def test_placeholders_count_devices_for_members_and_these_count_them_once_they_have_a_node(members: int) -> None:
    made = places(1, 10, Limited())
    groups = msgspec.json.encode([{"name": "g", "minMember": members, "minResource": {"cpu": "1m"}}]).decode()
    annotations = {keys.TASK_GROUPS: groups, keys.TASK_GROUP_NAME: "g"}
    for number in range(members):
        made.manager.named_seen(resource_claim(f"c{number}", namespace="ns"))
        claims, labels = wants(f"c{number}"), {keys.APP_ID: "g"}
        made.pod(
            f"p{number}", resourceClaims=claims, labels=labels, annotations={**annotations}, containers=[{"name": "c"}]
        )
    bodies = {one.body["metadata"]["name"]: one.body for one in made.manager.flush() if isinstance(one, CreatePod)}
    for name, body in bodies.items():
        meta, spec = body["metadata"], body["spec"]
        made.pod(name, labels=meta["labels"], annotations=meta["annotations"], containers=spec["containers"])
    commands = steps_of(made)
    assert sorted(made.manager.records.pods[name].node for name in bodies) == ["", "n0", "n0"][3 - members :]
    assert used(made) == 2
    if members == 3:
        assert any(
            "gpu" + OF_CLASS in str(why) for key, _, why in made.api.cluster.partition("rm").waiting() if key in bodies
        )
        return
    assert {one.name for one in commands if isinstance(one, Evict)} == {*bodies}
    for name in bodies:
        made.no_pod(name)
    steps_of(made)
    assert [made.manager.records.pods[f"p{number}"].node for number in range(members)] == ["n0", "n0"]
    assert used(made) == 2


@pytest.mark.parametrize("text", ["", "[1]", '{"gpu.deviceclass.resource.k8s.io/devices":-1}', '{"cpu":1}', "[" * 9999])
def test_what_a_placeholder_cannot_count_it_does_not(text: str) -> None:
    made = places(1, 1)
    annotations = {keys.PLACEHOLDER: "true", keys.TASK_GROUP_NAME: "g", keys.PLACEHOLDER_DEVICES: text}
    made.pod("p", annotations=annotations, labels={keys.APP_ID: "g"})
    found = made.manager.records.pods["p"].work.ask.resource or {}
    assert not [name for name in found if name.endswith(OF_CLASS)]
    assert found.get("vcore", 0) != 1


def test_placeholders_hold_no_devices_for_an_extended_resource_and_say_so() -> None:
    async def steps(made: World) -> None:
        gang(made, {"cpu": "100m", "memory": "1Mi", RESOURCE: 1}, containers=containers(1))
        await asyncio.sleep(60.0)
        said = [made.said_of(pod) for pod in made.server.pods() if not pod.spec.node_name]
        assert len(said) == 4
        assert any("placeholders hold no devices" in one for one in said)
        assert not made.controller.claims()

    played(steps)


def test_the_resource_that_placeholders_hold_no_devices_for_is_named_beside_a_claim() -> None:
    made = places(1, 1)
    made.manager.named_seen(resource_claim("c", namespace="ns"))
    groups = msgspec.json.encode([{"name": "g", "minMember": 1, "minResource": {"cpu": "1m"}}]).decode()
    annotations = {keys.TASK_GROUPS: groups, keys.TASK_GROUP_NAME: "g"}
    labels = {keys.APP_ID: "g"}
    made.pod("m", containers=containers(1), resourceClaims=wants("c"), labels=labels, annotations=annotations)
    demand = made.manager.records.pods["m"].work.devices.demand
    why = made.manager.lifecycle.devices.store.refuses(demand, "n0")
    assert f"does not list {RESOURCE}, and placeholders hold no devices" in why


# -- preemption --------------------------------------------------------------------------------------------------


class Preempting(Places):
    """A queue in which pods of higher priority evict others."""

    queues = """
partitions:
  - name: default
    placementrules: [{name: fixed, value: root.all}]
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: all, properties: {preemption.delay: 1s, preemption.within-queue: priority}}]
"""


def test_a_pod_of_higher_priority_gets_the_device_of_a_pod_that_goes_for_it() -> None:
    made = places(1, 2, Preempting())
    for name, priority in (("other", 5), ("low", 1), ("high", 9)):
        made.manager.named_seen(resource_claim(name, namespace="ns"))
        made.pod(name, resourceClaims=wants(name), priority=priority, labels={keys.APP_ID: name})
        steps_of(made)
        if name != "high":
            made.pods[name]["spec"]["nodeName"] = "n0"
            made.show(name)
    made.now_ns += 10 * 10**9
    (evicted,) = (one.name for one in steps_of(made) if isinstance(one, Evict))
    assert evicted == "low"
    claim = made.manager.lifecycle.devices.store.claims["ns", "low"]
    made.no_pod("low")
    steps_of(made)
    assert [pod.metadata.name for pod in made.waiting()] == ["high"], "the device has not been taken back"
    made.manager.named_seen(msgspec.structs.replace(claim, status=ResourceClaimStatus()))
    steps_of(made)
    assert made.manager.records.pods["high"].node == "n0"
    assert made.manager.records.pods["other"].leaving is None


def test_victims_are_looked_for_again_when_a_node_has_more_devices() -> None:
    made = places(1, 1, Preempting())
    for name, count in (("low", 1), ("high", 2)):
        made.manager.named_seen(resource_claim(name, {"count": count}, namespace="ns"))
        made.pod(name, resourceClaims=wants(name), priority=count, labels={keys.APP_ID: name})
        steps_of(made)
    made.pods["low"]["spec"]["nodeName"] = "n0"
    made.show("low")
    made.now_ns += 10 * 10**9
    assert not [one for one in steps_of(made) if isinstance(one, Evict)], "one device is too few"
    made.manager.named_seen(resource_slice("n0", "d0", "d1"))
    made.now_ns += 30 * 10**9
    assert [one.name for one in steps_of(made) if isinstance(one, Evict)] == ["low"]


def test_searches_for_devices_are_steps_of_a_search_for_victims() -> None:
    made, wanted = places(1, 11, Preempting()), 6
    names = [f"p{number:02}" for number in range(11)]
    for number, name in enumerate((*names, "high")):
        count, priority = (wanted, 9) if name == "high" else (1, 1 + number % 3)
        made.manager.named_seen(resource_claim(name, {"count": count}, namespace="ns"))
        made.pod(name, resourceClaims=wants(name), priority=priority, labels={keys.APP_ID: name})
        if name in {names[10], "high"}:
            steps_of(made)
    for name in names:
        made.pods[name]["spec"]["nodeName"] = "n0"
        made.show(name)
    made.now_ns += 10 * 10**9
    store = made.manager.lifecycle.devices.store
    with patch.object(store, "_find", wraps=store._find) as search:
        assert len([one for one in steps_of(made) if isinstance(one, Evict)]) == wanted
    assert search.call_count < 1_000
