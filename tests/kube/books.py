"""Books of a played cluster: what the rules of Kubernetes and of the queues say, worked out without any code of licorne.

A `View` is a cluster at a moment: nodes, pods with the node that each has, and limits of queues. It may be the truth of the
API server, or what one process of licorne has read together with what it has decided itself.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Final, TypeVar

import msgspec

from kube.domains import UNRESOLVABLE, Domains
from licorne.kube.objects import Namespace, Node, Pod, PodDisruptionBudget
from licorne.kube.objects.nodes import Taint

OURS: Final = "yunikorn"
DEVICE: Final = "nvidia.com/gpu"
PLACEHOLDER: Final = "internal.yunikorn.apache.org/placeholder"
Y: Final = "yunikorn.apache.org/"
Amounts = dict[str, int]
Port = tuple[str, int]
K = TypeVar("K")

_SCALES: Final = {"": 1000, "m": 1, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30}
"""Thousandths of a unit by the ending of a quantity; the pods of a schedule use no other endings."""


class Limits(msgspec.Struct, frozen=True):
    """What a configuration says of queues, by full name: the most that they may use, and what they are guaranteed."""

    max: dict[str, Amounts] = {}
    guaranteed: dict[str, Amounts] = {}


@cache
def quantity(text: str, *, milli: bool = False) -> int:
    """Return a quantity in whole units, or in thousandths."""
    digits = text.rstrip("KMGim")
    thousandths = int(digits) * _SCALES[text[len(digits) :]]
    return thousandths if milli else thousandths // 1000


def amounts(pod: Pod) -> Amounts:
    """Return what a pod takes of its node and its queue."""
    total = {"vcore": 0, "memory": 0, "pods": 1}
    for container in pod.spec.containers:
        asked = {} if container.resources is None else container.resources.requests or {}
        total["vcore"] += quantity(str(asked.get("cpu", "0")), milli=True)
        total["memory"] += quantity(str(asked.get("memory", "0")))
        if DEVICE in asked:
            total[DEVICE] = total.get(DEVICE, 0) + quantity(str(asked[DEVICE]))
    return total


def ports(pod: Pod) -> set[Port]:
    """Return the ports that a pod takes on its node."""
    found = (port for container in pod.spec.containers for port in container.ports or ())
    return {(port.protocol, port.host_port) for port in found if port.host_port}


def is_ours(pod: Pod) -> bool:
    """Return whether licorne is the scheduler of a pod."""
    return pod.spec.scheduler_name == OURS


def is_placeholder(pod: Pod) -> bool:
    """Return whether a pod only keeps room for its gang."""
    return (pod.metadata.annotations or {}).get(PLACEHOLDER) == "true"


def is_member(pod: Pod) -> bool:
    """Return whether a pod is one of a gang."""
    return f"{Y}task-group-name" in (pod.metadata.annotations or {})


def is_undecided(pod: Pod) -> bool:
    """Return whether a pod names a claim that is not there, so that licorne does not decide it."""
    return claims(pod) == ["data"]


def claims(pod: Pod) -> list[str]:
    """Return the claims of a pod; those of a schedule have no other volumes."""
    return [str((one.persistent_volume_claim or {})["claimName"]) for one in pod.spec.volumes or ()]


def has_ended(pod: Pod) -> bool:
    """Return whether a pod takes nothing any more."""
    return pod.status.phase in ("Succeeded", "Failed")


def is_unnamed(pod: Pod) -> bool:
    """Return whether a pod names no application, so that it has nothing in common with the others of its namespace."""
    return not {f"{Y}app-id", "applicationId"} & {*(pod.metadata.labels or {})}


def application_of(pod: Pod) -> str:
    """Return the application that a pod names, or one for its namespace; placeholders have another label than other pods."""
    labels = pod.metadata.labels or {}
    return labels.get(f"{Y}app-id") or labels.get("applicationId", f"root.t.{pod.metadata.namespace}-autogen")


def hard_members(pod: Pod) -> int:
    """Return how many members the Hard gang of a pod has; 0: it is of none."""
    annotations = pod.metadata.annotations or {}
    is_hard = "gangSchedulingStyle=Hard" in annotations.get(f"{Y}schedulingPolicyParameters", "")
    return sum(group["minMember"] for group in json.loads(annotations[f"{Y}task-groups"])) if is_hard else 0


def with_quotas(limits: Limits, namespaces: Iterable[Namespace]) -> Limits:
    """Return limits together with those of the queues that are made for namespaces."""
    texts = {one.metadata.name: (one.metadata.annotations or {}).get(f"{Y}namespace.quota") for one in namespaces}
    quotas = {name: json.loads(text)["cpu"] for name, text in texts.items() if text}
    own = {f"root.t.{name}": {"vcore": quantity(cpu, milli=True)} for name, cpu in quotas.items()}
    return Limits(limits.max | own, limits.guaranteed)


def queue_of(pod: Pod) -> str:
    """Return the queue of a pod, which its application is named after, as in `root.b-3`; "" where it is not."""
    return application_of(pod).rpartition("-")[0]


def lineage(queue: str) -> Iterator[str]:
    """Yield a queue, and those above it."""
    while queue:
        yield queue
        queue = queue.rpartition(".")[0]


def plus(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    """Return the sum of two amounts."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def within(amount: Mapping[str, int], bound: Mapping[str, int]) -> bool:
    """Return whether an amount keeps a bound, in the types that the bound names."""
    return all(amount.get(name, 0) <= limit for name, limit in bound.items())


