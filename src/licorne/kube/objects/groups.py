"""Native pod groups (scheduling.k8s.io/v1beta1, docs/spec/k8shim.md, section 16): what a scheduler reads of them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .meta import KubernetesObject, Object
from .pods import PodResourceClaim

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition of a pod group that has had as many pods with a node at a time as it needs; it stays true."""


class GangPolicy(Object):
    """So many pods must have a node at the same time."""

    min_count: int = 0


class SchedulingPolicy(Object):
    """One of `basic`, the pods are placed one by one, and `gang`."""

    gang: GangPolicy | None = None


class DisruptionMode(Object):
    """One of `single` and `all`: the pods can only be disrupted together."""

    all: dict[str, Any] | None = None


class TopologyConstraint(Object):
    """All pods are in one domain of this key of labels of nodes."""

    key: str = ""


class SchedulingConstraints(Object):
    """Constraints of all pods together; the API server allows one."""

    topology: tuple[TopologyConstraint, ...] | None = None


class PodGroupSpec(Object):
    """`spec` of a PodGroup: policies for all of its pods. `preemption_policy` and what follows it are behind feature gates of their own."""

    scheduling_policy: SchedulingPolicy = msgspec.field(default_factory=SchedulingPolicy)
    priority: int | None = None
    disruption_mode: DisruptionMode | None = None
    preemption_policy: str | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    parent_composite_pod_group_name: str | None = None


class GroupCondition(Object):
    """A condition of a PodGroup, such as whether it has been scheduled."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


class PodGroupStatus(Object):
    """`status` of a PodGroup: the conditions that a scheduler sets, such as whether the group has been scheduled."""

    conditions: tuple[GroupCondition, ...] | None = None


class PodGroup(KubernetesObject):
    """A pod group. Its pods name it; it may come later than they do, go, and come anew with another policy."""

    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)

    @property
    def needed(self) -> int:
        """How many of its pods must have a node for it to be scheduled."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count
