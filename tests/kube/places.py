"""A cluster without an API server: a manager, the scheduler in process, and plain objects that come and go."""

from __future__ import annotations

from typing import Any

import msgspec

from licorne.core.api import SchedulerAPI
from licorne.core.inspection.explain import ClusterFull, QueueQuota
from licorne.kube.manager import Manager, Outbox
from licorne.kube.manager.commands import Bind
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Namespace, Node, Pod
from licorne.si import v19

from .plugins import verdict
from .snapshot import Snapshot

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: fixed, value: root.all, create: true}]
    queues: [{name: root, submitacl: "*"}]
"""


class Places:
    """Objects as the API server would show them; bindings are confirmed at once. `strangers` are scheduled by others."""

    queues = QUEUES

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.now_ns = 0
        self.api = SchedulerAPI(
            clock=lambda: self.now_ns,
            other_settings=True,
            on_output=lambda _, outputs: self.manager.decisions.take(outputs),
        )
        self.manager = Manager(Outbox(self.api, "rm"))
        request = v19.RegisterResourceManagerRequest(
            rm_id="rm", policy_group="queues", config=self.queues, extra_config=settings or {}
        )
        self.api.register_resource_manager(request, self.manager.decisions)
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.namespaces: dict[str, dict[str, Any]] = {}
        self.events: list[Any] = []

    # -- what comes and goes ------------------------------------------------------------------------------------

    def node(self, name: str, *, taints: Any = (), labels: dict[str, str] | None = None, **more: Any) -> None:
        """Add or change a node."""
        allocatable = {"cpu": "100", "memory": "100Gi", "pods": "1000", **more.pop("allocatable", {})}
        self.nodes[name] = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": {"taints": list(taints), **more},
            "status": {"allocatable": allocatable},
        }
        self.manager.node_seen(msgspec.convert(self.nodes[name], Node))

    def no_node(self, name: str) -> None:
        self.manager.node_gone(msgspec.convert(self.nodes.pop(name), Node))

    def namespace(self, name: str, **labels: str) -> None:
        self.namespaces[name] = {"metadata": {"name": name, "labels": labels}}
        self.manager.namespace_seen(msgspec.convert(self.namespaces[name], Namespace))

    def pod(
        self, name: str, *, labels: dict[str, str] | None = None, namespace: str = "ns", node: str = "", **spec: Any
    ) -> None:
        """Add or change a pod, in a namespace that is there; with a node it is one of another scheduler."""
        if namespace not in self.namespaces:
            self.namespace(namespace)
        meta = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}}
        self.pods[name] = {
            "metadata": {**meta, "annotations": spec.pop("annotations", {})},
            "spec": {
                "schedulerName": "other" if node else "yunikorn",
                "nodeName": node,
                "containers": [{"name": "c"}],
                **spec,
            },
        }
        self.show(name)

    def no_pod(self, name: str) -> None:
        self.manager.lifecycle.pod_gone(msgspec.convert(self.pods.pop(name), Pod))

    def show(self, name: str) -> None:
        """Show a pod to the manager as it is among `pods`."""
        self.manager.lifecycle.pod_seen(msgspec.convert(self.pods[name], Pod))

    def run(self, limit: int | None = None) -> dict[str, str]:
        """Decide all that can be decided; return the bindings by pod, which have been confirmed."""
        bound: dict[str, str] = {}
        while True:
            before = len(bound)
            for command in self.manager.flush():
                if isinstance(command, Bind):
                    bound[command.name] = command.node
                    self.pods[command.name]["spec"]["nodeName"] = command.node
                    self.show(command.name)
                else:
                    self.events.append(command)
            made = self.api.schedule(limit=limit)
            self.now_ns += 1
            if not made and before == len(bound):
                self.api.validate()
                return bound

    # -- what is right ------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return Snapshot.of(
            msgspec.convert(list(self.nodes.values()), list[Node]),
            msgspec.convert(list(self.pods.values()), list[Pod]),
            msgspec.convert(list(self.namespaces.values()), list[Namespace]),
        )

    def waiting(self) -> list[Pod]:
        return [record.pod for record in self.manager.records.pods.values() if record.stage is Stage.ASKED]

    def missed(self) -> list[tuple[str, str]]:
        """Return the pods that wait although a node would take them, each with such a node: tried by brute force.

        A pod may also wait for the quota of the root queue, the size of the cluster, where nodes have shrunk.
        """
        snapshot = self.snapshot()
        partition = self.api.cluster.partition("rm")
        for_quota = {
            key for key, _, why in partition.waiting() if any(isinstance(one, ClusterFull | QueueQuota) for one in why)
        }
        return [
            (pod.metadata.name, name)
            for pod in self.waiting()
            if pod.metadata.uid not in for_quota
            for name, state in snapshot.nodes.items()
            if not verdict(pod, state, snapshot)
        ]

    def wrong(self, bound: dict[str, str]) -> list[tuple[str, str, Any]]:
        """Return the pods that were bound just now to a node that refuses them, where those are that were there or bound before."""
        found = []
        later = [name for name in bound if name in self.pods]
        for name in [*later]:
            node = bound[name]
            pod = msgspec.convert(self.pods[name], Pod)
            others = [each for key, each in self.pods.items() if key not in later]
            later.remove(name)
            rest = Snapshot.of(
                msgspec.convert(list(self.nodes.values()), list[Node]),
                msgspec.convert(others, list[Pod]),
                msgspec.convert(list(self.namespaces.values()), list[Namespace]),
            )
            pod.spec.node_name = ""
            if refusals := verdict(pod, rest.nodes[node], rest):
                found.append((name, node, refusals))
        return found


def apart(selector: dict[str, str] | None, key: str = "kubernetes.io/hostname", **more: Any) -> dict[str, Any]:
    """Return the `affinity` of a pod that demands to be apart from those that a selector means."""
    term = {"topologyKey": key, "labelSelector": None if selector is None else {"matchLabels": selector}, **more}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def ports(*numbers: int, address: str = "") -> list[dict[str, Any]]:
    """Return the containers of a pod that takes these host ports."""
    return [{"name": "c", "ports": [{"containerPort": n, "hostPort": n, "hostIP": address} for n in numbers]}]
