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
    affinity = spec.affinity
    wants = []
    if affinity is not None:
        if affinity.pod_affinity is not None and affinity.pod_affinity.required:
            wants.append("required pod affinity")
        if affinity.pod_anti_affinity is not None and affinity.pod_anti_affinity.required:
            wants.append("required pod anti-affinity")
    if any(one.when_unsatisfiable == "DoNotSchedule" for one in spec.topology_spread_constraints or ()):
        wants.append("a topology spread that must be kept")
    if any(one.persistent_volume_claim is not None or one.ephemeral is not None for one in spec.volumes or ()):
        wants.append("a persistent volume claim")
    if any(getattr(one, name) is not None for one in spec.volumes or () for name in DISKS):
        wants.append("a disk of its own")
    if _needs_feature(pod):
        wants.append("a feature that its node must declare")
    if spec.resource_claims:
        wants.append("claims of devices")
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        wants.append("a native pod group")
    return f"licorne does not decide this yet: the pod has {', '.join(wants)}" if wants else ""


def _needs_feature(pod: Pod) -> bool:
    """Return whether the pod may run only on nodes whose kubelet declares a feature (NodeDeclaredFeatures)."""
    spec = pod.spec
    if spec.host_network and spec.host_users is False:
        return True
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *(spec.init_containers or ()))
        for rule in container.restart_policy_rules or ()
    )
