"""Fragmentation of GPUs: how much of what is idle on a node the usual pods of a workload could not use.

Source: docs/spec/experiments.md, B.5 (Weng et al., *Beware of Fragmentation*, USENIX ATC 2023). Memory plays no part.

The policy FGD compares the fragmentation of a node before and after a placement, and an unchanged one is worth more than one
that is lower by 10⁻¹². So the order in which floats are added decides visibly, and six sums are kept apart as there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from licorne.core.nodes.devices import Demand

TYPICAL = 0.95
"""The share of the pods that the typical shapes hold at least."""

KNOWN_MAX = 1 << 18
"""How many different nodes are remembered with what was computed of them."""


class Shape(NamedTuple):
    """What pods have in common: thousandths of CPU, demand for devices, and accepted models as they are spelled."""

    cpu: int
    devices: Demand
    spec: str

    def accepts(self, model: str) -> bool:
        """Return whether pods of this shape may run on a node with devices of this model."""
        return not self.spec or model in self.spec.split("|")


class Typical(NamedTuple):
    """A typical shape and its weight; the weights of all typical shapes of a workload add up to 1."""

    shape: Shape
    weight: float


def typical_shapes(pods: Iterable[Shape] | Mapping[Shape, int]) -> list[Typical]:
    """Return the most frequent shapes that hold at least 95 % of the pods together, the most frequent first.

    `pods`: the shape of each pod, or how many pods there are of each shape.
    """
    counts = Counter(pods)
    total = counts.total()
    ordered = sorted(
        counts.items(),
        key=lambda item: (item[1], item[0].cpu, item[0].devices.each, item[0].devices.number, item[0].spec),
        reverse=True,
    )
    taken: list[tuple[Shape, int]] = []
    held = 0
    for shape, count in ordered:
        if held >= TYPICAL * total:
            break
        taken.append((shape, count))
        held += count
    return [Typical(shape, (count / total) / (held / total)) for shape, count in taken]


class Fragmentation:
    """The fragmentation of nodes by given typical shapes, in thousandths of a device.

    It depends on the CPU that is left only by which shapes that suffices for (`level`), and on the devices only by what is
    left on each, in any order: so few different nodes are computed, and the others are looked up.
    """

    def __init__(self, typical: Sequence[Typical]) -> None:
        self._typical = typical
        self._steps = sorted({each.shape.cpu for each in typical})
        self._known: dict[tuple[str, int, tuple[int, ...]], float] = {}
        self._rows: dict[str, list[tuple[int, int, int, float, bool]]] = {}

    def level(self, cpu: int) -> int:
        """Return for how many of the different amounts of CPU that typical shapes want this much is enough."""
        return bisect_right(self._steps, cpu)

    def of(self, model: str, level: int, free: tuple[int, ...]) -> float:
        """Return the fragmentation of a node; `free` are the thousandths left on its devices, sorted."""
        key = model, level, free
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            found = self._known[key] = self._compute(model, level, free)
        return found

    def _compute(self, model: str, level: int, free: tuple[int, ...]) -> float:
        rows = self._rows.get(model)
        if rows is None:
            rows = self._rows[model] = [
                (self.level(shape.cpu), *shape.devices, weight, shape.accepts(model)) for shape, weight in self._typical
            ]
        left = (0, *accumulate(free))  # on so many devices together, those with the least first
        sums = [0.0] * 6
        for step, number, each, weight, accepted in rows:
            at, amount = 5, left[-1]
            if not number:
                at = 3 if step <= level else 4
            elif accepted:
                suffice = len(free) >= number and free[-number] >= each
                if step > level:
                    at = 2 if suffice else 0
                else:
                    at = 1
                    if suffice:
                        amount = left[bisect_left(free, each)]
            sums[at] += weight * amount
        total = 0.0
        for part in sums:
            total += part
        return total
