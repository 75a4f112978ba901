"""Which nodes the required anti-affinity of running pods keeps other pods off, followed change by change.

A demand of a running pod holds for all nodes that share a label with its node. It reaches the scheduler as one more
condition of each waiting pod that the demand means, so that the scheduler decides by what it compares anyway:

- Where few nodes share the label, such as its name, each of these gets a mark, which is one more label, and the condition
  is that the mark is not there. When pods with the demand begin and end, marks change, and the waiting pods stay as they
  are; the change of a node's labels is what wakes them.
- Where very many nodes share the label, as in a zone, the condition is that the label has another value than the zones
  where such pods run. When they begin and end in a zone, the waiting pods change, and its thousands of nodes do not.

A demand that means no waiting pod costs nothing. Most clusters are full of such demands: replicas that keep each other
apart, placed by another scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from licorne.kube.objects import Pod

from .terms import Demand, demands

NO_LABELS: Mapping[str, str] = {}
WIDE_NODES = 16
WIDE_VALUES = 16
"""A label is shared by very many nodes if it has at most so many values, and so many nodes for each of them."""


class _Held:
    """A demand of at least one running pod: on which nodes they are, and which values of its label these have.

    `heeded`: it has meant a pod that waits. `by_value`: how it is told since then, by the values or by marks of nodes.
    """

    __slots__ = ("by_value", "demand", "heeded", "holders", "values")

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.holders: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self.heeded = False
        self.by_value = False


class Repulsion:
    """The demands of all running pods. `fresh`: those that may mean other conditions for waiting pods than before.

    Whoever has asked anew for the pods that they mean clears it.

    `changed`: the nodes whose marks may differ from before; likewise.
    """

    def __init__(self) -> None:
        self.fresh: dict[str, Demand] = {}
        self.changed: dict[str, None] = {}
        self._nodes: dict[str, Mapping[str, str]] = {}
        self._pods: dict[str, tuple[str, list[Demand]]] = {}
        self._held: dict[str, _Held] = {}
        self._by_namespace: dict[str, dict[str, _Held]] = {}
        self._by_selector: dict[str, _Held] = {}
        self._marked: dict[str, _Held] = {}
        self._keys: Counter[str] = Counter()  # how many demands are about each label
        self._domains: dict[str, dict[str, dict[str, None]]] = {}  # by label in use and value: names of nodes

    # -- what happens -------------------------------------------------------------------------------------------

    def node_seen(self, name: str, labels: Mapping[str, str]) -> None:
        """Take in a node that is new, or has other labels."""
        before = self._nodes.get(name, NO_LABELS)
        if name in self._nodes and before == labels:
            return
        self._move(name, before, labels)
        self._nodes[name] = labels
        self.changed[name] = None

    def node_gone(self, name: str) -> None:
        """Forget a node. The pods that ran there demand nothing while it is away."""
        if name in self._nodes:
            self._move(name, self._nodes.pop(name), NO_LABELS)

    def runs(self, pod: Pod, node: str) -> None:
        """Take in that a pod runs on a node; the last word counts."""
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        if known is not None:
            if known[0] == node:
                return
            self.gone(uid)
        made = demands(pod)
        if not made:
            return
        self._pods[uid] = (node, made)
        for demand in made:
            held = self._held.get(demand.mark) or self._begin(demand)
            held.holders[node] += 1
            self._count(held, self._nodes.get(node, NO_LABELS), 1)

    def gone(self, uid: str) -> None:
        """Forget a pod that runs no more."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        node, made = known
        for demand in made:
            held = self._held[demand.mark]
            held.holders[node] -= 1
            if not held.holders[node]:
                del held.holders[node]
            self._count(held, self._nodes.get(node, NO_LABELS), -1)
            if not held.holders:
                self._end(held)

    # -- what follows -------------------------------------------------------------------------------------------

    def conditions(self, pod: Pod, of_namespace: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the conditions on labels of nodes which keep the pod off where a demand means it, in a fixed order.

        From now on changes of these demands are told by `fresh` and `changed`. `of_namespace`: the labels of the pod's
        namespace.
        """
        means = [held for held in self._candidates(pod.metadata.namespace) if held.demand.means(pod, of_namespace)]
        found: list[dict[str, Any]] = []
        for held in sorted(means, key=lambda held: held.demand.mark):
            self._heed(held)
            if not held.by_value:
                found.append({"key": held.demand.mark, "operator": "DoesNotExist"})
            elif held.values:
                found.append({"key": held.demand.topology_key, "operator": "NotIn", "values": sorted(held.values)})
        return found

    def marks_of(self, node: str) -> tuple[str, ...]:
        """Return the marks that a node carries."""
        labels = self._nodes.get(node, NO_LABELS)
        marks = [m for m, held in self._marked.items() if labels.get(held.demand.topology_key) in held.values]
        return tuple(sorted(marks))

    # -- inside -------------------------------------------------------------------------------------------------

    def _candidates(self, namespace: str) -> Iterator[_Held]:
        yield from self._by_namespace.get(namespace, {}).values()
        for mark, held in self._by_selector.items():
            if mark not in self._by_namespace.get(namespace, {}):
                yield held

    def _begin(self, demand: Demand) -> _Held:
        held = self._held[demand.mark] = _Held(demand)
        self.fresh[demand.mark] = demand
        key = demand.topology_key
        self._keys[key] += 1
        if key not in self._domains:
            domain = self._domains[key] = {}
            for name, labels in self._nodes.items():
                if key in labels:
                    domain.setdefault(labels[key], {})[name] = None
        for namespace in demand.namespaces:
            self._by_namespace.setdefault(namespace, {})[demand.mark] = held
        if demand.namespace_selector is not None:
            self._by_selector[demand.mark] = held
        return held

    def _end(self, held: _Held) -> None:
        mark = held.demand.mark
        del self._held[mark]
        self._by_selector.pop(mark, None)
        self._marked.pop(mark, None)
        for namespace in held.demand.namespaces:
            del self._by_namespace[namespace][mark]
            if not self._by_namespace[namespace]:
                del self._by_namespace[namespace]
        self._keys[held.demand.topology_key] -= 1
        if not self._keys[held.demand.topology_key]:
            del self._keys[held.demand.topology_key]
            self._domains.pop(held.demand.topology_key, None)

    def _heed(self, held: _Held) -> None:
        if held.heeded:
            return
        held.heeded = True
        domain = self._domains[held.demand.topology_key]
        nodes = sum(map(len, domain.values()))
        held.by_value = len(domain) <= WIDE_VALUES and nodes >= WIDE_NODES * max(1, len(domain))
        if not held.by_value:
            self._marked[held.demand.mark] = held
            for value in held.values:
                self.changed |= self._sharing(held.demand.topology_key, value)

    def _count(self, held: _Held, labels: Mapping[str, str], change: int) -> None:
        """Count one pod more or less under the value that its node has of the demand's label."""
        key = held.demand.topology_key
        value = labels.get(key)
        if value is None:
            return
        before = held.values[value]
        held.values[value] += change
        if not held.values[value]:
            del held.values[value]
        if held.heeded and not (before and before + change):
            if held.by_value:
                self.fresh[held.demand.mark] = held.demand
            else:
                self.changed |= self._sharing(key, value)

    def _sharing(self, key: str, value: str) -> dict[str, None]:
        """Return the nodes that have this label, which a demand is about."""
        return self._domains[key].get(value, {})

    def _move(self, name: str, before: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Take in other labels of a node: in the domains, and in what its pods demand."""
        for key, domain in self._domains.items():
            if before.get(key) == labels.get(key):
                continue
            if key in before:
                del domain[before[key]][name]
                if not domain[before[key]]:
                    del domain[before[key]]
            if key in labels:
                domain.setdefault(labels[key], {})[name] = None
        for held in self._held.values():
            count = held.holders.get(name, 0)
            key = held.demand.topology_key
            if count and before.get(key) != labels.get(key):
                self._count(held, before, -count)
                self._count(held, labels, count)
