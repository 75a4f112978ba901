"""The scenario of the demonstration's cluster: `cluster.yaml`, played again and again, each time from the next seed.

The same seed gives the same lines. The decisions on them depend on real time, and on other clients of the service.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from licorne.si.constants import TAG_NODE_CONSTRAINTS, TAG_REQUIRED_NODE
from licorne.workload.lines import GI, App, Ask, Foreign, Line, Node
from licorne.workload.scenarios.scenario import Scenario
from licorne.workload.scenarios.stream import ScenarioLines
from licorne.workload.scenarios.values import MICROSECONDS

Moment = tuple[float, list[Line]]
"""A moment of the demonstration: seconds since its beginning, and the lines of the workload that are sent then."""

CLUSTER: Final = Scenario.read(Path(__file__).with_name("cluster.yaml"))
AGENTS: Final = App(id="node-agents", queue="root.system", user="cluster", groups=("operators",))
"""The application whose pods run on each node; it never ends."""
EVERY_TAINT: Final = '{"tolerations":[{"operator":"Exists"}]}'


def scenario(seed: int = 1) -> Iterator[Moment]:
    """Yield the moments of the demonstration in order of time; the scenario begins again when it ends, so they never end."""
    yield 0.0, [AGENTS]
    for turn in count():
        stream = CLUSTER.workload(seed=seed + turn).lines
        assert isinstance(stream, ScenarioLines)
        for at_us, lines in stream.moments():
            if at_us or not turn:  # the nodes are there already
                at_s = turn * CLUSTER.length_s + at_us / MICROSECONDS
                yield at_s, [line for one in lines for line in _with_daemons(one)]


def _with_daemons(line: Line) -> list[Line]:
    """Return a line; after a new node, a pod that requires it, and an allocation of another scheduler on it."""
    if not isinstance(line, Node):
        return [line]
    tags = {TAG_REQUIRED_NODE: line.id, TAG_NODE_CONSTRAINTS: EVERY_TAINT}
    agent = Ask(key=f"agent-{line.id}", app=AGENTS.id, res={"vcore": 250, "memory": GI, "pods": 1}, tags=tags, prio=100)
    return [line, Foreign(key=f"proxy-{line.id}", node=line.id, res={"vcore": 500, "memory": GI}), agent]
