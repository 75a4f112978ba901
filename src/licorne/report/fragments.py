"""Fragmentation of the devices of a cluster: how much of what is idle the usual pods of the workload could not use.

Source: docs/spec/experiments.md, B.5; `licorne.sim.papers.fragmentation` computes it for a node. Here the typical shapes are
those of all asks of the workload, and a node's model is its label for the model of its GPUs: the first of `MODEL_LABELS` that
it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.sim.devices import WHOLE, Demand, Devices
from licorne.sim.lines import Ask, Line
from licorne.sim.papers.fragmentation import Fragmentation, Shape, typical_shapes
from licorne.sim.traces.openb import GPU_MODEL

if TYPE_CHECKING:
    from licorne.core.partition import Partition


MODEL_LABELS = (GPU_MODEL, "nvidia.com/gpu.product", "model")
"""Labels that name the model of a node's devices: of the openb trace, of NVIDIA's feature discovery, and the plain word."""


class DeviceState(NamedTuple):
    """The devices of all nodes of a model: their number, and how many are untouched, partly and completely used.

    `used`: thousandths in use.
    """

    devices: int
    untouched: int
    partly: int
    full: int
    used: int


def models_in(tags: Mapping[str, str] | None) -> str:
    """Return the GPU models that an ask accepts, joined by `|`, or "" if it accepts any or says it in another way."""
    text = (tags or {}).get(TAG_NODE_CONSTRAINTS)
    if not text or not any(label in text for label in MODEL_LABELS):
        return ""
    try:
        terms: Any = msgspec.json.decode(text).get("nodeAffinity") or []
        found = [each for term in terms for each in term if each["key"] in MODEL_LABELS and each["operator"] == "In"]
        return "|".join(found[0]["values"]) if len(found) == 1 else ""
    except (msgspec.MsgspecError, AttributeError, KeyError, TypeError):
        return ""


def shapes(lines: Iterable[Line], resource: str) -> Iterator[Shape]:
    """Yield the shape of each ask of a workload, of which `resource` counts the devices."""
    known: dict[str | None, str] = {}
    for line in lines:
        if type(line) is Ask:
            text = (line.tags or {}).get(TAG_NODE_CONSTRAINTS)
            if text not in known:
                known[text] = models_in(line.tags)
            yield Shape(line.res.get("vcore", 0), Demand.of(line.res.get(resource, 0)), known[text])


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


def model_of(attributes: Mapping[str, str]) -> str:
    """Return the model of a node's devices, "" if no label names one."""
    names = (attributes.get(f"label/{label}", "") for label in MODEL_LABELS)
    return next(filter(None, names), "")
