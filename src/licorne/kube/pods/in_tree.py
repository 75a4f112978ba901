"""Volumes of plugins that were a part of Kubernetes ("in-tree"), as the CSI drivers know them that have replaced those.

kube-scheduler counts such a volume as one of the driver. A bound one can be used, on a node whose CSINode says that its kubelet
has migrated the plugin, where the driver's own label has the zone of the volume (docs/spec/kube-scheduler.md, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from licorne.kube.objects import CSINode
from licorne.kube.objects.pods import Volume
from licorne.kube.objects.volumes import CSISource, PersistentVolume, VolumeSpec

from .constraints import Terms
from .storage import affinity_of

MIGRATED: Final = "migrated-plugin:"
"""The prefix of the labels by which licorne kube says which plugins the kubelet of a node has migrated."""
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""The annotation of a CSINode that lists them."""
PROVISIONER: Final = "kubernetes.io/"
"""How the names of these plugins begin, by which storage classes name them as provisioners."""
GA: Final = "topology.kubernetes.io/"
BETA: Final = "failure-domain.beta.kubernetes.io/"
DELIMITER: Final = "__"
"""Stands between the zones in a label of a volume that several have."""


class Plugin(NamedTuple):
    """A plugin: the member of a volume that is its source, the member of the source that names the disk, and its driver.

    `zone`: the label of nodes in which the driver keeps the zone; "": no volume's zone is translated.
    """

    source: str
    disk: str
    name: str
    driver: str
    zone: str = ""


EBS: Final = Plugin(
    "aws_elastic_block_store",
    "volumeID",
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
    "topology.ebs.csi.aws.com/zone",
)
GCE: Final = Plugin(
    "gce_persistent_disk", "pdName", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"
)
AZURE: Final = Plugin("azure_disk", "diskURI", "kubernetes.io/azure-disk", "disk.csi.azure.com")
PLUGINS: Final = (
    EBS,
    GCE,
    AZURE,
    Plugin(
        "cinder",
        "volumeID",
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
    ),
    Plugin("portworx_volume", "volumeID", "kubernetes.io/portworx-volume", "pxd.portworx.com"),
)
"""Those whose volumes kube-scheduler translates; volumes of others, such as vSphere's, count for no driver."""
DRIVERS: Final = {plugin.name: plugin.driver for plugin in PLUGINS}


def csi_source(volume: VolumeSpec | Volume, labels: Mapping[str, str] | None = None) -> CSISource | None:
    """Return driver and handle of a volume with these labels; None: it counts for no driver."""
    if isinstance(volume, VolumeSpec) and volume.csi is not None:
        return volume.csi
    for plugin in PLUGINS:
        source = getattr(volume, plugin.source)
        if source is not None:
            handle = _handle(plugin, source, labels or {})
            return CSISource(plugin.driver, handle) if handle else None
    return None


def driver_of(provisioner: str) -> str:
    """Return the driver for which volumes of a provisioner count; "": none."""
    return DRIVERS.get(provisioner, "" if provisioner.startswith(PROVISIONER) else provisioner)


def _handle(plugin: Plugin, source: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    disk = str(source.get(plugin.disk, ""))
    if plugin is EBS and disk.startswith("aws://"):  # aws://ZONE/DISK
        return disk.rstrip("/").rpartition("/")[2]
    if plugin is AZURE and str(source.get("kind", "Managed")).lower() != "managed":
        return ""
    if plugin is GCE:
        zones = (labels.get(f"{BETA}zone") or labels.get(f"{GA}zone") or "UNSPECIFIED").split(DELIMITER)
        regions = {zone.rpartition("-")[0] for zone in zones}
        if len(zones) == 1:
            return f"projects/UNSPECIFIED/zones/{zones[0]}/disks/{disk}"
        return f"projects/UNSPECIFIED/regions/{regions.pop()}/disks/{disk}" if len(regions) == 1 else ""
    return disk


def migrated_plugins(node: CSINode) -> list[str]:
    """Return the names of the plugins that the kubelet of a node has migrated."""
    return [name for name in (node.metadata.annotations or {}).get(MIGRATED_PLUGINS, "").split(",") if name]


def usable_on(volume: PersistentVolume) -> Terms:
    """Return on which nodes a bound volume can be used; None: on all."""
    here = affinity_of(volume)
    plugin = next((one for one in PLUGINS if one.zone and getattr(volume.spec, one.source) is not None), None)
    translated = None if plugin is None else _translated(volume, plugin.zone)
    if plugin is None or translated is None:
        return here
    label = MIGRATED + plugin.name
    migrated, not_migrated = ({"key": label, "operator": operator} for operator in ("Exists", "DoesNotExist"))
    return (
        *((*term, not_migrated) for term in (((),) if here is None else here)),
        *((*term, migrated) for term in translated),
    )


def _translated(volume: PersistentVolume, zone_key: str) -> Terms:
    """Return where a driver can use a volume: its label stands for that of the zone; None: there is none to translate."""
    terms, labels = affinity_of(volume), volume.metadata.labels or {}
    keys = {one["key"] for term in terms or () for one in term}
    prefix = next((one for known in (keys, labels) for one in (GA, BETA) if f"{one}zone" in known), GA)
    zones = sorted({zone.strip() for zone in labels.get(f"{prefix}zone", "").split(DELIMITER)} - {""})
    renamed = {f"{prefix}zone": zone_key} | ({f"{BETA}region": f"{GA}region"} if prefix == BETA else {})
    if f"{prefix}zone" not in keys and zones:
        in_zones = {"key": zone_key, "operator": "In", "values": zones}
        terms = tuple((*term, in_zones) for term in terms or ((),))
    elif not keys & renamed.keys():
        return None
    return tuple(tuple({**one, "key": renamed.get(one["key"], one["key"])} for one in term) for term in terms or ())
