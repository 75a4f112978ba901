"""Tells the scheduler what the required anti-affinity of running pods requires of pending pods.

`ExistingAntiAffinity` follows which terms there are. Here a node gets the marks of terms among its labels, and the ask of a pod
that terms match gets conditions on labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from licorne.kube.objects import Node
from licorne.kube.pods import ask_with, constraints_text, node_update
from licorne.kube.predicates import ExistingAntiAffinity
from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.si.messages import Allocation, NodeAction, NodeUpdate

from .records import PodRecord
from .stages import Stage

if TYPE_CHECKING:
    from licorne.kube.predicates.terms import AntiAffinityTerm

    from .manager import Manager


class AntiAffinity:
    """The anti-affinity of a manager's pods. `existing` takes in every node, and every pod that runs or ends."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.existing = ExistingAntiAffinity()
        self._told: dict[str, tuple[str, ...]] = {}  # the marks that the scheduler knows, of nodes that have some

    def resubmit_matched(self) -> None:
        """Ask anew for the pending pods that changed terms match, and report the nodes whose marks have changed."""
        manager, existing = self._manager, self.existing
        changed_terms, existing.changed_terms = existing.changed_terms, {}
        if changed_terms:
            resubmit = partial(self._resubmit, changed_terms.values())
            for record in manager.pods.values():
                if record.stage is Stage.ASKED:
                    manager.run_isolated(record.pod, resubmit, record)
        changed, existing.changed_nodes = existing.changed_nodes, {}
        nodes = [
            self.node_update(manager.nodes[name], NodeAction.UPDATE)
            for name in changed
            if name in manager.nodes and existing.marks_of(name) != self._told.get(name, ())
        ]
        if nodes:
            manager.tell_of_nodes(nodes)

    def _resubmit(self, changed_terms: Collection[AntiAffinityTerm], record: PodRecord) -> None:
        labels = self._labels_of(record.pod.metadata.namespace)
        if any(term.matches(record.pod, labels) for term in changed_terms):
            self._manager.ask(record)

    def resubmit_namespace(self, namespace: str) -> None:
        """Ask anew for the pending pods of a namespace, whose labels have changed: other terms may match them."""
        for record in self._manager.pods.values():
            if record.stage is Stage.ASKED and record.pod.metadata.namespace == namespace:
                self._manager.run_isolated(record.pod, self._manager.ask, record)

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
        known = self._manager.namespaces.get(namespace)
        return {} if known is None else known.metadata.labels or {}
