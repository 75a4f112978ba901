"""What a scenario comes to: how many applications and pods of each class, and what they want of what the cluster has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from licorne.workload.lines import App, Ask, Node, NodeRemove

if TYPE_CHECKING:
    from licorne.workload.workload import Workload


class ClassOutline(msgspec.Struct, kw_only=True):
    """The applications and pods of a class, and the amounts that they want on average over the length, by type.

    A pod without a duration counts from its arrival to the end of the scenario.
    """

    name: str
    applications: int = 0
    pods: int = 0
    demand: dict[str, float] = msgspec.field(default_factory=dict)


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario comes to. `capacity`: the mean amounts of the cluster, by type; `events`: changes of nodes and queues.

    `load`: the demand of all pods as a share of the capacity, by type, as if each pod started on its arrival. `warnings`: what is
    probably a mistake, with its place.
    """

    name: str
    seed: int
    length_s: float
    nodes: int
    events: int
    classes: list[ClassOutline]
    capacity: dict[str, float]
    load: dict[str, float]
    warnings: list[str] = []


def outlined(workload: Workload, names: Iterable[str], *, seed: int, length_s: float) -> Outline:
    """Return the outline of a scenario's workload whose classes have these names; all its lines are made once."""
    classes = {name: ClassOutline(name=name) for name in names}
    there: dict[str, tuple[float, dict[str, int]]] = {}
    capacity: defaultdict[str, float] = defaultdict(float)
    nodes = events = 0
    at = 0.0
    current = ClassOutline(name="")

    def gone(name: str) -> None:
        since, res = there.pop(name)
        for kind, amount in res.items():
            capacity[kind] += amount * (at - since) / length_s

    for line in workload.lines:
        at = at if line.at is None else float(line.at)
        if type(line) is Ask:
            current.pods += 1
            held = length_s - at if line.duration_s is None else line.duration_s
            for kind, amount in line.res.items():
                current.demand[kind] = current.demand.get(kind, 0.0) + amount * held / length_s
        elif type(line) is App:
            current = classes[line.id.rpartition("-")[0]]
            current.applications += 1
        else:
            events += at > 0
            nodes += type(line) is Node and at == 0
            if type(line) is Node:
                there[line.id] = (at, line.res)
            elif type(line) is NodeRemove:
                gone(line.id)
    at = 0.0 + length_s
    for name in list(there):
        gone(name)
    wanted: defaultdict[str, float] = defaultdict(float)
    for one in classes.values():
        for kind, mean in one.demand.items():
            wanted[kind] += mean
    return Outline(
        name=workload.name,
        seed=seed,
        length_s=length_s,
        nodes=nodes,
        events=events,
        classes=list(classes.values()),
        capacity={kind: round(mean, 3) for kind, mean in capacity.items()},
        load={kind: round(mean / capacity[kind], 6) if capacity.get(kind) else 0.0 for kind, mean in wanted.items()},
    )
