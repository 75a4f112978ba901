"""What the scheduler is told of a pod among pods: its labels, its demands of others, and the default spread of its workload."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from licorne.core.nodes.terms import parse_pod, parse_terms
from licorne.kube.api.kinds import WORKLOADS
from licorne.kube.objects import Namespace, Pod
from licorne.kube.pods.spreading import ConstraintsError, Spreading, read_constraints
from licorne.kube.pods.terms import pod_text, terms_text

from .places import Places, apart

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
APP = {"matchLabels": {"app": "a"}}
NO_OPERATOR = {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["a"]}]}
SPREAD = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}


def pod(labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    meta = {"name": "p", "namespace": "ns", "labels": labels, **spec.pop("metadata", {})}
    return msgspec.convert({"metadata": meta, "spec": {"containers": [], **spec}}, Pod)


def near(**more: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": APP, **more}]}}}


def spread(**more: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{**SPREAD, "labelSelector": APP, **more}]}


T = {"topologyKey": "zone", "labelSelector": APP}
S = {"topologyKey": "zone", "maxSkew": 2, "labelSelector": APP}
IN_B = [{"key": "b", "operator": "In", "values": ["1"]}]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, None),
        (near(), {"affinity": [T]}),
        (near(namespaces=["x"]), {"affinity": [{**T, "namespaces": ["x"]}]}),
        (near(namespaceSelector={}), {"affinity": [{**T, "namespaceSelector": {}}]}),
        (near(namespaceSelector=NO_OPERATOR), {"affinity": [{"topologyKey": "zone"}]}),  # selects nothing
        (near(labelSelector=NO_OPERATOR), {"affinity": [{"topologyKey": "zone"}]}),
        (near(labelSelector=None), {"affinity": [{"topologyKey": "zone"}]}),
        (near(matchLabelKeys=["b"], mismatchLabelKeys=["c"]), {"affinity": [T]}),  # they are in the selector
        ({"affinity": apart({"app": "a"}, "zone")}, {"antiAffinity": [T]}),
        (spread(), {"spread": [S]}),
        (spread(whenUnsatisfiable="ScheduleAnyway"), {"preferred": {"spread": [S]}}),
        (
            {"affinity": {"podAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": T}]}}},
            {"preferred": {"affinity": [{"weight": 7, "term": T}]}},
        ),
        (
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": T}]}}},
            {"preferred": {"antiAffinity": [{"weight": 7, "term": T}]}},
        ),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 7, "preference": {"matchExpressions": IN_B}}]}}},
            {"preferred": {"nodes": [{"weight": 7, "term": IN_B}]}},
        ),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 7, "preference": {}}]}}}, None),  # it holds nowhere
        (
            {"containers": [{"image": "r:1/a"}, {"image": "b:2"}], "initContainers": [{"image": "b:2"}]},
            {"preferred": {"images": ["b:2", "b:2", "r:1/a:latest"]}},
        ),
        (
            spread(minDomains=3, nodeTaintsPolicy="Honor"),
            {"spread": [{**S, "minDomains": 3, "nodeTaintsPolicy": "Honor"}]},
        ),
        (spread(matchLabelKeys=["b", "none"]), {"spread": [{**S, "labelSelector": {**APP, "matchExpressions": IN_B}}]}),
        (spread(matchLabelKeys=["b"], labelSelector=None), {"spread": [{"topologyKey": "zone", "maxSkew": 2}]}),
        (spread(labelSelector={}), {"spread": [{**S, "labelSelector": {}}]}),
    ],
)
def test_what_a_pod_demands_of_others(spec: dict[str, Any], told: dict[str, Any] | None) -> None:
    text = terms_text(pod({"b": "1"}, **spec), Spreading())
    assert (json.loads(text) if text else None) == told
    if text:
        parse_terms(text, "ns")  # the scheduler takes it


@pytest.mark.parametrize(
    ("namespace", "deleted", "told"),
    [
        (None, None, {"namespace": "ns", "labels": {"a": "1"}}),
        ({}, None, {"namespace": "ns", "labels": {"a": "1"}, "namespaceLabels": {}}),
        ({"t": "x"}, None, {"namespace": "ns", "labels": {"a": "1"}, "namespaceLabels": {"t": "x"}}),
        (
            {},
            "2026-01-01T00:00:00Z",
            {"namespace": "ns", "labels": {"a": "1"}, "namespaceLabels": {}, "terminating": True},
        ),
    ],
)
def test_what_a_pod_is_for_others(namespace: dict[str, str] | None, deleted: str | None, told: dict[str, Any]) -> None:
    home = None
    if namespace is not None:
        home = msgspec.convert({"metadata": {"name": "ns", "labels": namespace}}, Namespace)
    text = pod_text(pod({"a": "1"}, metadata={"deletionTimestamp": deleted}), home)
    assert json.loads(text) == told
    assert parse_pod(text).namespace == "ns"


DEFAULTS = '{"defaultConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}'
KINDS = {kind.name: kind for kind in WORKLOADS}


def owner(kind: str, name: str = "w") -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True, "uid": "w"}]}


# the workload that is there, the labels and the owner of a pod, and the selector of its default constraint
WORKLOADS_OF_PODS: list[tuple[str, Any, dict[str, str], dict[str, Any], dict[str, Any] | None]] = [
    ("Service", {"app": "a"}, {"app": "a"}, {}, {"matchLabels": {"app": "a"}}),
    ("Service", {"app": "a"}, {"app": "b"}, {}, None),
    ("Service", None, {"app": "a"}, {}, None),  # of external endpoints
    ("ReplicaSet", APP, {"app": "a"}, owner("ReplicaSet"), {"matchLabels": {"app": "a"}}),
    ("ReplicaSet", APP, {"app": "a"}, owner("ReplicaSet", "other"), None),
    ("ReplicaSet", APP, {"app": "a"}, {}, None),  # that selects it and does not own it
    (
        "StatefulSet",
        {"matchExpressions": IN_B},
        {},
        owner("StatefulSet"),
        {"matchLabels": {}, "matchExpressions": IN_B},
    ),
    ("ReplicationController", {"app": "a"}, {}, owner("ReplicationController"), {"matchLabels": {"app": "a"}}),
]


@pytest.mark.parametrize(("kind", "selector", "labels", "meta", "told"), WORKLOADS_OF_PODS)
def test_the_default_spread_is_that_of_the_workload(
    kind: str, selector: Any, labels: dict[str, str], meta: dict[str, Any], told: dict[str, Any] | None
) -> None:
    spreading = Spreading(read_constraints(DEFAULTS))
    found = {"metadata": {"name": "w", "namespace": "ns"}, "spec": {"selector": selector}}
    made = msgspec.convert(found, KINDS[kind].type)
    assert spreading.seen(kind, made) and not spreading.seen(kind, made)
    waits = pod(labels, metadata=meta)
    selectors = [json.loads(msgspec.json.encode(one.label_selector)) for one in spreading.of(waits)]
    assert selectors == ([] if told is None else [told])
    own = pod(labels, metadata=meta, **spread(whenUnsatisfiable="ScheduleAnyway"))
    assert spreading.of(own) == own.spec.topology_spread_constraints  # though it refuses no node
    spreading.gone(kind, made)
    assert spreading.of(waits) == ()


def test_the_default_spread_of_kube_scheduler_only_orders_nodes() -> None:
    spreading = Spreading(read_constraints("system"))
    service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "a"}}}
    spreading.seen("Service", msgspec.convert(service, KINDS["Service"].type))
    told = json.loads(terms_text(pod({"app": "a"}), spreading))
    keys = [(one["topologyKey"], one["maxSkew"]) for one in told["preferred"]["spread"]]
    assert keys == [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)]
    assert told["preferred"]["spreadIsDefault"] and told.keys() == {"preferred"}
    own = json.loads(terms_text(pod({"app": "a"}, **spread(whenUnsatisfiable="ScheduleAnyway")), spreading))
    assert "spreadIsDefault" not in own["preferred"]


def test_a_pod_that_waits_is_told_again_when_its_workload_comes_and_goes() -> None:
    places = Places()
    lifecycle = places.manager.lifecycle
    lifecycle.context.spreading = Spreading(read_constraints(DEFAULTS))
    places.pod("p", labels={"app": "a"})
    places.run()

    def demands() -> list[bool]:
        asked = places.manager.records.pods["p"].asked
        return [] if asked is None else ["licorne/pod-terms" in (asked.tags or {})]

    assert demands() == [False]
    service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "a"}}}
    found = msgspec.convert(service, KINDS["Service"].type)
    places.manager.workload_seen("Service", found)
    assert demands() == [True]
    places.manager.workload_gone("Service", found)
    places.run()
    assert places.manager.records.pods["p"].work.ask.tags is not None
    assert "licorne/pod-terms" not in places.manager.records.pods["p"].work.ask.tags


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "default spread constraints: "),
        ("[{}]", "has a topologyKey"),
        ("[{topologyKey: zone, maxSkew: 0, whenUnsatisfiable: DoNotSchedule}]", "maxSkew of 1 or more"),
        ("[{topologyKey: zone, whenUnsatisfiable: Never}]", "whenUnsatisfiable"),
        ("[{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]", "none has a labelSelector"),
        ("{}", "Expected `array`"),
    ],
)
def test_default_constraints_that_cannot_be_used_are_refused(text: str, words: str) -> None:
    with pytest.raises(ConstraintsError, match=words):
        read_constraints(text)


def test_default_constraints_that_are_preferences_refuse_no_node() -> None:
    spreading = Spreading(read_constraints("[{topologyKey: zone, maxSkew: 3, whenUnsatisfiable: ScheduleAnyway}]"))
    service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "a"}}}
    spreading.seen("Service", msgspec.convert(service, KINDS["Service"].type))
    told = json.loads(terms_text(pod({"app": "a"}), spreading))
    assert told.keys() == {"preferred"} and told["preferred"].keys() == {"spread"}
