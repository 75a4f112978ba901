"""What the manager knows, as a state dump shows it under `rmDiagnostics` (docs/spec/k8shim.md, section 15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

import msgspec

from licorne.kube.objects import Node, Pod, PriorityClass

from .records import Records
from .stages import Stage
from .waiting import Waiting

SHOWN_MAX: Final = 5000
"""Objects of a kind that are shown; of pods first those that licorne schedules and that have no node."""
VALUE_MAX: Final = 1024
"""Characters that are shown of an annotation or a label."""


def cache(known: Records) -> dict[str, Any]:
    """Return objects and statistics, as data for JSON. `omitted` says how many objects of a kind are left out."""
    records = known.pods.values()
    waiting = (record.pod for record in records if not record.node and not record.pod.spec.node_name)
    placed = (record.pod for record in records if record.node or record.pod.spec.node_name)
    others = (record.pod for record in known.foreign.values())
    shown = list(islice(chain(waiting, placed, others), SHOWN_MAX))
    counts = {
        "nodes": len(known.nodes),
        "pods": len(known.pods) + len(known.foreign),
        "priorityClasses": len(known.classes),
    }
    found: dict[str, Any] = {
        "statistics": {**counts, **_statistics(known)},
        "nodes": {node.metadata.name: _node(node) for node in islice(known.nodes.values(), SHOWN_MAX)},
        "pods": {_key(pod): _pod(pod) for pod in shown},
        "priorityClasses": {one.metadata.name: _class(one) for one in islice(known.classes.values(), SHOWN_MAX)},
        "schedulingState": {_key(pod): _state(known, pod) for pod in shown},
    }
    omitted = {kind: count - SHOWN_MAX for kind, count in counts.items() if count > SHOWN_MAX}
    if omitted:
        found["omitted"] = omitted
    return found


def held(known: Records, waiting: Waiting) -> dict[str, str]:
    """Return why the scheduler is not asked for pods that have no node, by their namespaces and names; "" where it is about to be."""
    unasked = (Stage.HELD, Stage.UNBOUND, Stage.REFUSED)
    records = (
        record
        for record in known.pods.values()
        if record.stage in unasked and not record.node and not record.pod.spec.node_name
    )
    return {_key(record.pod): waiting.why_held(record) for record in islice(records, SHOWN_MAX)}


def _statistics(known: Records) -> dict[str, Any]:
    """Return counts over all pods, those that are not shown too."""
    return {
        "assumed": sum(record.stage is Stage.ASSUMED for record in known.pods.values()),
        "podsAssigned": sum(bool(record.node) for record in known.pods.values()) + len(known.foreign),
        "phases": dict(sorted(Counter(pod.status.phase for pod in _all(known)).items())),
    }


def _all(known: Records) -> Iterator[Pod]:
    records: Iterable[Any] = chain(known.pods.values(), known.foreign.values())
    return (record.pod for record in records)


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _state(known: Records, pod: Pod) -> dict[str, Any]:
    """Return what was decided of a pod. One is assumed when all of its volumes are bound."""
    record = known.pods.get(pod.metadata.uid)
    node = pod.spec.node_name if record is None else record.node
    assumed = record is not None and record.stage is Stage.ASSUMED
    return {"uid": pod.metadata.uid, "assignedNode": node, "assumed": assumed, "allVolumesBound": assumed}


def _texts(texts: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return labels or annotations, without the ends of values that are very long."""
    if texts is None:
        return None
    return {key: text if len(text) <= VALUE_MAX else text[:VALUE_MAX] + "..." for key, text in texts.items()}


def _node(node: Node) -> dict[str, Any]:
    meta, spec, status = node.metadata, node.spec, node.status
    shown = {
        "name": meta.name,
        "uid": meta.uid,
        "nodeInfo": status.node_info,
        "creationTimestamp": meta.creation_timestamp,
        "annotations": _texts(meta.annotations),
        "labels": _texts(meta.labels),
        "podCIDRs": spec.pod_cidrs,
        "taints": spec.taints,
        "addresses": status.addresses,
        "allocatable": status.allocatable,
        "capacity": status.capacity,
        "conditions": status.conditions,
    }
    return msgspec.to_builtins(shown)  # type: ignore[no-any-return]


def _pod(pod: Pod) -> dict[str, Any]:
    meta, spec = pod.metadata, pod.spec
    shown = {
        "namespace": meta.namespace,
        "name": meta.name,
        "generateName": meta.generate_name,
        "uid": meta.uid,
        "creationTimestamp": meta.creation_timestamp,
        "annotations": _texts(meta.annotations),
        "labels": _texts(meta.labels),
        "nodeName": spec.node_name,
        "affinity": spec.affinity,
        "nodeSelector": spec.node_selector,
        "priorityClassName": spec.priority_class_name,
        "priority": spec.priority,
        "preemptionPolicy": spec.preemption_policy,
        "schedulerName": spec.scheduler_name,
        "tolerations": spec.tolerations,
        "containers": [{"name": one.name, "resources": one.resources} for one in spec.containers],
        "status": pod.status,
    }
    return msgspec.to_builtins(shown)  # type: ignore[no-any-return]


def _class(known: PriorityClass) -> dict[str, Any]:
    return {
        "name": known.metadata.name,
        "annotations": _texts(known.metadata.annotations),
        "labels": _texts(known.metadata.labels),
        "value": known.value,
        "globalDefault": known.global_default,
        "preemptionPolicy": known.preemption_policy,
    }
