"""Which pods a term counts, by which label of nodes, as a value: equal ones share one count (`licorne.core.nodes.domains`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from .constraints import (
    ATTACHED,
    CLAIM_IN_USE,
    CLAIMED,
    DISK_IN_USE,
    DRIVER,
    FIELD_NAME,
    LACKS_DEVICES,
    NodeConstraints,
    NodeLabels,
    Toleration,
)
from .terms import Attached, PodLabels, PodTerm, PodTerms, Selector, SpreadConstraint

TOLERATES_ALL: Final = (Toleration("", True, "", ""),)
ANY_NODE: Final = NodeConstraints(tolerations=TOLERATES_ALL)
AFFINITY_WEIGHT: Final = 1
"""The weight of required affinity of running pods to one that waits; kube-scheduler's `hardPodAffinityWeight`."""
Handle = tuple[str, str, str]
"""A namespace, and a label of pods; empty texts for any."""


class Counted(NamedTuple):
    """A value that says which pods are counted, and by which topology key.

    They are those that all `terms` mean; `held`: those that have the one term as their anti-affinity, or with a `weight` those
    that like, or below zero dislike, by so much to have it fulfilled; `spread`: those that a constraint counts, on nodes
    that meet `policy` and have all labels of `keys`; `mark`: those that hold it; `driver`: those with volumes of the driver;
    `claims`: those with claims of devices.
    """

    key: str
    terms: tuple[PodTerm, ...] = ()
    near: bool = False
    held: bool = False
    spread: SpreadConstraint | None = None
    keys: tuple[str, ...] = ()
    policy: NodeConstraints = ANY_NODE
    weight: int = 0
    mark: str = ""
    driver: str = ""
    claims: bool = False

    @property
    def by_name(self) -> bool:
        """Whether pods are counted that name what is counted, and no others."""
        return bool(self.mark or self.driver or self.claims)

    @property
    def reason(self) -> str:
        """Why nodes refuse an ask because of pods that name what is counted."""
        if self.driver:
            return f"{ATTACHED} {self.driver}"
        if self.claims:
            return LACKS_DEVICES
        return DISK_IN_USE if self.key else CLAIM_IN_USE

    def includes(self, pod: PodLabels) -> bool:
        """Return whether a pod that runs is counted; of `held`, whether one that waits is meant."""
        if self.spread is not None:
            return self.spread.counts(pod)
        return all(term.selects(pod, runs=self.held) for term in self.terms)

    def takes_part(self, labels: NodeLabels) -> bool:
        """Return whether the pods of a node count for a spread."""
        if len(self.keys) > 1 and not dict(labels.pairs).keys() >= {*self.keys}:
            return False
        return self.policy is ANY_NODE or self.policy.matches(labels)

    def handles(self) -> Iterator[Handle]:
        """Yield namespaces with a label of which each included pod has one; nothing if it may be in any namespace, or is named."""
        if self.by_name:
            return
        if self.spread is not None:
            yield (self.spread.namespace, *_demanded(self.spread.selector))
        elif self.terms[0].namespace_selector is None:
            for namespace in self.terms[0].namespaces:
                yield (namespace, *_demanded(self.terms[0].selector))


def held_by(terms: PodTerms) -> list[Counted]:
    """Return the counts of running pods' terms in which a pod with these terms is counted itself."""
    weights = dict.fromkeys(terms.affinity, AFFINITY_WEIGHT)
    for weight, term in terms.preferred.terms:
        weights[term] = weights.get(term, 0) + weight
    found = [Counted(term.topology_key, (term,), held=True) for term in terms.anti_affinity]
    return found + [Counted(term.topology_key, (term,), held=True, weight=one) for term, one in weights.items() if one]


def _demanded(selector: Selector) -> tuple[str, str]:
    """Return a label that a selector demands; empty texts if it demands none."""
    for one in selector or ():
        if one.operator == "In" and len(one.values) == 1:
            return one.key, one.values[0]
    return "", ""


def handles_of(pod: PodLabels) -> list[Handle]:
    """Return the handles under which counts that include the pod may be found."""
    return [(pod.namespace, "", ""), *((pod.namespace, key, value) for key, value in pod.labels)]


def counted_near(terms: PodTerms) -> list[Counted]:
    """Return what the affinity of an ask counts, by each topology key."""
    keys = dict.fromkeys(term.topology_key for term in terms.affinity)
    return [Counted(key, terms.affinity, near=True) for key in keys]


def counted_attached(attached: Attached) -> Counted:
    """Return what is counted of the volumes of a driver."""
    return Counted(DRIVER + attached.driver, driver=attached.driver)


CLAIMS: Final = Counted(CLAIMED, claims=True)
"""What is counted of claims of devices."""


def counted_spread(one: SpreadConstraint, keys: tuple[str, ...], constraints: NodeConstraints) -> Counted:
    """Return what a spread constraint counts for an ask with these node constraints."""
    policy = NodeConstraints(
        constraints.selector if one.honor_affinity else (),
        constraints.affinity if one.honor_affinity else None,
        constraints.tolerations if one.honor_taints else TOLERATES_ALL,
    )
    alike = SpreadConstraint(one.topology_key, one.selector, one.namespace)
    return Counted(one.topology_key, spread=alike, keys=keys, policy=ANY_NODE if policy == ANY_NODE else policy)


def domains_of(labels: NodeLabels) -> dict[str, str]:
    """Return the value of a node by topology key: its labels, the empty key, whose one domain is the cluster, and its name."""
    pairs = dict(labels.pairs)
    return {**pairs, "": "", CLAIMED: pairs.get(FIELD_NAME, "")}
