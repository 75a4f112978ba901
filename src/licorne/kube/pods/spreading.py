"""Default topology spread constraints, for pods that have none of their own: those of kube-scheduler, or an administrator's.

They spread the pods of a workload, which are those that the workload's selectors select: of the services of its namespace that
select the pod, and of the controller that owns it. A pod that has neither has no constraints (docs/spec/kube-scheduler.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import yaml

from licorne.kube.objects import PlainWorkload, Pod, Workload
from licorne.kube.objects.meta import LabelSelector, LabelSelectorRequirement
from licorne.kube.objects.pods import TopologySpreadConstraint

SERVICE: Final = "Service"
HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
OF_SYSTEM: Final = (
    TopologySpreadConstraint("kubernetes.io/hostname", SOFT, 3),
    TopologySpreadConstraint("topology.kubernetes.io/zone", SOFT, 5),
)
"""The default constraints of kube-scheduler where an administrator gives none."""
SYSTEM: Final = "system"
"""The text that stands for them."""


class ConstraintsError(ValueError):
    """Default constraints cannot be used; the text says why."""


class Spreading:
    """The default constraints, which say no selector, and the selectors of services and controllers.

    `of_system`: the constraints are those of kube-scheduler, which nodes may fulfil without the labels that they name.
    """

    def __init__(self, constraints: Sequence[TopologySpreadConstraint] = ()) -> None:
        self.constraints = tuple(constraints)
        self.of_system = self.constraints == OF_SYSTEM
        self._services: dict[str, dict[str, dict[str, str]]] = {}  # by namespace and name
        self._controllers: dict[tuple[str, str, str], LabelSelector] = {}  # by kind, namespace and name

    def seen(self, kind: str, found: Workload | PlainWorkload) -> bool:
        """Take in a service or a controller, and return whether it selects other pods than before."""
        meta, selector = found.metadata, found.selector
        if kind == SERVICE:
            services = self._services.setdefault(meta.namespace, {})
            pairs = selector.match_labels or {}
            was, services[meta.name] = services.get(meta.name), pairs
            return was != pairs
        key = (kind, meta.namespace, meta.name)
        known, self._controllers[key] = self._controllers.get(key), selector
        return known != selector

    def gone(self, kind: str, found: Workload | PlainWorkload) -> None:
        """Forget a service or a controller."""
        meta = found.metadata
        self._controllers.pop((kind, meta.namespace, meta.name), None)
        if kind == SERVICE and (services := self._services.get(meta.namespace)) is not None:
            services.pop(meta.name, None)
            if not services:
                del self._services[meta.namespace]

    def of(self, pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
        """Return the constraints of a pod: its own, else the default ones if it is of a workload."""
        own = pod.spec.topology_spread_constraints
        if own or not self.constraints:
            return own or ()
        pairs: dict[str, str] = {}
        conditions: tuple[LabelSelectorRequirement, ...] = ()
        labels = (pod.metadata.labels or {}).items()
        for chosen in self._services.get(pod.metadata.namespace, {}).values():
            if chosen and chosen.items() <= labels:
                pairs |= chosen
        owner = next((one for one in pod.metadata.owner_references or () if one.controller), None)
        if owner is not None:
            known = self._controllers.get((owner.kind, pod.metadata.namespace, owner.name), LabelSelector())
            pairs |= known.match_labels or {}
            conditions = known.match_expressions or ()
        if not (pairs or conditions):
            return ()
        selector = LabelSelector(pairs, conditions or None)
        return tuple(msgspec.structs.replace(one, label_selector=selector) for one in self.constraints)


def read_constraints(text: str) -> tuple[TopologySpreadConstraint, ...]:
    """Return the constraints of a text of YAML: a list of them, `defaultConstraints` with such a list, or `system`.

    They are those of kube-scheduler's PodTopologySpreadArgs, so none has a selector.

    Raises:
        ConstraintsError: a constraint cannot be used.
    """
    try:
        found = yaml.safe_load(text)
        if found == SYSTEM:
            return OF_SYSTEM
        if isinstance(found, dict):
            found = found.get("defaultConstraints")
        made = msgspec.convert(found, tuple[TopologySpreadConstraint, ...])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConstraintsError(f"default spread constraints: {error}") from None
    for one in made:
        if not one.topology_key or one.max_skew < 1 or one.when_unsatisfiable not in (HARD, SOFT):
            raise ConstraintsError(
                "default spread constraints: each has a topologyKey, a maxSkew of 1 or more, and whenUnsatisfiable DoNotSchedule or ScheduleAnyway"
            )
        if one.label_selector is not None or one.match_label_keys:
            raise ConstraintsError("default spread constraints: none has a labelSelector or matchLabelKeys")
    return made
