"""The pod that an ask or allocation stands for, if the resource manager says so in its tags."""

from __future__ import annotations

from typing import Final

from licorne.core.queues.ask import Ask
from licorne.si import constants

POD_NAME: Final = constants.DOMAIN_K8S + constants.GROUP_META + constants.KEY_POD_NAME
POD_NAMESPACE: Final = constants.DOMAIN_K8S + constants.GROUP_META + constants.KEY_NAMESPACE


def pod_names(item: Ask) -> tuple[str, ...]:
    """Return the names of the pod that an ask or allocation stands for: NAME and NAMESPACE/NAME; none if it is not known."""
    tags = item.tags or {}
    name = tags.get(POD_NAME, "")
    return (name, f"{tags.get(POD_NAMESPACE, '')}/{name}") if name else ()


def pod_name(item: Ask) -> str:
    """Return NAMESPACE/NAME of the pod; empty if no pod is known."""
    names = pod_names(item)
    return names[-1] if names else ""
