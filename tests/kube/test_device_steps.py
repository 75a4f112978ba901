"""What is written for claims of devices, one step after the other, and what a search for devices is bounded by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from licorne.kube.api.kinds import RESOURCE_CLAIMS
from licorne.kube.manager.claims import RELEASE
from licorne.kube.manager.commands import Bind, GiveUpClaims, WriteClaim
from licorne.kube.manager.devices import KEPT_S
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import DeviceClass, ResourceClaim
from licorne.kube.objects.devices import Consumer
from licorne.kube.pods import device_answers, device_search, device_selectors
from licorne.kube.pods.device_search import DeviceSearch
from licorne.kube.pods.extended import IMPLICIT

from .drivers import RESOURCE, containers, places, resource_claim, resource_slice, wants
from .places import Places

# -- what is written, step by step -------------------------------------------------------------------------------


def steps_of(made: Places, *, shown: Callable[[WriteClaim], bool] = lambda _: True) -> list[Any]:
    """Decide and write for a while; show claims as the API server has them after the writes that `shown` says."""
    store, commands = made.manager.lifecycle.devices.store, list[Any]()
    for _ in range(8):
        for one in made.manager.flush():
            commands.append(one)
            if not isinstance(one, WriteClaim) or not shown(one):
                continue
            (claim,) = (store.claims[key] for key in store.claims if RESOURCE_CLAIMS.path(*key) in one.path)
            raw = msgspec.to_builtins(claim)
            version = str(len(raw["metadata"].get("resourceVersion", "")) * "1" + "1")
            raw["metadata"] |= one.body["metadata"] | {"resourceVersion": version}
            raw["status"] = raw.get("status", {}) | one.body.get("status", {})
            made.manager.named_seen(msgspec.convert(raw, ResourceClaim))
        made.api.schedule()
    return commands


def placed(*claims: str, shown: Callable[[WriteClaim], bool] = lambda _: True) -> tuple[Places, list[Any]]:
    """Return a cluster in which a pod `p` with these claims gets a node, and what was to be done for it."""
    made = places(1, len(claims))
    for name in claims:
        made.manager.named_seen(resource_claim(name, namespace="ns"))
    made.pod("p", resourceClaims=wants(*claims))
    return made, steps_of(made, shown=shown)


def test_a_pod_whose_binding_is_out_keeps_its_devices_when_the_time_of_its_claims_is_over() -> None:
    made, commands = placed("a")
    lifecycle = made.manager.lifecycle
    assert isinstance(commands.pop(), Bind)
    (late,) = (one for one in commands if isinstance(one, GiveUpClaims))
    lifecycle.give_up_claims(late.uid, late.number)
    assert made.manager.records.pods["p"].stage is Stage.ASSUMED
    assert ("ns", "a") in lifecycle.devices.store.decided


def test_nothing_is_taken_back_from_a_pod_that_is_shown_with_a_node() -> None:
    made, _ = placed("a")
    lifecycle = made.manager.lifecycle
    lifecycle.not_bound("p", "the test wants it")
    (write,) = (one for one in made.manager.flush() if isinstance(one, WriteClaim))
    assert write.body["status"]["allocation"] is None
    assert lifecycle.holding.awaits("p", write.number)
    made.pods["p"]["spec"]["nodeName"] = "n0"
    made.show("p")
    assert not lifecycle.holding.awaits("p", write.number)


def test_a_claim_with_devices_stays_protected_while_the_next_pod_is_written_to_it() -> None:
    """The first pod is shown with its node while the write for the second one is unanswered."""
    made, _ = placed("a")
    made.pod("q", resourceClaims=wants("a"))
    assert [one.uid for one in steps_of(made, shown=lambda _: False) if isinstance(one, WriteClaim)] == ["q"]
    made.pods["p"]["spec"]["nodeName"] = "n0"
    made.show("p")
    writes = [one for one in made.manager.flush() if isinstance(one, WriteClaim)]
    assert not [one for one in writes if "finalizers" in one.body["metadata"]]
    assert not made.manager.lifecycle.devices.store.decided, "what has the first devices is the claim"


def test_devices_of_a_claim_are_free_when_its_own_write_was_refused() -> None:
    made, commands = placed("a", "b", shown=lambda one: not one.path.endswith("/status"))
    lifecycle = made.manager.lifecycle
    (late,) = (one for one in commands if isinstance(one, GiveUpClaims))
    lifecycle.give_up_claims("p", late.number)
    first, second = (one for one in made.manager.flush() if isinstance(one, WriteClaim))
    assert first.number == second.number == RELEASE
    lifecycle.give_up_claims("p", RELEASE, "no", first.path)
    assert [RESOURCE_CLAIMS.path(*key) for key in lifecycle.devices.store.decided] == [second.path]


@pytest.mark.parametrize("stage", [Stage.UNBOUND, Stage.REFUSED])
def test_a_pod_that_keeps_devices_gives_them_back_from_each_stage(stage: Stage) -> None:
    made = places(1, 1)
    lifecycle, there = made.manager.lifecycle, resource_claim("a", namespace="ns")
    user = Consumer(name="p", uid="p")
    made.manager.named_seen(
        msgspec.structs.replace(there, status=msgspec.structs.replace(there.status, reserved_for=(user,)))
    )
    made.pod("p", resourceClaims=wants("a"), nodeSelector={"kubernetes.io/hostname": "nowhere"})
    made.run()
    made.manager.outbox.now_s = lambda: KEPT_S
    record = made.manager.records.pods["p"]
    record._stage = stage
    lifecycle.devices.pass_on()
    assert ("p" in lifecycle.devices.store.releasing) is (stage is Stage.REFUSED)
    record._stage = Stage.HELD
    lifecycle.devices.pass_on()
    assert "p" in lifecycle.devices.store.releasing


# -- devices that come free ------------------------------------------------------------------------------------------


def test_devices_are_free_in_a_trial_when_all_that_use_their_claim_have_ended() -> None:
    made = places(1, 1)
    made.manager.named_seen(resource_claim("a", namespace="ns"))
    for name in "pq":
        made.pod(name, resourceClaims=wants("a"))
    steps_of(made)
    made.manager.named_seen(resource_claim("b", namespace="ns"))
    made.pod("late", resourceClaims=wants("b"))
    made.manager.flush()
    store, demand = made.manager.lifecycle.devices.store, made.manager.records.pods["late"].work.devices.demand

    def lifted(*keys: str) -> bool:
        for key in keys:
            store.lift(key, 1)
        free = not store.refuses(demand, "n0")
        for key in reversed(keys):
            store.lift(key, -1)
        return free

    assert [lifted(*keys) for keys in ((), "p", "pq", ("", "p"), "ppq")] == [False, False, True, False, True]
    assert not store._lifted
    made.no_pod("q")
    assert lifted("", "p")
    assert not lifted("p")
    assert not lifted()
    assert store.holds("q")
    made.manager.named_gone(store.claims["ns", "a"])
    assert lifted()
    assert not store.holds("p")


def test_a_trial_leaves_the_answers_of_searches_as_they_were() -> None:
    made = places(2, 1)
    made.manager.named_seen(resource_claim("a", namespace="ns"))
    made.pod("p", resourceClaims=wants("a"))
    steps_of(made)
    node = made.manager.records.pods["p"].node
    for name in "bc":
        made.manager.named_seen(resource_claim(name, namespace="ns"))
        made.pod(name, resourceClaims=wants(name))
    made.manager.flush()
    store = made.manager.lifecycle.devices.store
    demand = made.manager.records.pods["b"].work.devices.demand
    searched = DeviceSearch.find

    with patch.object(DeviceSearch, "find", autospec=True, side_effect=searched) as find:

        def looks() -> tuple[list[bool], int]:
            before = find.call_count
            return [not store.refuses(demand, name) for name in ("n0", "n1")], find.call_count - before

        free = [name != node for name in ("n0", "n1")]
        looks()
        assert looks() == (free, 0)
        store.lift("p", 1)
        assert looks() == ([True, True], 0), "as before the pod had its device"
        store.lift("p", -1)
        assert looks() == (free, 0)
        other = "n1" if node == "n0" else "n0"
        store.take(("ns/b",), other)
        assert looks() == ([False, False], 1)
        store.give_back(("ns/b",), other)
        assert looks() == (free, 0)
        made.manager.named_seen(resource_slice(node, "d0", "new"))
        assert looks()[0] == [True, True], "what is published now counts"


def test_a_class_that_changes_concerns_pods_that_name_it_or_request_what_it_backs() -> None:
    made = places(1, 1)
    for name, of_class in (("a", "gpu"), ("b", "other")):
        made.manager.named_seen(resource_claim(name, {"deviceClassName": of_class}, namespace="ns"))
        made.pod(name, resourceClaims=wants(name))
    for name, resource in (("c", RESOURCE), ("d", "example.com/other"), ("e", IMPLICIT + "other")):
        made.pod(name, containers=containers(1, resource=resource))
    devices = made.manager.lifecycle.devices

    def concerned(name: str, resource: str | None) -> str:
        made.manager.flush()
        spec = {"extendedResourceName": resource} if resource else {}
        made.manager.named_seen(msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass))
        return "".join(sorted(devices.take_changed()))

    assert concerned("gpu", "example.com/other") == "acd"
    assert concerned("gpu", None) == "ad"
    assert concerned("other", RESOURCE) == "bce"
    made.no_pod("c")
    assert concerned("other", RESOURCE) == "be"


# -- bounds ------------------------------------------------------------------------------------------------------

NONE_MEETS = {"selectors": [{"cel": {"expression": 'device.driver == "x"'}}]}


def refusal(made: Places, *nodes: str) -> str:
    """Return why the nodes, one like the other, have no devices for a pod that waits."""
    store = made.manager.lifecycle.devices.store
    demand = made.manager.records.pods["p"].work.devices.demand
    (why,) = {store.refuses(demand, node) for node in nodes}
    return why


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (NONE_MEETS, "within 50 steps"),
        ({**NONE_MEETS, "allocationMode": "All"}, "within 50 steps"),
        (
            {"selectors": [{"cel": {"expression": f'device.driver != "{n}"'}} for n in range(256)]},
            "more than 256 selectors",
        ),
    ],
)
def test_what_a_search_looks_at_is_bounded(request_: dict[str, Any], why: str) -> None:
    made = places(1, 20)
    made.manager.named_seen(resource_claim("c", request_, namespace="ns"))
    made.pod("p", resourceClaims=wants("c"))
    with patch.object(device_search, "STEPS_MAX", 50):
        made.run()
        assert why in refusal(made, "n0")


def test_the_searches_of_all_nodes_for_a_demand_are_bounded_together() -> None:
    made = places(3, 20)
    made.manager.named_seen(resource_claim("c", {"count": 21}, namespace="ns"))
    made.pod("p", resourceClaims=wants("c"))
    with patch.object(device_answers, "DEMAND_STEPS_MAX", 30):
        made.run()
        assert "on all nodes" not in refusal(made, "n0")
        assert "within 30 steps on all nodes" in refusal(made, "n2")


def test_demands_are_decoded_once_and_expressions_that_cannot_be_compiled_compiled_once() -> None:
    made = places(2, 1)
    bad = {"selectors": [{"cel": {"expression": "1 +* 2"}}]}
    made.manager.named_seen(resource_claim("c", bad, namespace="ns"))
    made.pod("p", resourceClaims=wants("c"))
    with patch.object(device_selectors, "_environment") as environment:
        environment().compile.side_effect = ValueError("no expression")
        device_selectors._compiled.cache_clear()
        made.manager.named_seen(msgspec.convert({"metadata": {"name": "gpu"}, "spec": {}}, DeviceClass))
        made.run()
        assert "no expression" in refusal(made, "n0", "n1")
        assert environment().compile.call_count == 1
    device_selectors._compiled.cache_clear()
    pools = made.manager.lifecycle.devices.store.pools
    one, other = (text for n in range(2) for text in pools.seen_by(f"n{n}")[0].devices[0]._met)
    assert one is other
