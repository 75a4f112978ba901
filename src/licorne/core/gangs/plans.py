"""Start plans: when, and on which nodes, a gang that does not fit now will fit, as far as execution timeouts tell.

Running allocations are ended in a trial, in the order in which they will end: first those that were asked to end, then
by the end that an execution timeout sets, then those whose end is unknown, in the order of their arrival. The plan is
the placing at the earliest of these times at which the whole gang has room. If that needs an allocation with an unknown
end, the start is unknown, and the plan only says which nodes to hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from licorne.core.amounts.vectors import Vec
from licorne.core.constants import UNLIMITED
from licorne.core.queues.ask import request_order, total_amounts

from .trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterable

    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

End = tuple[int, int, str]
"""When an allocation ends (ns; 0: asked to end, UNLIMITED: unknown); its number and id, which break ties."""
NOTHING_ENDS: End = (-1, 0, "")


class StartPlan(NamedTuple):
    """The members of a gang and their nodes, at the time when all allocations up to the end `last` have ended."""

    placing: list[tuple[Ask, Node]]
    last: End

    @property
    def start_ns(self) -> int | None:
        """The earliest start (ns); None if it is unknown.

        It is not later than now if every allocation that must end was asked to.
        """
        return None if self.last[0] == UNLIMITED else self.last[0]

    def counts(self, alloc: Ask) -> bool:
        """Tell whether the plan counts on the end of an allocation."""
        end = end_of(alloc)
        return end <= self.last or (self.last[0] != UNLIMITED and end[0] <= self.last[0])

    def room(self, node: Node) -> Vec:
        """Return the free amounts of the node at the start of the plan."""
        room: Vec = node.free.clone()
        for alloc in node.allocations:
            if self.counts(alloc):
                room.plus(alloc.shape.amounts)
        return room

    def planned(self, node: Node) -> Vec:
        """Return the total amounts of the members that are planned on the node."""
        return total_amounts([ask for ask, planned in self.placing if planned is node])

    def rest(self, node: Node) -> Vec:
        """Return the amounts that will be left on the node beside its planned members."""
        room = self.room(node)
        room.minus(self.planned(node))
        return room

    def still_fits(self, partition: Partition, members: list[Ask]) -> bool:
        """Tell whether the plan is for these members, and still valid: its nodes may be used and will have the room."""
        if sorted([ask for ask, _ in self.placing], key=request_order) != sorted(members, key=request_order):
            return False
        for ask, node in self.placing:
            # What its terms about pods say depends on the other members, which are not there yet.
            if not (node.schedulable or ask.required) or not ask.shape.need.of_empty().labels_match(node):
                return False
        for node in dict.fromkeys(node for _, node in self.placing):
            if partition.nodes.get(node.id) is not node or node.reservations:
                return False
            if not self.room(node).covers(self.planned(node)):
                return False
        return True


def end_of(alloc: Ask) -> End:
    """Return when an allocation ends, by its own execution timeout or its application's."""
    if alloc.preempted or (alloc.released and not _handed_over(alloc)):
        return 0, alloc.seq, alloc.id
    end = alloc.bound_ns + alloc.timeout_ns if alloc.timeout_ns > 0 else UNLIMITED
    running = alloc.app.running_timer
    return end if running is None else min(end, running[0]), alloc.seq, alloc.id


def _handed_over(alloc: Ask) -> bool:
    """Tell whether the room of an allocation that ends is kept by a replacement.

    So it is for a placeholder whose real ask stays on the same node, and for a real ask in flight.
    """
    gang = alloc.app.gang
    if gang is None:
        return False
    real = gang.replacing.get(alloc)
    return alloc.id in gang.arriving if real is None else real.node is alloc.node


def make_plan(partition: Partition, members: list[Ask], held: Iterable[Node]) -> StartPlan | None:
    """Plan the earliest start of a gang; return None if it would not fit even when everything has ended.

    `held` are the nodes that the gang holds already, which count as open. Predicates are not asked, because they answer
    for the present only. The time is found by bisection. For members that are not all alike it may not be the very
    first one, because a packing may fail with more room where it succeeds with less.
    """
    trial = Trial(partition, held, ask_predicates=False)
    ends = sorted(
        ((end_of(alloc), alloc) for node in partition.nodes.values() if node.open for alloc in node.allocations),
        key=lambda pair: pair[0],
    )
    clock = _ReleaseTimeline(partition, [alloc for _, alloc in ends])
    low, high = 0, len(ends)
    found: list[tuple[Ask, Node]] | None = None
    # The first step ends all allocations: if the gang does not fit then, there is no plan.
    while True:
        middle = (low + high) // 2 if found is not None else high
        clock.go(middle)
        placing = trial.place(members)
        if placing is not None:
            trial.undo(placing)
            found, high = placing, middle
        elif found is None:
            break
        else:
            low = middle + 1
        if low >= high:
            break
    clock.go(0)  # brings all allocations back
    trial.close()
    return None if found is None else StartPlan(found, ends[high - 1][0] if high else NOTHING_ENDS)


class _ReleaseTimeline:
    """Ends allocations in a trial, from the first of a list on, and brings them back."""

    def __init__(self, partition: Partition, allocations: list[Ask]) -> None:
        self._index = partition.index
        self._needs = partition.needs
        self._allocations = allocations
        self._at = 0

    def go(self, to: int) -> None:
        """Set the nodes to the state in which the first `to` allocations have ended."""
        touched: dict[Node, None] = {}
        for alloc in self._allocations[min(self._at, to) : max(self._at, to)]:
            node = alloc.node
            assert node is not None, f"{alloc.key}: an allocation without a node"
            if to > self._at:
                node.free.plus(alloc.shape.amounts)
            else:
                node.free.minus(alloc.shape.amounts)
            if alloc.shape.need.demand is not None and to > self._at:
                self._needs.lift(node, alloc)
            elif alloc.shape.need.demand is not None:
                self._needs.lower(node, alloc)
            if alloc.shape.need.pods is not None:
                self._needs.topology.attempt(node.slot, alloc.shape.need.pods, -1 if to > self._at else 1)
            touched[node] = None
        for node in touched:
            self._index.mend(node)
        self._at = to


def short_of(app: Application, total: Vec) -> list[Any]:
    """Return the queues below root, and the trackers of user and group, that leave less than `total`.

    The root queue is left out: its max is the size of the cluster, and room on nodes is checked elsewhere.
    """
    found: list[Any] = [q for q in app.queue.lineage() if q.parent is not None and q.limit.binds(q.allocated, total)]
    found += [t for t in app.trackers if t.limit is not None and t.limit.binds(t.used, total)]
    return found
