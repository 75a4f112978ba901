"""Gangs without placeholders in the reference (docs/gangs-atomic.md): what they are, trials, plans, holds, backfill.

As plain as it can be said: a trial is a table of what would be free, nodes are sorted anew for each member, and a plan is
made anew at the end of each call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from licorne.config.properties import parse_gang_scheduling
from licorne.si.messages import AddApplication
from reference.model import Amounts, App, Ask, Node, Partition, Queue, fits, fits_limit, lowest, minus, plus, rest
from reference.sums import Sums, choose_group, limit_of, meets, trackers

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
    """What a gang holds, and the plan that says so: the members' nodes once all up to `last` has ended."""

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
    """Does it ask for what cannot be (before a queue is known), or for more than its queues can hold?"""
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
    seen, partition.gangs.seen = partition.gangs.seen, {}
    gained = False
    for node in partition.nodes.values():
        on_it = {a.id: (a.placed, dict(a.amounts)) for a in partition.allocations() if a.node is node}
        open_ = node.schedulable and not node.reserved_by and not holds(partition, node)
        now = (open_, on_it, dict(node.foreign), dict(node.capacity), dict(node.occupied), node.attributes)
        partition.gangs.seen[node] = now
        before = seen.get(node)
        opened = before is None or (open_ and not before[0]) or before[2:] != now[2:]
        gained = gained or opened or any(on_it.get(key) != what for key, what in before[1].items())
    if gained:
        for app in partition.apps.values():
            if app.gang is not None:
                app.gang.stale = True


def changed(app: App) -> None:
    """An ask, or an allocation from outside, has come, changed or gone."""
    if app.gang is not None:
        app.gang.stale = True


def begin(partition: Partition) -> None:
    """A new call: predicates may say something else."""
    partition.gangs.planned = False
    for app in partition.apps.values():
        if app.gang is not None and app.gang.refused:
            app.gang.refused, app.gang.stale = False, True


def holds(partition: Partition, node: Node) -> bool:
    """Is the node held?"""
    return partition.gangs.hold is not None and node in partition.gangs.hold.nodes


# -- all or nothing ----------------------------------------------------------------------------------------


def members(app: App) -> list[Ask] | None:
    """Who is to be placed for it to start."""
    assert app.gang is not None
    found: list[Ask] = []
    pending = Sums.asks_in_order(app)
    for name, wanted in app.gang.needs.items():
        need = wanted - sum(alloc.task_group == name for alloc in app.allocations.values())
        asks = [ask for ask in pending if ask.task_group == name for _ in range(ask.repeats)]
        if len(asks) < need:
            return None
        found += asks[: max(0, need)]
    return sorted(found, key=lambda ask: (-ask.priority, ask.created_ns, ask.arrived))


def visit(turn: Pass, app: App) -> Placing | None:
    """Its turn: where its members are to go (none at all for a gang that runs already); None: it waits."""
    gang = app.gang
    assert gang is not None
    asks = members(app)
    if asks is not None and not asks:
        return []
    total = _sum(asks or [])
    if asks is None or not _fits_quota(turn.sums, app, total):
        gang.stale = True
        return None
    if not gang.stale:
        return None
    gang.stale = gang.refused = False
    for ask in asks:
        ask.attempted = True
    if not fits_limit(rest(turn.sums.cluster, turn.sums.allocated[turn.partition.root]), total):
        return None
    hold = turn.partition.gangs.hold
    mine = hold if hold is not None and hold.gang is gang else None
    trial = Trial(turn.partition, turn.sums, mine, turn.partition.predicate is not None)
    placing = trial.place(asks)
    if placing is None and mine is not None:
        placing = trial.place_as(asks, mine.placing)
    gang.refused = trial.refused
    return placing


def give_up(partition: Partition, gang: Gang | None) -> None:
    """It holds nothing any longer."""
    if partition.gangs.hold is not None and partition.gangs.hold.gang is gang:
        partition.gangs.hold = None


def _sum(asks: list[Ask]) -> Amounts:
    total: Amounts = {}
    for ask in asks:
        total = plus(total, ask.amounts)
    return total


def _fits_quota(sums: Sums, app: App, total: Amounts) -> bool:
    """Queues but for root, whose max is what the nodes have; user and group."""
    room = sums.user_headroom(app)
    for level in app.queue.lineage():
        if level.parent is not None:
            room = lowest(room, rest(level.maximum, sums.allocated[level]))
    return fits_limit(room, total)


