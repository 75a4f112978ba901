"""What a pod may ask for that is not decided here yet. Such a pod waits, and is never placed wrongly."""

from __future__ import annotations

from typing import Final

from licorne.kube.objects.pods import Pod

DISKS: Final = (
    "aws_elastic_block_store",
    "azure_disk",
    "cinder",
    "gce_persistent_disk",
    "iscsi",
    "portworx_volume",
    "rbd",
    "vsphere_volume",
)
"""Volumes without a claim, of which a node can have only so many, or which only one node at a time can have."""


def why_later(pod: Pod) -> str:
    """Return which part of the pod is not supported, in a sentence, or "" if all is."""
    spec = pod.spec
    wants = []
    if any(one.persistent_volume_claim is not None or one.ephemeral is not None for one in spec.volumes or ()):
        wants.append("a persistent volume claim")
    if any(getattr(one, name) is not None for one in spec.volumes or () for name in DISKS):
        wants.append("a disk of its own")
    if spec.resource_claims:
        wants.append("claims of devices")
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        wants.append("a native pod group")
    return f"licorne does not decide this yet: the pod has {', '.join(wants)}" if wants else ""
