"""What a program may watch while a workload is simulated.

An observer hears three kinds of things: every output of the scheduler as it comes, what became of each pod once that is
known, and every span of virtual time between two moments at which something happens. Before all of these it is told of the
simulation itself. It only watches: decisions do not depend on observers, and what they raise ends the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.si.messages import Output
    from licorne.sim.pods import PodRecord
    from licorne.sim.simulation import SimulatedCluster


class Observer:
    """Base of observers: override what is wanted. Times are in nanoseconds of virtual time."""

    def on_begin(self, simulation: SimulatedCluster) -> None:
        """Handle the beginning. The simulation is there to be read; what it has may change with any version."""

    def on_outputs(self, now_ns: int, outputs: Sequence[Output], *, deciding: bool) -> None:
        """Handle outputs of the scheduler, in order; `deciding`: they come from a decision, not from a submitted message.

        Outputs are internal messages (`licorne.si.messages`), such as `NewAllocation` and `Released`.
        """

    def on_pod(self, record: PodRecord) -> None:
        """Handle what became of a pod: called when it has ended, or else at the end of the simulation."""

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        """Handle the state from `now_ns` up to the next moment, `until_ns`; None: the simulation has ended at `now_ns`.

        The partition is there to be read, for example `partition.waiting()`.
        """


def overriding(observers: Iterable[Observer], method: str) -> tuple[Observer, ...]:
    """Return the observers that override a method, so that nothing is prepared for those that do not listen."""
    return tuple(one for one in observers if getattr(type(one), method) is not getattr(Observer, method))
