"""What pods demand of each other and how they spread, worked out from all pods and nodes, without any code of licorne.

The rules are those of docs/spec/kube-scheduler.md, sections 2 and 3. Nothing is remembered, so nothing can be stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from licorne.kube.objects import Node, Pod
from licorne.kube.objects.meta import LabelSelector
from licorne.kube.objects.pods import PodAffinity, PodAffinityTerm, TopologySpreadConstraint

AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD: Final = "node(s) didn't match pod topology spread constraints"
NO_KEY: Final = f"{SPREAD} (missing required label)"
UNRESOLVABLE: Final = (AFFINITY, NO_KEY)
"""The reasons that no eviction removes."""
Labels = Mapping[str, str]


def selects(selector: LabelSelector | None, labels: Labels) -> bool:
    """Return whether a selector means an object with these labels; none means no object."""
    if selector is None:
        return False
    found = [labels.get(key) == value for key, value in (selector.match_labels or {}).items()]
    for one in selector.match_expressions or ():
        value, values = labels.get(one.key), one.values or ()
        answers = {"In": value in values, "NotIn": value not in values}
        found.append(({"Exists": value is not None, "DoesNotExist": value is None} | answers)[one.operator])
    return all(found)


def terms_of(demand: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    """Return the required terms of an affinity or anti-affinity."""
    return () if demand is None else demand.required or ()


def labels_of(one: Pod | Node) -> Labels:
    """Return the labels of an object."""
    return one.metadata.labels or {}


@dataclass
class Domains:
    """A cluster at one moment: nodes by name, pods that have not ended with the nodes they have, labels of namespaces."""

    nodes: Mapping[str, Node]
    places: Iterable[tuple[Pod, str]]
    namespaces: Mapping[str, Labels] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.placed = [(pod, labels_of(self.nodes[node])) for pod, node in self.places if node in self.nodes]

    def matches(self, term: PodAffinityTerm, owner: Pod, other: Pod, *, runs: bool) -> bool:
        """Return whether a term of a pod matches another pod; `runs`: whether the owner of the term runs."""
        home = other.metadata.namespace
        selector = term.namespace_selector
        named = term.namespaces or ()
        if not named and selector is None:
            named = (owner.metadata.namespace,)
        is_empty = selector is not None and not (selector.match_labels or selector.match_expressions)
        known = home in self.namespaces or runs or is_empty
        selected = known and selects(selector, self.namespaces.get(home, {}))
        return (home in named or selected) and selects(term.label_selector, labels_of(other))

    def apart(self, pod: Pod, node: str) -> str:
        """Return why pods among each other refuse a node (InterPodAffinity), "" if they do not."""
        here = labels_of(self.nodes[node])
        affinity = pod.spec.affinity
        near, far = (None, None) if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
        wanted = terms_of(near)
        mates = [
            there for one, there in self.placed if all(self.matches(term, pod, one, runs=False) for term in wanted)
        ]
        keys = [term.topology_key for term in wanted]
        if not all(key in here and any(there.get(key) == here[key] for there in mates) for key in keys):
            is_first = not any(key in there for there in mates for key in keys)
            own = all(self.matches(term, pod, pod, runs=False) for term in wanted)
            if not (is_first and own and all(key in here for key in keys)):
                return AFFINITY
        for term in terms_of(far):
            key = term.topology_key
            if any(_same(key, here, there) and self.matches(term, pod, one, runs=False) for one, there in self.placed):
                return ANTI_AFFINITY
        for one, there in self.placed:
            theirs = one.spec.affinity and one.spec.affinity.pod_anti_affinity
            for term in terms_of(theirs or None):
                if _same(term.topology_key, here, there) and self.matches(term, one, pod, runs=True):
                    return EXISTING
        return ""

    def spread(
        self,
        pod: Pod,
        node: str,
        constraints: Iterable[TopologySpreadConstraint],
        admits: Callable[[Node], tuple[bool, bool]],
    ) -> str:
        """Return why constraints of a spread refuse a node (PodTopologySpread), "" if they do not.

        `admits`: whether node affinity, and whether the taints, let the pod in on a node.
        """
        here = labels_of(self.nodes[node])
        hard = [one for one in constraints if one.when_unsatisfiable == "DoNotSchedule"]
        with_keys = [one for one in self.nodes.values() if all(c.topology_key in labels_of(one) for c in hard)]
        for one in hard:
            key = one.topology_key
            if key not in here:
                return NO_KEY
            counted = []
            for each in with_keys:
                by_affinity, by_taints = admits(each)
                if (by_affinity or one.node_affinity_policy == "Ignore") and (
                    by_taints or one.node_taints_policy != "Honor"
                ):
                    counted.append(each)
            counts = {labels_of(each)[key]: 0 for each in counted}
            names = {each.metadata.name for each in counted}
            for other, where in self.places:
                if where in names and not other.metadata.deletion_timestamp and self._is_counted(one, pod, other):
                    counts[labels_of(self.nodes[where])[key]] += 1
            least = 0 if len(counts) < (one.min_domains or 1) else min(counts.values())
            own = selects(one.label_selector, labels_of(pod))
            if counts.get(here[key], 0) + own - least > one.max_skew:
                return SPREAD
        return ""

    def _is_counted(self, one: TopologySpreadConstraint, pod: Pod, other: Pod) -> bool:
        selector = one.label_selector
        if selector is None or not (selector.match_labels or selector.match_expressions):
            mine = {key: labels_of(pod)[key] for key in one.match_label_keys or () if key in labels_of(pod)}
            if not mine or selector is None:
                return False
        same = [labels_of(other).get(k) == labels_of(pod)[k] for k in one.match_label_keys or () if k in labels_of(pod)]
        return other.metadata.namespace == pod.metadata.namespace and selects(selector, labels_of(other)) and all(same)


def _same(key: str, here: Labels, there: Labels) -> bool:
    """Return whether two nodes are in the same domain."""
    return key in here and here[key] == there.get(key)
