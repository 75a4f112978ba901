"""What the required anti-affinity of running pods means to nodes and to pods that wait, told to the scheduler.

`Repulsion` follows which demands there are. Here the scheduler is told: a node gets the marks of demands among its labels,
and the ask of a pod that demands mean gets conditions on labels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from licorne.kube.objects import Node
from licorne.kube.pods import constraints_text, node_info
from licorne.kube.predicates import Repulsion
from licorne.si import v19
from licorne.si.constants import TAG_NODE_CONSTRAINTS

from .records import PodRecord
from .stages import Stage

if TYPE_CHECKING:
    from licorne.kube.predicates.terms import Demand

    from .manager import Manager


class Demands:
    """The demands of the pods of a manager. `repulsion` is told of every node, and of every pod that runs or ends."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.repulsion = Repulsion()
        self._told: dict[str, tuple[str, ...]] = {}  # the marks that the scheduler knows, of nodes that have some

    def heed(self) -> None:
        """Let the pods that wait heed the demands that have changed, and tell the scheduler of nodes with other marks."""
        manager, repulsion = self._manager, self.repulsion
        fresh, repulsion.fresh = repulsion.fresh, {}
        if fresh:
            heed = partial(self._heed, fresh.values())
            for record in manager.pods.values():
                if record.stage is Stage.ASKED:
                    manager.apart(record.pod, heed, record)
        changed, repulsion.changed = repulsion.changed, {}
        nodes = [
            self.node_info(manager.nodes[name], v19.ActionFromRM.UPDATE)
            for name in changed
            if name in manager.nodes and repulsion.marks_of(name) != self._told.get(name, ())
        ]
        if nodes:
            manager.api.update_node(v19.NodeRequest(rm_id=manager.rm_id, nodes=nodes))

    def _heed(self, fresh: Collection[Demand], record: PodRecord) -> None:
        labels = self._labels_of(record.pod.metadata.namespace)
        if any(demand.means(record.pod, labels) for demand in fresh):
            self._manager.ask(record)

    def heed_again(self, namespace: str) -> None:
        """Look anew at which demands mean the pods of a namespace, whose labels are others now."""
        for record in self._manager.pods.values():
            if record.stage is Stage.ASKED and record.pod.metadata.namespace == namespace:
                self._manager.apart(record.pod, self._manager.ask, record)

    def ask_of(self, record: PodRecord) -> v19.Allocation:
        """Return the ask of a pod, with what demands keep it off, and whether it is its application's originator."""
        ask = record.work.ask
        if record.is_driver:
            ask = msgspec.structs.replace(ask, originator=True)
        conditions = self.repulsion.conditions(record.pod, self._labels_of(record.pod.metadata.namespace))
        if not conditions:
            return ask
        tags = {**ask.allocation_tags, TAG_NODE_CONSTRAINTS: constraints_text(record.pod, conditions)}
        return msgspec.structs.replace(ask, allocation_tags=tags)

    def node_info(self, node: Node, action: v19.ActionFromRM) -> v19.NodeInfo:
        """Return the message about a node, with its marks, which counts as told."""
        name = node.metadata.name
        self.repulsion.changed.pop(name, None)
        marks = self.repulsion.marks_of(name)
        if marks:
            self._told[name] = marks
        else:
            self._told.pop(name, None)
        return node_info(node, action, marks)

    def node_gone(self, name: str) -> None:
        """Forget a node."""
        self.repulsion.node_gone(name)
        self._told.pop(name, None)

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        known = self._manager.namespaces.get(namespace)
        return {} if known is None else known.metadata.labels or {}