class Trial:
    """What would be free if some asks were placed, and some allocations had ended."""

    def __init__(self, partition: Partition, sums: Sums, hold: Hold | None, predicates: bool) -> None:
        self.partition = partition
        self.sums = sums
        self.predicates = predicates
        self.refused = False
        self.free = {node: sums.free(node) for node in partition.nodes.values()}
        own = hold.nodes if hold is not None else []
        self.open = {
            node
            for node in partition.nodes.values()
            if node.schedulable and not node.reserved_by and (node in own or not holds(partition, node))
        }

    def place(self, asks: list[Ask]) -> Placing | None:
        """In request order; the largest first; the largest first, each where it leaves least."""
        found = self._in_order(asks, best=False)
        if found is not None or all(_alike(ask, asks[0]) for ask in asks):
            return found
        largest = sorted(asks, key=self._size, reverse=True)
        return self._in_order(largest, best=False) or self._in_order(largest, best=True)

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
            node = min(nodes, key=lambda n: _left(n, free[n], ask)) if best and not ask.required else nodes[0]
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


def _alike(one: Ask, other: Ask) -> bool:
    return (one.amounts, one.constraints, one.required) == (other.amounts, other.constraints, other.required)


def _left(node: Node, free: Amounts, ask: Ask) -> float:
    return max((free.get(t, 0) - ask.amounts.get(t, 0)) / size for t, size in node.capacity.items() if size > 0)


# -- plans and holds ---------------------------------------------------------------------------------------


def end_of(alloc: Ask) -> End:
    """When it ends."""
    if alloc.released or alloc.preempted:
        return 0, alloc.arrived, alloc.id
    end = alloc.bound_ns + alloc.timeout_ns if alloc.timeout_ns else FOREVER
    return min(end, alloc.app.running_due_ns) if alloc.app.running_timer else end, alloc.arrived, alloc.id


def _plan(partition: Partition, asks: list[Ask], hold: Hold | None) -> tuple[Placing, End] | None:
    """By bisection over what ends, in its order."""
    sums = Sums(partition)
    usable = Trial(partition, sums, hold, predicates=False).open
    ending = sorted((a for a in partition.allocations() if a.node in usable), key=end_of)

    def after(count: int) -> Placing | None:
        trial = Trial(partition, sums, hold, predicates=False)
        for alloc in ending[:count]:
            assert alloc.node is not None
            trial.free[alloc.node] = plus(trial.free[alloc.node], alloc.amounts)
        return trial.place(asks)

    low, high, found = 0, len(ending), after(len(ending))
    if found is None:
        return None
    while low < high:
        middle = (low + high) // 2
        placing = after(middle)
        if placing is None:
            low = middle + 1
        else:
            found, high = placing, middle
    return found, end_of(ending[high - 1]) if high else (-1, 0, "")


def _counts(hold: Hold, alloc: Ask) -> bool:
    end = end_of(alloc)
    return end <= hold.last or (hold.last[0] != FOREVER and end[0] <= hold.last[0])


def _room(partition: Partition, hold: Hold, node: Node) -> Amounts:
    room = Sums(partition).free(node)
    for alloc in partition.allocations():
        if alloc.node is node and _counts(hold, alloc):
            room = plus(room, alloc.amounts)
    return room


def _planned(hold: Hold, node: Node) -> Amounts:
    return _sum([ask for ask, where in hold.placing if where is node])


def _still_good(partition: Partition, hold: Hold, asks: list[Ask]) -> bool:
    if sorted(map(id, asks)) != sorted(id(ask) for ask, _ in hold.placing):
        return False
    return all(
        partition.nodes.get(node.id) is node
        and not node.reserved_by
        and (node.schedulable or ask.required)
        and meets(ask, node)
        and fits(_room(partition, hold, node), _planned(hold, node))
        for ask, node in hold.placing
    )


def _may_hold(partition: Partition, app: App, gang: Gang) -> list[Ask]:
    sums = Sums(partition)
    if app.gang is not gang or partition.apps.get(app.id) is not app or not app.asks:
        return []
    asks = members(app) if gang.barred_ns <= partition.now_ns else None
    return asks if asks and _fits_quota(sums, app, _sum(asks)) and sums.may_run(app) else []


def _to_hold(partition: Partition, placing: Placing, held: list[Node]) -> list[Node]:
    nodes = [
        node
        for ask, node in placing
        if not ask.required
        or node in held
        or (node.schedulable and not node.reserved_by and not holds(partition, node))
    ]
    return list(dict.fromkeys(nodes))


def _leaves(partition: Partition, queue: Queue) -> Iterator[Queue]:
    if queue.leaf:
        yield queue
        return
    for child in Sums(partition).children_in_order(queue):
        yield from _leaves(partition, child)


