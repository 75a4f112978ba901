"""The time line: the nodes at the beginning, and the events that change them and the configuration.

Which nodes of a pool fail, or are drained, is drawn. Everything else follows from the document. A step is a time and the lines
that are due then; steps are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

import msgspec

from licorne.core.nodes.constraints import LABEL_PREFIX, TAINTS_ATTRIBUTE
from licorne.workload.lines import Line, Node, NodeDrain, NodeRemove, NodeUndrain, Reload
from licorne.workload.scenarios.document import NODES_MAX, Pool
from licorne.workload.scenarios.draws import Source
from licorne.workload.scenarios.plan import Happening, Plan
from licorne.workload.scenarios.values import seconds


class Nodes:
    """The nodes of a pool: which are there (`present`, by number), drained or lost, and how many there have been."""

    def __init__(self, name: str, pool: Pool, res: dict[str, int]) -> None:
        self.name = name
        self.res = res
        self.attrs = {f"{LABEL_PREFIX}{key}": value for key, value in pool.labels.items()}
        self.attrs["si/hostname"] = ""
        if pool.taints:
            taints = [{"key": one.key, "value": one.value, "effect": one.effect} for one in pool.taints]
            self.attrs[TAINTS_ATTRIBUTE] = msgspec.json.encode(taints).decode()
        self.present: dict[int, bool] = {}  # whether it is drained
        self.made = pool.nodes
        self.away: list[int] = list(range(pool.nodes))
        self.left = pool.absent
        """Whether the pool as a whole is away: then a node that was lost does not come back by itself."""

    def id(self, number: int) -> str:
        """Return the name of a node."""
        return f"{self.name}-{number:04d}"

    def add(self, numbers: list[int]) -> list[Line]:
        """Let nodes come that are not there."""
        coming = [number for number in numbers if number not in self.present]
        self.present.update(dict.fromkeys(coming, False))
        self.away = [number for number in self.away if number not in self.present]
        return [
            Node(id=self.id(number), res=self.res, attrs={**self.attrs, "si/hostname": self.id(number)})
            for number in coming
        ]

    def remove(self, numbers: list[int], *, back: bool) -> list[Line]:
        """Let nodes go that are there; with `back` they come back when the pool joins."""
        going = [number for number in numbers if number in self.present]
        for number in going:
            del self.present[number]
        if back:
            self.away += going
        return [NodeRemove(id=self.id(number)) for number in going]

    def grow(self, number: int) -> list[Line]:
        """Add up to `number` new nodes, as far as the pool stays within NODES_MAX; return the lines that report them."""
        first, self.made = self.made, min(self.made + number, NODES_MAX)
        return self.add(list(range(first, self.made)))

    def drain(self, numbers: list[int], *, drained: bool) -> list[Line]:
        """Let nodes take no more pods, or take them again."""
        changed = [number for number in numbers if self.present.get(number) is (not drained)]
        self.present.update(dict.fromkeys(changed, drained))
        kind = NodeDrain if drained else NodeUndrain
        return [kind(id=self.id(number)) for number in changed]

    def some(self, number: int | None, source: Source) -> list[int]:
        """Return the numbers of nodes that are there: all, or some that are drawn."""
        there = list(self.present)
        if number is None or number >= len(there):
            return there
        return sorted(there.pop(source.below(len(there))) for _ in range(number))


class Timeline:
    """Makes the lines of nodes and events, in order of time."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._plan = plan
        self._pools = {name: Nodes(name, pool, plan.sizes[name]) for name, pool in plan.document.cluster.items()}
        self._source = Source(seed, "events")
        self._due: list[tuple[int, int, Callable[[], list[Line]]]] = []
        self._number = 0

    def steps(self) -> Iterator[tuple[int, list[Line]]]:
        """Yield the times in microseconds at which something changes, and the lines."""
        first: list[Line] = []
        for name, pool in self._plan.document.cluster.items():
            if not pool.absent:
                first += self._pools[name].add(list(range(pool.nodes)))
        yield 0, first
        for happening in self._plan.happenings:
            self._schedule(happening.at_us, self._begin(happening, happening.at_us))
        while self._due:
            at_us, _, happen = heappop(self._due)
            lines = happen()
            if lines:
                lines[0].at = seconds(at_us)
                yield at_us, lines

    def _schedule(self, at_us: int, happen: Callable[[], list[Line]]) -> None:
        """Note what is to happen, unless the scenario is over then."""
        if at_us < self._plan.length_us:
            self._number += 1
            heappush(self._due, (at_us, self._number, happen))

    def _begin(self, happening: Happening, at_us: int) -> Callable[[], list[Line]]:
        def happen() -> list[Line]:
            if happening.every_us:
                again_us = at_us + happening.every_us
                self._schedule(again_us, self._begin(happening, again_us))
            lines, undo = self._apply(happening)
            if happening.for_us and undo is not None:
                self._schedule(at_us + happening.for_us, undo)
            return lines

        return happen

    def _apply(self, happening: Happening) -> tuple[list[Line], Callable[[], list[Line]] | None]:
        """Return the lines of an event, and what undoes it."""
        if happening.kind == "configure":
            return [Reload(yaml=happening.config)], None
        pool, number = self._pools[happening.pool], happening.nodes
        if happening.kind == "join":
            pool.left = False
            numbers = sorted(pool.away)[:number]
            return pool.add(numbers), lambda: pool.remove(numbers, back=True)
        if happening.kind == "grow":
            before = set(pool.present)
            lines = pool.grow(number or 1)
            new = [one for one in pool.present if one not in before]
            return lines, lambda: pool.remove(new, back=False)
        if happening.kind == "drain":
            drained = pool.some(number, self._source)
            return pool.drain(drained, drained=True), lambda: pool.drain(drained, drained=False)
        if happening.kind == "fail":
            going = pool.some(number or 1, self._source)
        else:
            there = sorted(pool.present, reverse=True)
            going = sorted(there[: number if number is not None else len(there)])
            pool.left = pool.left or (happening.kind == "leave" and number is None)
        lines = pool.remove(going, back=happening.kind != "shrink")
        return lines, lambda: self._return(pool, going, whole=happening.kind == "leave")

    def _return(self, pool: Nodes, numbers: list[int], *, whole: bool) -> list[Line]:
        """Let nodes come back after a while: those of a pool that left, or lost ones while their pool is there."""
        if whole:
            pool.left = False
        return [] if pool.left else pool.add(numbers)
