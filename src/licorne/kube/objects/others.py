"""Namespaces, priority classes, ConfigMaps, disruption budgets, leases, and what has pods by a selector."""

from __future__ import annotations

from typing import Any

import msgspec

from .meta import KubernetesObject, LabelSelector, Object


class Namespace(KubernetesObject):
    """A namespace: its annotations carry quotas, its labels are selected by affinities of pods."""


class PriorityClass(KubernetesObject):
    """A priority class, known by its name."""

    value: int = 0
    preemption_policy: str = ""


class ConfigMap(KubernetesObject):
    """A ConfigMap. `binary_data` is base64."""

    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None


class LeaseSpec(Object):
    """`spec` of a lease: who holds it, and after how many seconds without a change it has expired."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int = 0


class Lease(KubernetesObject):
    """A lease."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class PodDisruptionBudgetSpec(Object):
    """`spec` of a disruption budget: which pods it protects. No selector: none; an empty one: all of the namespace."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Object):
    """`status` of a disruption budget: how many more of its pods may be disrupted now, as of which generation.

    `disrupted_pods`: by name, those whose eviction was allowed already and does not show yet; when is not read.
    """

    disruptions_allowed: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(KubernetesObject):
    """A disruption budget."""

    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


class _Chosen(Object):
    selector: LabelSelector | None = None


class _ChosenByPairs(Object):
    selector: dict[str, str] | None = None


class Workload(KubernetesObject):
    """A ReplicaSet or a StatefulSet, of which only the selector of its pods is read."""

    spec: _Chosen = msgspec.field(default_factory=_Chosen)

    @property
    def selector(self) -> LabelSelector:
        """The selector of the pods that belong to the workload; without one in the object an empty one."""
        return self.spec.selector or LabelSelector()


class PlainWorkload(KubernetesObject):
    """A service or a ReplicationController, whose selector is a map of labels."""

    spec: _ChosenByPairs = msgspec.field(default_factory=_ChosenByPairs)

    @property
    def selector(self) -> LabelSelector:
        """Which pods it has."""
        return LabelSelector(self.spec.selector or {})
