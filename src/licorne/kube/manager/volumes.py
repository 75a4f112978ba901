"""Which pods are concerned when a claim, a volume, a class, a driver or a capacity changes, and what attachments take.

What is found is read anew in one go when the scheduler is told of changes next (`Volumes.take_changed`), as many objects change
together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from licorne.kube.objects import (
    Claim,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    KubernetesObject,
    PersistentVolume,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from licorne.kube.pods.matching import has_room
from licorne.kube.pods.storage import ClaimKey, Storage, drop_from
from licorne.kube.pods.volumes import attachment_allocation, claims_of

from .binding_volumes import VolumeBindings
from .claims import ClaimAttempt, ClaimAttempts
from .outbox import Outbox
from .records import PodRecord, Records
from .turns import Turns

ATTACHMENT: Final = "attachment/"
"""The prefix of the keys by which the scheduler knows attachments."""


class Volumes:
    """The volumes of a cluster as `storage` has them, and the pods that name claims."""

    def __init__(self, records: Records, outbox: Outbox, attempts: ClaimAttempts) -> None:
        self._records = records
        self._outbox = outbox
        self._attempts = attempts
        self.storage = Storage(records.nodes)
        self.bindings = VolumeBindings(self.storage, outbox)
        self.turns = Turns()
        self._users: dict[ClaimKey, dict[str, None]] = {}  # UIDs of pods
        self._names: dict[str, tuple[ClaimKey, ...]] = {}  # by the UID of a pod
        self._unbound: dict[str, dict[ClaimKey, None]] = {}  # claims without a volume, by class
        self.changed: dict[str, None] = {}
        """UIDs of pods that are to be read anew."""
        self._on_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._of_volume: dict[str, dict[str, VolumeAttachment]] = {}
        self._told: dict[str, str] = {}  # attachments that the scheduler knows, with their nodes

    # -- pods ---------------------------------------------------------------------------------------------------

    def pod_seen(self, pod: Pod) -> None:
        """Note which claims a pod names."""
        uid = pod.metadata.uid
        if pod.spec.volumes and uid not in self._names and (used := claims_of(pod)):
            self._names[uid] = names = tuple((pod.metadata.namespace, one.name) for one in used)
            for name in names:
                self._users.setdefault(name, {})[uid] = None

    def pod_gone(self, uid: str) -> None:
        """Forget a pod."""
        self.give_back(uid)
        self.changed.pop(uid, None)
        for name in dict.fromkeys(self._names.pop(uid, ())):
            drop_from(self._users, name, uid)

    def take_changed(self) -> list[str]:
        """Return the UIDs of the pods for which something has changed since the last call, but for those that have not their turn."""
        changed, self.changed = self.changed, {}
        return [uid for uid in changed if not self.turns.before(uid)]

    # -- decisions ----------------------------------------------------------------------------------------------

    def may_ask(self, record: PodRecord) -> bool:
        """Return whether the scheduler may be asked for a pod now; else it waits for pods with which it has claims or volumes in common."""
        turns = record.work.volumes.turns
        if self.turns.wanted(record.uid) != turns:
            self._pass_on(record.uid)
        return not turns or self.turns.take(record.uid, turns, self._outbox.now_s())

    def reserve(self, record: PodRecord, attempt: ClaimAttempt) -> str:
        """Have the claims of a pod bound for the node that was decided; return why they cannot be, or ""."""
        why = self.bindings.begin(record, attempt)
        self.reread(attempt.chosen)
        self._pass_on(record.uid)
        return why

    def give_back(self, uid: str) -> None:
        """Release what was reserved for the claims of a pod, and let the next pod have its turn (`Turns`)."""
        attempt = self._attempts.of_pod.get(uid)
        if attempt is not None:
            for key in attempt.chosen:
                self.storage.release(key)
            self.reread(attempt.chosen)
            attempt.chosen = {}
        self._pass_on(uid)

    def pass_turns(self) -> list[PodRecord]:
        """Return the pods whose turn ends though they have no node: others wait for it."""
        found = (self._records.pods.get(uid) for uid in self.turns.overdue(self._outbox.now_s()))
        return [record for record in found if record is not None]

    def reread(self, claims: Mapping[ClaimKey, str]) -> None:
        """Have the pods read again that name one of these claims, or that may get the volume that is for one."""
        for key, volume in claims.items():
            self.changed |= self._users.get(key, {})
            if volume and (claim := self.storage.claims.get(key)) is not None:
                self._class_changed(claim.storage_class)

    def _pass_on(self, uid: str) -> None:
        self.changed |= dict.fromkeys(self.turns.leave(uid))

    # -- objects ------------------------------------------------------------------------------------------------

    def seen(self, one: KubernetesObject) -> None:
        """Take in an object that is new or has changed."""
        storage, name = self.storage, one.metadata.name
        match one:
            case Claim():
                was_claim = storage.claims.get(one.key, one)
                storage.put(one)
                drop_from(self._unbound, was_claim.storage_class, one.key)  # another one may have another class
                self._claim_changed(one, unbound=not one.is_bound)
            case PersistentVolume():
                was = storage.volumes.get(name)
                storage.put(one)
                self._volume_changed(one)
                if was is not None and (was.storage_class, was.spec.claim_ref) != (
                    one.storage_class,
                    one.spec.claim_ref,
                ):
                    self._volume_changed(was)
            case StorageClass():
                storage.put(one)
                self._class_changed(name)
            case CSIDriver():
                storage.put(one)
                self._driver_changed(name)
            case CSIStorageCapacity():
                was_capacity = storage.put_capacity(one)
                if was_capacity is None or was_capacity.node_topology == one.node_topology:
                    self._class_changed(
                        one.storage_class_name, lambda claim: has_room(one, claim) is not has_room(was_capacity, claim)
                    )
                else:
                    self._class_changed(one.storage_class_name)
            case CSINode():
                storage.put(one)
                self.node_known(name)
            case VolumeAttachment():
                self._on_node.setdefault(one.spec.node_name, {})[name] = one
                self._of_volume.setdefault(_volume_of(one), {})[name] = one
                self._tell(one)

    def gone(self, one: KubernetesObject) -> None:
        """Forget an object."""
        storage, name = self.storage, one.metadata.name
        match one:
            case Claim():
                self._claim_changed(storage.claims.pop(one.key, one), unbound=False)
            case PersistentVolume():
                storage.drop_volume(name)
                self._volume_changed(one)
            case StorageClass():
                storage.classes.pop(name, None)
                self._class_changed(name)
            case CSIDriver():
                storage.drivers.pop(name, None)
                self._driver_changed(name)
            case CSIStorageCapacity():
                drop_from(storage.capacities, one.storage_class_name, one.key)
                self._class_changed(one.storage_class_name)
            case CSINode():
                storage.csi_nodes.pop(name, None)
                self.node_known(name)
            case VolumeAttachment():
                drop_from(self._on_node, one.spec.node_name, name)
                drop_from(self._of_volume, _volume_of(one), name)
                self._withdraw(name)

    def nodes_changed(self) -> None:
        """Note that nodes are new or gone, or have other labels: where volumes can be used is looked up anew."""
        self.storage.nodes_changed()
        for uid in self._names:
            record = self._records.pods.get(uid)
            if record is not None and record.work.volumes.names_nodes:
                self.changed[uid] = None

    def _claim_changed(self, claim: Claim, *, unbound: bool) -> None:
        key = claim.key
        self.changed |= self._users.get(key, {})
        if unbound:
            self._unbound.setdefault(claim.storage_class, {})[key] = None
        else:
            drop_from(self._unbound, claim.storage_class, key)

    def _volume_changed(self, volume: PersistentVolume) -> None:
        """Note the pods of the claim that a volume is bound to, else those that may get it."""
        ref = volume.spec.claim_ref
        if ref is not None:
            self.changed |= self._users.get((ref.namespace, ref.name), {})
        else:
            self._class_changed(volume.storage_class)
        for one in self._of_volume.get(volume.metadata.name, {}).values():
            self._tell(one)

    def _class_changed(self, name: str, concerns: Callable[[Claim], bool] = lambda _: True) -> None:
        """Note the pods with a claim of a class that has no volume yet."""
        for key in self._unbound.get(name, ()):
            if concerns(self.storage.claims[key]):
                self.changed |= self._users.get(key, {})

    def _driver_changed(self, name: str) -> None:
        for uid in self._names:
            record = self._records.pods.get(uid)
            if record is not None and not record.node and name in record.work.volumes.attached:
                self.changed[uid] = None

    # -- attachments --------------------------------------------------------------------------------------------

    def node_known(self, name: str) -> None:
        """Tell the scheduler of what is attached to a node that is new, or has other drivers."""
        for one in self._on_node.get(name, {}).values():
            self._tell(one)

    def node_gone(self, name: str) -> None:
        """Note that the scheduler has forgotten what is attached to a node."""
        for attachment in self._on_node.get(name, ()):
            self._told.pop(attachment, None)

    def _tell(self, one: VolumeAttachment) -> None:
        """Have the scheduler count a volume that is attached to a node which takes only so many, whether pods there use it or not."""
        name, node = one.metadata.name, one.spec.node_name
        volume = self.storage.volumes.get(_volume_of(one))
        if volume is None or volume.spec.csi is None or not self._is_limited(node, volume.spec.csi.driver):
            self._withdraw(name)
        elif name not in self._told:
            self._outbox.ask(attachment_allocation(ATTACHMENT + name, node, volume.spec.csi))
            self._told[name] = node

    def _is_limited(self, node: str, driver: str) -> bool:
        known = self.storage.csi_nodes.get(node) if node in self._records.nodes else None
        drivers = () if known is None else known.spec.drivers or ()
        return any(one.name == driver and "count" in (one.allocatable or {}) for one in drivers)

    def _withdraw(self, name: str) -> None:
        if self._told.pop(name, None) is not None:
            self._outbox.release("", ATTACHMENT + name)


def _volume_of(one: VolumeAttachment) -> str:
    return one.spec.source.persistent_volume_name or ""
