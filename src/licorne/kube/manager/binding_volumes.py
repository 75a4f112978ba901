"""What is written for the claims of a pod that has a node, and when all of them are bound.

A volume that exists gets a reference to the claim, a claim whose volume is to be made the name of the node; the volume controller
and the provisioner do the rest. The objects show how far that is, so a process that is killed between two writes and started
again goes on: what was written keeps the pod to the node, or the volume to the claim. A write says which version of its object it
is about, so it never takes effect where somebody else was faster.
"""

from __future__ import annotations

from typing import Any

from licorne.kube.api.kinds import CLAIMS, VOLUMES
from licorne.kube.objects.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, Claim
from licorne.kube.pods.matching import made_in
from licorne.kube.pods.storage import ClaimKey, Storage, affinity_of
from licorne.kube.pods.volumes import bindings_on

from .claims import ClaimAttempt
from .commands import WriteClaim
from .outbox import Outbox
from .records import PodRecord


class VolumeBindings:
    """What is written so that claims are bound, and whether they are."""

    def __init__(self, storage: Storage, outbox: Outbox) -> None:
        self._storage = storage
        self._outbox = outbox

    def begin(self, record: PodRecord, attempt: ClaimAttempt) -> str:
        """Have the claims of a pod bound for the node that was decided; return why they cannot be, or ""."""
        storage, node = self._storage, attempt.node
        claims = bindings_on(record.pod, storage, node)
        for key, volume in claims.items():
            if not volume:
                where = storage.where(made_in(storage.claims[key], storage))
                if where is not None and node not in where:
                    return f"no volume is left on node {node} for claim {key[1]}"
        attempt.chosen = claims
        attempt.uids = {key: storage.claims[key].metadata.uid for key in claims}
        for key, volume in claims.items():
            claim = storage.claims[key]
            write = _selection(claim, node) if not volume else self._reference(claim, volume)
            storage.reserve(key, volume, node)
            if write is not None:
                self._outbox.commands.append(WriteClaim(*attempt.names, attempt.number, *write))
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

    def look(self, attempt: ClaimAttempt) -> tuple[bool, str]:
        """Return whether all claims of a pod are bound, and else why they will not be; "": they may yet."""
        done = True
        for key, name in attempt.chosen.items():
            claim = self._storage.claims.get(key)
            if claim is None or claim.metadata.uid != attempt.uids[key] or claim.metadata.deletion_timestamp:
                return False, f"claim {key[1]} has been deleted"
            if claim.status.phase == "Lost":
                return False, f"claim {key[1]} has lost its volume"
            if not claim.is_bound:
                done = False
                if why := self._lost(attempt, claim, key, name):
                    return False, why
                continue
            volume = self._storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                done = False  # another watch
                continue
            where = self._storage.where(affinity_of(volume))
            if where is not None and attempt.node not in where:
                found = f"claim {key[1]} was bound to volume {claim.spec.volume_name}"
                return False, f"{found}, which is not for node {attempt.node}"
        return done, ""

    def _lost(self, attempt: ClaimAttempt, claim: Claim, key: ClaimKey, name: str) -> str:
        """Return why a claim will not get what was decided; "": it may yet."""
        if name:
            volume = self._storage.volumes.get(name)
            if volume is None:
                return f"volume {name} of claim {key[1]} has been deleted"
            ref = volume.spec.claim_ref
            taken = ref is not None and ((ref.namespace, ref.name) != key or ref.uid not in ("", claim.metadata.uid))
            return f"volume {name} was given to another claim than {key[1]}" if taken else ""
        selected = claim.annotation(SELECTED_NODE)
        if selected == attempt.node:
            attempt.selected.add(key)
        elif selected is not None:
            return f"the volume of claim {key[1]} is made for node {selected}"
        elif key in attempt.selected:
            return f"storage class {claim.storage_class} could make no volume for claim {key[1]} on node {attempt.node}"
        return ""


def _selection(claim: Claim, node: str) -> tuple[str, dict[str, Any]] | None:
    """Return the path of a claim, and the change by which its volume is made for a node; None if it is."""
    if claim.annotation(SELECTED_NODE) == node:
        return None
    meta = claim.metadata
    change = {"resourceVersion": meta.resource_version, "annotations": {SELECTED_NODE: node}}
    return CLAIMS.path(meta.namespace, meta.name), {"metadata": change}
