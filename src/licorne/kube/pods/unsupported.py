"""What a pod may ask for that is not decided here yet. Such a pod waits, and is never placed wrongly."""

from __future__ import annotations

from licorne.kube.objects.pods import Pod


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
    if spec.resource_claims:
        wants.append("claims of devices")
    if spec.scheduling_group is not None and spec.scheduling_group.pod_group_name:
        wants.append("a native pod group")
    return f"licorne does not decide this yet: the pod has {', '.join(wants)}" if wants else ""
