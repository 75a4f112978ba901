"""Six published policies for GPUs, for any workload with devices: `licorne simulate WORKLOAD --policy fgd`, and so on.

They give each node on which a pod fits a whole number, by the functions of `licorne.lab.papers.node_orders`, and take the node
with the highest, of equal ones the first by name; Random takes any. So which node wins a tie does not change from pod to pod, as
published, whatever the order of nodes in the configuration. A share of a device goes to the one with the least left that
suffices; FGD and Random choose it themselves.

`licorne reproduce fgd` decides by the same functions, and not through these classes: there nothing but its own pods changes a
node, so it keeps the numbers of all nodes, and computes only those of nodes that have just changed. A policy in any simulation
cannot know what has changed, so these look at all nodes that fit. Both take the same nodes and devices
(`tests/sim/test_gpu_policies.py`).

Source: docs/spec/experiments.md, B.3, B.5 and B.6 (Weng et al., *Beware of Fragmentation*, USENIX ATC 2023).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from licorne.core.nodes.devices import least_left
from licorne.lab.papers.fragmentation import Fragmentation, Shape, typical_shapes
from licorne.lab.papers.node_orders import (
    LeastFragmentation,
    Machine,
    Score,
    best_fit,
    class_of,
    dot_product,
    gpu_clustering,
    gpu_packing,
    sufficing,
)
from licorne.sim.policies import Node, PlannedPod, Pod, Policy

KEPT_MAX = 100_000
"""Nodes whose state is kept from one pod to the next."""


def shape_of(pod: Pod | PlannedPod) -> Shape:
    """Return what policies look at in a pod."""
    return Shape(pod.resources.get("vcore", 0), pod.devices, "|".join(pod.models))


class Random(Policy):
    """One of the nodes on which a pod fits at random, and for a share one of the devices that suffice."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._random = random.Random(seed)

    def begin(self, pods: Iterable[PlannedPod]) -> None:
        """Begin with the seed, so that each simulation draws the same numbers."""
        self._random.seed(self._seed)

    def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> Node | None:
        """Return any of the nodes."""
        found = sorted(nodes, key=lambda node: node.id)
        return self._random.choice(found) if found else None

    def choose_device(self, pod: Pod, node: Node, share: int) -> int:
        """Return any of the devices that suffice."""
        return self._random.choice(sufficing(node.devices, share))


class _ByNumber(Policy):
    """Base of policies that give numbers to nodes: `number` is that of a node on which a pod of the shape fits."""

    number: Score

    def __init__(self) -> None:
        self._machines: dict[str, Machine] = {}

    def begin(self, pods: Iterable[PlannedPod]) -> None:
        """Forget the nodes of an earlier simulation."""
        self._machines.clear()

    def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> Node | None:
        """Return the node with the highest number, of equal ones the first by name."""
        shape = shape_of(pod)
        return min(nodes, key=lambda node: (-self.number(self.machine(node), shape), node.id), default=None)

    def choose_device(self, pod: Pod, node: Node, share: int) -> int:
        """Return the device with the least left that suffices, the first of equal ones."""
        return least_left(node.devices, share)

    def machine(self, node: Node) -> Machine:
        """Return what policies look at in a node."""
        model, cpu, free, classes = node.model, node.free.get("vcore", 0), node.devices, self.classes(node)
        known = self._machines.get(node.id)
        if known is not None and (known.cpu, known.free, known.classes, known.model) == (cpu, free, classes, model):
            return known
        if len(self._machines) >= KEPT_MAX:
            self._machines.clear()
        made = self._machines[node.id] = Machine(model, cpu, 0, free, classes=classes, level=self.level(cpu))
        return made

    def classes(self, node: Node) -> int:
        """Return the classes of the pods on a node, for a policy that looks at them."""
        return 0

    def level(self, cpu: int) -> int:
        """Return the level of the CPU that is left on a node, for a policy that looks at fragmentation."""
        return 0


class DotProd(_ByNumber):
    """Takes the node on which the product of what the pod wants and what is left is least."""

    number = staticmethod(dot_product)


class BestFit(_ByNumber):
    """Takes the node of which the least is left with the pod on it."""

    number = staticmethod(best_fit)


class GpuClustering(_ByNumber):
    """Takes a node whose pods want devices as this pod does: shares, or as many whole ones."""

    number = staticmethod(gpu_clustering)

    def classes(self, node: Node) -> int:
        """Return the classes of the pods on a node."""
        found = 0
        for pod in node.pods:
            found |= class_of(pod.devices)
        return found


class GpuPacking(_ByNumber):
    """Takes a node with used devices that suffice, else one with used devices, else one with few devices."""

    number = staticmethod(gpu_packing)


class FGD(_ByNumber):
    """Fragmentation gradient descent: the node, and for a share the device, where fragmentation grows least.

    Fragmentation is what is idle and of no use for the typical pods of the workload, which are known from `begin`.
    """

    number: LeastFragmentation

    def __init__(self) -> None:
        super().__init__()
        self._learn(Counter())

    def begin(self, pods: Iterable[PlannedPod]) -> None:
        """Find the typical pods: the most frequent shapes, which hold 95 % of all pods together."""
        super().begin(pods)
        counts: Counter[Shape] = Counter()
        for pod in pods:
            counts[shape_of(pod)] += pod.number
        self._learn(counts)

    def choose_device(self, pod: Pod, node: Node, share: int) -> int:
        """Return the device where fragmentation grows least, the first of equal ones."""
        return self.number.device(self.machine(node), shape_of(pod))

    def level(self, cpu: int) -> int:
        """Return for how many of the amounts of CPU that typical pods want this much is enough."""
        return self._fragmentation.level(cpu)

    def _learn(self, counts: Counter[Shape]) -> None:
        self._fragmentation = Fragmentation(typical_shapes(counts))
        self.number = LeastFragmentation(self._fragmentation)
