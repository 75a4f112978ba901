"""The trace of a script: one line for each thing that the scheduler announces, in the format of the recordings.

docs/spec/workload-format.md, version 2, has the format. The one subtlety is the order of release lines:
those of one message are sorted by key, because the original announces them in the order of a map. A message is everything
that the scheduler announces for one cause. While the scheduler decides, adjacent releases with the same type and text
belong together, ignoring outputs without a line between them. A line of the script (a removed node, for example) is a
single cause, so all its releases with the same type and text are one message, at the place of the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from licorne.si.messages import (
    AcceptedApplication,
    NewAllocation,
    Output,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
    Released,
)
from licorne.sim.observer import Observer
from licorne.sim.runner import Simulation
from licorne.workload.escaping import escaped
from licorne.workload.lines import Reload, Run
from licorne.workload.workload import Workload

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.sim.simulation import SimulatedCluster

_WITH_LINES = (
    NewAllocation, AcceptedApplication, RejectedApplication, RejectedAllocation, RejectedNode, Released,
)  # fmt: skip
Write = Callable[[str], object]


def traced(workload: Workload) -> list[str]:
    """The lines of the trace of a script."""
    found: list[str] = []
    trace = _Trace(found.append)
    cluster = Simulation(workload, observers=[trace])._cluster
    cluster.begin()
    for number, line in enumerate(workload.lines):
        if type(line) is Run:
            while cluster.decide():
                pass
            trace.sums()
        elif type(line) is Reload:
            if cluster.reload(line.yaml, workload.place(number)) is not None:
                trace.refused()
        else:
            cluster.hand_in((line,), number)
    return found


class _Trace(Observer):
    """An observer that writes trace lines (without line ends)."""

    partition: Partition

    def __init__(self, write: Write) -> None:
        self._write = write

    def on_begin(self, simulation: SimulatedCluster) -> None:
        """Take the partition, of which lines tell."""
        self.partition = simulation.partition

    def on_outputs(self, now_ns: int, outputs: Sequence[Output], *, deciding: bool) -> None:
        """Write the lines for outputs of the scheduler."""
        told = [(_cause(output), output) for output in outputs if isinstance(output, _WITH_LINES)]
        if not deciding:
            first: dict[object, int] = {}
            at = [first.setdefault(cause, place) if cause else place for place, (cause, _) in enumerate(told)]
            told = [told[place] for place in sorted(range(len(told)), key=at.__getitem__)]
        for cause, group in groupby(told, key=itemgetter(0)):
            if cause is None:
                for _, output in group:
                    line = self._line(output, deciding)
                    if line is not None:
                        self._write(line)
            else:
                released = [output for _, output in group if isinstance(output, Released)]
                for output in sorted(released, key=lambda released: released.key):
                    self._write(f"R\t{escaped(output.key)}\t{output.termination.name}")

    def _line(self, output: Output, deciding: bool) -> str | None:
        match output:
            case NewAllocation():
                return f"{'A' if deciding else 'N'}\t{escaped(output.key)}\t{escaped(output.node_id)}"
            case AcceptedApplication():
                application = self.partition.applications[output.application_id]
                return f"Q\t{escaped(output.application_id)}\t{application.queue.path}"
            case RejectedApplication():
                return f"X\t{escaped(output.application_id)}\t"
            case RejectedAllocation():
                return f"J\t{escaped(output.key)}"
            case RejectedNode():
                return f"Y\t{escaped(output.node_id)}"
        return None

    def refused(self) -> None:
        """Write that a configuration was refused."""
        self._write("C\trejected")

    def sums(self) -> None:
        """Write the usage of each queue, after a run."""
        for queue in self.partition.tree.queues():
            held = {name: amount for name, amount in queue.allocated_resource().items() if amount}
            self._write(f"S\t{queue.path}\t{json.dumps(held, sort_keys=True, separators=(',', ':'))}")


def _cause(output: Output) -> tuple[int, str] | None:
    """Return the key by which releases form one message; None for anything but the release of an allocation."""
    if isinstance(output, Released) and not output.ask:
        return output.termination, output.message
    return None
