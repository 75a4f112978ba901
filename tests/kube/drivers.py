"""A driver of devices and the controller of claims that are played: they publish devices, and make and clean up claims."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec

from licorne.kube.objects import DeviceClass, Pod, PodGroup, ResourceClaim, ResourceSlice
from licorne.kube.objects.pods import PodResourceClaimStatus
from licorne.kube.pods.device_claims import names_of_claims
from licorne.kube.pods.groups import group_name
from licorne.kube.pods.work import is_over

from .apiserver import Server
from .places import Places

DRIVER = "gpu.example.com"
SELECTOR = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
RESOURCE = "example.com/gpu"
CLASS = {"metadata": {"name": "gpu"}, "spec": {"selectors": [SELECTOR], "extendedResourceName": RESOURCE}}


def resource_slice(name: str, *devices: dict[str, Any] | str, **spec: Any) -> ResourceSlice:
    """Return a slice that is a pool for itself, for the node of its name unless `spec` says otherwise."""
    where = {} if {"allNodes", "nodeSelector", "nodeName"} & spec.keys() else {"nodeName": name}
    body = {
        "driver": DRIVER,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": one} if isinstance(one, str) else one for one in devices],
        **where,
        **spec,
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": body}, ResourceSlice)


def resource_claim(
    name: str, *requests: dict[str, Any], namespace: str = "default", owner: str = "", **devices: Any
) -> ResourceClaim:
    """Return a claim without devices: of one of the class `gpu`, or of what the requests say."""
    wanted = [
        {"name": f"r{n}", "exactly": {"deviceClassName": "gpu", **one}}
        for n, one in enumerate(requests or ({"count": 1},))
    ]
    owners = [{"kind": "Pod", "uid": owner, "controller": True}] if owner else []
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "ownerReferences": owners}
    return msgspec.convert({"metadata": meta, "spec": {"devices": {"requests": wanted, **devices}}}, ResourceClaim)


def wants(*claims: str, template: str = "") -> list[dict[str, Any]]:
    """Return the claims of a pod: those of these names, and one that is made for it."""
    found = [{"name": f"c{n}", "resourceClaimName": name} for n, name in enumerate(claims)]
    return [*found, *([{"name": "made", "resourceClaimTemplateName": template}] if template else [])]


def pod_group(
    *claims: str, needed: int = 0, template: str = "", uid: str = "uid-g", namespace: str = "default"
) -> PodGroup:
    """Return the group `g` with claims of these names: a gang of which so many are needed, or with the policy `basic`."""
    policy = {"gang": {"minCount": needed}} if needed else {"basic": {}}
    spec = {"schedulingPolicy": policy, "resourceClaims": wants(*claims, template=template)}
    return msgspec.convert({"metadata": {"name": "g", "namespace": namespace, "uid": uid}, "spec": spec}, PodGroup)


def containers(*counts: int, resource: str = RESOURCE, **more: Any) -> list[dict[str, Any]]:
    """Return containers that request so many of an extended resource each."""
    name, cpu = more.get("restartPolicy", "c"), {"cpu": "100m", "memory": "1Mi"}
    return [
        {"name": f"{name}{at}", "resources": {"requests": {**cpu, resource: count}}, **more}
        for at, count in enumerate(counts)
    ]


def places(nodes: int, devices: int, made: Places | None = None) -> Places:
    """Return a cluster with the class `gpu`, and nodes with so many devices each."""
    made = made or Places()
    made.manager.named_seen(msgspec.convert(CLASS, DeviceClass))
    for number in range(nodes):
        made.node(f"n{number}")
        made.manager.named_seen(resource_slice(f"n{number}", *(f"d{n}" for n in range(devices))))
    return made


class ClaimController:
    """Makes the claims of templates, `count` devices each, and takes back what pods had that are gone or have ended."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.counts = {"one": 1, "two": 2}

    async def run(self, every_s: float = 1.0) -> None:
        """Take a step now and then, until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.step()

    def claims(self) -> list[ResourceClaim]:
        """Return all claims."""
        return [one for one in self.server.objects.get("resourceclaims", {}).values() if isinstance(one, ResourceClaim)]

    def users(self) -> set[str]:
        """Return the UIDs of what may have devices: pods that have not ended, and pod groups."""
        pods = (pod for pod in self.server.pods() if not is_over(pod))
        return {one.metadata.uid for one in (*pods, *self.server.objects.get("podgroups", {}).values())}

    def step(self) -> None:
        """Do all that is to be done."""
        pods = self.users()
        for pod in [pod for pod in self.server.pods() if not is_over(pod)]:
            self._make(pod)
        for claim in self.claims():
            owners = [one.uid for one in claim.metadata.owner_references or ()]
            users = claim.status.reserved_for or ()
            left = tuple(one for one in users if one.uid in pods)
            status = msgspec.structs.replace(claim.status, reserved_for=left or None)
            if not left:
                status = msgspec.structs.replace(status, allocation=None)
            if owners and not pods & {*owners} and not left:
                self.server.remove("resourceclaims", claim.metadata.namespace, claim.metadata.name)
            elif users != left:
                self.server.put("resourceclaims", msgspec.structs.replace(claim, status=status))

    def _make(self, pod: Pod) -> None:
        group = self.server.objects.get("podgroups", {}).get((pod.metadata.namespace, group_name(pod)))
        made = {one.name for one in pod.status.resource_claim_statuses or ()}
        for one in pod.spec.resource_claims or ():
            template = one.resource_claim_template_name
            if template is None or one.name in made:
                continue
            listed = isinstance(group, PodGroup) and one in (group.spec.resource_claims or ())
            owner = group.metadata if group is not None and listed else pod.metadata
            name = f"{owner.name}-{one.name}"
            if not any(claim.metadata.name == name for claim in self.claims()):
                self.server.put(
                    "resourceclaims", resource_claim(name, {"count": self.counts[template]}, owner=owner.uid)
                )
            statuses = (PodResourceClaimStatus(one.name, name),)
            self.server.put(
                "pods",
                msgspec.structs.replace(
                    pod, status=msgspec.structs.replace(pod.status, resource_claim_statuses=statuses)
                ),
            )


def check_claims(controller: ClaimController, pod: Pod, node: str) -> None:
    """Check, when a pod is bound, that its claims have devices, that these can be used there, and that they are reserved for it."""
    known = {one.metadata.name: one for one in controller.claims()}
    for used in names_of_claims(pod):
        claim = known.get(used.name or "")
        allocation = None if claim is None else claim.status.allocation
        if allocation is None and group_name(pod):
            continue  # its group came anew while the binding was on its way
        assert claim is not None, f"{pod.metadata.name} is bound, and claim {used.name} is not there"
        assert allocation is not None, f"{pod.metadata.name} is bound, and claim {used.name} has no devices"
        group = controller.server.objects.get("podgroups", {}).get((pod.metadata.namespace, group_name(pod)))
        may_use = {pod.metadata.uid, *([group.metadata.uid] if group is not None else [])}
        assert may_use & {one.uid for one in claim.status.reserved_for or ()}, f"{used.name}: {claim.status}"
        selector = allocation.node_selector
        for term in () if selector is None else selector.node_selector_terms or ():
            for one in term.match_fields or ():
                assert one.values == (node,), f"{pod.metadata.name} on {node}, {used.name} {one}"


def check_devices_held_once(controller: ClaimController) -> None:
    """Check that no device is held by two claims."""
    results = [
        (one.driver, one.pool, one.device)
        for claim in controller.claims()
        if claim.status.allocation is not None
        for one in claim.status.allocation.devices.results or ()
        if one.share_id is None
    ]
    twice = [key for key, number in Counter(results).items() if number > 1]
    assert not twice, twice


def check_nobody_holds(controller: ClaimController) -> None:
    """Check that what is held is held for pods and groups that are there: no device is held by none."""
    there = controller.users()
    for claim in controller.claims():
        users = {one.uid for one in claim.status.reserved_for or ()}
        assert claim.status.allocation is None or users & there, f"{claim.metadata.name} holds devices for {users}"
