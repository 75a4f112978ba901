"""A trial: asks are put on nodes as if they were allocated, to see whether all of them fit, and are taken off again.

A trial changes the free amounts of nodes and the node index, and wakes nothing; when it is undone, both are exactly as
before. It may open nodes that are held for the gang, and end allocations before their time
(`licorne.core.gangs.backfill`).

Up to four ways are tried until all asks have a node: in request order, each ask on the first node in order that takes
it; the largest ask first, again each on the first node; the largest first, each on the node on which it leaves the
least; and for few asks a search that steps back (`licorne.core.gangs.packing`). If all asks are alike, the first way is
exact: how many of them a node takes does not depend on the order. Asks that want to be near pods are tried in one topology
domain after the other at last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.nodes.preferences import ranked
from licorne.core.queues.ask import total_amounts

from .packing import MEMBERS_MAX, GangPacking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.ask import Ask

DOMAINS_MAX = 64
"""In how many topology domains a gang is tried whose members want to be near each other."""
LOOKS_MAX = 20_000
"""Most nodes that the third way compares; a trial that needs more has failed."""


class Trial:
    """One trial. `held` are nodes that count as open. `refused`: a predicate refused an ask a node that had room."""

    def __init__(self, partition: Partition, held: Iterable[Node], *, ask_predicates: bool) -> None:
        self._partition = partition
        self._index = partition.index
        self._generation = partition.index.generation
        self._placed = 0
        self._opened = [node for node in held if node.schedulable and not node.reservations and not node.open]
        self._predicates = ask_predicates and partition.predicates is not None
        given = partition.descent.orders
        self._choose = given.choose_node if given is not None else None
        self.counts = partition.needs.counts  # host ports or devices
        self._topology = partition.needs.topology
        self._tried = partition.claims.tried
        self._looks = 0
        self._wanted: list[tuple[int, int, int]] = []  # types that the asks want: how much, and the square of the total
        self.refused = False
        for node in self._opened:
            node.open = True
            self._index.mend(node)

    def close(self) -> None:
        """Close the nodes that the trial has opened; asks that are placed stay placed."""
        self._tried.clear()
        for node in self._opened:
            node.open = False
            self._index.mend(node)
        if not self._placed:  # nothing has changed, so no search for victims is worth repeating
            self._index.generation = self._generation

    def place(self, asks: list[Ask]) -> list[tuple[Ask, Node]] | None:
        """Find a node for each ask, and take the room there; return None, with nothing taken, if one finds no node."""
        shapes = {ask.shape: None for ask in asks if not ask.required and not wants_near(ask)}
        if len(shapes) > 1:  # a shape that fits no node even alone ends the trial early
            for shape in shapes:
                if self._index.find(shape.amounts, shape.need, None) is None:
                    return None
        found = self._in_order(asks, best=False)
        if found is not None or _alike(asks):
            return found
        largest = sorted(asks, key=self._size, reverse=True)  # stable: equals stay in request order
        if largest != asks:
            found = self._in_order(largest, best=False)
        self._looks = 0
        self._wanted = self._wanted_by(asks)
        found = found if found is not None else self._in_order(largest, best=True)
        if found is None and len(asks) <= MEMBERS_MAX:
            found = GangPacking(self, largest, [d for d, _, _ in self._wanted]).find()
        return found if found is not None else self._near_each_other(asks)

    def place_any(
        self, asks: list[Ask], lacking: dict[str, int], allowed: Callable[[list[Ask]], bool]
    ) -> list[tuple[Ask, Node]] | None:
        """Place so many of the asks of each task group that together are allowed, and pass over those that find no node.

        They are tried in request order, then the smallest first. Returns None, with nothing taken, if neither way succeeds.
        """
        if _alike(asks):
            return None  # those that were tried first did not find nodes, and the others are like them
        for order in (asks, sorted(asks, key=self._size)):
            found = self._any_of(order, lacking) or self._near_each_other(order, lacking)
            if found is not None:
                if allowed([ask for ask, _ in found]):
                    return found
                self.undo(found)
        return None

    def _any_of(self, asks: list[Ask], lacking: dict[str, int]) -> list[tuple[Ask, Node]] | None:
        placed: list[tuple[Ask, Node]] = []
        left = dict(lacking)
        failed: dict[
            object, None
        ] = {}  # what finds no node finds none later: room becomes less, but of those near it more
        for ask in asks:
            if left[ask.task_group] <= 0 or (ask.shape in failed and not ask.required):
                continue
            node = self._required(ask) if ask.required else self._preferred(ask) or self._first(ask)
            if node is not None:
                self.put(ask, node)
                placed.append((ask, node))
                left[ask.task_group] -= 1
            elif not (ask.required or wants_near(ask)):
                failed[ask.shape] = None
        if any(count > 0 for count in left.values()):
            self.undo(placed)
            return None
        return placed

    def _near_each_other(self, asks: list[Ask], lacking: dict[str, int] | None = None) -> list[tuple[Ask, Node]] | None:
        """Try one domain after the other, where some of the asks want to be near pods, perhaps each other's.

        One that has a node now comes first, best without such a term of its own: the others may want to be near it.
        Where asks share a claim of devices one of these comes first, and each node is tried as a domain of its own.
        `lacking`: how many of each task group are wanted, if not all.
        """
        if lacking is not None:
            asks = [ask for ask in asks if lacking[ask.task_group] > 0]
        wanting = [ask.shape.need.pods for ask in asks if wants_near(ask)]
        keys = {term.topology_key: None for pods in wanting if pods is not None for term in pods.terms.affinity}
        sharing = any(map(shares, asks))
        if not (keys or sharing) or any(ask.required for ask in asks):
            return None
        leader, *others = sorted(asks, key=lambda ask: (self._first(ask) is None, wants_near(ask), not shares(ask)))
        rest = None if lacking is None else {**lacking, leader.task_group: lacking[leader.task_group] - 1}
        tried: dict[tuple[str | None, ...], None] = {}
        node = self._first(leader)
        while node is not None and len(tried) < DOMAINS_MAX:
            labels = dict(node.labels.pairs)
            domain = (*(labels.get(key) for key in keys), node.id if sharing else "")
            if domain not in tried:
                tried[domain] = None
                self.put(leader, node)
                found = self._in_order(others, best=False) if rest is None else self._any_of(others, rest)
                if found is not None:
                    return [(leader, node), *found]
                self.undo([(leader, node)])
            node = self._first(leader, node)
        return None

    def place_as(self, asks: list[Ask], plan: list[tuple[Ask, Node]]) -> list[tuple[Ask, Node]] | None:
        """Put the asks on the nodes of an earlier plan; return None, with nothing taken, if it no longer fits them."""
        if len(asks) != len(plan) or {ask: None for ask, _ in plan} != dict.fromkeys(asks):
            return None
        placed: list[tuple[Ask, Node]] = []
        for ask, node in plan:
            live = self._partition.nodes.get(node.id) is node and self.has_room(ask, node)
            if not live or not self._allows(ask, node):
                self.undo(placed)
                return None
            self.put(ask, node)
            placed.append((ask, node))
        return placed

    def undo(self, placed: list[tuple[Ask, Node]]) -> None:
        """Take asks off their nodes again, in reverse order."""
        self._placed -= len(placed)
        for ask, node in reversed(placed):
            self._tried.pop(ask, None)
            node.free.plus(ask.shape.amounts)
            if self.counts and ask.shape.need.counted:
                self._partition.needs.undo_try(node, ask)
            if ask.shape.need.pods is not None:
                self._topology.attempt(node.slot, ask.shape.need.pods, -1)
            self._index.mend(node)

    def put(self, ask: Ask, node: Node) -> None:
        """Take the room of the ask on the node."""
        self._placed += 1
        if ask in self._partition.claims.by_ask:
            self._tried[ask] = None
        node.free.minus(ask.shape.amounts)
        if self.counts and ask.shape.need.counted:
            self._partition.needs.try_take(node, ask)
        if ask.shape.need.pods is not None:
            self._topology.attempt(node.slot, ask.shape.need.pods, 1)
        self._index.mend(node)

    def _in_order(self, asks: list[Ask], *, best: bool) -> list[tuple[Ask, Node]] | None:
        placed: list[tuple[Ask, Node]] = []
        for ask in asks:
            if ask.required:
                node = self._required(ask)
            elif best:
                node = self._best(ask)
            elif self._choose is not None:  # an order of the host program (`licorne.core.scheduling.host_orders`)
                node = self._choose(ask, self.fitting(ask))
            else:
                node = self._preferred(ask) or self._first(ask)
            if node is None:
                self.undo(placed)
                return None
            self.put(ask, node)
            placed.append((ask, node))
        return placed

    def _preferred(self, ask: Ask) -> Node | None:
        """Return the best node for an ask with preferences; None if there is none, or no preference tells nodes apart."""
        amounts, need = ask.shape.amounts, ask.shape.need
        nodes = ranked(self._topology, self._index, amounts, need) if need.prefers else ()
        return next((node for node in nodes if self._allows(ask, node)), None)

    def _first(self, ask: Ask, before: Node | None = None) -> Node | None:
        """Return the first open node, after `before`, that has room, meets the constraints, and that no predicate refuses."""
        amounts, need = ask.shape.amounts, ask.shape.need
        node: Node | None = self._index.find(amounts, need, before)
        while node is not None:
            if (need.exact or need.matches(node)) and self._allows(ask, node):
                return node
            node = self._index.find(amounts, need, node)
        return None

    def fitting(self, ask: Ask) -> Iterator[Node]:
        """Yield all nodes that take the ask, in order."""
        node = self._required(ask) if ask.required else self._first(ask)
        while node is not None:
            yield node
            node = None if ask.required else self._first(ask, node)

    def _wanted_by(self, asks: list[Ask]) -> list[tuple[int, int, int]]:
        wanted, total = total_amounts(asks), self._partition.total
        return [(d, want, total.at(d) ** 2) for d, want in enumerate(wanted.values()) if want > 0 and total.at(d) > 0]

    def left(self, ask: Ask, node: Node) -> float:
        """Return how much the ask leaves on the node: of the types that the asks want, the share of the cluster's total.

        A type weighs as much as the share of it that all asks want together, so that the scarcest one decides.
        """
        free, amounts = node.free, ask.shape.amounts
        return max((want * (free.at(d) - amounts.at(d)) / square for d, want, square in self._wanted), default=0.0)

    def _best(self, ask: Ask) -> Node | None:
        """Return the node on which the ask leaves the least (`left`); of equal nodes it is the first in order."""
        amounts, need = ask.shape.amounts, ask.shape.need
        best: Node | None = None
        least = 0.0
        node: Node | None = self._index.find(amounts, need, None)
        while node is not None:
            self._looks += 1
            if self._looks > LOOKS_MAX:
                return None
            if (need.exact or need.matches(node)) and self._allows(ask, node):
                left = self.left(ask, node)
                if best is None or left < least:
                    best, least = node, left
            node = self._index.find(amounts, need, node)
        return best

    def _required(self, ask: Ask) -> Node | None:
        """Return the node that the ask requires, if it takes the ask; not if it is reserved or held for others.

        That is unlike docs/spec/scheduling.md, section 7.4, by which an ask displaces ordinary reservations.
        """
        node: Node | None = self._partition.nodes.get(ask.required)
        return node if node is not None and self.has_room(ask, node) and self._allows(ask, node) else None

    def has_room(self, ask: Ask, node: Node) -> bool:
        """Tell whether a node that the ask may use takes it, if no predicate refuses it."""
        if ask.reserved is node:  # a member of a gang that has preempted
            usable: bool = node.schedulable
        elif ask.required:
            usable = not node.reservations and (node.open or not node.schedulable)
        else:
            return node.fits(ask.shape.amounts, ask.shape.need)
        return usable and node.free.covers(ask.shape.amounts) and ask.shape.need.matches(node)

    def _allows(self, ask: Ask, node: Node) -> bool:
        claims = self._partition.claims
        if claims.by_ask and ask.shape.need.pods is not None and claims.keep_off(ask, node):
            return False
        if not self._predicates or self._partition.predicate_allows(ask, node, True):
            return True
        self.refused = True
        return False

    def _size(self, ask: Ask) -> float:
        """Return the largest share of the cluster's total that the ask wants of any type."""
        total = self._partition.total
        return max((a / total.at(d) for d, a in enumerate(ask.shape.amounts.values()) if total.at(d) > 0), default=0.0)


def wants_near(ask: Ask) -> bool:
    """Tell whether the ask has affinity to pods, which may be those that are placed with it."""
    pods = ask.shape.need.pods
    return pods is not None and bool(pods.terms.affinity)


def shares(ask: Ask) -> bool:
    """Tell whether another ask names a claim of devices, without any yet, that this one names."""
    pods = ask.shape.need.pods
    claims = None if pods is None else pods.terms.claims
    return claims is not None and any(name in claims.demand for name in claims.names)


def _alike(asks: list[Ask]) -> bool:
    """Tell whether all asks have equal amounts, node constraints and required node, and no terms about pods."""
    shape = asks[0].shape
    if shape.need.pods is not None and not shape.need.pods.terms.demand_nothing:
        return False
    for ask in asks:
        other = ask.shape
        if other is not shape and (other.need is not shape.need or not other.amounts.same(shape.amounts)):
            return False
        if ask.required != asks[0].required:
            return False
    return True
