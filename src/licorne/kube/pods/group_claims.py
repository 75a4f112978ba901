"""Claims of devices that native pod groups list: a claim is reserved for the group, once, and all of its pods use the devices.

A pod uses a claim of its group where the group lists the same entry as the pod (docs/spec/kube-scheduler.md, section 7). Devices
that a group has got stay until the group is gone, which Kubernetes' controller of claims sees to; before that they may be taken
back only while no pod of the group has a node or is being placed.
"""

from __future__ import annotations

from collections.abc import Mapping

from licorne.kube.objects.devices import Consumer, ResourceClaim
from licorne.kube.objects.pods import Pod

from .device_claims import names_of_claims, payer
from .groups import Groups, group_name, group_of
from .storage import ClaimKey, drop_from, key_of


class GroupClaims:
    """The claims of these groups, and which pods of groups have a node or are being placed."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._placed: dict[ClaimKey, dict[str, Pod]] = {}  # by namespace and name of a group, and by the UID of a pod

    def consumer(self, pod: Pod, key: ClaimKey) -> Consumer:
        """Return for whom a claim is reserved that a pod names: its group, if that lists the claim as the pod does, else the pod."""
        group = group_of(pod, self._groups)
        listed = () if group is None else group.spec.resource_claims or ()
        if group is not None and listed:
            for entry, claim in zip(pod.spec.resource_claims or (), names_of_claims(pod), strict=True):
                if claim.name == key[1] and entry in listed:
                    return Consumer("scheduling.k8s.io", "podgroups", group.metadata.name, group.metadata.uid)
        return Consumer(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)

    def is_shared(self, pod: Pod, key: ClaimKey) -> bool:
        """Return whether a claim that a pod names is one of its group."""
        return bool(self.consumer(pod, key).api_group)

    def placed(self, pod: Pod) -> None:
        """Note that a pod has a node, or is being placed."""
        if group_name(pod):
            self._placed.setdefault(group_key(pod), {})[pod.metadata.uid] = pod

    def left(self, pod: Pod) -> None:
        """Note that a pod has no node, and is not being placed, any more."""
        drop_from(self._placed, group_key(pod), pod.metadata.uid)

    def have_places(self, pod: Pod) -> bool:
        """Return whether some pod of the group of a pod has a node, or is being placed."""
        return group_key(pod) in self._placed

    def pays(self, pod: Pod, claim: ResourceClaim, waiting: Mapping[str, Pod]) -> bool:
        """Return whether a claim that a pod names counts for it in quotas.

        Of a group's it does for the first pod that has a node. While none has, it counts for each that waits, as one of them
        will get the devices; but for the first of a gang alone, whose members get them together.
        """
        consumer, group = self.consumer(pod, key_of(claim)), group_of(pod, self._groups)
        if payer(claim) not in ("", consumer.uid):
            return False
        if group is None or not consumer.api_group:
            return True
        first = self.payer(pod, claim.metadata.name)
        if not first and group.spec.scheduling_policy.gang is not None:
            first = next((uid for uid, one in waiting.items() if group_key(one) == group_key(pod)), "")
        return first in ("", pod.metadata.uid)

    def payer(self, pod: Pod, name: str) -> str:
        """Return the UID of the first pod in the group of a pod that names a claim, and has a node or is being placed; "": none."""
        placed = self._placed.get(group_key(pod), {})
        return next((uid for uid, one in placed.items() if any(name == of.name for of in names_of_claims(one))), "")


def group_key(pod: Pod) -> ClaimKey:
    """Return namespace and name of the group of a pod; the name is "" if it is in none."""
    return pod.metadata.namespace, group_name(pod)
