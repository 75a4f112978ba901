"""The objects of the Kubernetes API that a scheduler reads, with the fields it uses.

Decoding skips every other field, so a field that is added to Kubernetes costs nothing, and one of a strange type does no
harm unless it is used. A field that is absent or null has its default. The names are those of the API, in lower case
with underscores.

`meta`: what all objects have; `pods`, `groups`, `nodes`, `volumes`, `devices`, and `others`: the rest.
"""

from __future__ import annotations

from .devices import DeviceClass, ResourceClaim, ResourceSlice
from .groups import PodGroup
from .meta import KubernetesObject, ObjectMeta, OwnerReference
from .nodes import Node
from .others import ConfigMap, Lease, Namespace, PlainWorkload, PodDisruptionBudget, PriorityClass, Workload
from .pods import Container, Pod, PodSpec, PodStatus
from .volumes import Claim, CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, StorageClass, VolumeAttachment

__all__ = [
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "Claim",
    "ConfigMap",
    "Container",
    "DeviceClass",
    "KubernetesObject",
    "Lease",
    "Namespace",
    "Node",
    "ObjectMeta",
    "OwnerReference",
    "PersistentVolume",
    "PlainWorkload",
    "Pod",
    "PodDisruptionBudget",
    "PodGroup",
    "PodSpec",
    "PodStatus",
    "PriorityClass",
    "ResourceClaim",
    "ResourceSlice",
    "StorageClass",
    "VolumeAttachment",
    "Workload",
]
