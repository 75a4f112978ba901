"""How much a pod takes from its node, over its whole life, as kube-scheduler 1.37 counts it.

Containers run beside each other, init containers one after the other before them, and a sidecar (an init container that
is always restarted) from its turn on until the end. So the pod needs, of each resource, the larger of what runs in the
end and of each step before (docs/spec/k8shim.md, section 2). Limits do not count.

Containers may be resized in place, so there are three such sums: of what the containers want, of what they were granted,
and of what is in force. What the status does not say is as granted, or else as wanted. The largest of the three counts;
if the kubelet has refused a change as infeasible, the larger of the last two.

Fractions are added up exactly, and the sum of a pod is rounded up once: two containers of half a byte take one byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from licorne.config.kubernetes import CPU, QuantityError, read_exact, round_up
from licorne.core.constants import SUM_MAX
from licorne.kube.objects.pods import Container, ContainerStatus, Pod
from licorne.si.constants import MEMORY, VCORE

PODS: Final = "pods"
HUGE_PAGES: Final = "hugepages-"
Amounts = dict[str, int]
Requests = Mapping[str, Any] | None


def read_resources(pod: Pod) -> Amounts:
    """Return what the pod takes from a node, itself included (`pods`: 1); `vcore` is in thousandths.

    Raises:
        QuantityError: a quantity cannot be read, is negative, or is too large to be counted.
    """
    amounts = round_up(_exact(pod))
    amounts[PODS] = 1
    return amounts


def read_countable(pod: Pod, *, fill: bool = False) -> tuple[Amounts, tuple[str, ...]]:
    """Return what a pod that runs takes as `read_resources` does, without what cannot be counted, and the names of this.

    A quantity that cannot be read does not count, and neither does a sum that is larger than the scheduler takes (`SUM_MAX`),
    or it counts as `SUM_MAX` if it is to `fill` the node. All others do: what runs takes its room, whatever else the pod says.
    """
    uncounted: dict[str, None] = {}

    def readable(requests: Requests) -> Amounts:
        try:
            return read_exact(requests)
        except QuantityError:
            pass
        amounts: Amounts = {}
        for name, value in (requests or {}).items():
            try:
                amounts |= read_exact({name: value})
            except QuantityError:
                uncounted[name] = None
        return amounts

    amounts: Amounts = {}
    for name, exact in _exact(pod, readable).items():
        try:
            amounts |= round_up({name: exact})
        except QuantityError:
            amounts[VCORE if name == CPU else name] = SUM_MAX + 1
    for name in [name for name, amount in amounts.items() if amount > SUM_MAX]:
        if fill:
            amounts[name] = SUM_MAX
        else:
            del amounts[name]
            uncounted[CPU if name == VCORE else name] = None
    amounts[PODS] = 1
    return amounts, tuple(uncounted)


def _exact(pod: Pod, read: Callable[[Requests], Amounts] = read_exact) -> Amounts:
    """Return what the pod takes in billionths, by the names of Kubernetes; `read` reads the quantities of a container."""
    spec, status = pod.spec, pod.status
    infeasible = _is_infeasible(pod)
    amounts: Amounts = {}
    if not infeasible:
        amounts = _sum(spec.containers, spec.init_containers, [_wanted(one) for one in _all(pod)], read)
    if infeasible or not _is_settled(pod):
        granted, in_force = _by_status(pod, read, infeasible=infeasible)
        _raise_to(amounts, granted)
        _raise_to(amounts, in_force)
    whole = spec.resources.requests if spec.resources is not None else None
    if whole and any(_is_of_pod(name) for name in whole):
        needed = read(whole)
        if status.resources is not None:
            if infeasible:
                needed = {}
            _raise_to(needed, read(status.resources.requests))
            _raise_to(needed, read(status.allocated_resources))
        amounts |= {name: amount for name, amount in needed.items() if _is_of_pod(name)}
    if spec.overhead:
        _add(amounts, read(spec.overhead))
    return amounts


def _all(pod: Pod) -> list[Container]:
    return [*pod.spec.containers, *(pod.spec.init_containers or ())]


def _wanted(container: Container) -> Requests:
    return container.resources.requests if container.resources is not None else None


def _is_settled(pod: Pod) -> bool:
    """Return whether no status says anything else than that the containers have what they want."""
    status = pod.status
    if status.allocated_resources is not None and status.resources is not None:
        return False
    wanted = {one.name: _wanted(one) for one in _all(pod)}
    return all(
        one.allocated_resources in (None, wanted.get(one.name)) and _in_force(one) in (None, wanted.get(one.name))
        for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    )


def _in_force(status: ContainerStatus) -> Requests:
    return status.resources.requests if status.resources is not None else None


def _by_status(pod: Pod, read: Callable[[Requests], Amounts], *, infeasible: bool) -> tuple[Amounts, Amounts]:
    """Return the sums of what containers were granted, and of what is in force."""
    status = pod.status
    if (
        status.allocated_resources is not None
        and status.resources is not None
        and status.resources.requests is not None
    ):
        return read(status.allocated_resources), read(status.resources.requests)
    known = {one.name: one for one in status.init_container_statuses or ()}
    known |= {one.name: one for one in status.container_statuses or ()}
    granted: list[Requests] = []
    in_force: list[Requests] = []
    for container in _all(pod):
        one = known.get(container.name, ContainerStatus())
        fallback = None if infeasible else _wanted(container)
        granted.append(fallback if one.allocated_resources is None else one.allocated_resources)
        actual = _in_force(one)
        in_force.append(granted[-1] if actual is None else actual)
    containers, init_containers = pod.spec.containers, pod.spec.init_containers
    return _sum(containers, init_containers, granted, read), _sum(containers, init_containers, in_force, read)


def _sum(
    containers: tuple[Container, ...],
    init_containers: tuple[Container, ...] | None,
    requests: list[Requests],
    read: Callable[[Requests], Amounts],
) -> Amounts:
    """Return what these containers take together if each takes what is requested for it, in the same order."""
    running: Amounts = {}
    for one in requests[: len(containers)]:
        _add(running, read(one))
    if init_containers:
        largest: Amounts = {}
        sidecars: Amounts = {}
        for container, one in zip(init_containers, requests[len(containers) :], strict=True):
            own = read(one)
            if container.restart_policy == "Always":
                _add(sidecars, own)
                _raise_to(largest, sidecars)
            else:
                _add(own, sidecars)
                _raise_to(largest, own)
        _add(running, sidecars)
        _raise_to(running, largest)
    return running


def takes_the_same(was: Pod, now: Pod) -> bool:
    """Return whether all is equal that `read_resources` reads of the status of two states of a pod."""
    one, other = was.status, now.status
    return (
        one.container_statuses == other.container_statuses
        and one.init_container_statuses == other.init_container_statuses
        and one.allocated_resources == other.allocated_resources
        and one.resources == other.resources
        and _is_infeasible(was) == _is_infeasible(now)
    )


def _is_infeasible(pod: Pod) -> bool:
    """Return whether the kubelet has refused a change of resources in place."""
    if pod.status.resize == "Infeasible":
        return True
    for one in pod.status.conditions or ():
        if one.type == "PodResizePending":
            return one.reason == "Infeasible"
    return False


def _is_of_pod(name: str) -> bool:
    """Return whether the pod as a whole can request this resource; this replaces the sum over its containers."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount
