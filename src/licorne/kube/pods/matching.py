"""Which volume a claim without one would get on which node: an existing one, else a new one of its class.

As kube-scheduler's VolumeBinding (docs/spec/kube-scheduler.md, section 6): claims by ascending size, each takes the smallest
volume that fits; what is left must be allowed, and have room, where its class makes volumes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from licorne.kube.objects.meta import LabelSelector
from licorne.kube.objects.volumes import Claim, CSIStorageCapacity, PersistentVolume

from .constraints import Terms
from .selectors import is_selector, selects
from .storage import ClaimKey, Storage, affinity_of, capacity_of, quantity, size_of

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class OfferedVolumes:
    """The volumes that a claim may get, in the order in which they are taken; one that is meant for it comes first."""

    def __init__(self, claim: Claim, storage: Storage) -> None:
        self.claim = claim
        found = [one for one in storage.volumes_of(claim.storage_class) if _suffices(one, claim)]
        key, uid = claim.key, claim.metadata.uid
        holders = {one.metadata.name: storage.holder(one) for one in found}
        self.meant = [one for one in found if _means(holders[one.metadata.name], key, uid)]
        free = [one for one in found if holders[one.metadata.name] is None and _is_offered(one, claim)]
        self.free = sorted(free, key=lambda one: (capacity_of(one), one.metadata.name))

    def __len__(self) -> int:
        return len(self.meant) + len(self.free)


def _means(holder: tuple[str, str, str] | None, key: ClaimKey, uid: str) -> bool:
    return holder is not None and holder[:2] == key and holder[2] in ("", uid)


def _suffices(volume: PersistentVolume, claim: Claim) -> bool:
    """Return whether a volume has the size, the mode and the attributes that a claim asks for, and stays."""
    spec, wanted = volume.spec, claim.spec
    return (
        capacity_of(volume) >= size_of(claim)
        and (spec.volume_mode or "Filesystem") == (wanted.volume_mode or "Filesystem")
        and (spec.volume_attributes_class_name or "") == (wanted.volume_attributes_class_name or "")
        and not volume.metadata.deletion_timestamp
    )


def _is_offered(volume: PersistentVolume, claim: Claim) -> bool:
    """Return whether a volume that nobody has may be given to a claim."""
    selector = claim.spec.selector
    labels = volume.metadata.labels or {}
    if selector is not None and not (is_selector(selector) and selects(selector, labels)):
        return False
    modes = {*(claim.spec.access_modes or ())}
    return volume.status.phase == "Available" and modes <= {*(volume.spec.access_modes or ())}


def found_on(claims: Sequence[Claim], storage: Storage, nodes: Collection[str]) -> dict[ClaimKey, dict[str, str]]:
    """Return, for each of some claims of a pod, the volume that it gets on each of these nodes where there is one for it."""
    taken: dict[str, set[str]] = {}
    found: dict[ClaimKey, dict[str, str]] = {}
    for claim in sorted(claims, key=size_of):
        got = found[claim.key] = {}
        offered = OfferedVolumes(claim, storage)
        left = {*nodes}
        for position, volume in enumerate((*offered.meant, *offered.free)):
            name = volume.metadata.name
            where = storage.where(affinity_of(volume))
            for node in left & where if where is not None else [*left]:
                if name not in taken.setdefault(node, set()):
                    taken[node].add(name)
                    got[node] = name
                    left.discard(node)
            if not left or position < len(offered.meant):
                break
    return found


def made_in(claim: Claim, storage: Storage) -> Terms:
    """Return where the class of a claim makes volumes."""
    known = storage.classes.get(claim.storage_class)
    if known is None or known.provisioner in ("", NO_PROVISIONER):
        return ()
    if not known.allowed_topologies:
        return None
    return tuple(
        tuple(
            {"key": one.key, "operator": "In", "values": list(one.values or ())} for one in term.match_label_expressions
        )
        for term in known.allowed_topologies
        if term.match_label_expressions
    )


def room_for(claim: Claim, storage: Storage) -> Terms:
    """Return where the driver of the class of a claim has room for the volume."""
    known = storage.classes.get(claim.storage_class)
    driver = None if known is None else storage.drivers.get(known.provisioner)
    requests = (claim.spec.resources or {}).get("requests") or {}
    if driver is None or not driver.spec.storage_capacity or "storage" not in requests:
        return None
    terms = []
    for one in storage.capacities.get(claim.storage_class, {}).values():
        if not has_room(one, claim) or one.node_topology is None:
            continue
        if one.node_topology == LabelSelector() or not (conditions := _conditions(one.node_topology)):
            return None
        terms.append(conditions)
    return tuple(sorted(terms, key=repr))


def has_room(capacity: CSIStorageCapacity | None, claim: Claim) -> bool:
    """Return whether a capacity is large enough for a claim."""
    if capacity is None:
        return False
    most = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return most is not None and quantity(most) >= size_of(claim)


def _conditions(selector: LabelSelector) -> tuple[dict[str, object], ...]:
    pairs: Iterable[tuple[str, str]] = sorted((selector.match_labels or {}).items())
    made: list[dict[str, object]] = [{"key": key, "operator": "In", "values": [value]} for key, value in pairs]
    for one in selector.match_expressions or ():
        values = {"values": list(one.values)} if one.values else {}
        made.append({"key": one.key, "operator": one.operator, **values})
    return tuple(made)
