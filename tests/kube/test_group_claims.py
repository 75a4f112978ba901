"""Claims of devices that native pod groups list: for whom they are reserved, who shares them, and when they are taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from common.virtual import run
from kube import kills, schedules
from licorne.kube.manager.commands import Bind, WriteClaim
from licorne.kube.manager.devices import KEPT_S
from licorne.kube.objects import DeviceClass, ResourceClaim
from licorne.kube.pods.device_claims import OF_CLASS

from .drivers import places, pod_group, resource_claim, resource_slice, wants
from .places import Places
from .test_device_steps import steps_of
from .test_devices import World, played

GROUP = {"podGroupName": "g"}
OF_GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}


def members(made: Places, *names: str, claims: Any = None, **more: Any) -> None:
    """Add pods of the group `g` that use the claim `c`, or others."""
    for name in names:
        made.pod(name, schedulingGroup=GROUP, resourceClaims=claims or wants("c"), **more)


def with_group(nodes: int = 2, needed: int = 0, **claim: Any) -> Places:
    """Return a cluster with nodes of one device each, the claim `c`, and the group `g` that lists it."""
    made = places(nodes, 1)
    made.manager.named_seen(resource_claim("c", namespace="ns", **claim))
    made.manager.named_seen(pod_group("c", needed=needed, namespace="ns"))
    return made


def users(claim: ResourceClaim) -> list[Any]:
    """Return for whom a claim is reserved, as the API server has it."""
    return [msgspec.to_builtins(one) for one in claim.status.reserved_for or ()]


def claimed(made: Places) -> list[Any]:
    """Return for whom the claim `c` is reserved."""
    return users(made.manager.lifecycle.devices.store.claims["ns", "c"])


def bound(commands: list[Any]) -> str:
    return " ".join(sorted(one.name for one in commands if isinstance(one, Bind)))


def why(made: Places, name: str) -> str:
    return made.manager.records.pods[name].work.later


# -- who shares a claim ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("needed", [0, 1, 3])
def test_pods_of_a_group_share_a_claim_that_is_reserved_for_the_group_once(needed: int) -> None:
    made = with_group(needed=needed)
    members(made, "a", "b", "c")
    commands = steps_of(made)
    assert bound(commands) == "a b c"
    assert len({one.node for one in commands if isinstance(one, Bind)}) == 1
    assert len([one for one in commands if isinstance(one, WriteClaim)]) == 2
    assert claimed(made) == [OF_GROUP]
    members(made, "d")
    assert bound(steps_of(made)) == "d"


@pytest.mark.parametrize(
    ("entry", "consumer"),
    [
        ({"name": "c0", "resourceClaimName": "c"}, "uid-g"),
        ({"name": "other", "resourceClaimName": "c"}, "a"),
    ],
)
def test_a_claim_is_the_groups_where_the_whole_entry_is(entry: dict[str, str], consumer: str) -> None:
    made = with_group()
    members(made, "a", claims=[entry])
    steps_of(made)
    assert [one["uid"] for one in claimed(made)] == [consumer]


def test_pods_wait_for_their_group_and_a_claim_made_for_it_and_not_for_another() -> None:
    made = places(1, 1)
    made.manager.named_seen(resource_claim("g-made", namespace="ns", owner="uid-g"))
    made.pod("a", schedulingGroup=GROUP, resourceClaims=wants(template="one"))
    made.pods["a"]["status"] = {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "g-made"}]}
    made.show("a")
    steps_of(made)
    assert why(made, "a") == "The pod waits until its pod group ns/g is there."
    made.manager.named_seen(pod_group(template="one", uid="another", namespace="ns"))
    steps_of(made)
    text = "ResourceClaim ns/g-made was not created for Pod ns/a (neither Pod nor PodGroup g is the owner)"
    assert why(made, "a") == text
    made.manager.named_seen(pod_group(template="one", namespace="ns"))
    assert bound(steps_of(made)) == "a"


def test_a_group_that_is_made_anew_reserves_the_claim_for_itself() -> None:
    made = with_group()
    members(made, "a")
    steps_of(made)
    made.manager.named_seen(pod_group("c", uid="anew", namespace="ns"))
    members(made, "b")
    assert bound(steps_of(made)) == "b"
    assert [one["uid"] for one in claimed(made)] == ["uid-g", "anew"]


# -- a gang whose members share one ------------------------------------------------------------------------------

CPU = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]


@pytest.mark.parametrize("number", [3, 40])
def test_a_gang_that_shares_a_claim_starts_as_a_whole_where_all_have_room(number: int) -> None:
    made = with_group(nodes=3, needed=number)
    for node, cpu in (("n0", number - 1), ("n1", number), ("n2", number - 1)):
        made.node(node, allocatable={"cpu": str(cpu)})
    names = [f"p{n}" for n in range(number)]
    members(made, *names[1:], containers=CPU)
    assert bound(steps_of(made)) == ""
    members(made, names[0], containers=CPU)
    commands = steps_of(made)
    assert bound(commands) == " ".join(sorted(names))
    assert {one.node for one in commands if isinstance(one, Bind)} == {"n1"}
    assert claimed(made) == [OF_GROUP]


def test_a_gang_that_shares_a_claim_takes_no_devices_while_it_is_not_whole() -> None:
    made = with_group(needed=3)
    for node in ("n0", "n1"):
        made.node(node, allocatable={"cpu": "2"})
    members(made, "a", "b", "c", containers=CPU)
    assert bound(steps_of(made)) == ""
    store = made.manager.lifecycle.devices.store
    assert not (store.decided or store.held.whole)
    made.node("n1", allocatable={"cpu": "3"})
    assert bound(steps_of(made)) == "a b c"


def test_members_also_have_claims_of_their_own_and_devices_of_a_network_serve_many_nodes() -> None:
    made = places(2, 1)
    made.manager.named_seen(resource_slice("network", "net", allNodes=True, driver="net.example.com"))
    net = {"selectors": [{"cel": {"expression": 'device.driver == "net.example.com"'}}], "deviceClassName": "any"}
    made.manager.named_seen(msgspec.convert({"metadata": {"name": "any"}}, DeviceClass))
    made.manager.named_seen(resource_claim("c", net, namespace="ns"))
    made.manager.named_seen(pod_group("c", needed=2, namespace="ns"))
    for name in "ab":
        made.manager.named_seen(resource_claim(f"own-{name}", namespace="ns"))
        members(made, name, claims=wants("c", f"own-{name}"))
    commands = steps_of(made)
    assert sorted(one.node for one in commands if isinstance(one, Bind)) == ["n0", "n1"]


# -- what is taken back ------------------------------------------------------------------------------------------

NOWHERE = {"kubernetes.io/hostname": "nowhere"}


def with_devices(made: Places) -> None:
    """Let the claim `c` have the device of n0, and be reserved for the group."""
    members(made, "first")
    steps_of(made)
    made.no_pod("first")


def after(made: Places, seconds: float) -> list[Any]:
    now = made.manager.outbox.now_s() + seconds
    made.manager.outbox.now_s = lambda: now
    made.manager.lifecycle.pass_turns()
    return made.manager.flush()


@pytest.mark.parametrize("runs", [False, True], ids=["no pod has a node", "one has"])
@pytest.mark.parametrize("late", [False, True], ids=["the group is there", "the group comes late"])
def test_devices_are_taken_back_while_no_pod_of_the_group_has_a_node(runs: bool, late: bool) -> None:
    made = with_group()
    with_devices(made)
    if late:
        made.manager.named_gone(pod_group("c", namespace="ns"))
    if runs:
        members(made, "runs", node="n0")
    members(made, "a", nodeSelector=NOWHERE)
    made.manager.named_seen(pod_group("c", namespace="ns"))
    made.run()
    assert not [one for one in after(made, KEPT_S / 2) if isinstance(one, WriteClaim)]
    writes = [one for one in after(made, KEPT_S) if isinstance(one, WriteClaim)]
    assert [one.body["status"] for one in writes] == ([] if runs else [{"reservedFor": None, "allocation": None}])
    if runs:
        made.no_pod("runs")
        assert [one for one in after(made, KEPT_S) if isinstance(one, WriteClaim)]


@pytest.mark.parametrize("answer", ["refused", "shown", "of a pod that is gone"])
def test_no_pod_of_the_group_gets_a_node_while_devices_are_taken_back(answer: str) -> None:
    made = with_group()
    with_devices(made)
    members(made, "a", nodeSelector=NOWHERE)
    made.run()
    (write,) = (one for one in after(made, KEPT_S) if isinstance(one, WriteClaim))
    members(made, "b")
    if answer == "of a pod that is gone":
        made.no_pod("a")
    assert made.manager.lifecycle.holding.awaits("a", write.number), "it is sent"
    assert bound(steps_of(made)) == ""
    assert why(made, "b") == "resource claim ns/c is being taken back from its pod group"
    if answer == "shown":
        taken = resource_claim("c", namespace="ns")
        taken.metadata.resource_version = "later"
        made.manager.named_seen(taken)
    else:
        made.manager.lifecycle.give_up_claims("a", write.number, "no", write.path)
    commands = steps_of(made)
    assert bound(commands) == "b"
    assert claimed(made) == [OF_GROUP]


def test_pods_that_share_a_decision_give_it_back_one_by_one() -> None:
    made = with_group(needed=2)
    members(made, "a", "b")
    steps_of(made, shown=lambda _: False)
    store, lifecycle = made.manager.lifecycle.devices.store, made.manager.lifecycle
    lifecycle.claims_failed("a", "the test wants it")
    assert store.decided["ns", "c"].pods == {"b"}
    lifecycle.claims_failed("b", "the test wants it")
    assert not store.decided


# -- quotas ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("needed", [0, 3])
def test_one_pod_of_a_group_counts_a_claim_and_another_one_when_that_has_ended(needed: int) -> None:
    made = with_group(needed=needed)
    members(made, "a", "b", "c")

    def counting() -> str:
        records = made.manager.records.pods
        return " ".join(uid for uid in records if records[uid].work.ask.resource.get("gpu" + OF_CLASS))

    assert counting() == ("a" if needed else "a b c")
    made.run()
    made.no_pod("a")
    if needed:
        made.manager.flush()
        assert counting() == "b"
    members(made, "d")
    for command in steps_of(made):
        if isinstance(command, Bind):
            made.pods[command.name]["spec"]["nodeName"] = command.node
            made.show(command.name)
    first = counting()
    assert len(first.split()) == 1
    made.no_pod(first)
    made.manager.flush()
    assert len(counting().split()) == 1


# -- on a played API server --------------------------------------------------------------------------------------


def grouped(made: World, *claims: str, template: str = "", **more: Any) -> Any:
    return made.pod(*claims, template=template, schedulingGroup=GROUP, **more)


@pytest.mark.parametrize("writes", range(5))
@pytest.mark.parametrize("needed", [0, 3])
def test_a_process_that_is_killed_between_writes_is_followed_by_one_that_goes_on(writes: int, needed: int) -> None:
    async def play() -> None:
        made = World()
        made.claim("c", {"count": 2})
        made.server.put("podgroups", pod_group("c", needed=needed))
        pods = [grouped(made, "c") for _ in range(3)]
        await kills.play_until_killed(made.world, writes)
        _, task = schedules.start(made.world)
        await asyncio.sleep(60.0)
        schedules.check_runs(task)
        await schedules.stop(task)
        assert len({made.node_of(pod) for pod in pods}) == 1
        (claim,) = made.controller.claims()
        assert users(claim) == [OF_GROUP]

    run(play())


def test_the_devices_of_a_template_are_free_when_its_group_is_gone() -> None:
    async def steps(made: World) -> None:
        made.server.put("podgroups", pod_group(template="two", needed=2))
        pods = [grouped(made, template="two") for _ in range(2)]
        await asyncio.sleep(30.0)
        assert all(map(made.node_of, pods))
        for pod in pods:
            made.end(pod)
        await asyncio.sleep(30.0)
        assert made.controller.claims()[0].status.allocation is not None
        made.server.remove("podgroups", "default", "g")
        others = [made.pod(template="two") for _ in range(3)]
        await asyncio.sleep(60.0)
        assert all(map(made.node_of, others))

    played(steps)
