"""What a native pod group means for its pods (docs/spec/k8shim.md, section 16): they are an application of their own.

A group with the policy `gang` is a lasting gang without placeholders (docs/understand/gangs-atomic.md): none of its pods is
placed as long as fewer than `minCount` run or can be placed together. With `basic` each is placed by itself. That all
pods are in one domain of a topology key is an affinity of each to all others, by a label that licorne gives them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from licorne.core.gangs.atomic import LASTING_TAG
from licorne.core.gangs.task_groups import MEMBERS_MAX
from licorne.core.preemption.together import TOGETHER_TAG
from licorne.kube.objects import Pod, PodGroup
from licorne.kube.objects.meta import LabelSelector
from licorne.kube.objects.pods import PodAffinityTerm

from . import keys

Groups = Mapping[tuple[str, str], PodGroup]
"""Pod groups by namespace and name."""
ID_MAX: Final = 63
DIGEST: Final = 16
LABEL: Final = "pod group"
"""The label by which pods of a group with a topology constraint are found by its other pods. With its blank it is none that a
user could write."""


def group_name(pod: Pod) -> str:
    """Return the name of the group that the pod is in; "" if it is in none."""
    return (pod.spec.scheduling_group.pod_group_name or "") if pod.spec.scheduling_group is not None else ""


def group_of(pod: Pod, groups: Groups) -> PodGroup | None:
    """Return the group that the pod is in, if it is in one, and that is there."""
    name = group_name(pod)
    return groups.get((pod.metadata.namespace, name)) if name else None


OF_GROUPS: Final = "podgroup."
"""How the id of an application begins whose pods are those of a group; no other pod can name such an id."""


def group_application(namespace: str, name: str) -> str:
    """Return the id of the application that the pods of a group are: no namespace has a dot in its name."""
    found = f"{OF_GROUPS}{namespace}.{name}"
    if len(found) <= ID_MAX:
        return found
    digest = hashlib.sha256(found.encode()).hexdigest()[:DIGEST]
    return f"{found[: ID_MAX - DIGEST - 1]}-{digest}"


def group_tags(group: PodGroup, *, gangs: bool) -> dict[str, str]:
    """Return the tags of the application: whether it is a gang, and evicted as a whole. `gangs`: whether there are any."""
    mode = group.spec.disruption_mode
    together = {TOGETHER_TAG: "false" if mode is None or mode.all is None else "true"}
    if not gangs or group.spec.scheduling_policy.gang is None:
        return {keys.TASK_GROUPS: "", keys.GANG_KIND: "default", LASTING_TAG: "false", **together}
    needed = [{"name": group.metadata.name, "minMember": group.needed, "minResource": {}}]
    text = msgspec.json.encode(needed).decode()
    return {keys.TASK_GROUPS: text, keys.GANG_KIND: "atomic", LASTING_TAG: "true", **together}


def why_not_yet(pod: Pod, group: PodGroup | None) -> str:
    """Return why the pods of a group wait, whatever room there is, in a sentence; "" if they do not."""
    name = group_name(pod)
    if not name:
        return ""
    shown = f"pod group {pod.metadata.namespace}/{name}"
    if group is None:
        return f"The pod waits until its {shown} is there."
    if group.spec.parent_composite_pod_group_name:
        return f"licorne does not decide this yet: {shown} is part of a composite pod group"
    if group.needed > MEMBERS_MAX:
        return f"{shown}: minCount {group.needed}: must be at most {MEMBERS_MAX}"
    return ""


def topology_key(group: PodGroup | None) -> str:
    """Return the key of the topology of which all pods of the group must be in one domain; "" for none."""
    constraints = None if group is None else group.spec.scheduling_constraints
    found = () if constraints is None else constraints.topology or ()
    return found[0].key if found else ""


def near_its_group(group: PodGroup | None) -> PodAffinityTerm | None:
    """Return the affinity of a pod to the other pods of its group, if they must be in one domain."""
    key = topology_key(group)
    if group is None or not key:
        return None
    return PodAffinityTerm(key, LabelSelector(group_label(group)))


def group_label(group: PodGroup | None) -> dict[str, str]:
    """Return the label of the pods of a group with a topology constraint."""
    return {LABEL: group.metadata.name} if group is not None and topology_key(group) else {}