def taints(node: Node) -> Iterator[Taint]:
    """Yield the taints of a node that keep pods off; a cordoned node has one."""
    for one in node.spec.taints or ():
        if one.effect in ("NoSchedule", "NoExecute"):
            yield one
    if node.spec.unschedulable:
        yield Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def tolerates(pod: Pod, taint: Taint) -> bool:
    """Return whether a pod bears a taint."""
    for one in pod.spec.tolerations or ():
        same_value = one.operator == "Exists" or one.value == taint.value
        if one.key in ("", taint.key) and one.effect in ("", taint.effect) and same_value:
            return True
    return False


def lets_in(node: Node, pod: Pod) -> tuple[bool, bool]:
    """Return whether labels, and whether taints of a node let a pod in."""
    labels = node.metadata.labels or {}
    selected = all(labels.get(name) == value for name, value in (pod.spec.node_selector or {}).items())
    return selected, all(tolerates(pod, taint) for taint in taints(node))


def admits(node: Node, pod: Pod) -> bool:
    """Return whether labels and taints of a node let a pod in."""
    return all(lets_in(node, pod))


def capacity(node: Node) -> Amounts:
    """Return what pods may take of a node."""
    given = {name: str(text) for name, text in (node.status.allocatable or {}).items()}
    return {
        "vcore": quantity(given["cpu"], milli=True),
        "memory": quantity(given["memory"]),
        "pods": quantity(given["pods"]),
        DEVICE: quantity(given.get(DEVICE, "0")),
    }


