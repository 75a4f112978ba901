"""What the annotations of a namespace say of the queue that is made for it (docs/spec/k8shim.md, section 1)."""

from __future__ import annotations

import json

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.config.kubernetes import CPU, QuantityError, read_amounts
from licorne.config.lint_amounts import meant_resource
from licorne.core.gangs.task_groups import json_fault
from licorne.kube.objects import Namespace
from licorne.si.constants import (
    TAG_NAMESPACE_PARENT_QUEUE,
    TAG_RESOURCE_GUARANTEED,
    TAG_RESOURCE_MAX_APPS,
    TAG_RESOURCE_QUOTA,
    VCORE,
)

from . import keys


def namespace_tags(namespace: Namespace) -> dict[str, str]:
    """Return the tags that an application gets from its namespace; an annotation that cannot be read gives none."""
    annotations = namespace.metadata.annotations
    if not annotations:
        return {}
    tags = {}
    quota: dict[str, int] = {}
    for amounts in _quotas(annotations).values():
        quota |= amounts or {}
    if quota:
        tags[TAG_RESOURCE_QUOTA] = _resource(quota)
    guaranteed = _amounts(annotations.get(keys.NAMESPACE_GUARANTEED, ""))
    if guaranteed:
        tags[TAG_RESOURCE_GUARANTEED] = _resource(guaranteed)
    most = annotations.get(keys.NAMESPACE_MAX_APPS, "")
    if _is_count(most):
        tags[TAG_RESOURCE_MAX_APPS] = str(int(most))
    parent = annotations.get(keys.NAMESPACE_PARENT_QUEUE, "")
    if parent:
        tags[TAG_NAMESPACE_PARENT_QUEUE] = parent
    return tags


def what_counts(namespace: Namespace) -> str:
    """Return which quota the queue has: one annotation displaces both of the childtemplate (docs/spec/scheduling.md, 12)."""
    found = namespace_tags(namespace).keys() & {TAG_RESOURCE_QUOTA, TAG_RESOURCE_GUARANTEED}
    if len(found) == 1:
        none = "guaranteed" if TAG_RESOURCE_QUOTA in found else "max"
        return f"the other one can be read, so the queue has no {none}, not even that of the parent's childtemplate"
    return "its max and guaranteed count" if found else "those of the parent's childtemplate count, if it has any"


def unread_annotations(namespace: Namespace) -> list[str]:
    """Return the keys of annotations that say something about the queue and cannot be read, with where they are no JSON."""
    annotations = namespace.metadata.annotations or {}
    unread = [key for key, amounts in _quotas(annotations).items() if amounts is None]
    if keys.NAMESPACE_GUARANTEED in annotations and _amounts(annotations[keys.NAMESPACE_GUARANTEED]) is None:
        unread.append(keys.NAMESPACE_GUARANTEED)
    if keys.NAMESPACE_MAX_APPS in annotations and not _is_count(annotations[keys.NAMESPACE_MAX_APPS]):
        unread.append(keys.NAMESPACE_MAX_APPS)
    of_json = (keys.NAMESPACE_QUOTA, keys.NAMESPACE_GUARANTEED)
    why = {key: json_fault(annotations[key]) for key in unread if key in of_json}
    return [f"{key} ({why[key]})" if why.get(key) else key for key in unread]


def misnamed_resources(namespace: Namespace) -> list[str]:
    """Return a sentence for each resource of a quota that has another name on Kubernetes, as in a queue configuration."""
    annotations = namespace.metadata.annotations or {}
    found = []
    for key in (keys.NAMESPACE_QUOTA, keys.NAMESPACE_GUARANTEED):
        text = annotations.get(key, "")
        for name in json.loads(text) if _amounts(text) else ():
            meant = meant_resource(name) or name
            meant = CPU if meant == VCORE else meant
            if name == VCORE:
                found.append(f"annotation {key}: {VCORE} counts thousandths of a core here; cores are called {CPU}")
            elif name != meant:
                found.append(f"annotation {key}: no pod asks for {name[:100]!r}; the resource is called {meant!r}")
    return found


def _quotas(annotations: dict[str, str]) -> dict[str, dict[str, int] | None]:
    """Return the amounts of each annotation that gives a maximum, by its key; None for one that cannot be read.

    The old form, with an annotation for each resource, counts only where the new one is absent.
    """
    if keys.NAMESPACE_QUOTA in annotations:
        return {keys.NAMESPACE_QUOTA: _amounts(annotations[keys.NAMESPACE_QUOTA])}
    old = {"cpu": keys.NAMESPACE_MAX_CPU, "memory": keys.NAMESPACE_MAX_MEMORY}
    return {key: _amounts(json.dumps({name: annotations[key]})) for name, key in old.items() if key in annotations}


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _amounts(text: str) -> dict[str, int] | None:
    """Return the amounts of a JSON object of quantities, or None if it cannot be read."""
    try:
        return read_amounts(msgspec.json.decode(text, type=dict[str, str | int | float])) if text else None
    except (QuantityError, *UNDECODABLE):
        return None


def _resource(amounts: dict[str, int]) -> str:
    return json.dumps({"resources": {name: {"value": amount} for name, amount in amounts.items()}})
