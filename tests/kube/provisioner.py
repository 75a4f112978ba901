"""A volume controller and a provisioner that are played: they bind and make volumes as those of Kubernetes do, or fail to."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from licorne.kube.objects import Claim, PersistentVolume, Pod
from licorne.kube.objects.volumes import BIND_COMPLETED, SELECTED_NODE, SINGLE_POD
from licorne.kube.pods.work import is_over

from .apiserver import Server

CLASS: dict[str, Any] = {"provisioner": "disk.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
LOCAL: dict[str, Any] = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}


class Provisioner:
    """Makes what claims ask for, one step at a time.

    `refuses`: how many claims it refuses next, by taking the node off them; `off`: it does nothing; `only_makes`: it crashes
    before a volume that it has made is bound.
    """

    def __init__(self, server: Server, rng: random.Random | None = None) -> None:
        self.server = server
        self.rng = rng or random.Random(1)
        self.refuses = 0
        self.off = False
        self.only_makes = False
        self.refused = 0
        self.key = "topology.kubernetes.io/zone"  # the label that tells where the volumes can be used that it makes
        self._made = 0

    async def run(self, every_s: float = 1.0) -> None:
        """Take a step now and then, until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.step()

    def claims(self) -> list[Claim]:
        """Return all claims."""
        return [one for one in self.server.objects.get("persistentvolumeclaims", {}).values() if isinstance(one, Claim)]

    def volumes(self) -> dict[str, PersistentVolume]:
        """Return all volumes by name."""
        found = self.server.objects.get("persistentvolumes", {})
        return {name: one for (_, name), one in found.items() if isinstance(one, PersistentVolume)}

    def step(self) -> None:
        """Make a volume for each claim that has a node, and bind each volume to the claim that it is for."""
        for claim in [] if self.off else self.claims():
            node = claim.annotation(SELECTED_NODE)
            if node is None or claim.is_bound or self._meant_for(claim) is not None:
                continue
            if self.refuses > 0:
                self.refuses -= 1
                self.refused += 1
                self._put_claim(claim, {SELECTED_NODE: None})
            else:
                self._make(claim, node)
        for claim in [] if self.off or self.only_makes else self.claims():
            volume = self._meant_for(claim)
            if volume is not None and not claim.is_bound:
                spec = msgspec.structs.replace(claim.spec, volume_name=volume.metadata.name)
                self._put_claim(msgspec.structs.replace(claim, spec=spec), {BIND_COMPLETED: "yes"})
                status = msgspec.structs.replace(volume.status, phase="Bound")
                self.server.put("persistentvolumes", msgspec.structs.replace(volume, status=status))

    def _meant_for(self, claim: Claim) -> PersistentVolume | None:
        for volume in self.volumes().values():
            ref = volume.spec.claim_ref
            if ref is not None and ref.uid == claim.metadata.uid:
                return volume
        return None

    def _make(self, claim: Claim, node: str) -> None:
        self._made += 1
        found = self.server.objects["nodes"].get(("", node))
        if found is None:  # so does the real one
            self._put_claim(claim, {SELECTED_NODE: None})
            return
        meta, value = claim.metadata, (found.metadata.labels or {}).get(self.key, "")
        ref = {"kind": "PersistentVolumeClaim", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
        volume = persistent_volume(f"made{self._made}", self.key, value, claim.storage_class, claimRef=ref)
        self.server.put("persistentvolumes", volume)

    def _put_claim(self, claim: Claim, annotations: dict[str, str | None]) -> None:
        known: dict[str, str | None] = {**(claim.metadata.annotations or {}), **annotations}
        kept = {name: value for name, value in known.items() if value is not None}
        meta = msgspec.structs.replace(claim.metadata, annotations=kept or None)
        self.server.put("persistentvolumeclaims", msgspec.structs.replace(claim, metadata=meta))


def persistent_volume(name: str, key: str, value: str, storage_class: str, **more: Any) -> PersistentVolume:
    """Return a volume of 10 GiB that nodes with this label can use."""
    expression = {"key": key, "operator": "In", "values": [value]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany", SINGLE_POD],
        "storageClassName": storage_class,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        "csi": {"driver": "disk.example.com", "volumeHandle": f"h-{name}"},
        **more,
    }
    body = {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}
    return msgspec.convert(body, PersistentVolume)


def claim(name: str, storage_class: str, *modes: str, size: str = "5Gi", **metadata: Any) -> Claim:
    """Return a claim that has no volume."""
    spec = {
        "accessModes": list(modes or ("ReadWriteOnce",)),
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage_class,
    }
    body = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata}, "spec": spec}
    return msgspec.convert(body, Claim)


def uses(*claims: str) -> list[dict[str, Any]]:
    """Return the volumes of a pod that names claims."""
    return [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": name}} for n, name in enumerate(claims)]


def check_volumes(provisioner: Provisioner, pod: Pod, node: str) -> None:
    """Check, when a pod is bound, that its volumes are, that the node can use them, and that nobody else has them alone."""
    labels = provisioner.server.objects["nodes"]["", node].metadata.labels or {}
    claims = {one.metadata.name: one for one in provisioner.claims()}
    for one in pod.spec.volumes or ():
        name = (one.persistent_volume_claim or {})["claimName"]
        found = claims[name]
        assert found.is_bound, f"{pod.metadata.name} is bound, and claim {name} is not"
        volume = provisioner.volumes()[found.spec.volume_name]
        assert volume.spec.node_affinity is not None, volume
        assert volume.spec.node_affinity.required is not None, volume
        (term,) = volume.spec.node_affinity.required.node_selector_terms or ()
        for wanted in term.match_expressions or ():
            assert labels.get(wanted.key) in (wanted.values or ()), f"{pod.metadata.name} on {node}, {wanted}"
        if SINGLE_POD in (found.spec.access_modes or ()):
            running = [each for each in provisioner.server.pods() if each.spec.node_name and not is_over(each)]
            others = [each.metadata.name for each in running if _names(each, name)]
            assert not others, f"{pod.metadata.name} shares claim {name} with {others}"


def check_limit(provisioner: Provisioner, node: str, most: int) -> None:
    """Check that the pods of a node have at most so many volumes of the driver there."""
    of_driver = {one.metadata.name for one in provisioner.claims() if one.storage_class == "made"}
    used = of_driver & {
        (one.persistent_volume_claim or {}).get("claimName")
        for pod in provisioner.server.pods()
        if pod.spec.node_name == node and not is_over(pod)
        for one in pod.spec.volumes or ()
    }
    assert len(used) <= most, f"{node} has {len(used)} volumes of {most}"


def check_held_once(provisioner: Provisioner) -> None:
    """Check that each volume is bound to one claim at most."""
    names = [one.spec.volume_name for one in provisioner.claims() if one.spec.volume_name]
    assert len(set(names)) == len(names), names


def _names(pod: Pod, claim_name: str) -> bool:
    return any((one.persistent_volume_claim or {}).get("claimName") == claim_name for one in pod.spec.volumes or ())
