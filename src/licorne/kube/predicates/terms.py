"""One term of a pod's required anti-affinity, and which pods it matches.

A term keeps the pods that it matches off every node that shares its topology key with the node of its owner: of the same
zone, or of the same name. Its `matchLabelKeys` are a part of its selector by the time it is stored, because the API server
merges them. It matches pods of its own namespace unless it names others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from licorne.core.nodes.constraints import MARK
from licorne.kube.objects import Pod
from licorne.kube.objects.meta import LabelSelector
from licorne.kube.objects.pods import PodAffinityTerm

from .selectors import selects


class AntiAffinityTerm(msgspec.Struct, frozen=True):
    """A term that keeps pods off nodes. `mark` follows from all the others, so equal terms of many pods are one.

    `namespaces`: the pods that it matches are in one of these, or in one whose labels `namespace_selector` selects.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    mark: str

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the pod must keep off, given the labels of its namespace; none if that is not known."""
        meta = pod.metadata
        if meta.namespace not in self.namespaces and not selects(self.namespace_selector, namespace_labels):
            return False
        return selects(self.selector, meta.labels or {})


def anti_affinity_terms(pod: Pod) -> list[AntiAffinityTerm]:
    """Return the terms of a pod's required anti-affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return []
    return [_term(term, pod.metadata.namespace) for term in affinity.pod_anti_affinity.required or ()]


def _term(term: PodAffinityTerm, home: str) -> AntiAffinityTerm:
    namespaces = tuple(sorted(set(term.namespaces or ())))
    if not namespaces and term.namespace_selector is None:
        namespaces = (home,)
    content = (term.topology_key, term.label_selector, namespaces, term.namespace_selector)
    text = msgspec.json.encode(content, order="deterministic")
    mark = f"{MARK}{term.topology_key}:{hashlib.sha256(text).hexdigest()[:20]}"
    return AntiAffinityTerm(term.topology_key, term.label_selector, namespaces, term.namespace_selector, mark)
