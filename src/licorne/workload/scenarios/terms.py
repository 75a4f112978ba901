"""What the pods of a scenario demand of each other, as tags of their asks (docs/spec/scheduler-interface.md, section 9).

A pod is labelled with its class and with its application, and the terms of a class are about one of these labels. In a
scenario in which no class has such terms nothing is said of pods, so it is simulated as if there were none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from licorne.si.constants import TAG_POD, TAG_POD_TERMS
from licorne.workload.scenarios.document import Arrivals, Document

OWN: Final = "application"
"""Stands, in place of the name of a class, for the pods of the application itself; also the name of their label."""
CLASS: Final = "class"
NAMESPACE: Final = "scenario"


class PodTags:
    """The tags of the pods of a class by application."""

    def __init__(self, name: str, given: Arrivals) -> None:
        self._name = name
        self._given = given

    def of(self, application: str) -> dict[str, str]:
        """Return the tags of the pods of an application."""
        labels = {CLASS: self._name, OWN: application}
        terms: dict[str, list[dict[str, Any]]] = {
            "affinity": [_term(key, which, labels) for key, which in self._given.near.items()],
            "antiAffinity": [_term(key, which, labels) for key, which in self._given.apart.items()],
            "spread": [{**_term(key, OWN, labels), "maxSkew": skew} for key, skew in self._given.spread.items()],
        }
        pod = {"namespace": NAMESPACE, "labels": labels, "namespaceLabels": {}}
        said = {kind: some for kind, some in terms.items() if some}
        tags = {TAG_POD: msgspec.json.encode(pod).decode()}
        return tags | ({TAG_POD_TERMS: msgspec.json.encode(said).decode()} if said else {})


def _term(key: str, which: str, labels: Mapping[str, str]) -> dict[str, Any]:
    wanted = {OWN: labels[OWN]} if which == OWN else {CLASS: which}
    return {"topologyKey": key, "labelSelector": {"matchLabels": wanted}}


def pod_tags(document: Document, name: str) -> PodTags | None:
    """Return the tags of the pods of a class; None where no class of the scenario has terms."""
    if not any(given.near or given.apart or given.spread for given in document.arrivals.values()):
        return None
    return PodTags(name, document.arrivals[name])
