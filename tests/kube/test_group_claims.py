"""Claims of devices that native pod groups list: for whom they are reserved, who shares them, and when they are taken back."""

from __future__ import annotations

from typing import Any

import pytest

from licorne.kube.manager.commands import Bind, WriteClaim
from licorne.kube.manager.devices import KEPT_S
from licorne.kube.objects.devices import Consumer
from licorne.kube.pods.device_claims import OF_CLASS

from .drivers import DRIVER, places, pod_group, resource_claim, resource_slice, wants
from .places import Places
from .test_device_steps import steps_of

GROUP = {"podGroupName": "g"}
OF_GROUP = Consumer("scheduling.k8s.io", "podgroups", "g", "uid-g")
CPU = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
NOWHERE = {"kubernetes.io/hostname": "nowhere"}


def members(made: Places, *names: str, claims: Any = None, **more: Any) -> str:
    """Add pods of the group `g` that use the claim `c`, or others; return the pods that are bound then, with their nodes."""
    for name in names:
        made.pod(name, schedulingGroup=GROUP, resourceClaims=claims or wants("c"), containers=CPU, **more)
    return bound(steps_of(made))


def with_group(*cpus: int, needed: int = 0) -> Places:
    """Return a cluster with nodes of so much CPU and one device each, the claim `c`, and the group `g` that lists it."""
    made = places(len(cpus), 1)
    for number, cpu in enumerate(cpus):
        made.node(f"n{number}", allocatable={"cpu": str(cpu)})
    made.manager.named_seen(resource_claim("c", namespace="ns"))
    made.manager.named_seen(pod_group("c", needed=needed, namespace="ns"))
    return made


def claimed(made: Places) -> Any:
    """Return for whom the claim `c` is reserved."""
    return made.manager.lifecycle.devices.store.claims["ns", "c"].status.reserved_for


def bound(commands: list[Any]) -> str:
    return " ".join(sorted(f"{one.name}:{one.node}" for one in commands if isinstance(one, Bind)))


def why(made: Places, name: str) -> str:
    return made.manager.records.pods[name].work.later


@pytest.mark.parametrize("needed", [0, 1, 3])
def test_pods_of_a_group_share_a_claim_that_is_reserved_for_the_group_once(needed: int) -> None:
    made = with_group(9, 9, needed=needed)
    assert members(made, "a", "b", "c") == "a:n0 b:n0 c:n0"
    assert claimed(made) == (OF_GROUP,)
    assert members(made, "d") == "d:n0"
    made.manager.named_seen(pod_group("c", needed=needed, uid="anew", namespace="ns"))
    assert members(made, "e") == "e:n0"
    other = [{"name": "other", "resourceClaimName": "c"}]  # only the whole entry is that of the group
    assert members(made, "f", claims=other) == "f:n0"
    assert [one.uid for one in claimed(made)] == ["uid-g", "anew", "f"]


def test_pods_wait_for_their_group_and_for_a_claim_that_was_made_for_it() -> None:
    made = places(1, 1)
    made.manager.named_seen(resource_claim("g-made", namespace="ns", owner="uid-g"))
    made.pod("a", schedulingGroup=GROUP, resourceClaims=wants(template="one"))
    made.pods["a"]["status"] = {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "g-made"}]}
    made.show("a")
    assert not steps_of(made)
    assert why(made, "a") == "The pod waits until its pod group ns/g is there."
    made.manager.named_seen(pod_group(template="one", uid="another", namespace="ns"))
    assert not steps_of(made)
    text = "ResourceClaim ns/g-made was not created for Pod ns/a (neither Pod nor PodGroup g is the owner)"
    assert why(made, "a") == text
    made.manager.named_seen(pod_group(template="one", namespace="ns"))
    assert bound(steps_of(made)) == "a:n0"


@pytest.mark.parametrize("number", [3, 40])
def test_a_gang_that_shares_a_claim_starts_as_a_whole_where_all_have_room(number: int) -> None:
    made = with_group(number - 1, number - 1, needed=number)
    names = [f"p{n}" for n in range(number)]
    assert not members(made, *names)
    store = made.manager.lifecycle.devices.store
    assert not (store.decided or store.held.whole)
    made.node("n1", allocatable={"cpu": str(number)})
    assert bound(steps_of(made)) == " ".join(sorted(f"{name}:n1" for name in names))
    assert claimed(made) == (OF_GROUP,)


