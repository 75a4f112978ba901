"""What the pods of a scenario demand of each other, and prefer, as tags of their asks (docs/spec/scheduler-interface.md, section 9).

A pod is labelled with its class and with its application, and the terms of a class are about one of these labels. In a
scenario in which no class has such terms nothing is said of pods, so it is simulated as if there were none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from licorne.core.nodes.terms import WEIGHT_MAX
from licorne.si.constants import TAG_POD, TAG_POD_TERMS
from licorne.workload.scenarios.document import Arrivals, Document, Preferences

OWN: Final = "application"
"""Stands, in place of the name of a class, for the pods of the application itself; also the name of their label."""
CLASS: Final = "class"
NAMESPACE: Final = "scenario"


PodTags = Callable[[str], dict[str, str]]
"""Returns the tags of the pods of an application of a class."""


def _tags(name: str, given: Arrivals, application: str) -> dict[str, str]:
    labels = {CLASS: name, OWN: application}
    wishes = given.prefers or Preferences()
    preferred = _terms(wishes, labels, _weighted)
    if wishes.nodes:
        preferred["nodes"] = [_weighted([_condition(key, accepted)]) for key, accepted in wishes.nodes.items()]
    said = _terms(given, labels, lambda term: term) | ({"preferred": preferred} if preferred else {})
    pod = {"namespace": NAMESPACE, "labels": labels, "namespaceLabels": {}}
    tags = {TAG_POD: msgspec.json.encode(pod).decode()}
    return tags | ({TAG_POD_TERMS: msgspec.json.encode(said).decode()} if said else {})


def _term(key: str, which: str, labels: Mapping[str, str]) -> dict[str, Any]:
    wanted = {OWN: labels[OWN]} if which == OWN else {CLASS: which}
    return {"topologyKey": key, "labelSelector": {"matchLabels": wanted}}


def _terms(
    given: Arrivals | Preferences, labels: Mapping[str, str], made: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    found = {
        "affinity": [made(_term(key, which, labels)) for key, which in given.near.items()],
        "antiAffinity": [made(_term(key, which, labels)) for key, which in given.apart.items()],
        "spread": [{**_term(key, OWN, labels), "maxSkew": skew} for key, skew in given.spread.items()],
    }
    return {kind: some for kind, some in found.items() if some}


def _condition(key: str, accepted: str | list[str]) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [accepted] if isinstance(accepted, str) else accepted}


def _weighted(term: object) -> dict[str, Any]:
    return {"weight": WEIGHT_MAX, "term": term}


def pod_tags(document: Document, name: str) -> PodTags | None:
    """Return the tags of the pods of a class; None where no class of the scenario has terms."""
    if not any(given.near or given.apart or given.spread or given.prefers for given in document.arrivals.values()):
        return None
    return partial(_tags, name, document.arrivals[name])
