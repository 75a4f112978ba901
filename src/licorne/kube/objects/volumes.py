"""Persistent volumes, the claims on them, and what storage classes and drivers say of both."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .meta import KubernetesObject, LabelSelector, Object, Quantities
from .pods import NodeSelector

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
READ: Final = (SELECTED_NODE, BIND_COMPLETED, BETA_CLASS)
"""The annotations that are read; others are not kept."""
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
SINGLE_POD: Final = "ReadWriteOncePod"


class _OfClass(KubernetesObject):
    def __post_init__(self) -> None:
        known = self.metadata.annotations
        if known:
            self.metadata.annotations = {key: known[key] for key in READ if key in known} or None

    def annotation(self, name: str) -> str | None:
        """Return the value of an annotation; None: the object does not have it."""
        return (self.metadata.annotations or {}).get(name)

    def class_or(self, name: str) -> str:
        """Return the storage class that the old annotation says, and without it the one that `spec` names."""
        beta = self.annotation(BETA_CLASS)
        return name if beta is None else beta


class ClaimSpec(Object):
    """`spec` of a claim."""

    access_modes: tuple[str, ...] | None = None
    resources: dict[str, Any] | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimStatus(Object):
    """`status` of a claim."""

    phase: str = ""


class Claim(_OfClass):
    """A PersistentVolumeClaim: a demand for storage, by which pods name it."""

    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)

    @property
    def storage_class(self) -> str:
        """The name of its storage class; "": none."""
        return self.class_or(self.spec.storage_class_name or "")

    @property
    def is_bound(self) -> bool:
        """Whether its volume is bound to it, too."""
        return bool(self.spec.volume_name) and self.annotation(BIND_COMPLETED) is not None


class ClaimReference(Object):
    """The claim that a volume is bound to, or is to be."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSISource(Object):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Object):
    """On which nodes a volume can be used."""

    required: NodeSelector | None = None


class VolumeSpec(Object):
    """`spec` of a volume. The sources from `aws_elastic_block_store` on are of plugins that drivers have replaced."""

    capacity: Quantities | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None


class VolumeStatus(Object):
    """`status` of a volume."""

    phase: str = ""


class PersistentVolume(_OfClass):
    """A PersistentVolume: storage of the cluster, which one claim at a time can have."""

    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)

    @property
    def storage_class(self) -> str:
        """The name of its storage class; "": none."""
        return self.class_or(self.spec.storage_class_name)


class TopologyExpression(Object):
    """An item of `matchLabelExpressions` of a StorageClass: a label of nodes, and the values with which volumes are made there."""

    key: str = ""
    values: tuple[str, ...] | None = None


class TopologyTerm(Object):
    """A term of `allowedTopologies` of a StorageClass: volumes are made for nodes that meet all its conditions."""

    match_label_expressions: tuple[TopologyExpression, ...] | None = None


class StorageClass(KubernetesObject):
    """A StorageClass: who makes volumes of the class, when, and where."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class CSINodeDriver(Object):
    """A driver that a node has, and how many of its volumes (`count`) can be attached there."""

    name: str = ""
    allocatable: dict[str, Any] | None = None


class CSINodeSpec(Object):
    """`spec` of a CSINode: the drivers that its node has."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(KubernetesObject):
    """The drivers of a node, by whose name it is known."""

    spec: CSINodeSpec = msgspec.field(default_factory=CSINodeSpec)


class CSIDriverSpec(Object):
    """`spec` of a driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubernetesObject):
    """A driver of volumes."""

    spec: CSIDriverSpec = msgspec.field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(KubernetesObject):
    """How much storage of a class can be had on the nodes that a selector means."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | int | None = None
    maximum_volume_size: str | int | None = None


class AttachmentSource(Object):
    """`spec.source` of a VolumeAttachment: the volume that is attached."""

    persistent_volume_name: str | None = None


class AttachmentSpec(Object):
    """`spec` of a VolumeAttachment: the volume, and the node."""

    node_name: str = ""
    source: AttachmentSource = msgspec.field(default_factory=AttachmentSource)


class VolumeAttachment(KubernetesObject):
    """A VolumeAttachment: a volume is attached to a node, or is to be."""

    spec: AttachmentSpec = msgspec.field(default_factory=AttachmentSpec)
