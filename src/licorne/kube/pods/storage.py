"""What a cluster knows of volumes, with what has been decided of them and is not written yet.

The objects are kept as the API server shows them. A decision that a claim gets a volume, or that a volume is made for it on a
node, counts from then on (`Storage.reserve`), whatever the objects say until it is written, so that the next pod sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from licorne.config.kubernetes import QuantityError, parse_quantity
from licorne.core.nodes.constraints import FIELD_NAME, read_expression
from licorne.kube.objects import Node
from licorne.kube.objects.meta import KubernetesObject
from licorne.kube.objects.pods import NodeSelectorTerm
from licorne.kube.objects.volumes import (
    SELECTED_NODE,
    Claim,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    StorageClass,
)

from .constraints import Terms, conditions_of

ClaimKey = tuple[str, str]
"""The namespace and the name of a claim."""
K = TypeVar("K")
N = TypeVar("N")
V = TypeVar("V")
MEMO_MAX: Final = 10_000
"""Terms whose nodes are remembered, at most."""


class Reservation(msgspec.Struct, frozen=True):
    """What was decided of a claim: the volume that it gets, or "" if one is made, and the node of the pod."""

    volume: str
    node: str


class Storage:
    """Claims, volumes, classes, drivers and capacities by name; `nodes` are those of the cluster."""

    def __init__(self, nodes: Mapping[str, Node] | None = None) -> None:
        self.nodes: Mapping[str, Node] = {} if nodes is None else nodes
        self.claims: dict[ClaimKey, Claim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.capacities: dict[str, dict[ClaimKey, CSIStorageCapacity]] = {}
        """By class."""
        self.reserved: dict[ClaimKey, Reservation] = {}
        self._taken: dict[str, ClaimKey] = {}  # volumes that are reserved
        self._of_class: dict[str, dict[str, PersistentVolume]] = {}
        self._where: dict[str, frozenset[str]] = {}
        self._by_label: dict[tuple[str, str], list[str]] | None = None

    # -- objects ------------------------------------------------------------------------------------------------

    def put(self, one: KubernetesObject) -> None:
        """Take in an object that is new or has changed, of a kind that decides about volumes; others are passed over."""
        name = one.metadata.name
        match one:
            case Claim():
                self.claims[one.key] = one
            case PersistentVolume():
                self.put_volume(one)
            case StorageClass():
                self.classes[name] = one
            case CSINode():
                self.csi_nodes[name] = one
            case CSIDriver():
                self.drivers[name] = one
            case CSIStorageCapacity():
                self.put_capacity(one)

    def put_volume(self, volume: PersistentVolume) -> None:
        """Take in a volume that is new or has changed."""
        self.drop_volume(volume.metadata.name)
        self.volumes[volume.metadata.name] = volume
        self._of_class.setdefault(volume.storage_class, {})[volume.metadata.name] = volume

    def drop_volume(self, name: str) -> None:
        """Forget a volume."""
        if (was := self.volumes.pop(name, None)) is not None:
            drop_from(self._of_class, was.storage_class, name)

    def put_capacity(self, capacity: CSIStorageCapacity) -> CSIStorageCapacity | None:
        """Take in a capacity that is new or has changed, and return it as it was; its class never changes."""
        of_class = self.capacities.setdefault(capacity.storage_class_name, {})
        was, of_class[capacity.key] = of_class.get(capacity.key), capacity
        return was

    def volumes_of(self, storage_class: str) -> Iterable[PersistentVolume]:
        """Return the volumes of a class."""
        return self._of_class.get(storage_class, {}).values()

    # -- reservations -------------------------------------------------------------------------------------------

    def reserve(self, claim: ClaimKey, volume: str, node: str) -> None:
        """Note what was decided of a claim."""
        self.reserved[claim] = Reservation(volume, node)
        if volume:
            self._taken[volume] = claim

    def release(self, claim: ClaimKey) -> None:
        """Forget what was decided of a claim: it is written, or will not be."""
        was = self.reserved.pop(claim, None)
        if was is not None and self._taken.get(was.volume) == claim:
            del self._taken[was.volume]

    def selected_node(self, claim: Claim) -> str | None:
        """Return the node for which the volume of a claim is made; None: none is."""
        known = self.reserved.get(claim.key)
        if known is not None and not known.volume:
            return known.node
        return claim.annotation(SELECTED_NODE)

    def holder(self, volume: PersistentVolume) -> tuple[str, str, str] | None:
        """Return namespace, name and UID of the claim that a volume belongs to, or is to; the UID may be ""."""
        taken = self._taken.get(volume.metadata.name)
        if taken is not None:
            return (*taken, "")
        ref = volume.spec.claim_ref
        return None if ref is None else (ref.namespace, ref.name, ref.uid)

    # -- nodes --------------------------------------------------------------------------------------------------

    def nodes_changed(self) -> None:
        """Forget which nodes have which labels."""
        self._where.clear()
        self._by_label = None

    def where(self, terms: Terms) -> frozenset[str] | None:
        """Return the names of the nodes for which terms hold; None: all."""
        if terms is None:
            return None
        text = repr(terms)
        known = self._where.get(text)
        if known is None:
            if len(self._where) >= MEMO_MAX:
                self._where.clear()
            known = self._where[text] = frozenset(name for term in terms for name in self._of_term(term))
        return known

    def _of_term(self, term: tuple[dict[str, Any], ...]) -> Iterable[str]:
        if self._by_label is None:
            self._by_label = {}
            for name, node in self.nodes.items():
                for label in labels_of(node).items():
                    self._by_label.setdefault(label, []).append(name)
        asked = [[(one["key"], value) for value in one["values"]] for one in term if one["operator"] == "In"]
        among: Iterable[str] = self.nodes
        if asked:
            among = [name for label in asked[0] for name in self._by_label.get(label, ())]
        conditions = [read_expression(one, "a term") for one in term]
        for name in among:
            labels = labels_of(self.nodes[name])
            if conditions and all(one.is_true(labels) for one in conditions):
                yield name


def drop_from(index: dict[K, dict[N, V]], key: K, name: N) -> bool:
    """Take a name out of an index of names, if it is there; return whether it was the last one under the key."""
    names = index.get(key, {})
    names.pop(name, None)
    return not names and index.pop(key, None) is not None


def labels_of(node: Node) -> dict[str, str]:
    """Return the labels of a node, and its name as the scheduler knows it."""
    return {**(node.metadata.labels or {}), FIELD_NAME: node.metadata.name}


def is_owned_by(one: KubernetesObject, *owners: KubernetesObject | None) -> bool:
    """Return whether an object, such as a claim, was made for one of these, such as a pod."""
    uids = [owner.metadata.uid for owner in owners if owner is not None]
    return any(owner.controller and owner.uid in uids for owner in one.metadata.owner_references or ())


def affinity_of(volume: PersistentVolume) -> Terms:
    """Return where a volume can be used. Like kube-scheduler this reads no fields of nodes, so a term of these alone holds everywhere."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    found = []
    for term in affinity.required.node_selector_terms or ():
        if not term.match_expressions and term.match_fields:
            return None
        made = conditions_of(NodeSelectorTerm(term.match_expressions))
        if made is not None:
            found.append(tuple(made))
    return tuple(found)


def quantity(value: object) -> int:
    """Return an amount of storage in bytes; 0 if there is none, or it cannot be read."""
    try:
        return 0 if value is None else parse_quantity(str(value))
    except QuantityError:
        return 0


def size_of(claim: Claim) -> int:
    """Return how much a claim asks for, in bytes."""
    return quantity(((claim.spec.resources or {}).get("requests") or {}).get("storage"))


def capacity_of(volume: PersistentVolume) -> int:
    """Return the size of a volume, in bytes."""
    return quantity((volume.spec.capacity or {}).get("storage"))
