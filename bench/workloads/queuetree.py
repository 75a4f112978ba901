"""The queues of the benchmark case `tree`: five levels, which together use all settings of a queue.

All limits are in proportion to the demand below a queue, so that it is certain which of them bind. Quotas of the upper
levels have room for all of it. In one leaf of fifteen a quota admits exactly the pods that are to fit, in another one the
limits of its users do; both count pods, so that it does not matter which pods come first. The number of allocations at the
end is therefore known, whatever the order of decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LEVELS = ("org", "division", "department", "team", "queue")
SHARES = (500, 125, 25, 5)
"""The number of queues on the first, second, third and fourth level is the total divided by these; the rest are leaves."""
ROOM = 1.3
EVERY = 15
QUOTA_BINDS, USERS_BIND = 7, 3
"""The leaves, by number modulo `EVERY`, whose quota binds, and whose limits of users bind."""


@dataclass(slots=True)
class Demand:
    """The demand in a queue and all queues below it; `fitting`: the number of pods of each user that are to fit."""

    vcore: int = 0
    memory: int = 0
    applications: int = 0
    guaranteed: tuple[int, int] = (0, 0)
    fitting: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Queue:
    level: int
    number: int
    path: str
    children: list[_Queue] = field(default_factory=list)
    demand: Demand = field(default_factory=Demand)


class QueueTree:
    """A tree of `queues` queues on five levels, the children dealt out evenly."""

    def __init__(self, queues: int) -> None:
        widths = [max(1, queues // share) for share in SHARES]
        widths.append(max(1, queues - sum(widths)))
        root = _Queue(-1, 0, "root")
        above = [root]
        for level, width in enumerate(widths):
            here: list[_Queue] = []
            for number in range(width):
                parent = above[number * len(above) // width]
                queue = _Queue(level, number, f"{parent.path}.{LEVELS[level]}{number}")
                parent.children.append(queue)
                here.append(queue)
            above = here
        self.root = root
        self.leaves = above

    def path(self, leaf: int) -> str:
        """Return the full name of a leaf."""
        return self.leaves[leaf].path

    @staticmethod
    def binds(leaf: int) -> bool:
        """Whether a limit in this leaf admits less than the demand."""
        return leaf % EVERY in (QUOTA_BINDS, USERS_BIND)

    def config(self, demands: Sequence[Demand], appsort: str, nodesort: str) -> str:
        """Return the configuration for these demands of the leaves."""
        for leaf, demand in zip(self.leaves, demands, strict=True):
            leaf.demand = demand
            # Two of three leaves are guaranteed half of their demand.
            demand.guaranteed = (demand.vcore // 2, demand.memory // 2) if leaf.number % 3 else (0, 0)
        text = ["partitions:", "  - name: default", "    nodesortpolicy:", f"      type: {nodesort}", "    queues:"]
        _add_up(self.root)
        text += [f"{' ' * 6}{line}" for line in _lines(self.root, appsort)]
        return "\n".join(text) + "\n"


def _add_up(queue: _Queue) -> None:
    """Add up demand and guarantee of a queue from its children, leaves first."""
    if not queue.children:
        return
    demand = queue.demand = Demand()
    for child in queue.children:
        _add_up(child)
        demand.vcore += child.demand.vcore
        demand.memory += child.demand.memory
        guaranteed = child.demand.guaranteed
        demand.guaranteed = (demand.guaranteed[0] + guaranteed[0], demand.guaranteed[1] + guaranteed[1])


def _lines(queue: _Queue, appsort: str) -> Iterator[str]:
    """Yield the YAML of a queue and all queues below it."""
    yield f"- name: {queue.path.rpartition('.')[2]}"
    if queue.level < 0:
        yield "  submitacl: '*'"
    elif queue.level < len(LEVELS) - 1:
        yield from _of_parent(queue)
    else:
        yield from _of_leaf(queue, appsort)
    if queue.children:
        yield "  queues:"
        for child in queue.children:
            for line in _lines(child, appsort):
                yield f"    {line}"


def _of_parent(queue: _Queue) -> Iterator[str]:
    """Yield the settings of a parent: a guarantee, by level a quota, an offset or a fence, and for some limits of users."""
    level, number, demand = queue.level, queue.number, queue.demand
    if level == 1:
        yield f"  properties: {{priority.offset: '{number % 3 * 5}'}}"
    if level == 2 and number % 7 == 0:
        yield "  properties: {priority.policy: fence}"
    yield "  resources:"
    yield f"    guaranteed: {_amounts(*demand.guaranteed)}"
    if level in (0, 2):
        yield f"    max: {_amounts(*_with_room(demand))}"
    if level == 3 and number % 4 == 0:
        yield "  limits:"
        yield f"    - {{limit: each, users: ['*'], maxresources: {_amounts(*_with_room(demand))}}}"


def _of_leaf(queue: _Queue, appsort: str) -> Iterator[str]:
    number, demand = queue.number, queue.demand
    yield f"  properties: {{application.sort.policy: {appsort}}}"
    if number % 5 == 0:
        yield f"  maxapplications: {max(1, demand.applications)}"
    resources = [f"guaranteed: {_amounts(*demand.guaranteed)}"] if number % 3 else []
    if number % EVERY == QUOTA_BINDS:
        resources.append(f"max: {{pods: '{sum(demand.fitting.values())}'}}")
    if resources:
        yield f"  resources: {{{', '.join(resources)}}}"
    if number % EVERY == USERS_BIND and demand.fitting:
        yield "  limits:"
        for user, pods in demand.fitting.items():
            yield f"    - {{limit: {user}, users: [{user}], maxresources: {{pods: '{pods}'}}}}"


def _with_room(demand: Demand) -> tuple[int, int]:
    return int(demand.vcore * ROOM), int(demand.memory * ROOM)


def _amounts(vcore: int, memory: int) -> str:
    """Format amounts for a configuration: thousandths of a core, and bytes."""
    return f"{{vcore: '{vcore}m', memory: '{memory}'}}"
