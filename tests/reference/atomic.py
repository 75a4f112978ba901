"""Gangs without placeholders in the reference (docs/understand/gangs-atomic.md): what they are, and how they start.

As plain as possible: a trial is a table of the amounts that would be free, nodes are sorted anew for each member. Plans and
held nodes are in `reference.gangplans`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from licorne.config.properties import parse_gang_scheduling
from licorne.si.messages import AddApplication
from reference import claims
from reference.model import Amounts, App, Ask, Node, Partition, Queue, fits, fits_limit, lowest, minus, plus, rest
from reference.sums import Sums, meets

if TYPE_CHECKING:
    from reference.scheduler import Pass

GROUPS_TAG = "yunikorn.apache.org/task-groups"
HOLD_NS = 7200 * 10**9
FOREVER = 1 << 63
Placing = list[tuple[Ask, Node]]
End = tuple[int, int, str]


@dataclass(eq=False)
class Gang:
    """`stale`: worth a trial. `refused`: a predicate spoke against a node."""

    needs: dict[str, int]
    stale: bool = True
    refused: bool = False
    barred_ns: int = 0


@dataclass(eq=False)
class Hold:
    """The nodes that a gang holds, with their plan: the members' nodes once all allocations up to `last` have ended."""

    app: App
    gang: Gang
    placing: Placing
    last: End
    nodes: list[Node]


@dataclass(eq=False)
class Gangs:
    """Of one partition. `seen`: of each node what it was like at the last look."""

    hold: Hold | None = None
    seen: dict[Node, Any] = field(default_factory=dict)
    planned: bool = False


# -- who is one --------------------------------------------------------------------------------------------


def refused(message: AddApplication, queue: Queue | None) -> bool:
    """Tell whether a gang is impossible (before a queue is known), or larger than its queues can hold."""
    text, how = message.tags.get(GROUPS_TAG), parse_gang_scheduling(message.tags.get("gang.scheduling", ""))
    if queue is None:
        return bool(how) and (text is None or any(message.placeholder_ask.values()) or not _readable(text))
    if not _wanted(message, queue):
        return False
    if text is None or not _readable(text):
        return True
    total: Amounts = {}
    for group in json.loads(text):
        amounts = {("vcore" if k == "cpu" else k): int(v.removesuffix("m")) for k, v in group["minResource"].items()}
        total = plus(total, amounts, group["minMember"])
    return any(not fits_limit(level.maximum, total) for level in queue.lineage() if level.parent is not None)


def gang_of(message: AddApplication, queue: Queue) -> Gang | None:
    """The gang that an application is."""
    if not _wanted(message, queue):
        return None
    return Gang({group["name"]: group["minMember"] for group in json.loads(message.tags[GROUPS_TAG])})


def _wanted(message: AddApplication, queue: Queue) -> bool:
    if GROUPS_TAG not in message.tags or any(message.placeholder_ask.values()):
        return False
    own = parse_gang_scheduling(message.tags.get("gang.scheduling", ""))
    return queue.settings.atomic_gangs if own is None else own


def _readable(text: str) -> bool:
    document = json.loads(text)
    return bool(document) and all(group["minMember"] > 0 for group in document)


# -- what has changed --------------------------------------------------------------------------------------


def watch(partition: Partition) -> None:
    """Where a node is new, was opened or changed, or something on it ended or changed, gangs are worth a trial again."""
    seen, partition.atomic.seen = partition.atomic.seen, {}
    gained = False
    for node in partition.nodes.values():
        on_it = {a.id: (a.placed, dict(a.amounts)) for a in partition.allocations() if a.node is node}
        open_ = node.schedulable and not node.reserved_by and not holds(partition, node)
        now = (open_, on_it, dict(node.foreign), dict(node.capacity), dict(node.occupied), node.attributes)
        partition.atomic.seen[node] = now
        before = seen.get(node)
        opened = before is None or (open_ and not before[0]) or before[2:] != now[2:]
        gained = gained or opened or any(on_it.get(key) != what for key, what in before[1].items())
    if gained:
        for app in partition.apps.values():
            if app.atomic is not None:
                app.atomic.stale = True


def changed(app: App) -> None:
    """An ask, or an allocation from outside, has come, changed or gone."""
    if app.atomic is not None:
        app.atomic.stale = True


