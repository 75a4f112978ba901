"""Applications of several pods: which pod starts one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kube.places import Places
from licorne.core.queues.application import Application
from licorne.kube.manager.commands import Evict
from licorne.kube.objects import Pod

SECOND_NS = 10**9
Y = "yunikorn.apache.org/"
QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: lender}
          - {name: other}
          - {name: owner, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 100}}}
"""


def pod(name: str, app: str, queue: str = "lender", *, cpu: str = "4", owner: str = "", **more: Any) -> Pod:
    """Return a pod; `owner`: it is a placeholder that belongs to the pod of this UID."""
    annotations = more.pop("annotations", {})
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "n",
        "uid": name,
        "labels": {"applicationId": app, "queue": f"root.{queue}"},
        "annotations": annotations,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner}]
        meta["annotations"] = annotations | {"internal.yunikorn.apache.org/placeholder": "true"}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": "yunikorn", "containers": containers, **more}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


class Cluster(Places):
    """Nodes of 4 cores, and the commands that follow from what is seen."""

    queues = QUEUES

    def __init__(self, nodes: int = 0) -> None:
        super().__init__()
        for number in range(nodes):
            self.node(f"n{number}", allocatable={"cpu": "4"})

    def see(self, *pods: Pod) -> list[Any]:
        """Show pods; return the commands of the next four seconds."""
        for each in pods:
            self.manager.pod_seen(each)
        commands = []
        for _ in range(4):
            commands += self.manager.commands()
            self.api.schedule()
            self.now_ns += SECOND_NS
        self.api.validate()
        return commands + self.manager.commands()

    def application(self, name: str) -> Application:
        return self.api.cluster.partition("rm").applications[name]

    def originators(self, name: str) -> list[str]:
        """Return the keys of the asks and allocations of an application that are said to be its originator."""
        found = self.application(name)
        return [each.key for each in (*found.asks.values(), *found.allocations.values()) if each.originator]


# -- the originator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["", "n0"])
def test_the_first_pod_of_an_application_is_its_originator(node: str) -> None:
    cluster = Cluster(1)
    cluster.see(pod("driver", "a", cpu="1", nodeName=node), pod("one", "a", cpu="1"), pod("two", "a", cpu="9"))
    assert cluster.originators("a") == ["driver"]


def test_a_pod_that_heeds_the_demands_of_others_is_an_originator_too() -> None:
    cluster = Cluster(1)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"applicationId": "a"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.see(pod("alone", "b", cpu="1", nodeName="n0", affinity=apart), pod("driver", "a", cpu="1"))
    assert (cluster.originators("a"), list(cluster.application("a").asks)) == (["driver"], ["driver"])


def test_after_a_restart_the_originator_is_the_pod_that_the_placeholders_belong_to() -> None:
    groups = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "1"}}])
    member = {Y + "task-groups": groups, Y + "task-group-name": "g"}
    cluster = Cluster(1)
    cluster.see(
        pod("holds", "a", cpu="1", owner="driver", nodeName="n0", annotations=member),
        pod("one", "a", cpu="1", nodeName="n0", annotations=member),
        pod("driver", "a", cpu="1", annotations=member, nodeSelector={"no": "such"}),
    )
    assert cluster.originators("a") == ["driver"]


def test_an_originator_is_evicted_after_all_others() -> None:
    cluster = Cluster(3)
    cluster.see(*(pod(f"p{number}", app, nodeName=f"n{number}") for number, app in enumerate("aab")))
    commands = cluster.see(pod("needs", "c", "owner"))
    assert [each.name for each in commands if isinstance(each, Evict)] == ["p1"]
