"""Extended resources that a DeviceClass backs: a container requests an amount, and gets devices if its node does not list the resource.

As kube-scheduler's DynamicResources (docs/spec/kube-scheduler.md, section 7): the devices are allocated to a ResourceClaim that is
made for the pod when it has a node, with a request for each container and resource. Its name follows from the pod, so a
process that is started anew finds the claim of the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from licorne.kube.objects.devices import DeviceClaim, DeviceClass, DeviceRequest, ExactRequest, ResourceClaim
from licorne.kube.objects.pods import Container, Pod

from .device_pools import nano
from .storage import ClaimKey, is_owned_by

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that each device class backs, whether it names another one or not."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim that has devices from being removed; the controller of claims takes it off."""
BEGIN_MAX: Final = 200
"""How many characters of the pod's name, at most, stand at the beginning of the name of its ResourceClaim."""


class Extended(NamedTuple):
    """A pod that requests extended resources, with the device class of each, and the claim for those that a node does not list."""

    pod: Pod
    classes: dict[str, str]

    def is_for(self, claim: ResourceClaim) -> bool:
        """Return whether a claim was made for the extended resources of the pod, and not by somebody else who gave it that name."""
        return is_owned_by(claim, self.pod) and (claim.metadata.annotations or {}).get(ANNOTATION) == "true"

    def fits(self, claim: ResourceClaim) -> bool:
        """Return whether what a claim requests is among what the pod needs now, as classes may have changed since it was made."""
        needed = {one.name: one.exactly for _, requests, _ in self._needed({}) for one in requests}
        for one in claim.spec.devices.requests or ():
            has, needs = one.exactly, needed.get(one.name)
            if (
                has is None
                or needs is None
                or has.device_class_name != needs.device_class_name
                or has.count != needs.count
            ):
                return False
        return True

    def parts(self, listed: Mapping[str, Any] | None) -> dict[str, DeviceClaim]:
        """Return what is demanded for each resource on a node that lists these; None: on one that lists none of them."""
        return {name: DeviceClaim(requests=requests) for name, requests, _ in self._needed(listed or {})}

    def body(self, key: ClaimKey, listed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the claim as it is created for a node that lists these resources."""
        meta = self.pod.metadata
        requests = sorted((one for _, each, _ in self._needed(listed) for one in each), key=lambda one: one.name)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "namespace": key[0],
                "name": key[1],
                "annotations": {ANNOTATION: "true"},
                "ownerReferences": [owner],
                "finalizers": [FINALIZER],
            },
            "spec": {"devices": {"requests": msgspec.to_builtins(requests)}},
        }

    def status(self, claim: ResourceClaim) -> dict[str, Any]:
        """Return `extendedResourceClaimStatus` of the pod: the name of its claim, and which container gets the devices of which request."""
        names = {one.name for one in claim.spec.devices.requests or ()}
        mappings = [one for _, _, uses in self._needed({}) for one in uses if one["requestName"] in names]
        return {"resourceClaimName": claim.metadata.name, "requestMappings": mappings}

    def _needed(
        self, listed: Mapping[str, Any]
    ) -> Iterator[tuple[str, tuple[DeviceRequest, ...], list[dict[str, str]]]]:
        for name, of_class in sorted(self.classes.items()):
            if nano(listed.get(name, 0)) <= 0:
                yield name, *_requests(self.pod, name, of_class)


def claim_key(pod: Pod) -> ClaimKey:
    """Return namespace and name of the claim that is made for the extended resources of a pod."""
    meta = pod.metadata
    suffix = hashlib.sha256(meta.uid.encode()).hexdigest()[:8]
    return meta.namespace, f"{meta.name[:BEGIN_MAX].rstrip('.-')}-extended-resources-{suffix}"


def requested_of(pod: Pod) -> dict[str, None]:
    """Return the extended resources that containers of a pod request."""
    containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
    return {name: None for one in containers for name in _requested(one) if "/" in name and _count(one, name)}


def extended_of(pod: Pod, classes: Mapping[str, DeviceClass]) -> Extended | None:
    """Return which resources that the pod requests device classes back; None if there are none."""
    if not classes:
        return None
    found = {name: of_class for name in requested_of(pod) if (of_class := backing(name, classes))}
    return Extended(pod, found) if found else None


def backing(resource: str, classes: Mapping[str, DeviceClass]) -> str:
    """Return the class that backs a resource; "" if none does. Of several that name it, the one that was created last, then by name."""
    if resource.startswith(IMPLICIT):
        name = resource.removeprefix(IMPLICIT)
        return name if name in classes else ""
    naming = sorted(name for name, one in classes.items() if one.spec.extended_resource_name == resource)
    return max(naming, key=lambda name: classes[name].metadata.creation_timestamp or "", default="")


def _requested(container: Container) -> Mapping[str, Any]:
    return (container.resources.requests if container.resources is not None else None) or {}


def _count(container: Container, resource: str) -> int:
    return nano(_requested(container).get(resource, 0)) // 10**9


def _requests(pod: Pod, resource: str, of_class: str) -> tuple[tuple[DeviceRequest, ...], list[dict[str, str]]]:
    """Return the requests for devices of a resource, and which container uses which.

    Containers that stay, sidecars too, each have devices of their own. Init containers that end use those of later ones first;
    of what they need besides, the largest serves all of them, as they run one after the other.
    """
    before = pod.spec.init_containers or ()
    containers = (*before, *pod.spec.containers)
    names = [f"container-{at}-request-{_place(one, resource)}" for at, one in enumerate(containers)]
    counts = [_count(one, resource) for one in containers]
    ends = [at < len(before) and one.restart_policy != "Always" for at, one in enumerate(containers)]
    wanted = {at: count for at, count in enumerate(counts) if count and not ends[at]}
    used = [(at, at) for at in wanted]
    more: dict[int, int] = {}
    of_ending: list[tuple[int, int]] = []
    for at in range(len(before)):
        left = counts[at] if ends[at] else 0
        if not left:
            continue
        for other, count in wanted.items():
            if other > at and left > 0:
                left -= count
                of_ending.append((at, other))
        if left > 0:
            more[at] = left
            of_ending.append((at, at))
    most = max(more, key=lambda at: more[at], default=0)
    used += [(at, most if other in more else other) for at, other in of_ending]
    uses = [
        {"containerName": containers[at].name, "resourceName": resource, "requestName": names[other]}
        for at, other in used
    ]
    if more:
        wanted[most] = more[most]
    return tuple(
        DeviceRequest(
            name=names[at], exactly=ExactRequest(device_class_name=of_class, allocation_mode="ExactCount", count=count)
        )
        for at, count in wanted.items()
    ), uses


def _place(container: Container, resource: str) -> int:
    names = sorted(_requested(container))
    return names.index(resource) if resource in names else 0
