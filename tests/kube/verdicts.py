"""Cases of kube-scheduler's filter plugins and what they said, and what licorne says of the same.

A case is a small cluster and a pod that waits (oracle/README.md). Those whose pod asks for what licorne does not decide yet
are compared in one thing only: that the pod waits for that reason, and so is placed nowhere.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from licorne.kube.objects import Namespace, Node, Pod
from licorne.kube.pods.unsupported import why_later

from .places import Places
from .plugins import Code, Refusal, refused_at_once, verdict
from .snapshot import Snapshot

RECORDED: Final = Path(__file__).parent.parent / "data" / "kube-verdicts.jsonl.xz"
DECIDED: Final = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
)
"""The plugins whose verdicts must agree."""
PODS_AMONG_EACH_OTHER: Final = "InterPodAffinity"
"""Compared where the pod itself demands nothing of others."""
ABOUT_SPREADING: Final = "spreadDefaults"
"""The setting of kube-scheduler that says nothing of these plugins. Cases with another one, with which it departs from its
defaults for them, are not compared: licorne does not have these settings."""


def recorded() -> Iterator[dict[str, Any]]:
    """Yield the recorded cases, each with its verdict."""
    with lzma.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def differences(case: dict[str, Any]) -> list[str]:
    """Return where licorne disagrees with the verdict of a case, each as a line; nothing if it agrees.

    A pod that other plugins refuse must not be placed either, unless they refuse it because of a setting.
    """
    settings = case.get("config", {}).keys()
    if settings - {ABOUT_SPREADING}:
        return []
    pod = msgspec.convert(case["pending"], Pod, strict=False)
    said = case["verdict"]
    found = []
    expected = [Refusal(p, Code(c), r) for p, c, r in said["prefilter"].get("all", []) if p in DECIDED]
    at_once = refused_at_once(pod)
    if expected != ([] if at_once is None else [at_once]):
        found.append(f"{case['id']}: at once {at_once}, recorded {expected}")
    elsewhere = sorted({p for p, _, _ in said["prefilter"].get("all", []) if p not in DECIDED})
    if elsewhere and not (settings or why_later(pod)):
        found.append(f"{case['id']}: licorne would place the pod in spite of {elsewhere}")
    cluster = Snapshot.of(
        msgspec.convert(case["nodes"], list[Node]),
        msgspec.convert(case["pods"], list[Pod]),
        msgspec.convert(case.get("namespaces", []), list[Namespace]),
    )
    offered = {f"Insufficient {one['spec'].get('extendedResourceName')}" for one in case.get("deviceclasses", [])}
    compared = DECIDED if _has_pod_affinity(pod) else (*DECIDED, PODS_AMONG_EACH_OTHER)
    for name, rows in said["nodes"].items():
        theirs = [(plugin, code, reason) for plugin, code, reason in rows if plugin in compared]
        ours = [tuple(map(str, one)) for one in verdict(pod, cluster.nodes[name], cluster) if one.plugin in compared]
        if theirs != [one for one in ours if one[2] not in offered]:  # by devices; the pod waits here
            found.append(f"{case['id']}: node {name}: licorne {ours}, recorded {theirs}")
        others = sorted({plugin for plugin, _, _ in rows if plugin not in compared})
        if others and not (ours or settings or why_later(pod)):
            found.append(f"{case['id']}: node {name}: licorne would place the pod in spite of {others}")
    return found


def misplaced(case: dict[str, Any]) -> str:
    """Return what is wrong with where the manager and the scheduler place the pod of a case; "" if nothing is.

    Cases are left out that differ by a setting, and those whose pod has a node or a resource that devices offer.
    """
    pending = case["pending"]
    if case.get("config") or case.get("deviceclasses") or pending["spec"].get("nodeName"):
        return ""
    places = Places()
    names = {one["metadata"].get("namespace", "") for one in (*case["pods"], pending)}
    for one in ({"metadata": {"name": name}} for name in names):
        places.manager.namespace_seen(msgspec.convert(one, Namespace))
    for one in case.get("namespaces", []):
        places.manager.namespace_seen(msgspec.convert(one, Namespace))
    for one in case["nodes"]:
        places.manager.node_seen(msgspec.convert(one, Node))
    pending["spec"]["schedulerName"] = "yunikorn"
    for one in (*case["pods"], pending):
        one["metadata"].setdefault("uid", one["metadata"]["name"])
        places.pods[one["metadata"]["name"]] = one
        places.show(one["metadata"]["name"])
    placed = places.run().get(pending["metadata"]["name"], "")
    said = case["verdict"]
    if why_later(msgspec.convert(pending, Pod, strict=False)) or said["prefilter"].get("all"):
        return f"{case['id']}: on {placed}" if placed else ""
    takers = {name for name, rows in said["nodes"].items() if not rows}
    return "" if placed in (takers or {""}) else f"{case['id']}: on {placed or 'none'} of {sorted(takers)}"


def _has_pod_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and any(
        one is not None and one.required for one in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )
