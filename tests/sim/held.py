"""What pods hold in a simulation, as an observer hears it."""

from __future__ import annotations

from collections.abc import Sequence

from licorne.si.messages import NewAllocation, Output
from licorne.sim.observer import Observer
from licorne.sim.simulation import SimulatedCluster


class Held(Observer):
    """Hears on which node each pod is placed, and which devices it gets there, by the key of the pod."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.devices: dict[str, tuple[int, ...]] = {}

    def on_begin(self, simulation: SimulatedCluster) -> None:
        self._book = simulation.model.devices

    def on_outputs(self, now_ns: int, outputs: Sequence[Output], *, deciding: bool) -> None:
        assert self._book is not None
        for output in outputs:
            if isinstance(output, NewAllocation):
                self.nodes[output.key] = output.node_id
                self.devices[output.key] = self._book.held(output.application_id, output.uuid or output.key)
