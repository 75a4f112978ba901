"""Pods and terms in few words, and a bench with nodes in zones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.bench import Bench, config


def tags(
    labels: str | Mapping[str, str],
    *,
    near: str = "",
    apart: str = "",
    spread: str = "",
    namespace: str = "home",
    preferred: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, str]:
    """The tags of a pod. Labels are `app=web tier=1`; terms `zone app=web, host app=db`; of a spread also `zone app=web max=2`.

    `preferred` has such terms, too, `affinity` and `antiAffinity` of the weight 100 each.
    """
    given = dict(pair.split("=") for pair in labels.split()) if isinstance(labels, str) else {**labels}
    pod = {"namespace": namespace, "labels": given, **({"terminating": True} if more.pop("terminating", False) else {})}
    terms: dict[str, Any] = {"affinity": _terms(near), "antiAffinity": _terms(apart), "spread": _terms(spread)}
    for kind, said in (preferred or {}).items():
        wish = _terms(said) if isinstance(said, str) else said
        if kind in ("affinity", "antiAffinity"):
            wish = [{"weight": 100, "term": term} for term in wish]
        terms.setdefault("preferred", {})[kind] = wish
    made = {"licorne/pod": json.dumps(pod), "licorne/pod-terms": json.dumps(terms)}
    if more:
        made["licorne/node-constraints"] = json.dumps(more)
    return made


def _terms(text: str) -> list[dict[str, Any]]:
    return [_term(one) for one in text.split(",") if one.strip()]


def _term(text: str) -> dict[str, Any]:
    key, *pairs = text.split()
    term: dict[str, Any] = {"topologyKey": key}
    values = dict(pair.split("=") for pair in pairs)
    names = {
        "max": ("maxSkew", int),
        "domains": ("minDomains", int),
        "affinity": ("nodeAffinityPolicy", str),
        "taints": ("nodeTaintsPolicy", str),
    }
    for name, (field, read) in names.items():
        if name in values:
            term[field] = read(values.pop(name))
    return {**term, "labelSelector": {"matchLabels": values}}


def node_labels(name: str, zone: str = "", **labels: str) -> dict[str, str]:
    """The attributes of a node: its name as the label `host`, its zone, others."""
    found = {"label/host": name, **{f"label/{key}": value for key, value in labels.items()}}
    return found | ({"label/zone": zone} if zone else {})


def cluster(nodes: str, settings: dict[str, str] | None = None) -> Bench:
    """A bench with nodes such as `n1:a n2:b n3`, each with its zone after the colon, with room for ten pods of 1."""
    bench = Bench(config("a"), settings=settings)
    for one in nodes.split():
        name, _, zone = one.partition(":")
        bench.node(name, attributes=node_labels(name, zone), vcore=10)
    bench.app("x")
    return bench


def run_all(bench: Bench, *pods: tuple[str, dict[str, str]]) -> str:
    """Ask for pods, and return where they were placed."""
    for key, of in pods:
        bench.ask("x", key, tags=of, vcore=1)
    return bench.run()