def test_members_also_have_claims_of_their_own_and_devices_of_a_network_serve_many_nodes() -> None:
    made = with_group(9, 9, needed=2)
    made.manager.named_seen(
        resource_slice("network", {"name": "x", "attributes": {"net": {"bool": True}}}, allNodes=True)
    )
    of_network = f'has(device.attributes["{DRIVER}"].net)'
    for name, expression in (("c", of_network), ("own-a", f"!{of_network}"), ("own-b", f"!{of_network}")):
        wanted = {"selectors": [{"cel": {"expression": expression}}]}
        made.manager.named_seen(resource_claim(name, wanted, namespace="ns"))
    assert not members(made, "a", claims=wants("c", "own-a"))
    assert members(made, "b", claims=wants("c", "own-b")) == "a:n0 b:n1"


def test_pods_that_share_a_decision_give_it_back_one_by_one() -> None:
    made = with_group(9, needed=2)
    for name in "ab":
        made.pod(name, schedulingGroup=GROUP, resourceClaims=wants("c"))
    steps_of(made, shown=lambda _: False)
    store, lifecycle = made.manager.lifecycle.devices.store, made.manager.lifecycle
    lifecycle.claims_failed("a", "the test wants it")
    assert store.decided["ns", "c"].pods == {"b"}
    lifecycle.claims_failed("b", "the test wants it")
    assert not store.decided


def after(made: Places, seconds: float) -> list[WriteClaim]:
    """Let time go by; return what is written then."""
    now = made.manager.outbox.now_s() + seconds
    made.manager.outbox.now_s = lambda: now
    made.manager.lifecycle.pass_turns()
    return [one for one in made.manager.flush() if isinstance(one, WriteClaim)]


@pytest.mark.parametrize("runs", [False, True], ids=["no pod has a node", "one has"])
def test_devices_are_taken_back_while_no_pod_of_the_group_has_a_node(runs: bool) -> None:
    made = with_group(9)
    members(made, "first")
    made.no_pod("first")
    made.manager.named_gone(pod_group("c", namespace="ns"))
    if runs:
        members(made, "runs", node="n0")
    members(made, "a", nodeSelector=NOWHERE)
    made.manager.named_seen(pod_group("c", namespace="ns"))
    made.run()
    assert not after(made, KEPT_S / 2)
    taken = [one.body["status"] for one in after(made, KEPT_S)]
    assert taken == ([] if runs else [{"reservedFor": None, "allocation": None}])
    if runs:
        made.no_pod("runs")
        assert after(made, KEPT_S)


@pytest.mark.parametrize("answer", ["refused", "shown", "of a pod that is gone"])
def test_no_pod_of_the_group_gets_a_node_while_devices_are_taken_back(answer: str) -> None:
    made = with_group(9)
    members(made, "first")
    made.no_pod("first")
    members(made, "a", nodeSelector=NOWHERE)
    (write,) = after(made, KEPT_S)
    if answer == "of a pod that is gone":
        made.no_pod("a")
    assert made.manager.lifecycle.holding.awaits("a", write.number), "it is sent"
    assert not members(made, "b")
    assert why(made, "b") == "resource claim ns/c is being taken back from its pod group"
    if answer == "shown":
        taken = resource_claim("c", namespace="ns")
        taken.metadata.resource_version = "later"
        made.manager.named_seen(taken)
    else:
        made.manager.lifecycle.give_up_claims("a", write.number, "no", write.path)
    made.manager.flush()
    made.api.schedule()
    assert bound(steps_of(made)) == "b:n0"


@pytest.mark.parametrize("needed", [0, 3])
def test_one_pod_of_a_group_counts_a_claim_and_another_one_when_that_has_ended(needed: int) -> None:
    made = with_group(9, needed=needed)
    for name in "abc":
        made.pod(name, schedulingGroup=GROUP, resourceClaims=wants("c"))

    def counting() -> str:
        made.manager.flush()
        records = made.manager.records.pods
        return " ".join(uid for uid in records if "gpu" + OF_CLASS in (records[uid].work.ask.resource or {}))

    assert counting() == ("a" if needed else "a b c")
    steps_of(made)
    left, ended = {"a", "b", "c"}, ""
    while left:
        ended = counting()
        assert ended in left, "one counts it"
        made.pods[ended]["spec"]["nodeName"] = "n0"
        made.show(ended)
        assert counting() == ended
        made.no_pod(ended)
        left.remove(ended)
    assert not counting()