def begin(partition: Partition) -> None:
    """Begin a new call, in which predicates may answer otherwise."""
    partition.atomic.planned = False
    for app in partition.apps.values():
        if app.atomic is not None and app.atomic.refused:
            app.atomic.refused, app.atomic.stale = False, True


def holds(partition: Partition, node: Node) -> bool:
    """Tell whether the node is held."""
    return partition.atomic.hold is not None and node in partition.atomic.hold.nodes


# -- all or nothing ----------------------------------------------------------------------------------------


def members(app: App) -> list[Ask] | None:
    """The asks that have to be placed for the gang to start."""
    assert app.atomic is not None
    found: list[Ask] = []
    pending = Sums.asks_in_order(app)
    for name, wanted in app.atomic.needs.items():
        need = wanted - sum(alloc.task_group == name for alloc in app.allocations.values())
        asks = [ask for ask in pending if ask.task_group == name for _ in range(ask.repeats)]
        if len(asks) < need:
            return None
        found += asks[: max(0, need)]
    return sorted(found, key=lambda ask: (-ask.priority, ask.created_ns, ask.arrived))


def visit(turn: Pass, app: App) -> Placing | None:
    """Visit a gang in its turn: the nodes of its members (none at all for a gang that runs already); None if it waits."""
    gang = app.atomic
    assert gang is not None
    asks = members(app)
    if asks is not None and not asks:
        return []
    total = sum_of(asks or [])
    if asks is None or not fits_quota(turn.sums, app, asks):
        gang.stale = True
        return None
    if not gang.stale:
        return None
    gang.stale = gang.refused = False
    for ask in asks:
        ask.attempted = True
    if not fits_limit(rest(turn.sums.bound, turn.sums.allocated[turn.partition.root]), total):
        return None
    hold = turn.partition.atomic.hold
    mine = hold if hold is not None and hold.gang is gang else None
    trial = Trial(turn.partition, turn.sums, mine, turn.partition.predicate is not None)
    placing = trial.place(asks)
    if placing is None and mine is not None:
        placing = trial.place_as(asks, mine.placing)
    gang.refused = trial.refused
    return placing


def give_up(partition: Partition, gang: Gang | None) -> None:
    """End the hold of a gang: another gang may hold nodes in this call."""
    partition.atomic.planned = False
    if partition.atomic.hold is not None and partition.atomic.hold.gang is gang:
        partition.atomic.hold = None


def sum_of(asks: list[Ask]) -> Amounts:
    """The sum of the asks' amounts."""
    total: Amounts = {}
    for ask in asks:
        total = plus(total, ask.amounts)
    return total


def fits_quota(sums: Sums, app: App, asks: list[Ask], *, claims_count: bool = True) -> bool:
    """Queues but for root, whose max is what the nodes have; user and group; both also beside what others claim.

    A gang with claims of its own was checked before.
    """
    total = sum_of(asks)
    room = sums.user_headroom(app)
    for level in app.queue.lineage():
        if level.parent is not None:
            room = lowest(room, rest(level.maximum, sums.allocated[level]))
    if not fits_limit(room, total):
        return False
    if not claims_count or any(ask.claim for ask in asks):
        return True
    priority = min(ask.priority for ask in asks)
    return claims.leave(sums, app, priority, total, cluster=False)


def on_claims(partition: Partition, sums: Sums, app: App) -> Placing | None:
    """The nodes that the members have claimed, if all of them take their members now."""
    asks = members(app) or []
    placing = [(ask, ask.reservation.node) for ask in asks if ask.reservation is not None]
    if len(placing) < len(asks) or not fits_quota(sums, app, asks):
        return None
    free = {node: sums.free(node) for node in partition.nodes.values()}
    for ask, node in placing:
        if not node.schedulable or not fits(free[node], ask.amounts) or not meets(ask, node):
            return None
        if partition.predicate is not None and not partition.predicate(ask.key, node.id, True):
            return None
        free[node] = minus(free[node], ask.amounts)
    return placing