def follow(partition: Partition) -> bool:
    """Holds follow what has changed; True if something may be placed now."""
    gangs = partition.gangs
    hold = gangs.hold
    if hold is not None:
        asks = _may_hold(partition, hold.app, hold.gang)
        if not asks:
            gangs.hold = None
            hold.gang.stale = True
            return True
        if gangs.planned:
            return False
        gangs.planned = True
        return _follow_plan(partition, hold, asks)
    if gangs.planned:
        return False
    gangs.planned = True
    for leaf in list(_leaves(partition, partition.root)):
        for app in Sums(partition).apps_in_order(leaf):
            asks = _may_hold(partition, app, app.gang) if app.gang is not None else []
            plan = _plan(partition, asks, None) if asks else None
            if plan is None:
                continue
            if plan[1][0] >= 0 and (nodes := _to_hold(partition, plan[0], [])):
                assert app.gang is not None
                _hold(partition, Hold(app, app.gang, *plan, nodes))
                return False
            if partition.predicate is None:
                changed(app)
                return True
    return False


def _follow_plan(partition: Partition, hold: Hold, asks: list[Ask]) -> bool:
    plan = _plan(partition, asks, hold)
    good = _still_good(partition, hold, asks)
    if plan is None and not good:
        partition.gangs.hold = None
        return True
    if plan is not None and plan[1][0] < 0 and partition.predicate is None:
        changed(hold.app)
        return True
    if plan is not None and (not good or plan[1][0] < hold.last[0]):
        old = hold.nodes
        hold.placing, hold.last = plan
        hold.nodes = _to_hold(partition, plan[0], old)
        gone = [node for node in old if node not in hold.nodes and node.id in partition.nodes]
        return any(node.schedulable and not node.reserved_by for node in gone)
    return False


def _hold(partition: Partition, hold: Hold) -> None:
    partition.gangs.hold = hold

    def over() -> None:
        if partition.gangs.hold is hold:
            partition.gangs.hold = None
            hold.gang.barred_ns = partition.now_ns + HOLD_NS

    partition.at(partition.now_ns + HOLD_NS, over)


# -- in front of the gang ----------------------------------------------------------------------------------


def in_front(partition: Partition) -> Iterator[tuple[Ask, Node]]:
    """Asks that may run on held nodes, one after the other; each is placed before the next one is looked for."""
    hold = partition.gangs.hold
    if hold is None or hold.last[0] == FOREVER:
        return
    taken: dict[Node, Amounts] = {}
    first: dict[Node, Amounts] = {}
    for leaf in _leaves(partition, partition.root):
        for app in Sums(partition).apps_in_order(leaf):
            if app.gang is not None:
                continue
            choose_group(partition, app)
            if app.backoff_until_ns > partition.now_ns or not Sums(partition).may_run(app):
                continue
            for ask in Sums.asks_in_order(app):
                while ask.key in app.asks and (node := _node_for(partition, hold, app, ask, taken, first)) is not None:
                    yield ask, node


def _node_for(
    partition: Partition, hold: Hold, app: App, ask: Ask, taken: dict[Node, Amounts], first: dict[Node, Amounts]
) -> Node | None:
    sums = Sums(partition)
    if ask.required or not sums.has_headroom(app, ask) or not _leaves_quota(sums, hold, app, ask):
        return None
    end = partition.now_ns + ask.timeout_ns if ask.timeout_ns else FOREVER
    if app.running_timer:
        end = min(end, app.running_due_ns)
    elif app.running_timeout_ns:
        end = min(end, partition.now_ns + app.running_timeout_ns)
    for node in sums.nodes_in_order:
        if node not in hold.nodes or not node.schedulable or node.reserved_by:
            continue
        if not fits(sums.free(node), ask.amounts) or not meets(ask, node):
            continue
        if node not in first:  # what is left beside the gang, before anybody runs in front of it
            first[node] = minus(_room(partition, hold, node), _planned(hold, node))
        beside = fits(minus(first[node], taken.get(node, {})), ask.amounts)
        if not beside and end > hold.last[0]:
            continue
        if partition.predicate is None or partition.predicate(ask.key, node.id, True):
            if end > hold.last[0]:
                taken[node] = plus(taken.get(node, {}), ask.amounts)
            return node
    return None


def _leaves_quota(sums: Sums, hold: Hold, app: App, ask: Ask) -> bool:
    both = plus(_sum([member for member, _ in hold.placing]), ask.amounts)
    queues = [q for q in app.queue.lineage() if q in hold.app.queue.lineage() and q.parent is not None]
    keys = [key for key in trackers(app) if key in trackers(hold.app)]
    limits = [(q.maximum, sums.allocated[q]) for q in queues]
    limits += [(limit_of(sums.partition, key).amounts, sums.used[key]) for key in keys]
    return all(fits_limit(rest(limit, used), both) for limit, used in limits)
