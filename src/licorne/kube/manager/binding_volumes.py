"""What is written for the claims of a pod that has a node, and when all of them are bound.

A volume that exists gets a reference to the claim, a claim whose volume is to be made the name of the node; the volume controller
and the provisioner do the rest. The objects show how far that is, so a process that is killed between two writes and started
again goes on: what was written keeps the pod to the node, or the volume to the claim. A write says which version of its object it
is about, so it never takes effect where somebody else was faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from licorne.kube.api.kinds import CLAIMS, VOLUMES
from licorne.kube.objects.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, Claim
from licorne.kube.pods.matching import made_in
from licorne.kube.pods.storage import ClaimKey, Storage, affinity_of
from licorne.kube.pods.volumes import bindings_on

from .commands import LoseVolumes, WriteVolume, names_of
from .outbox import Outbox
from .records import PodRecord

TIMEOUT_S: Final = 600.0
"""How long a pod waits for its claims to be bound, unless `service.volumeBindTimeout` says otherwise."""


class _Binding(msgspec.Struct):
    """The claims of one pod that are being bound for `node`: of each the volume that was chosen, "" if one is made, and its UID."""

    node: str
    number: int
    claims: dict[ClaimKey, str]
    uids: dict[ClaimKey, str]
    selected: set[ClaimKey]
    """Claims that have been seen with the node of the pod; if one loses it, the provisioner cannot make the volume there."""


class VolumeBindings:
    """The pods whose claims are being bound. `timeout_s`: how long that may take."""

    def __init__(self, storage: Storage, outbox: Outbox) -> None:
        self._storage = storage
        self._outbox = outbox
        self._bindings: dict[str, _Binding] = {}  # by the UID of a pod
        self._number = 0
        self.timeout_s = TIMEOUT_S

    def begin(self, record: PodRecord, node: str) -> str:
        """Have the claims of a pod bound for the node that was decided; return why they cannot be, or ""."""
        storage = self._storage
        claims = bindings_on(record.pod, storage, node)
        for key, volume in claims.items():
            if not volume:
                where = storage.where(made_in(storage.claims[key], storage))
                if where is not None and node not in where:
                    return f"no volume is left on node {node} for claim {key[1]}"
        self._number += 1
        uids = {key: storage.claims[key].metadata.uid for key in claims}
        self._bindings[record.uid] = _Binding(node, self._number, claims, uids, set())
        for key, volume in claims.items():
            claim = storage.claims[key]
            write = _selection(claim, node) if not volume else self._reference(claim, volume)
            storage.reserve(key, volume, node)
            if write is not None:
                self._outbox.commands.append(WriteVolume(*names_of(record.pod), self._number, *write))
        self._outbox.commands.append(LoseVolumes(record.uid, node, self._number, self.timeout_s))
        return ""

    def _reference(self, claim: Claim, name: str) -> tuple[str, dict[str, Any]] | None:
        """Return the path of a volume, and the change by which it is the claim's; None if it is."""
        volume, meta = self._storage.volumes[name], claim.metadata
        ref = volume.spec.claim_ref
        if ref is not None and ref.uid == meta.uid:
            return None
        reference = {
            "apiVersion": "v1",
            "kind": CLAIMS.name,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
        if ref is None:
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        return VOLUMES.path(name=name), {"metadata": metadata, "spec": {"claimRef": reference}}

    def is_current(self, uid: str, number: int) -> bool:
        """Return whether the claims of a pod are still to be bound as they were to be by this attempt."""
        known = self._bindings.get(uid)
        return known is not None and known.number == number

    def claims_of(self, uid: str) -> Mapping[ClaimKey, str]:
        """Return what was decided of the claims of a pod: the volume of each, or ""."""
        known = self._bindings.get(uid)
        return {} if known is None else known.claims

    def forget(self, uid: str) -> Mapping[ClaimKey, str]:
        """Forget what was decided of the claims of a pod; return it."""
        claims = self.claims_of(uid)
        self._bindings.pop(uid, None)
        for key in claims:
            self._storage.release(key)
        return claims

    def look(self, uid: str) -> tuple[bool, str]:
        """Return whether all claims of a pod are bound, and else why they will not be; "": they may yet."""
        known = self._bindings.get(uid)
        if known is None:
            return True, ""
        done = True
        for key, name in known.claims.items():
            claim = self._storage.claims.get(key)
            if claim is None or claim.metadata.uid != known.uids[key] or claim.metadata.deletion_timestamp:
                return False, f"claim {key[1]} has been deleted"
            if claim.status.phase == "Lost":
                return False, f"claim {key[1]} has lost its volume"
            if not claim.is_bound:
                done = False
                if why := self._lost(known, claim, key, name):
                    return False, why
                continue
            volume = self._storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                done = False  # another watch
                continue
            where = self._storage.where(affinity_of(volume))
            if where is not None and known.node not in where:
                return (
                    False,
                    f"claim {key[1]} was bound to volume {claim.spec.volume_name}, which is not for node {known.node}",
                )
        return done, ""

    def _lost(self, known: _Binding, claim: Claim, key: ClaimKey, name: str) -> str:
        """Return why a claim will not get what was decided; "": it may yet."""
        if name:
            volume = self._storage.volumes.get(name)
            if volume is None:
                return f"volume {name} of claim {key[1]} has been deleted"
            ref = volume.spec.claim_ref
            taken = ref is not None and ((ref.namespace, ref.name) != key or ref.uid not in ("", claim.metadata.uid))
            return f"volume {name} was given to another claim than {key[1]}" if taken else ""
        selected = claim.annotation(SELECTED_NODE)
        if selected == known.node:
            known.selected.add(key)
        elif selected is not None:
            return f"the volume of claim {key[1]} is made for node {selected}"
        elif key in known.selected:
            return f"storage class {claim.storage_class} could make no volume for claim {key[1]} on node {known.node}"
        return ""


def _selection(claim: Claim, node: str) -> tuple[str, dict[str, Any]] | None:
    """Return the path of a claim, and the change by which its volume is made for a node; None if it is."""
    if claim.annotation(SELECTED_NODE) == node:
        return None
    meta = claim.metadata
    change = {"resourceVersion": meta.resource_version, "annotations": {SELECTED_NODE: node}}
    return CLAIMS.path(meta.namespace, meta.name), {"metadata": change}
