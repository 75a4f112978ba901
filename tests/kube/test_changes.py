"""A change of a pod that means nothing to the scheduler is recognized, and only such a change."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from licorne.kube.objects import Pod
from licorne.kube.pods.work import PodContext, asks_the_same, read_pod

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1", "labels": {"applicationId": "a"}},
    "spec": {"schedulerName": "yunikorn", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"phase": "Pending"},
}
GANG = '[{"name":"g","minMember":2,"minResource":{"cpu":"1"}}]'
TERM = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
MEANT: dict[str, Any] = {
    "spec.containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
    "spec.initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}],
    "spec.overhead": {"cpu": "1"},
    "spec.resources": {"requests": {"cpu": "4"}},
    "spec.priority": 7,
    "spec.preemptionPolicy": "Never",
    "spec.schedulingGates": [{"name": "g"}],
    "spec.nodeSelector": {"k": "v"},
    "spec.tolerations": [{"key": "k", "operator": "Exists"}],
    "spec.affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
    },
    "spec.topologySpreadConstraints": [
        {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "metadata.deletionTimestamp": "2026-01-01T00:00:00Z",
    "spec.volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    "metadata.labels": {"applicationId": "b"},
    "metadata.annotations": {"yunikorn.apache.org/task-groups": GANG},
    "status.containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}],
    "status.allocatedResources": {"cpu": "3"},
}
NOT_MEANT: dict[str, Any] = {
    "metadata.resourceVersion": "2",
    "metadata.generation": 5,
    "status.phase": "Running",
    "status.conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    "status.startTime": "2026-01-01T00:00:00Z",
    "spec.nodeName": "n1",
}


def pod(*changes: tuple[str, Any]) -> Pod:
    """Return a pod with other values at some places."""
    made = copy.deepcopy(POD)
    for path, value in changes:
        part, _, name = path.partition(".")
        made[part][name] = value
    return msgspec.convert(made, Pod)


@pytest.mark.parametrize("path", MEANT)
def test_what_means_something_is_read_again(path: str) -> None:
    assert not asks_the_same(pod(), pod((path, MEANT[path])))
    if path != "status.allocatedResources":  # counts only together with requests of the whole pod
        assert read_pod(pod(), PodContext()) != read_pod(pod((path, MEANT[path])), PodContext())


@pytest.mark.parametrize("path", NOT_MEANT)
def test_what_means_nothing_is_not(path: str) -> None:
    assert asks_the_same(pod(), pod((path, NOT_MEANT[path])))
    was, now = (read_pod(one, PodContext()) for one in (pod(), pod((path, NOT_MEANT[path]))))
    assert was.ask.resource == now.ask.resource
    assert (was.gates, was.fault, was.later, was.gang) == (now.gates, now.fault, now.later, now.gang)


ZONE = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r"}


def test_labels_of_the_place_that_come_with_the_node_mean_nothing() -> None:
    bound = ("spec.nodeName", "n1")
    labels = POD["metadata"]["labels"]
    assert asks_the_same(pod(), pod(bound, ("metadata.labels", labels | ZONE)))
    assert asks_the_same(pod(("metadata.labels", None)), pod(bound, ("metadata.labels", ZONE)))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({}, ZONE),  # somebody has written them: the node is the same
        (ZONE, {}),
        (ZONE, ZONE | {"topology.kubernetes.io/zone": "z2"}),
    ],
)
def test_without_a_new_node_they_are_labels_like_others(was: dict[str, str], now: dict[str, str]) -> None:
    assert not asks_the_same(pod(("metadata.labels", was)), pod(("metadata.labels", now)))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"applicationId": "a"}, ZONE | {"applicationId": "b"}),
        (ZONE, {}),
        (ZONE, ZONE | {"topology.kubernetes.io/zone": "z2"}),
    ],
)
def test_other_changes_of_labels_count_when_a_pod_is_bound(was: dict[str, str], now: dict[str, str]) -> None:
    assert not asks_the_same(pod(("metadata.labels", was)), pod(("metadata.labels", now), ("spec.nodeName", "n1")))


@pytest.mark.parametrize("path", MEANT)
def test_a_change_that_matters_is_not_hidden_by_one_that_does_not(path: str) -> None:
    assert not asks_the_same(pod(), pod(*NOT_MEANT.items(), (path, MEANT[path])))
