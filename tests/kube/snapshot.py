"""A cluster at one moment: what runs on each node, and what that keeps off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from licorne.config.kubernetes import QuantityError
from licorne.core.nodes.constraints import NodeLabels, parse_ports
from licorne.kube.objects import Namespace, Node, Pod
from licorne.kube.objects.pods import TopologySpreadConstraint
from licorne.kube.pods.constraints import host_ports
from licorne.kube.pods.nodes import node_update, read_allocatable
from licorne.kube.pods.resources import read_resources
from licorne.kube.pods.work import is_over
from licorne.si.messages import NodeAction

from .domains import Domains


@dataclass
class NodeState:
    """A node, and what the pods on it take. `labels` hold its taints and the taken host ports too."""

    node: Node
    labels: NodeLabels
    allocatable: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)

    def place(self, pod: Pod) -> None:
        """Count a pod as running here."""
        try:
            amounts = read_resources(pod)
        except QuantityError:
            amounts = {"pods": 1}
        for name, amount in amounts.items():
            self.used[name] = self.used.get(name, 0) + amount
        ports = parse_ports(host_ports(pod))
        if ports:
            self.labels = replace(self.labels, ports=tuple(sorted({*self.labels.ports, *ports})))


@dataclass
class Snapshot:
    """A cluster at one moment. `places`: the pods on its nodes; `spread`: the default constraints of pods that have none."""

    nodes: dict[str, NodeState] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)
    places: list[tuple[Pod, str]] = field(default_factory=list)
    spread: tuple[TopologySpreadConstraint, ...] = ()
    _domains: Domains | None = None

    @classmethod
    def of(cls, nodes: Iterable[Node], pods: Iterable[Pod], namespaces: Iterable[Namespace] = ()) -> Snapshot:
        """Return the snapshot of these objects; pods without a node, of an unknown node or at an end count for nothing."""
        made = cls()
        for node in nodes:
            attributes = node_update(node, NodeAction.CREATE).attributes or {}
            labels = NodeLabels.from_attributes(attributes)
            made.nodes[node.metadata.name] = NodeState(node, labels, read_allocatable(node))
        for namespace in namespaces:
            made.namespaces[namespace.metadata.name] = namespace.metadata.labels or {}
        for pod in pods:
            if not is_over(pod):
                made.place(pod, pod.spec.node_name)
        return made

    def place(self, pod: Pod, node: str) -> None:
        """Count a pod as running on this node."""
        if node in self.nodes:
            self.nodes[node].place(pod)
            self.places.append((pod, node))
            self._domains = None

    @property
    def domains(self) -> Domains:
        """What pods demand of each other."""
        if self._domains is None:
            nodes = {name: state.node for name, state in self.nodes.items()}
            self._domains = Domains(nodes, self.places, self.namespaces)
        return self._domains
