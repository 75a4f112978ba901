"""Say which queue configuration a simulation ran under, and whether it uses the queues that applications ask for.

The built-in configuration places applications by their namespace and lets the queue that they name count for nothing. Who
simulates without a configuration of their own would otherwise see no more than that no rule matched.
"""

from __future__ import annotations

from licorne.core.placement.rules import PlacementRule
from licorne.sim.simulation import SimulatedCluster
from licorne.workload.lines import App
from licorne.workload.workload import LineStream, Workload


def configuration(workload: Workload, simulation: SimulatedCluster, *, given: bool) -> str:
    """Return which configuration counted, such as `built-in; application a1 asked for root.batch, which no rule uses`.

    `given`: it was given in place of the workload's.
    """
    if workload.config is None:
        which = "given" if given else "built-in"
    else:
        which = "given in place of the workload's" if given else "the workload's"
    names_none = isinstance(workload.lines, LineStream) and not workload.lines.names_queues
    if names_none or any(map(_uses_queue, simulation.partition.placer.rules)):
        return which
    unused = [
        line
        for line in workload.lines
        if type(line) is App and line.queue and simulation.path(line.id) != line.queue.lower()
    ]
    if not unused:
        return which
    others = f"; so did {len(unused) - 1:,} more, for this queue or another" if len(unused) > 1 else ""
    return f"{which}; application {unused[0].id} asked for {unused[0].queue}, which no rule uses{others}"


def _uses_queue(rule: PlacementRule) -> bool:
    """Return whether a rule, or a parent rule of it, looks at the queue that an application names."""
    return rule.name == "provided" or (rule.parent is not None and _uses_queue(rule.parent))
