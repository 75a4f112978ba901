"""What the manager knows, as a state dump shows it under `rmDiagnostics` (docs/spec/k8shim.md, section 15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from licorne.kube.objects import Pod

from .records import Records
from .stages import Stage
from .waiting import Waiting

SHOWN_MAX: Final = 5000
"""Pods that are shown; first those that licorne schedules and that have no node."""


def cache(known: Records) -> dict[str, Any]:
    """Return statistics, and what was decided of pods, as data for JSON. `omitted` says how many pods are left out."""
    records = known.pods.values()
    waiting = (record.pod for record in records if not record.node and not record.pod.spec.node_name)
    placed = (record.pod for record in records if record.node or record.pod.spec.node_name)
    others = (record.pod for record in known.foreign.values())
    shown = islice(chain(waiting, placed, others), SHOWN_MAX)
    pods = len(known.pods) + len(known.foreign)
    counts = {"nodes": len(known.nodes), "pods": pods, "priorityClasses": len(known.classes)}
    found = {
        "statistics": {**counts, **_statistics(known)},
        "schedulingState": {_key(pod): _state(known, pod) for pod in shown},
    }
    return found if pods <= SHOWN_MAX else {**found, "omitted": {"pods": pods - SHOWN_MAX}}


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