class Trial:
    """The amounts that would be free if some asks were placed, and some allocations had ended."""

    def __init__(self, partition: Partition, sums: Sums, hold: Hold | None, predicates: bool) -> None:
        self.partition = partition
        self.sums = sums
        self.predicates = predicates
        self.refused = False
        self.wanted: Amounts = {}
        self.free = {node: sums.free(node) for node in partition.nodes.values()}
        own = hold.nodes if hold is not None else []
        self.open = {
            node
            for node in partition.nodes.values()
            if node.schedulable and not node.reserved_by and (node in own or not holds(partition, node))
        }

    def place(self, asks: list[Ask]) -> Placing | None:
        """In request order; the largest first; the largest first, each where it leaves least; a search of few members."""
        found = self._in_order(asks, best=False)
        if found is not None or all(_alike(ask, asks[0]) for ask in asks):
            return found
        largest = sorted(asks, key=self._size, reverse=True)
        self.wanted = sum_of(asks)
        found = self._in_order(largest, best=False) or self._in_order(largest, best=True)
        return found or (self._searched(largest) if len(asks) <= 32 else None)

    def _searched(self, largest: list[Ask]) -> Placing | None:
        """Step back where a member finds no node; members that always find one come last."""
        nodes = {
            ask: list(islice((n for n in self._sorted(self.free) if self._takes(ask, n, self.free)), len(largest)))
            for ask in largest
        }
        if not all(nodes.values()):
            return None
        first = largest.copy()
        last: list[Ask] = []
        while easy := [ask for ask in first if len(nodes[ask]) >= len(first)][:1]:
            first.remove(easy[0])
            last[:0] = easy
        hopeless: set[tuple[tuple[int, ...], ...]] = set()

        def place(asks: list[Ask], free: dict[Node, Amounts]) -> Placing | None:
            if not asks:
                return []
            state = ((len(asks),), *(tuple(amounts[t] for t in sorted(amounts)) for amounts in free.values()))
            if state in hopeless:
                return None
            ask = asks[0]
            for node in sorted(nodes[ask], key=lambda node: self._left(free[node], ask)):
                if fits(free[node], ask.amounts):
                    rest = place(asks[1:], free | {node: minus(free[node], ask.amounts)})
                    if rest is not None:
                        return [(ask, node), *rest]
            hopeless.add(state)
            return None

        return place(first + last, self.free)

    def place_as(self, asks: list[Ask], plan: Placing) -> Placing | None:
        """As planned, if it still can be."""
        if sorted(id(ask) for ask in asks) != sorted(id(ask) for ask, _ in plan):
            return None
        free = self.free.copy()
        for ask, node in plan:
            if node not in free or not self._takes(ask, node, free):
                return None
            free[node] = minus(free[node], ask.amounts)
        return plan

    def _in_order(self, asks: list[Ask], *, best: bool) -> Placing | None:
        free = self.free.copy()
        placed: Placing = []
        for ask in asks:
            nodes = [node for node in self._sorted(free) if self._takes(ask, node, free, first=not best)]
            if not nodes:
                return None
            node = min(nodes, key=lambda n: self._left(free[n], ask)) if best and not ask.required else nodes[0]
            free[node] = minus(free[node], ask.amounts)
            placed.append((ask, node))
        return placed

    def _sorted(self, free: dict[Node, Amounts]) -> list[Node]:
        return sorted(free, key=lambda node: (self.sums.score(node, free[node]), node.id.encode()))

    def _takes(self, ask: Ask, node: Node, free: dict[Node, Amounts], *, first: bool = False) -> bool:
        if ask.required:
            usable = node.id == ask.required and not node.reserved_by and (node in self.open or not node.schedulable)
        else:
            usable = node in self.open
        if not usable or not fits(free[node], ask.amounts) or not meets(ask, node):
            return False
        if not self.predicates or self.partition.predicate is None or self.partition.predicate(ask.key, node.id, True):
            return True
        self.refused = True
        return False

    def _size(self, ask: Ask) -> float:
        cluster = self.sums.cluster
        return max((a / cluster[t] for t, a in ask.amounts.items() if cluster.get(t, 0) > 0), default=0.0)

    def _left(self, free: Amounts, ask: Ask) -> float:
        """Of the types that the gang wants, the part of the cluster that is left, times the part that the gang wants."""
        cluster = self.sums.cluster
        return max(
            (
                want * (free.get(t, 0) - ask.amounts.get(t, 0)) / cluster[t] ** 2
                for t, want in self.wanted.items()
                if want > 0 and cluster.get(t, 0) > 0
            ),
            default=0.0,
        )


def _alike(one: Ask, other: Ask) -> bool:
    return (one.amounts, one.constraints, one.required) == (other.amounts, other.constraints, other.required)
