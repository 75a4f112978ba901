"""The kinds of objects that are read and written, and where the API server has them."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

import msgspec

from licorne.kube.objects import (
    Claim,
    ConfigMap,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    KubernetesObject,
    Lease,
    Namespace,
    Node,
    PersistentVolume,
    PlainWorkload,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
    VolumeAttachment,
    Workload,
)

T = TypeVar("T", bound=KubernetesObject)
NAMED: Final = "metadata.name="
"""The field selector of a single object, before its name."""


class Kind(msgspec.Struct, Generic[T], frozen=True):
    """A kind of object: its name, the struct that it is decoded to, and its path.

    `group` is the path of its group and version; `fields` a field selector that always applies, so that objects which
    are of no interest are not sent.
    """

    name: str
    type: type[T]
    group: str
    plural: str
    fields: str = ""
    namespace: str = ""

    @property
    def title(self) -> str:
        """What the log calls these objects: the plural, and which one where it is a single one."""
        name = self.fields.removeprefix(NAMED)
        return f"{self.plural} {self.namespace}/{name}" if name != self.fields else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, or of one object."""
        within = namespace or self.namespace
        path = f"{self.group}/namespaces/{within}/{self.plural}" if within else f"{self.group}/{self.plural}"
        if name:
            path = f"{path}/{name}"
        return f"{path}/{subresource}" if subresource else path


CORE: Final = "/api/v1"
NODES: Final = Kind("Node", Node, CORE, "nodes")
PODS: Final = Kind("Pod", Pod, CORE, "pods", fields="status.phase!=Succeeded,status.phase!=Failed")
"""Pods that have not ended: they leave the selection, as if deleted, when they end."""
NAMESPACES: Final = Kind("Namespace", Namespace, CORE, "namespaces")
PRIORITY_CLASSES: Final = Kind("PriorityClass", PriorityClass, "/apis/scheduling.k8s.io/v1", "priorityclasses")
CONFIG_MAPS: Final = Kind("ConfigMap", ConfigMap, CORE, "configmaps")
LEASES: Final = Kind("Lease", Lease, "/apis/coordination.k8s.io/v1", "leases")
DISRUPTION_BUDGETS: Final = Kind("PodDisruptionBudget", PodDisruptionBudget, "/apis/policy/v1", "poddisruptionbudgets")

POD_GROUPS: Final = Kind("PodGroup", PodGroup, "/apis/scheduling.k8s.io/v1beta1", "podgroups")

APPS: Final = "/apis/apps/v1"
WORKLOADS: Final[tuple[Kind[Any], ...]] = (
    Kind("Service", PlainWorkload, CORE, "services"),
    Kind("ReplicationController", PlainWorkload, CORE, "replicationcontrollers"),
    Kind("ReplicaSet", Workload, APPS, "replicasets"),
    Kind("StatefulSet", Workload, APPS, "statefulsets"),
)
"""What default spread constraints ask for the selector of a pod's workload; read only where there are such constraints."""

STORAGE: Final = "/apis/storage.k8s.io/v1"
CLAIMS: Final = Kind("PersistentVolumeClaim", Claim, CORE, "persistentvolumeclaims")
VOLUMES: Final = Kind("PersistentVolume", PersistentVolume, CORE, "persistentvolumes")
OF_VOLUMES: Final[tuple[Kind[Any], ...]] = (
    CLAIMS,
    VOLUMES,
    Kind("StorageClass", StorageClass, STORAGE, "storageclasses"),
    Kind("CSINode", CSINode, STORAGE, "csinodes"),
    Kind("CSIDriver", CSIDriver, STORAGE, "csidrivers"),
    Kind("CSIStorageCapacity", CSIStorageCapacity, STORAGE, "csistoragecapacities"),
    Kind("VolumeAttachment", VolumeAttachment, STORAGE, "volumeattachments"),
)
"""What volumes demand follows from these."""

RESOURCE: Final = "/apis/resource.k8s.io/v1"
RESOURCE_CLAIMS: Final = Kind("ResourceClaim", ResourceClaim, RESOURCE, "resourceclaims")
OF_DEVICES: Final[tuple[Kind[Any], ...]] = (
    Kind("DeviceClass", DeviceClass, RESOURCE, "deviceclasses"),
    Kind("ResourceSlice", ResourceSlice, RESOURCE, "resourceslices"),
    RESOURCE_CLAIMS,
)
"""What claims of devices demand, and what is there for them; where they are not read, pods with claims wait."""
NAMED_BY_PODS: Final[tuple[Kind[Any], ...]] = (POD_GROUPS, *OF_VOLUMES, *OF_DEVICES)
"""What pods name, pod groups and claims, and what else it takes to know what claims demand; the manager takes in all alike."""


def config_map_kind(namespace: str, name: str) -> Kind[ConfigMap]:
    """Return the kind that one ConfigMap is alone."""
    return msgspec.structs.replace(CONFIG_MAPS, namespace=namespace, fields=f"{NAMED}{name}")