class View:
    """A cluster at a moment.

    `places`: pods that have not ended, each with its node or "". `in_flight`: of those without a node, by UID, on which node
    one waits until the placeholder whose place it takes has ended: it takes room there, and in its queue only the
    placeholder counts. `uncounted`: pods that run, by UID, and count for no queue.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        places: Iterable[tuple[Pod, str]],
        limits: Limits,
        in_flight: Mapping[str, str] | None = None,
        uncounted: Collection[str] = (),
    ) -> None:
        self.nodes = {node.metadata.name: node for node in nodes}
        self.places = list(places)
        self.limits = limits
        self._in_flight = in_flight or {}
        self._uncounted = uncounted
        self._domains = Domains(self.nodes, self.places, {"default": {}})
        self._on: dict[str, list[Pod]] = {}
        for pod, node in self.places:
            if node in self.nodes:
                self._on.setdefault(node, []).append(pod)
            elif not node and (waits_on := self._in_flight.get(pod.metadata.uid)) in self.nodes:
                self._on.setdefault(waits_on, []).append(pod)

    @cached_property
    def in_queue(self) -> dict[str, Amounts]:
        """What queues use: of our pods, those on a node that is there."""
        used: dict[str, Amounts] = {}
        for pod, node in self.places:
            if node in self.nodes and is_ours(pod) and pod.metadata.uid not in self._uncounted:
                taken = amounts(pod)
                for queue in lineage(queue_of(pod)):
                    used[queue] = plus(used.get(queue, {}), taken)
        return used

    def with_places(self, places: Iterable[tuple[Pod, str]]) -> View:
        """Return the same cluster with other pods, or with these on other nodes."""
        return View(self.nodes.values(), places, self.limits, self._in_flight, self._uncounted)

    def on(self, node: str) -> list[Pod]:
        """Return the pods of a node."""
        return self._on.get(node, [])

    def used(self, node: str, *, ours: bool | None = None) -> Amounts:
        """Return what the pods of a node take; `ours`: only pods of licorne, or only those of others."""
        total: Amounts = {}
        for pod in self.on(node):
            if ours is None or is_ours(pod) is ours:
                total = plus(total, amounts(pod))
        return total

    def why_not(self, pod: Pod, node: str) -> str:
        """Return what keeps a pod off a node; "" if it may run there."""
        found = self.nodes.get(node)
        if found is None:
            return "the node is not there"
        if not admits(found, pod):
            return "its labels and taints do not admit the pod"
        if not self.has_room(node, amounts(pod)):
            return f"{self.used(node)} of {capacity(found)} are used"
        taken = self.taken_ports(pod, node)
        return f"ports {taken} are taken" if taken else self.kept_off(pod, node)

    def kept_off(self, pod: Pod, node: str) -> str:
        """Return what pods demand of each other that keeps a pod off a node; "" if nothing does."""
        constraints = pod.spec.topology_spread_constraints or ()
        spread = self._domains.spread(pod, node, constraints, lambda other: lets_in(other, pod))
        return spread or self._domains.apart(pod, node)

    def has_room(self, node: str, asked: Amounts) -> bool:
        """Return whether a node has so much left; of what is not asked for, it may have too little for those that run there."""
        used, room = self.used(node), capacity(self.nodes[node])
        return all(used.get(name, 0) + amount <= room.get(name, 0) for name, amount in asked.items() if amount)

    def taken_ports(self, pod: Pod, node: str) -> set[Port]:
        """Return the ports that a pod wants and others of a node have."""
        return ports(pod) & {port for other in self.on(node) for port in ports(other)}

    def may_be_kept(self, node: str, pod: Pod) -> bool:
        """Return whether a node would do for a pod if it had more room: nothing is kept for one that waits for a port, or for other pods."""
        found = self.nodes[node]
        free = not (self.taken_ports(pod, node) or self.kept_off(pod, node))
        return admits(found, pod) and within(amounts(pod), capacity(found)) and free

    def full_queue(self, pod: Pod, more: int = 1) -> str:
        """Return the first queue above a pod that so many pods like it would lift above its limit; "" if there is none."""
        asked = {name: amount * more for name, amount in amounts(pod).items()}
        for queue in lineage(queue_of(pod)):
            bound = self.limits.max.get(queue)
            if bound is not None and not within(plus(self.in_queue.get(queue, {}), asked), bound):
                return queue
        return ""

    def is_full(self, pod: Pod, more: int = 1) -> bool:
        """Return whether the nodes together have less left than so many pods like this one want.

        What a node has too much is taken from no other, so a pod that fits on a node never waits for this.
        """
        left: Amounts = {}
        for name, node in self.nodes.items():
            used = self.used(name, ours=True)
            left = plus(left, {kind: max(room - used.get(kind, 0), 0) for kind, room in capacity(node).items()})
        asked = {name: amount * more for name, amount in amounts(pod).items()}
        return not within(asked, left)

    def is_entitled(self, pod: Pod) -> bool:
        """Return whether the guarantee of a pod's queue covers the pod."""
        bound = self.limits.guaranteed.get(queue_of(pod))
        return bound is not None and within(plus(self.in_queue.get(queue_of(pod), {}), amounts(pod)), bound)

    def copies(self, pod: Pod) -> int:
        """Return how many pods like this one, which take no ports, the nodes have room for."""
        count = 0
        for name, node in self.nodes.items():
            used, room = self.used(name), capacity(node)
            if admits(node, pod):
                asked = amounts(pod)
                count += min(max(room[kind] - used.get(kind, 0), 0) // need for kind, need in asked.items() if need)
        return count

    def evictable(self, asking: Pod, node: str) -> list[Pod]:
        """Return pods on a node that must give way to a pod whose guarantee covers it, whoever else does.

        They are of queues that are guaranteed nothing, are not more important, and are not ending yet.
        """
        return [
            pod
            for pod in self.on(node)
            if is_ours(pod)
            and not pod.metadata.deletion_timestamp
            and (pod.spec.priority or 0) <= (asking.spec.priority or 0)
            and queue_of(pod) != queue_of(asking)
            and not any(queue in self.limits.guaranteed for queue in lineage(queue_of(pod)))
        ]

    def makes_room(self, asking: Pod, node: str, victims: Iterable[Pod]) -> bool:
        """Return whether a pod may run on a node when others have gone; nobody is evicted for affinity that is not met."""
        if self.kept_off(asking, node) in UNRESOLVABLE:
            return False
        gone = {pod.metadata.uid for pod in victims}
        others = [(pod, where) for pod, where in self.places if pod.metadata.uid not in gone]
        return not self.with_places(others).why_not(asking, node)


def means(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Return whether a pod counts for a budget; those of a schedule select by equal labels."""
    wanted = None if budget.spec.selector is None else budget.spec.selector.match_labels
    labels = pod.metadata.labels or {}
    return wanted is not None and all(labels.get(name) == value for name, value in wanted.items())


def allowed(budget: PodDisruptionBudget) -> int:
    """Return how many evictions a budget allows; none while its status is of an earlier specification."""
    current = budget.status.observed_generation >= budget.metadata.generation
    return budget.status.disruptions_allowed if current else 0
