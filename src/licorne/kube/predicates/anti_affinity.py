"""Which nodes the required anti-affinity of running pods keeps other pods off, followed change by change.

A term of a running pod holds for all nodes that share a label with its node. It reaches the scheduler as one more
condition of each pending pod that the term matches, so that the scheduler decides by what it compares anyway:

- Where few nodes share the label, such as its name, each of these gets a mark, which is one more label, and the condition
  is that the mark is not there. When pods with the term begin and end, marks change, and the pending pods stay as they
  are; the change of a node's labels is what wakes them.
- Where very many nodes share the label, as in a zone, the condition is that the label has another value than the zones
  where such pods run. When they begin and end in a zone, the pending pods change, and its thousands of nodes do not.

A term that matches no pending pod costs nothing. Most clusters are full of such terms: replicas that keep each other
apart, placed by another scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from licorne.kube.objects import Pod

from .terms import AntiAffinityTerm, anti_affinity_terms

NO_LABELS: Mapping[str, str] = {}
WIDE_NODES = 16
WIDE_VALUES = 16
"""A label is shared by very many nodes if it has at most so many values, and so many nodes for each of them."""


class _Held:
    """A term of at least one running pod: on which nodes they are, and which values of its label these have.

    `matched`: at least one pending pod has matched it. `by_value`: since then the scheduler is told the values of its label, and not
    marks of nodes.
    """

    __slots__ = ("by_value", "holders", "matched", "term", "values")

    def __init__(self, term: AntiAffinityTerm) -> None:
        self.term = term
        self.holders: Counter[str] = Counter()
        self.values: Counter[str] = Counter()
        self.matched = False
        self.by_value = False


class ExistingAntiAffinity:
    """The terms of all running pods.

    `changed_terms`: those that may change the conditions of pending pods; the caller clears it after resubmitting these pods.
    `changed_nodes`: nodes whose marks may have changed; the caller clears it after reporting these nodes.
    """

    def __init__(self) -> None:
        self.changed_terms: dict[str, AntiAffinityTerm] = {}
        self.changed_nodes: dict[str, None] = {}
        self._nodes: dict[str, Mapping[str, str]] = {}
        self._pods: dict[str, tuple[str, list[AntiAffinityTerm]]] = {}
        self._held: dict[str, _Held] = {}
        self._by_namespace: dict[str, dict[str, _Held]] = {}
        self._by_selector: dict[str, _Held] = {}
        self._marked: dict[str, _Held] = {}
        self._keys: Counter[str] = Counter()  # how many terms are about each label
        self._domains: dict[str, dict[str, dict[str, None]]] = {}  # by label in use and value: names of nodes

    # -- what happens -------------------------------------------------------------------------------------------

    def node_updated(self, name: str, labels: Mapping[str, str]) -> None:
        """Take in a node that is new, or has other labels."""
        before = self._nodes.get(name, NO_LABELS)
        if name in self._nodes and before == labels:
            return
        self._move(name, before, labels)
        self._nodes[name] = labels
        self.changed_nodes[name] = None

    def node_removed(self, name: str) -> None:
        """Forget a node. The terms of pods that ran there keep no pod off while it is away."""
        if name in self._nodes:
            self._move(name, self._nodes.pop(name), NO_LABELS)

    def pod_added(self, pod: Pod, node: str) -> None:
        """Take in that a pod runs on a node; the last word counts."""
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        if known is not None:
            if known[0] == node:
                return
            self.pod_removed(uid)
        made = anti_affinity_terms(pod)
        if not made:
            return
        self._pods[uid] = (node, made)
        for term in made:
            held = self._held.get(term.mark) or self._begin(term)
            held.holders[node] += 1
            self._count(held, self._nodes.get(node, NO_LABELS), 1)

    def pod_removed(self, uid: str) -> None:
        """Forget a pod that runs no more."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        node, made = known
        for term in made:
            held = self._held[term.mark]
            held.holders[node] -= 1
            if not held.holders[node]:
                del held.holders[node]
            self._count(held, self._nodes.get(node, NO_LABELS), -1)
            if not held.holders:
                self._end(held)

    # -- what follows -------------------------------------------------------------------------------------------

    def conditions(self, pod: Pod, of_namespace: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the conditions on labels of nodes which keep the pod off where a term matches it, in a fixed order.

        From now on changes of these terms are told by `changed_terms` and `changed_nodes`. `of_namespace`: the labels of the pod's
        namespace.
        """
        matching = [held for held in self._candidates(pod.metadata.namespace) if held.term.matches(pod, of_namespace)]
        found: list[dict[str, Any]] = []
        for held in sorted(matching, key=lambda held: held.term.mark):
            self._match(held)
            if not held.by_value:
                found.append({"key": held.term.mark, "operator": "DoesNotExist"})
            elif held.values:
                found.append({"key": held.term.topology_key, "operator": "NotIn", "values": sorted(held.values)})
        return found

    def marks_of(self, node: str) -> tuple[str, ...]:
        """Return the marks that a node carries."""
        labels = self._nodes.get(node, NO_LABELS)
        marks = [m for m, held in self._marked.items() if labels.get(held.term.topology_key) in held.values]
        return tuple(sorted(marks))

    # -- inside -------------------------------------------------------------------------------------------------

    def _candidates(self, namespace: str) -> Iterator[_Held]:
        yield from self._by_namespace.get(namespace, {}).values()
        for mark, held in self._by_selector.items():
            if mark not in self._by_namespace.get(namespace, {}):
                yield held

    def _begin(self, term: AntiAffinityTerm) -> _Held:
        held = self._held[term.mark] = _Held(term)
        self.changed_terms[term.mark] = term
        key = term.topology_key
        self._keys[key] += 1
        if key not in self._domains:
            domain = self._domains[key] = {}
            for name, labels in self._nodes.items():
                if key in labels:
                    domain.setdefault(labels[key], {})[name] = None
        for namespace in term.namespaces:
            self._by_namespace.setdefault(namespace, {})[term.mark] = held
        if term.namespace_selector is not None:
            self._by_selector[term.mark] = held
        return held

    def _end(self, held: _Held) -> None:
        mark = held.term.mark
        del self._held[mark]
        self._by_selector.pop(mark, None)
        self._marked.pop(mark, None)
        for namespace in held.term.namespaces:
            del self._by_namespace[namespace][mark]
            if not self._by_namespace[namespace]:
                del self._by_namespace[namespace]
        self._keys[held.term.topology_key] -= 1
        if not self._keys[held.term.topology_key]:
            del self._keys[held.term.topology_key]
            self._domains.pop(held.term.topology_key, None)

    def _match(self, held: _Held) -> None:
        if held.matched:
            return
        held.matched = True
        domain = self._domains[held.term.topology_key]
        nodes = sum(map(len, domain.values()))
        held.by_value = len(domain) <= WIDE_VALUES and nodes >= WIDE_NODES * max(1, len(domain))
        if not held.by_value:
            self._marked[held.term.mark] = held
            for value in held.values:
                self.changed_nodes |= self._sharing(held.term.topology_key, value)

    def _count(self, held: _Held, labels: Mapping[str, str], change: int) -> None:
        """Add `change` to the number of pods on nodes with the same value of the term's topology key as the node with these labels."""
        key = held.term.topology_key
        value = labels.get(key)
        if value is None:
            return
        before = held.values[value]
        held.values[value] += change
        if not held.values[value]:
            del held.values[value]
        if held.matched and not (before and before + change):
            if held.by_value:
                self.changed_terms[held.term.mark] = held.term
            else:
                self.changed_nodes |= self._sharing(key, value)

    def _sharing(self, key: str, value: str) -> dict[str, None]:
        """Return the nodes whose topology key `key` has this value."""
        return self._domains[key].get(value, {})

    def _move(self, name: str, before: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Move a node from its old labels to its new ones: among the topology domains, and in the counts of its pods' terms."""
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
            key = held.term.topology_key
            if count and before.get(key) != labels.get(key):
                self._count(held, before, -count)
                self._count(held, labels, count)
