"""What a pod is for the terms of other pods, and what it demands of them or prefers, as two tags of its ask.

The scheduler does what these say (docs/spec/kube-scheduler.md, sections 2 and 3; `licorne.core.nodes.terms` has the form).
It refuses a selector that it does not understand, where kube-scheduler selects nothing by it; so does what is written here.
The `matchLabelKeys` of affinity terms are a part of their selectors by the time a pod is stored, because the API server
merges them; those of spread constraints need not be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from licorne.core.nodes.terms import WEIGHT_MAX
from licorne.kube.objects import Namespace, Pod
from licorne.kube.objects.meta import NOTHING, LabelSelector, LabelSelectorRequirement, Object
from licorne.kube.objects.pods import PodAffinity, PodAffinityTerm, TopologySpreadConstraint

from .constraints import preferred_nodes
from .devices import NO_CLAIMS, PodDevices
from .selectors import is_selector
from .spreading import HARD, SOFT, Spreading
from .volumes import NO_VOLUMES, Mark, PodVolumes


class _Described(Object):
    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str] | None = None
    terminating: bool = False


class _Weighted(Object):
    weight: int
    term: PodAffinityTerm | list[dict[str, Any]]


class _Preferred(Object):
    nodes: tuple[_Weighted, ...] = ()
    affinity: tuple[_Weighted, ...] = ()
    anti_affinity: tuple[_Weighted, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    spread_is_default: bool = False
    images: tuple[str, ...] = ()


class _Claims(Object):
    demand: str
    names: tuple[str, ...]


class _Terms(Object):
    affinity: tuple[PodAffinityTerm, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()
    spread: tuple[TopologySpreadConstraint, ...] = ()
    preferred: _Preferred | None = None
    holds: tuple[Mark, ...] = ()
    unless: tuple[Mark, ...] = ()
    attached: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    claims: _Claims | None = None


def pod_text(pod: Pod, namespace: Namespace | None, more: Mapping[str, str] = NOTHING) -> str:
    """Return what a pod is for the terms of others; `namespace` is its own, None if it is not there. `more`: labels besides."""
    meta = pod.metadata
    of_namespace = None if namespace is None else namespace.metadata.labels or {}
    made = _Described(
        meta.namespace, {**(meta.labels or {}), **more}, of_namespace, meta.deletion_timestamp is not None
    )
    return msgspec.json.encode(made, order="deterministic").decode()


def terms_text(
    pod: Pod,
    spreading: Spreading | None = None,
    volumes: PodVolumes = NO_VOLUMES,
    devices: PodDevices = NO_CLAIMS,
    near_group: PodAffinityTerm | None = None,
) -> str:
    """Return what a pod demands of others, or prefers; "" if nothing.

    `spreading`: default constraints; None: the pod only runs. `volumes`: what its volumes mean for other pods.
    `devices`: what its claims of devices mean.
    `near_group`: where the other pods of its group must be.
    """
    affinity = pod.spec.affinity
    spread = (pod.spec.topology_spread_constraints or ()) if spreading is None else spreading.of(pod)
    near, apart = (None, None) if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)
    preferred = _Preferred(affinity=_preferred(near), anti_affinity=_preferred(apart))
    if spreading is not None:
        preferred.nodes = tuple(_Weighted(weight, term) for weight, term in preferred_nodes(pod))
        preferred.spread = _constraints(pod, spread, SOFT)
        own = pod.spec.topology_spread_constraints
        preferred.spread_is_default = bool(preferred.spread) and not own and spreading.of_system
        containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
        images = tuple(sorted(_image(one.image) for one in containers))
        preferred.images = images if any(images) else ()
    made = _Terms(
        affinity=(*_required(near), *((near_group,) if near_group is not None else ())),
        anti_affinity=_required(apart),
        spread=_constraints(pod, spread, HARD),
        preferred=None if preferred == _Preferred() else preferred,
        holds=volumes.holds,
        unless=volumes.unless,
        attached=volumes.attached,
        claims=_Claims(devices.demand, tuple("/".join(key) for key in devices.open)) if devices.demand else None,
    )
    return msgspec.json.encode(made, order="deterministic").decode() if made != _Terms() else ""


def _image(name: str) -> str:
    """Return the name by which nodes know an image."""
    return name if not name or name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _preferred(wish: PodAffinity | None) -> tuple[_Weighted, ...]:
    wishes = () if wish is None else wish.preferred or ()
    return tuple(_Weighted(one.weight, _term(one.pod_affinity_term)) for one in wishes if 0 < one.weight <= WEIGHT_MAX)


def _constraints(
    pod: Pod, spread: Iterable[TopologySpreadConstraint], kind: str
) -> tuple[TopologySpreadConstraint, ...]:
    labels = pod.metadata.labels or {}
    return tuple(_constraint(one, labels) for one in spread if one.when_unsatisfiable == kind)


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
