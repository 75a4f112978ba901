"""Pods and nodes of strange content: nothing crashes, the pod waits and is told why, and others go on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from licorne.kube.manager.commands import PostEvent
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Namespace, Pod

from .places import Places, apart, ports

GOOD: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return the `affinity` of a pod with these terms of required node affinity."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expressions(*items: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(items)}


def requesting(**requests: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


# what the pod asks for, and a part of the event that says why it waits
FAULTS: list[tuple[dict[str, Any], str]] = [
    (requesting(cpu="much"), "cpu: 'much' is not a quantity"),
    (requesting(cpu=""), "cpu: '' is not a quantity"),
    (requesting(cpu="-1"), "cpu: '-1' is negative"),
    (requesting(memory=-5), "memory: '-5' is negative"),
    (requesting(memory="1e999"), "memory: it is too large: at most 2**63 - 1 can be counted"),
    (requesting(memory="9" * 900 + "Ei"), "memory: it is too large"),
    (requesting(memory="9" * 5000), "memory: "),
    (requesting(cpu=True), "cpu: 'True' is neither a text nor a number"),
    (requesting(cpu=["1"]), "is neither a text nor a number"),
    (requesting(cpu=None), "cpu: 'None' is neither a text nor a number"),
    ({**GOOD, "overhead": {"cpu": "x"}}, "cpu: 'x' is not a quantity"),
    ({**GOOD, "resources": {"requests": {"memory": "x"}}}, "memory: 'x' is not a quantity"),
    (
        {"containers": [*GOOD["containers"] * 2, {"name": "d", "resources": {"requests": {"memory": "8Ei"}}}]},
        "memory: ",
    ),
]


@pytest.mark.parametrize(("spec", "why"), FAULTS)
def test_a_pod_whose_resources_cannot_be_read_waits_and_is_told_why(spec: dict[str, Any], why: str) -> None:
    places = Places()
    places.node("n")
    places.pod("strange", **spec)
    places.pod("good", **GOOD)
    assert places.run() == {"good": "n"}
    assert places.manager.records.pods["strange"].stage is Stage.HELD
    places.manager.outbox.now_s = lambda: 10.0
    places.manager.lifecycle.waiting.review(0)
    places.run()
    [event] = [one for one in places.events if isinstance(one, PostEvent)]
    assert event.name == "strange" and why in event.note and len(event.note) < 1000
    places.pod("strange", **GOOD)
    assert places.run() == {"strange": "n"}


# what no node can meet, because it means nothing: the pod waits as any other that fits nowhere
NOWHERE: list[dict[str, Any]] = [
    required(),
    required({}),
    required(expressions({"key": "a", "operator": "Near", "values": ["x"]})),
    required(expressions({"key": "a", "operator": "In"})),
    required(expressions({"key": "", "operator": "Exists"})),
    required(expressions({"key": "a", "operator": "Gt", "values": ["many"]})),
    required(expressions({"key": "a", "operator": "Lt", "values": ["1", "2"]})),
    required(expressions({"key": "a", "operator": "NotIn", "values": ["x" * 64]})),
    required(expressions({"key": "a", "operator": "Exists", "values": ["x"]})),
    required({"matchFields": [{"key": "spec.color", "operator": "In", "values": ["red"]}]}),
    required({"matchFields": [{"key": "metadata.name", "operator": "Like", "values": ["n"]}]}),
    required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n", "m"]}]}),
]


@pytest.mark.parametrize("affinity", NOWHERE)
def test_a_term_that_means_nothing_holds_nowhere(affinity: dict[str, Any]) -> None:
    places = Places()
    places.node("n", labels={"a": "5"})
    places.pod("strange", affinity=affinity)
    places.pod("good")
    assert places.run() == {"good": "n"}
    assert places.manager.records.pods["strange"].stage is Stage.ASKED and not places.missed()
    # Another term that means something is heeded all the same.
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms.append(expressions({"key": "a", "operator": "Gt", "values": ["4"]}))
    places.pod("other", affinity=affinity)
    assert places.run() == {"other": "n"}


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "k", "operator": "Near", "value": "5"},
        {"key": "k", "operator": "Exists", "effect": "NoBreathing"},
        {"operator": "Equal", "value": ""},
        {"key": "k", "operator": "Gt", "value": "1"},
    ],
)
def test_a_toleration_that_means_nothing_bears_nothing(toleration: dict[str, Any]) -> None:
    places = Places()
    places.node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
    places.node("free")
    places.pod("strange", tolerations=[toleration])
    assert places.run() == {"strange": "free"}


# node affinity and tolerations as a newer API may have them, and a part of the event that says what follows
UNKNOWN_OPERATORS: list[tuple[dict[str, Any], str]] = [
    ({"affinity": required(expressions({"key": "a", "operator": "Near", "values": ["x"]}))}, "'Near' is unknown"),
    ({"affinity": required({"matchFields": [{"key": "metadata.name", "operator": "Like"}]})}, "'Like' is unknown"),
    ({"affinity": required(expressions({"key": "a", "operator": "N" * 10**5}))}, "NNN is unknown"),
    ({"tolerations": [{"key": "k", "operator": "Gt", "value": "1"}] * 3}, "tolerations: the operator 'Gt' is unknown"),
]


@pytest.mark.parametrize(("spec", "told"), UNKNOWN_OPERATORS)
def test_an_unknown_operator_is_told_once(spec: dict[str, Any], told: str) -> None:
    places = Places()
    places.pod("strange", **spec)
    places.run()
    [event] = [one for one in places.events if isinstance(one, PostEvent)]
    assert (event.name, event.reason, event.warning) == ("strange", "Scheduling", True)
    assert told in event.note and len(event.note) < 200


@pytest.mark.parametrize(("node", "told"), [("n", []), ("", ["InvalidAnnotation"])])
def test_pods_that_run_when_licorne_starts_are_not_told_again(node: str, told: list[str]) -> None:
    places = Places()
    places.node("n")
    places.namespace("ns")
    meta = {"name": "p", "namespace": "ns", "uid": "p", "annotations": {"yunikorn.apache.org/user.info": "{"}}
    spec = {"schedulerName": "yunikorn", "nodeName": node, "containers": [{"name": "c"}]}
    places.manager.lifecycle.pods_read([msgspec.convert({"metadata": meta, "spec": spec}, Pod)])
    assert [one.reason for one in places.manager.flush() if isinstance(one, PostEvent)] == told


def test_a_taint_of_an_unknown_effect_keeps_nothing_off() -> None:
    places = Places()
    places.node(
        "n", taints=[{"key": "k", "effect": "NoBreathing"}, {"effect": "NoSchedule"}, {"key": "p", "effect": ""}]
    )
    places.pod("good")
    assert places.run() == {"good": "n"}


@pytest.mark.parametrize(
    "allocatable", [{"cpu": "x"}, {"cpu": "-4"}, {"cpu": "1e999"}, {"cpu": "5P"}, {"cpu": None}, {"cpu": True}]
)
def test_a_node_whose_size_cannot_be_read_takes_no_pod_that_needs_it(allocatable: dict[str, Any]) -> None:
    places = Places()
    places.node("n", allocatable=allocatable)
    places.pod("needs", **GOOD)
    places.pod("plain")
    assert places.run() == {"plain": "n"}
    places.node("m")
    assert places.run() == {"needs": "m"}


@pytest.mark.parametrize("port", [-1, 0, 65536, 10**9])
def test_what_is_no_port_is_not_taken(port: int) -> None:
    places = Places()
    places.node("n")
    for name in ("p", "q"):
        places.pod(name, containers=[{"name": "c", "ports": [{"containerPort": 1, "hostPort": port}]}])
    assert places.run() == {"p": "n", "q": "n"}


def test_a_pod_of_a_thousand_containers() -> None:
    places = Places()
    places.node("n")
    containers = [
        {"name": f"c{n}", "resources": {"requests": {"cpu": "1m"}}, "ports": [{"containerPort": n, "hostPort": n}]}
        for n in range(1, 1001)
    ]
    places.pod("large", containers=containers)
    places.pod("same", containers=containers)
    assert places.run() == {"large": "n"}
    assert places.manager.records.pods["large"].work.ask.resource == {"vcore": 1000, "pods": 1}
    places.no_pod("large")
    assert places.run() == {"same": "n"}


def test_constraints_too_long_to_be_read_are_refused_with_an_event() -> None:
    places = Places()
    places.node("n")
    names = [f"{n}-{'x' * 50}" for n in range(2000)]
    places.pod("long", affinity=required(expressions({"key": "a", "operator": "NotIn", "values": names})))
    places.pod("good")
    assert places.run() == {"good": "n"}
    places.manager.outbox.now_s = lambda: 10.0
    places.manager.lifecycle.waiting.review(0)
    places.run()
    [event] = [one for one in places.events if isinstance(one, PostEvent)]
    assert (event.name, event.reason) == ("long", "FailedScheduling")
    assert "its node selector, required node affinity, tolerations, host ports and volumes have " in event.note


@pytest.mark.parametrize("scheduler", ["yunikorn", "other"])
def test_a_pod_that_runs_and_has_too_many_host_ports_counts_without_them(scheduler: str) -> None:
    places = Places()
    places.node("n", allocatable={"cpu": "4"})
    names: list[dict[str, Any]] = ports(*range(1, 9000))
    names[0]["resources"] = {"requests": {"cpu": "3"}}
    places.pod("many", node="n", containers=names, schedulerName=scheduler)
    places.pod("two", **requesting(cpu="2"))
    assert places.run() == {}
    places.no_pod("many")
    assert places.run() == {"two": "n"}


# the amount of a device that a pod has which runs
BEYOND: list[Any] = ["9223372036854775807", "8E", "4611686018427387904", "1e999", "x", "-1", None, ["1"]]


@pytest.mark.parametrize("amount", BEYOND)
@pytest.mark.parametrize("scheduler", ["yunikorn", "other"])
def test_a_pod_that_runs_counts_with_what_can_be_counted(scheduler: str, amount: Any) -> None:
    """Whoever has bound it. In each container the amounts count that can be read."""
    places = Places()
    places.node("n", allocatable={"cpu": "4"})
    asked = [{"cpu": "1", "example.com/device": amount}, {"cpu": "2", "example.com/device": "1"}]
    containers = [{"name": f"c{n}", "resources": {"requests": one}} for n, one in enumerate(asked)]
    places.pod("strange", node="n", containers=containers, schedulerName=scheduler)
    places.pod("two", **requesting(cpu="2"))
    assert places.run() == {}
    told = [(one.name, one.reason, one.note) for one in places.events if isinstance(one, PostEvent)]
    if scheduler == "other":
        assert told == []
    else:
        [(name, reason, note)] = told
        assert (name, reason) == ("strange", "AmountNotCounted") and note.endswith(": example.com/device")
    places.pod("one", **requesting(cpu="1"))
    assert places.run() == {"one": "n"}


def test_an_amount_that_cannot_be_counted_any_more_is_told_once() -> None:
    """As after a resize in place: the pod was bound here, and asks for more now."""
    places = Places()
    places.node("n", allocatable={"cpu": "4", "example.com/device": "5"})
    places.pod("p", **requesting(cpu="3", **{"example.com/device": "1"}))
    assert places.run() == {"p": "n"}
    places.pods["p"]["spec"]["containers"] = requesting(cpu="4", **{"example.com/device": "8E"})["containers"]
    for phase in ("Pending", "Running"):
        places.pods["p"]["status"] = {"phase": phase}
        places.manager.lifecycle.pod_seen(msgspec.convert(places.pods["p"], Pod))
        places.pod("one", **requesting(cpu="1"))
        assert places.run() == {}
    assert [one.reason for one in places.events if isinstance(one, PostEvent)] == ["AmountNotCounted"]


def test_a_foreign_pod_that_cannot_be_read_counts_as_a_pod() -> None:
    places = Places()
    places.node("n", allocatable={"pods": "2"})
    places.pod("foreign", node="n", **requesting(cpu="x"))
    places.pod("one")
    places.pod("two")
    assert len(places.run()) == 1


@pytest.mark.parametrize(
    ("selector", "more"),
    [
        ({"matchExpressions": [{"key": "app", "operator": "Near", "values": ["x"]}]}, {}),
        ({"matchExpressions": [{"key": "app", "operator": "In"}]}, {}),
        (None, {"namespaces": []}),
    ],
)
def test_a_demand_that_means_nothing_keeps_nothing_off(selector: Any, more: dict[str, Any]) -> None:
    places = Places()
    places.node("n")
    demand = apart(None)
    demand["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0] |= {
        "labelSelector": selector,
        **more,
    }
    places.pod("demands", affinity=demand, node="n")
    places.pod("good", labels={"app": "x"})
    assert places.run() == {"good": "n"}


def test_a_namespace_whose_quota_cannot_be_read_is_told_once() -> None:
    places = Places()
    for quota in ("{", "{", '{"cpu":"1"}', "["):
        meta = {"name": "ns", "uid": "n", "annotations": {"yunikorn.apache.org/namespace.quota": quota}}
        places.manager.namespace_seen(msgspec.convert({"metadata": meta}, Namespace))
    told = [one for one in places.manager.flush() if isinstance(one, PostEvent)]
    assert [(one.kind, one.name, one.reason) for one in told] == [("Namespace", "ns", "InvalidAnnotation")] * 2
