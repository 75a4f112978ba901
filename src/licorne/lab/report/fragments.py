"""Fragmentation of the devices of a cluster: how much of what is idle the usual pods of the workload could not use.

Source: docs/spec/experiments.md, B.5; `licorne.lab.papers.fragmentation` computes it for a node. Here the typical shapes are
those of all pods of the workload, and models are those that `licorne.workload.device_models` finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from licorne.core.nodes.devices import WHOLE, Demand
from licorne.lab.papers.fragmentation import Fragmentation, Shape, typical_shapes
from licorne.workload.device_models import accepted_models, model_of
from licorne.workload.devices import Devices
from licorne.workload.lines import Ask, Line

if TYPE_CHECKING:
    from licorne.core.partition import Partition


class DeviceState(NamedTuple):
    """The devices of all nodes of a model: their number, and how many are untouched, partly and completely used.

    `used`: thousandths in use.
    """

    devices: int
    untouched: int
    partly: int
    full: int
    used: int


def shapes(lines: Iterable[Line], resource: str) -> Counter[Shape]:
    """Return the shapes of the pods of a workload, of which `resource` counts the devices; an ask that repeats is many pods."""
    found: Counter[Shape] = Counter()
    for line in lines:
        if type(line) is Ask:
            demand = Demand.of(line.res.get(resource, 0))
            found[Shape(line.res.get("vcore", 0), demand, "|".join(accepted_models(line.tags)))] += line.max
    return found


class Fragments:
    """Reads the devices of a cluster, and computes their fragmentation by the typical shapes of a workload."""

    def __init__(self, lines: Iterable[Line], devices: Devices) -> None:
        self._devices = devices
        self.typical = typical_shapes(shapes(lines, devices.resource))
        self._fragmentation = Fragmentation(self.typical)

    def fragmented(self, partition: Partition) -> tuple[float, int, int]:
        """Return how much is fragmented, idle and there in the whole cluster, in thousandths of a device."""
        total, idle, capacity = 0.0, 0, 0
        cpu = partition.types.index.get("vcore", -1)
        for node in partition.nodes.values():
            free = self._devices.free(node.id)
            if free:
                idle += sum(free)
                capacity += WHOLE * len(free)
                amounts = node.free.values()
                left = max(0, amounts[cpu]) if 0 <= cpu < len(amounts) else 0
                level = self._fragmentation.level(left)
                total += self._fragmentation.of(model_of(node.attributes), level, tuple(sorted(free)))
        return total, idle, capacity

    def by_model(self, partition: Partition) -> dict[str, DeviceState]:
        """Return the state of the devices of each model; of nodes without a model under ""."""
        found: dict[str, list[int]] = {}
        for node in partition.nodes.values():
            free = self._devices.free(node.id)
            if free:
                sums = found.setdefault(model_of(node.attributes), [0] * 5)
                sums[0] += len(free)
                sums[1] += sum(left == WHOLE for left in free)
                sums[2] += sum(0 < left < WHOLE for left in free)
                sums[3] += sum(left == 0 for left in free)
                sums[4] += WHOLE * len(free) - sum(free)
        return {model: DeviceState(*sums) for model, sums in sorted(found.items())}
