"""Which claims of devices a pod names, who uses a claim, and what placeholders count in quotas."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

from licorne.core.constants import SUM_MAX
from licorne.kube.objects import PodGroup
from licorne.kube.objects.devices import ResourceClaim
from licorne.kube.objects.pods import Pod

from . import keys

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


def payer(claim: ResourceClaim | None) -> str:
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
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {name: number for name, number in found.items() if name.endswith(OF_CLASS)}


def is_owned_by(claim: ResourceClaim, *owners: Pod | PodGroup | None) -> bool:
    """Return whether a claim was made for one of these, by its template."""
    uids = [one.metadata.uid for one in owners if one is not None]
    return any(one.controller and one.uid in uids for one in claim.metadata.owner_references or ())
