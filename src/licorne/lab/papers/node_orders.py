"""Orders of nodes that depend on the pod: the six policies of a published comparison of how GPUs are placed.

Source: docs/spec/experiments.md, B.3 and B.6 (Weng et al., *Beware of Fragmentation*, USENIX ATC 2023).

A policy gives a whole number to each node on which a pod fits; the highest is taken, the earliest node of equal ones. The
numbers of a pod's shape are kept in a heap from one pod of the shape to the next, and computed anew only for nodes that have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from licorne.core.nodes.devices import WHOLE, Demand, least_left, untouched
from licorne.lab.papers.fragmentation import KNOWN_MAX, Fragmentation, Shape

CPU_SCALE = 128_000
"""Thousandths of CPU by which policies scale amounts, whatever a node has."""
DEVICES_SCALE = 8_000
"""Thousandths of devices by which policies scale amounts."""
UNFIT = 1 << 62
"""The key of a node on which the pod does not fit; above all others."""


class Machine:
    """A node as these policies see it: what is left of it, and which classes of pods with devices it has."""

    __slots__ = ("classes", "cpu", "free", "level", "memory", "model", "ordered", "total")

    def __init__(
        self, model: str, cpu: int, memory: int, free: Sequence[int], *, classes: int = 0, level: int = 0
    ) -> None:
        """Take what is left, `free` on each device, the `classes` of its pods, and the `level` of its CPU (`Fragmentation`)."""
        self.model = model
        self.cpu = cpu
        self.memory = memory
        self.free = tuple(free)
        self.ordered = tuple(sorted(self.free))
        self.total = sum(self.free)
        self.classes = classes
        self.level = level

    def take(self, shape: Shape, memory: int, devices: Sequence[int]) -> None:
        """Count a pod that has taken these devices."""
        self.cpu -= shape.cpu
        self.memory -= memory
        free = list(self.free)
        for index in devices:
            free[index] -= shape.devices.each
        self.free = tuple(free)
        self.total -= shape.devices.each * len(devices)
        self.ordered = tuple(sorted(self.free))
        self.classes |= class_of(shape.devices)


def class_of(demand: Demand) -> int:
    """Return the class of pods with such a demand, as a bit: a share, or a number of whole devices; 0 without devices."""
    if not demand.number:
        return 0
    return 1 if demand.each < WHOLE else 1 << demand.number


def sufficing(free: Sequence[int], share: int) -> list[int]:
    """Return the devices that have a share left."""
    return [index for index, left in enumerate(free) if left >= share]


Score = Callable[[Machine, Shape], int]
"""A policy: the number of a node on which a pod of a shape fits."""


def dot_product(node: Machine, shape: Shape) -> int:
    """Prefer nodes on which the product of what is wanted and what is left is small."""
    wanted = shape.devices.number * shape.devices.each
    product = (node.cpu / CPU_SCALE) * (shape.cpu / CPU_SCALE) + (node.total / DEVICES_SCALE) * (wanted / DEVICES_SCALE)
    return math.floor(100 * (1 - product / 2))


def best_fit(node: Machine, shape: Shape) -> int:
    """Prefer nodes of which little is left afterwards."""
    wanted = shape.devices.number * shape.devices.each
    cpu, devices = (node.cpu - shape.cpu) / CPU_SCALE, (node.total - wanted) / DEVICES_SCALE
    return math.floor(100 * (1 - (cpu * 0.5 + devices * 0.5)))


def gpu_clustering(node: Machine, shape: Shape) -> int:
    """Prefer nodes with pods of the same class only, then with such pods among others, then without pods on devices."""
    own = class_of(shape.devices)
    if not own:
        return 0
    if not node.classes:
        base = 25
    elif node.classes == own:
        base = 75
    else:
        base = 50 if node.classes & own else 0
    return math.floor(25 * (DEVICES_SCALE - node.total) / DEVICES_SCALE) + base


def gpu_packing(node: Machine, shape: Shape) -> int:
    """Prefer used devices, then nodes with used devices, and touch few untouched ones."""
    number, each = shape.devices
    if not number:
        return 0
    if node.total == WHOLE * len(node.free):
        return 33 - len(node.free)
    sufficing = [left for left in node.ordered if left >= each][:number]
    newly_touched = sufficing.count(WHOLE)
    if newly_touched:
        return 50 - newly_touched
    return 100 - sufficing[0] // 100


class LeastFragmentation:
    """FGD: prefer nodes whose fragmentation grows least, or shrinks most; shares go to the device where it does."""

    def __init__(self, fragmentation: Fragmentation) -> None:
        self._of = fragmentation
        self._known: dict[tuple[str, int, int, tuple[int, ...], Demand], tuple[int, frozenset[int]]] = {}

    def __call__(self, node: Machine, shape: Shape) -> int:
        """Return the number of the node: 50 where fragmentation does not change."""
        return self._best(node, shape)[0]

    def device(self, node: Machine, shape: Shape) -> int:
        """Return the device for a share: the lowest index of those with the best number."""
        best = self._best(node, shape)[1]
        return next(index for index, left in enumerate(node.free) if left in best)

    def _best(self, node: Machine, shape: Shape) -> tuple[int, frozenset[int]]:
        """Return the best number, and what is left on the devices that have it, before the pod."""
        level_after = self._of.level(node.cpu - shape.cpu)
        key = node.model, node.level, level_after, node.ordered, shape.devices
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            found = self._known[key] = self._compute(node, shape.devices, level_after)
        return found

    def _compute(self, node: Machine, demand: Demand, level_after: int) -> tuple[int, frozenset[int]]:
        before = self._of.of(node.model, node.level, node.ordered)
        number, each = demand
        if number and each < WHOLE:
            starts = sorted({left for left in node.ordered if left >= each})
            scores = {}
            for left in starts:
                after = list(node.ordered)
                after[after.index(left)] -= each
                scores[left] = self._score(before, self._of.of(node.model, level_after, tuple(sorted(after))))
            best = max(scores.values())
            return best, frozenset(left for left, score in scores.items() if score == best)
        kept = node.ordered[: len(node.ordered) - number]
        return self._score(before, self._of.of(node.model, level_after, (0,) * number + kept)), frozenset()

    @staticmethod
    def _score(before: float, after: float) -> int:
        return math.floor(1 / (1 + math.exp(-(before - after) / 1000)) * 100)


class Chosen(NamedTuple):
    """A node, by its place in the order, and the devices of it that a pod takes."""

    node: int
    devices: tuple[int, ...]


class _Ranked(NamedTuple):
    """The nodes on which pods of a shape fit, of the models that it accepts.

    `keys` has a whole number for each node, the smallest for the best, of equal ones the earliest, or `UNFIT`. `heap` has all that
    are not `UNFIT`, and outdated ones besides.
    """

    accepted: set[str]
    keys: list[int]
    heap: list[int]


class NodeOrder:
    """Chooses the node and the devices for one pod after the other, on nodes in a fixed order, which settles ties."""

    def __init__(self, nodes: Sequence[Machine], score: Score, device: Callable[[Machine, Shape], int]) -> None:
        self._nodes = nodes
        self._score = score
        self._device = device
        self._ranked: dict[Shape, _Ranked] = {}
        self._seen: dict[Shape, int] = {}  # how many changes are considered
        self._changes: list[int] = list(range(len(nodes)))

    def choose(self, shape: Shape, memory: int) -> Chosen | None:
        """Return the best node on which a pod fits, the earliest of equal ones; None if it fits nowhere."""
        _, keys, heap = self._current(shape)
        nodes = self._nodes
        short: list[int] = []  # of nodes that lack memory
        found = None
        while heap:
            at = heap[0] % len(nodes)
            if keys[at] != heap[0]:
                heappop(heap)
            elif nodes[at].memory < memory:
                short.append(heappop(heap))
            else:
                found = Chosen(at, self.devices(nodes[at], shape))
                break
        for key in short:
            heappush(heap, key)
        return found

    def devices(self, node: Machine, shape: Shape) -> tuple[int, ...]:
        """Return the devices that a pod takes on a node on which it fits: whole ones of the lowest index."""
        number, each = shape.devices
        if not number or each == WHOLE:
            return tuple(untouched(node.free))[:number]
        return (self._device(node, shape),)

    def changed(self, at: int) -> None:
        """Note that a node has changed."""
        self._changes.append(at)

    def _current(self, shape: Shape) -> _Ranked:
        """Return the nodes for a shape, with new numbers for those that have changed since the last pod of it."""
        nodes, score = self._nodes, self._score
        ranked = self._ranked.get(shape)
        if ranked is None:
            models = {node.model for node in nodes if shape.accepts(node.model)}
            ranked = self._ranked[shape] = _Ranked(models, [UNFIT] * len(nodes), [])
        accepted, keys, heap = ranked
        cpu, (number, each), _ = shape
        for at in set(self._changes[self._seen.get(shape, 0) :]):
            node = nodes[at]
            key = UNFIT
            if (
                node.cpu >= cpu
                and node.model in accepted
                and (not number or (len(node.free) >= number and node.ordered[-number] >= each))
            ):
                key = at - score(node, shape) * len(nodes)
            if key != keys[at]:
                keys[at] = key
                if key != UNFIT:
                    heappush(heap, key)
        self._seen[shape] = len(self._changes)
        return ranked


class RandomOrder(NodeOrder):
    """Chooses one of the nodes on which a pod fits at random, and for a share one of the devices that suffice."""

    def __init__(self, nodes: Sequence[Machine], random: Random) -> None:
        super().__init__(nodes, lambda _node, _shape: 0, self._any_device)
        self._random = random

    def choose(self, shape: Shape, memory: int) -> Chosen | None:
        """Return a node and devices at random; None if the pod fits nowhere."""
        nodes = self._nodes
        fitting = [at for at in self._current(shape).keys if at != UNFIT and nodes[at].memory >= memory]
        if not fitting:
            return None
        at = self._random.choice(fitting)
        return Chosen(at, self.devices(nodes[at], shape))

    def _any_device(self, node: Machine, shape: Shape) -> int:
        return self._random.choice(sufficing(node.free, shape.devices.each))


POLICIES = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
"""The names of the policies, as published."""
_SCORES: dict[str, Score] = {
    "DotProd": dot_product,
    "GpuClustering": gpu_clustering,
    "GpuPacking": gpu_packing,
    "BestFit": best_fit,
}


def node_order(policy: str, nodes: Sequence[Machine], fragmentation: Fragmentation, random: Random) -> NodeOrder:
    """Return the policy of a name for these nodes, which are in the order that settles ties.

    Raises:
        KeyError: there is no policy of this name.
    """
    if policy == "Random":
        return RandomOrder(nodes, random)
    if policy == "FGD":
        least = LeastFragmentation(fragmentation)
        return NodeOrder(nodes, least, least.device)
    return NodeOrder(nodes, _SCORES[policy], lambda node, shape: least_left(node.free, shape.devices.each))
