"""Which nodes the required anti-affinity of running pods keeps other pods off, followed change by change.

A demand of a running pod holds for all nodes that share a label with its node. It reaches the scheduler as a mark: each
of these nodes gets one more label, and each waiting pod that the demand means one more condition, that the label is not
there. So the scheduler decides by what it compares anyway, and when the last such pod has gone, the change of the nodes'
labels is what wakes the pods that waited for it.

A demand that means no waiting pod costs no mark. Most clusters are full of such demands: replicas that keep each other
apart, placed by another scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from licorne.kube.objects import Pod

from .terms import Demand, demands

NO_LABELS: Mapping[str, str] = {}


class _Held:
    """A demand of at least one running pod: on which nodes they are, and which values of its label these have."""

    __slots__ = ("demand", "holders", "marked", "values")

    def __init__(self, demand: Demand) -> None:
        self.demand = demand
        self.holders: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self.marked = False


class Repulsion:
    """The demands of all running pods. `fresh`: those that have appeared; whoever takes note of them clears it.

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

    def marks_against(self, pod: Pod, of_namespace: Mapping[str, str]) -> tuple[str, ...]:
        """Return the marks of all demands that mean the pod; from now on nodes carry them.

        `of_namespace`: the labels of the pod's namespace.
        """
        found = []
        for held in self._candidates(pod.metadata.namespace):
            if held.demand.means(pod, of_namespace):
                found.append(held.demand.mark)
                self._mark(held)
        return tuple(sorted(found))

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
        self.fresh.pop(mark, None)
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

    def _mark(self, held: _Held) -> None:
        if not held.marked:
            held.marked = True
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
        if held.marked and not (before and before + change):
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
