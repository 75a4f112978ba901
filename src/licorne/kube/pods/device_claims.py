"""Which claims of devices a pod names, for whom they are reserved, and who counts them in quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.core.constants import SUM_MAX
from licorne.kube.objects.devices import Consumer, ResourceClaim
from licorne.kube.objects.pods import Pod

from . import keys
from .groups import Groups, group_name, group_of
from .storage import ClaimKey, drop_from

OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
"""What follows the name of a device class in the name by which quotas limit its devices."""


class ClaimName(NamedTuple):
    """The name of a claim of a pod: None: it is not made yet; "": none is needed. `is_made`: for the pod, by a template."""

    name: str | None
    is_made: bool


def names_of_claims(pod: Pod) -> list[ClaimName]:
    """Return the names of the claims of a pod."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses or ()}
    found = []
    for one in pod.spec.resource_claims or ():
        if one.resource_claim_name is not None:
            found.append(ClaimName(one.resource_claim_name, is_made=False))
        else:
            found.append(ClaimName((made[one.name] or "") if one.name in made else None, is_made=True))
    return found


def users_of(claim: ResourceClaim | None) -> list[str]:
    """Return the UIDs of the pods and pod groups that may use the devices that a claim has."""
    if claim is None or claim.status.allocation is None:
        return []
    return [*dict.fromkeys(one.uid for one in claim.status.reserved_for or ())]


def first_consumer(claim: ResourceClaim | None) -> str:
    """Return the UID of the pod or pod group that a claim was reserved for first; "" if there is none."""
    return next((one.uid for one in (claim.status.reserved_for if claim is not None else None) or ()), "")


def replaces(pod: Pod) -> bool:
    """Return whether the pod is a placeholder, or of a gang in which one is replaced by it: it takes no more than that has."""
    annotations = pod.metadata.annotations or {}
    of_gang = annotations.get(keys.TASK_GROUP_NAME) and annotations.get(keys.GANG_KIND) != "atomic"
    return bool(of_gang) or annotations.get(keys.PLACEHOLDER) == "true"


def counted_for_members(pod: Pod) -> dict[str, int]:
    """Return the devices that a placeholder counts in quotas for those that replace it; none if its annotation cannot be read."""
    text = (pod.metadata.annotations or {}).get(keys.PLACEHOLDER_DEVICES, "{}")
    try:
        found = msgspec.json.decode(text, type=dict[str, Annotated[int, msgspec.Meta(ge=1, le=SUM_MAX)]])
    except UNDECODABLE:
        return {}
    return {name: number for name, number in found.items() if name.endswith(OF_CLASS)}


class GroupClaims:
    """The claims of pod groups (docs/spec/kube-scheduler.md, section 7), and which pods of groups have a node or are being placed."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._placed: dict[ClaimKey, dict[str, Pod]] = {}  # by namespace and name of a group, and by the UID of a pod

    def consumer(self, pod: Pod, key: ClaimKey) -> Consumer:
        """Return for whom a claim is reserved that a pod names: its group, if that lists the claim as the pod does, else the pod."""
        group = group_of(pod, self._groups)
        if group is not None:
            for entry, claim in zip(pod.spec.resource_claims or (), names_of_claims(pod), strict=True):
                if claim.name == key[1] and entry in (group.spec.resource_claims or ()):
                    return Consumer("scheduling.k8s.io", "podgroups", group.metadata.name, group.metadata.uid)
        return Consumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)

    def is_shared(self, pod: Pod, key: ClaimKey) -> bool:
        """Return whether a claim that a pod names is one of its group."""
        return bool(self.consumer(pod, key).api_group)

    def placed(self, pod: Pod) -> bool:
        """Note that a pod of a pod group has a node, or is being placed; return whether that was not known. Other pods are not noted."""
        if not group_name(pod):
            return False
        placed = self._placed.setdefault(group_key(pod), {})
        is_new = pod.metadata.uid not in placed
        placed[pod.metadata.uid] = pod
        return is_new

    def left(self, pod: Pod) -> None:
        """Note that a pod has no node, and is not being placed, any more."""
        drop_from(self._placed, group_key(pod), pod.metadata.uid)

    def is_in_use(self, pod: Pod, key: ClaimKey) -> bool:
        """Return whether a claim that a pod names is one of its group, of which some pod has a node or is being placed."""
        return self.is_shared(pod, key) and group_key(pod) in self._placed

    def is_counted_for(self, pod: Pod, claim: ResourceClaim, waiting: Mapping[str, Pod]) -> bool:
        """Return whether a claim that a pod names counts for it in quotas.

        Of a group's it does for the first pod that has a node. While none has, it counts for each that waits, as one of them
        will get the devices; but for the first of a gang alone, whose members get them together.
        """
        consumer, group = self.consumer(pod, claim.key), group_of(pod, self._groups)
        if first_consumer(claim) not in ("", consumer.uid):
            return False
        if group is None or not consumer.api_group:
            return True
        first = self.first_placed(pod, claim.key)
        if not first and group.spec.scheduling_policy.gang is not None:
            first = next((uid for uid, one in waiting.items() if group_key(one) == group_key(pod)), "")
        return first in ("", pod.metadata.uid)

    def first_placed(self, pod: Pod, key: ClaimKey) -> str:
        """Return the UID of the first pod in the group of a pod that names a claim, and has a node or is being placed; "": none."""
        placed = self._placed.get(group_key(pod), {})
        return next((uid for uid, one in placed.items() if any(key[1] == of.name for of in names_of_claims(one))), "")

    def counted_for_first(self, pod: Pod) -> list[ClaimKey]:
        """Return the claims that count in quotas for a pod because it is the first of its group that was placed."""
        keys = [(pod.metadata.namespace, one.name) for one in names_of_claims(pod) if one.name]
        return [key for key in keys if self.first_placed(pod, key) == pod.metadata.uid]


def group_key(pod: Pod) -> ClaimKey:
    """Return namespace and name of the group of a pod; the name is "" if it is in none."""
    return pod.metadata.namespace, group_name(pod)
