"""Pods."""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import Any, Final

import msgspec

from .meta import KubernetesObject, LabelSelector, LabelSelectorRequirement, Object, Quantities

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class ResourceRequirements(Object):
    """`resources` of a container or a pod. Limits decide nothing."""

    requests: Quantities | None = None


class ContainerPort(Object):
    """A port of a container; on the node too if `host_port` is not 0."""

    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartRule(Object):
    """What happens when a container ends in a certain way."""

    action: str = ""


class Container(Object):
    """A container. An init container with the restart policy `Always` is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None


class NodeSelectorTerm(Object):
    """A term holds if all of its conditions do; a term without conditions holds nowhere."""

    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None
    match_fields: tuple[LabelSelectorRequirement, ...] | None = None


class NodeSelector(Object):
    """A selector holds if one of its terms does."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class PreferredSchedulingTerm(Object):
    """Nodes that a pod would rather run on."""

    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinity(Object):
    """On which nodes a pod may run, and on which it would rather."""

    required: NodeSelector | None = msgspec.field(default=None, name=REQUIRED)
    preferred: tuple[PreferredSchedulingTerm, ...] | None = msgspec.field(default=None, name=PREFERRED)


class PodAffinityTerm(Object):
    """Which pods are meant, in which namespaces, and the label whose value tells what is the same place."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(Object):
    """Pods that had better be near, or (anti-affinity) had better not be."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Object):
    """Pods that must be near, or (anti-affinity) must not be."""

    required: tuple[PodAffinityTerm, ...] | None = msgspec.field(default=None, name=REQUIRED)
    preferred: tuple[WeightedPodAffinityTerm, ...] | None = msgspec.field(default=None, name=PREFERRED)


class Affinity(Object):
    """`affinity` of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Object, frozen=True):  # type: ignore[misc]  # what holds for dataclasses does not for structs
    """A taint that the pod bears."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class TopologySpreadConstraint(Object):
    """How evenly pods must be spread, or had better be. No selector: no pod is meant; no policy: the default one."""

    topology_key: str = ""
    when_unsatisfiable: str = ""
    max_skew: int = 1
    min_domains: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class Volume(Object):
    """A volume; only whether the choice of a node depends on it is used. `ephemeral` is a claim that is made with the pod.

    The others are disks that are named in the pod itself, without a claim.
    """

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None


class LocalObjectReference(Object):
    """The name of an object in the same namespace, such as a secret."""

    name: str = ""


class SchedulingGate(Object):
    """Something that must be removed before the pod is scheduled."""

    name: str = ""


class SchedulingGroup(Object):
    """The native group of pods that a pod is part of."""

    pod_group_name: str | None = None


class PodResourceClaim(Object):
    """A claim of devices: one that there is, or one that is made for the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Object):
    """The claim that was made for a pod; without a name none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Object):
    """`spec` of a pod. What most pods have in common is stored once: a tenth of what a decoded pod takes."""

    scheduler_name: str = ""
    node_name: str = ""
    host_network: bool = False
    host_users: bool | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    scheduling_group: SchedulingGroup | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] | None = None
    termination_grace_period_seconds: int | None = None

    def __post_init__(self) -> None:
        self.scheduler_name = intern(self.scheduler_name)
        self.node_name = intern(self.node_name)
        self.tolerations = _shared(self.tolerations)


@lru_cache(maxsize=1024)
def _shared(tolerations: tuple[Toleration, ...] | None) -> tuple[Toleration, ...] | None:
    """Return the first that is equal, of those that were seen lately."""
    return tolerations


class Condition(Object):
    """A condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerStatus(Object):
    """What a container has got; it may differ from what it requests after a change in place."""

    name: str = ""
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


class PodStatus(Object):
    """`status` of a pod."""

    phase: str = ""
    reason: str = ""
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None
    resize: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: dict[str, Any] | None = None


class Pod(KubernetesObject):
    """A pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)
