"""Tells the scheduler what the required anti-affinity of running pods requires of pending pods.

`ExistingAntiAffinity` follows which terms there are. Here a node gets the marks of terms among its labels, and the ask of a pod
that terms match gets conditions on labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from licorne.kube.objects import Node
from licorne.kube.pods.constraints import constraints_text
from licorne.kube.pods.nodes import node_update
from licorne.kube.pods.work import ask_with
from licorne.kube.predicates import ExistingAntiAffinity
from licorne.kube.predicates.terms import AntiAffinityTerm
from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.si.messages import Allocation, NodeAction, NodeUpdate

from .records import PodRecord, Records


class AntiAffinity:
    """The anti-affinity of all pods. `existing` takes in every node, and every pod that runs or ends."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.existing = ExistingAntiAffinity()
        self._told: dict[str, tuple[str, ...]] = {}  # the marks that the scheduler knows, of nodes that have some

    def take_changed_terms(self) -> Collection[AntiAffinityTerm]:
        """Return the terms that have changed since the last call: pending pods that one matches are to be asked for anew."""
        changed, self.existing.changed_terms = self.existing.changed_terms, {}
        return changed.values()

    def matches(self, terms: Collection[AntiAffinityTerm], record: PodRecord) -> bool:
        """Return whether one of these terms matches a pod."""
        labels = self._labels_of(record.pod.metadata.namespace)
        return any(term.matches(record.pod, labels) for term in terms)

    def take_changed_nodes(self) -> list[NodeUpdate]:
        """Return the messages about the nodes whose marks have changed; the caller sends them."""
        changed, self.existing.changed_nodes = self.existing.changed_nodes, {}
        return [
            self.node_update(self._records.nodes[name], NodeAction.UPDATE)
            for name in changed
            if name in self._records.nodes and self.existing.marks_of(name) != self._told.get(name, ())
        ]

    def ask_of(self, record: PodRecord) -> Allocation:
        """Return the ask of a pod, with the conditions of the terms that match it, and whether it is its application's originator."""
        ask = record.work.ask
        if record.is_driver:
            ask = ask_with(ask, originator=True)
        conditions = self.existing.conditions(record.pod, self._labels_of(record.pod.metadata.namespace))
        if not conditions:
            return ask
        return ask_with(ask, tags={**(ask.tags or {}), TAG_NODE_CONSTRAINTS: constraints_text(record.pod, conditions)})

    def node_update(self, node: Node, action: NodeAction) -> NodeUpdate:
        """Return the message about a node with its marks; the caller sends it."""
        name = node.metadata.name
        self.existing.changed_nodes.pop(name, None)
        marks = self.existing.marks_of(name)
        if marks:
            self._told[name] = marks
        else:
            self._told.pop(name, None)
        return node_update(node, action, marks)

    def node_gone(self, name: str) -> None:
        """Forget a node."""
        self.existing.node_removed(name)
        self._told.pop(name, None)

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        known = self._records.namespaces.get(namespace)
        return {} if known is None else known.metadata.labels or {}
