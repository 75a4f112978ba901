"""What a pod is for the terms of other pods, and what it demands of them, as two tags of its ask.

The scheduler does what these say (docs/spec/kube-scheduler.md, sections 2 and 3; `licorne.core.nodes.terms` has the form).
It refuses a selector that it does not understand, where kube-scheduler selects nothing by it; so does what is written here.
The `matchLabelKeys` of affinity terms are a part of their selectors by the time a pod is stored, because the API server
merges them; those of spread constraints need not be.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from licorne.kube.objects import Namespace, Pod
from licorne.kube.objects.meta import LabelSelector, LabelSelectorRequirement, Object
from licorne.kube.objects.pods import PodAffinity, PodAffinityTerm, TopologySpreadConstraint

from .selectors import is_selector
from .spreading import HARD


class _Described(Object):
    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str] | None = None
    terminating: bool = False


class _Terms(Object):
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()


def pod_text(pod: Pod, namespace: Namespace | None) -> str:
    """Return what a pod is for the terms of others; `namespace` is its own, None if it is not there."""
    meta = pod.metadata
    of_namespace = None if namespace is None else namespace.metadata.labels or {}
    made = _Described(meta.namespace, meta.labels or {}, of_namespace, meta.deletion_timestamp is not None)
    return msgspec.json.encode(made, order="deterministic").decode()


def terms_text(pod: Pod, spread: Iterable[TopologySpreadConstraint] | None = None) -> str:
    """Return what a pod demands of others; "" if nothing. `spread`: the constraints that count; None: its own."""
    affinity = pod.spec.affinity
    made = _Terms(
        affinity=() if affinity is None else _required(affinity.pod_affinity),
        anti_affinity=() if affinity is None else _required(affinity.pod_anti_affinity),
        spread=tuple(
            _constraint(one, pod.metadata.labels or {})
            for one in (pod.spec.topology_spread_constraints or () if spread is None else spread)
            if one.when_unsatisfiable == HARD
        ),
    )
    return msgspec.json.encode(made, order="deterministic").decode() if made != _Terms() else ""


def _required(demand: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return () if demand is None else tuple(map(_term, demand.required or ()))


def _term(term: PodAffinityTerm) -> PodAffinityTerm:
    """Return a term without the keys that are in its selector; one that cannot be understood selects nothing."""
    understood = is_selector(term.label_selector) and is_selector(term.namespace_selector or LabelSelector())
    return PodAffinityTerm(
        term.topology_key,
        term.label_selector if understood else None,
        term.namespaces,
        term.namespace_selector if understood else None,
    )


def _constraint(one: TopologySpreadConstraint, labels: dict[str, str]) -> TopologySpreadConstraint:
    """Return a constraint of a pod with these labels, its keys of labels merged into its selector."""
    selector = one.label_selector if is_selector(one.label_selector) else None
    keys = [key for key in one.match_label_keys or () if key in labels]
    if keys and selector is not None:
        own = tuple(LabelSelectorRequirement(key, "In", (labels[key],)) for key in keys)
        selector = LabelSelector(selector.match_labels, (*(selector.match_expressions or ()), *own))
    changes = {"when_unsatisfiable": "", "label_selector": selector, "match_label_keys": None}
    return msgspec.structs.replace(one, **changes)
