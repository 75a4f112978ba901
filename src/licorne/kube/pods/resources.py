"""How much a pod takes from its node, over its whole life.

Containers run beside each other, init containers one after the other before them, and a sidecar (an init container that
is always restarted) from its turn on until the end. So the pod needs, of each resource, the larger of what runs in the
end and of each step before (docs/spec/k8shim.md, section 2). Limits do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from licorne.config.kubernetes import read_amounts
from licorne.kube.objects.pods import Container, ContainerStatus, Pod
from licorne.si.constants import MEMORY, VCORE

PODS: Final = "pods"
HUGE_PAGES: Final = "hugepages-"
Amounts = dict[str, int]


def read_resources(pod: Pod) -> Amounts:
    """Return what the pod takes from a node, itself included (`pods`: 1); `vcore` is in thousandths.

    Raises:
        QuantityError: a quantity cannot be read, or is negative.
    """
    spec, status = pod.spec, pod.status
    infeasible = _is_infeasible(pod)
    running: Amounts = {}
    statuses = {one.name: one for one in status.container_statuses or ()}
    for container in spec.containers:
        _add(running, _needed(container, statuses.get(container.name), infeasible=infeasible))
    largest: Amounts = {}
    if spec.init_containers:
        statuses = {one.name: one for one in status.init_container_statuses or ()}
        sidecars: Amounts = {}
        for container in spec.init_containers:
            own = _needed(container, statuses.get(container.name), infeasible=infeasible)
            if container.restart_policy == "Always":
                _add(sidecars, own)
                _raise_to(largest, sidecars)
            else:
                _add(own, sidecars)
                _raise_to(largest, own)
        _add(running, sidecars)
        _raise_to(running, largest)
    if spec.resources is not None and spec.resources.requests:
        running |= _of_pod(pod, infeasible=infeasible)
    if spec.overhead:
        _add(running, read_amounts(spec.overhead))
    running[PODS] = 1
    return running


def _is_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet has refused a change of resources in place, so that what the pod has is what counts."""
    if pod.status.resize == "Infeasible":
        return True
    return any(
        one.type == "PodResizePending" and one.status != "False" and one.reason == "Infeasible"
        for one in pod.status.conditions or ()
    )


def _needed(container: Container, status: ContainerStatus | None, *, infeasible: bool) -> Amounts:
    """Return what a container takes: while a change is under way the larger of what it wants and what it has."""
    wanted = container.resources.requests if container.resources is not None else None
    if status is None:
        return read_amounts(wanted)
    actual = status.resources.requests if status.resources is not None else None
    return _larger(wanted, status.allocated_resources, actual, infeasible=infeasible)


def _of_pod(pod: Pod, *, infeasible: bool) -> Amounts:
    """Return what the pod as a whole requests; this replaces the sum over its containers."""
    wanted = pod.spec.resources.requests if pod.spec.resources is not None else None
    actual = pod.status.resources.requests if pod.status.resources is not None else None
    amounts = _larger(wanted, pod.status.allocated_resources, actual, infeasible=infeasible)
    return {name: amount for name, amount in amounts.items() if name in (VCORE, MEMORY) or name.startswith(HUGE_PAGES)}


def _larger(
    wanted: Mapping[str, Any] | None,
    allocated: Mapping[str, Any] | None,
    actual: Mapping[str, Any] | None,
    *,
    infeasible: bool,
) -> Amounts:
    if infeasible and actual is not None:
        return read_amounts(actual)
    needed = read_amounts(wanted)
    _raise_to(needed, read_amounts(allocated))
    _raise_to(needed, read_amounts(actual))
    return needed


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount
