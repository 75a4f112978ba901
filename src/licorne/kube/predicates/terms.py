"""One demand of a pod's required anti-affinity, and which pods it means.

A demand keeps the pods that it means off every node that shares a label with the node of its owner: of the same zone, or
of the same name. Its `matchLabelKeys` are a part of its selector by the time it is stored, because the API server merges
them. It means pods of its own namespace unless it names others.
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


class Demand(msgspec.Struct, frozen=True):
    """A demand that keeps pods off nodes. `mark` follows from all the others, so equal demands of many pods are one.

    `namespaces`: the pods that are meant are in one of these, or in one whose labels `namespace_selector` means.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None
    mark: str

    def means(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the pod must keep off, given the labels of its namespace; none if that is not known."""
        meta = pod.metadata
        if meta.namespace not in self.namespaces and not selects(self.namespace_selector, namespace_labels):
            return False
        return selects(self.selector, meta.labels or {})


def demands(pod: Pod) -> list[Demand]:
    """Return what a pod's required anti-affinity demands of the pods that come after it."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return []
    return [_demand(term, pod.metadata.namespace) for term in affinity.pod_anti_affinity.required or ()]


def _demand(term: PodAffinityTerm, home: str) -> Demand:
    namespaces = tuple(sorted(set(term.namespaces or ())))
    if not namespaces and term.namespace_selector is None:
        namespaces = (home,)
    content = (term.topology_key, term.label_selector, namespaces, term.namespace_selector)
    text = msgspec.json.encode(content, order="deterministic")
    mark = f"{MARK}{term.topology_key}:{hashlib.sha256(text).hexdigest()[:20]}"
    return Demand(term.topology_key, term.label_selector, namespaces, term.namespace_selector, mark)
