"""When a gang without placeholders may start in the reference, the nodes that it holds until then, and the asks that may
run in front of it."""

from __future__ import annotations

from collections.abc import Iterator

from reference import claims
from reference.atomic import (
    FOREVER,
    HOLD_NS,
    End,
    Gang,
    Hold,
    Placing,
    Trial,
    changed,
    fits_quota,
    give_up,
    holds,
    members,
    sum_of,
)
from reference.gangs import waits
from reference.model import Amounts, App, Ask, Node, Partition, Queue, fits, fits_limit, minus, plus, rest
from reference.sums import Sums, choose_group, limit_of, meets, trackers


def end_of(alloc: Ask) -> End:
    """When it ends."""
    if alloc.preempted or (alloc.released and not _handed_over(alloc)):
        return 0, alloc.arrived, alloc.id
    end = alloc.bound_ns + alloc.timeout_ns if alloc.timeout_ns else FOREVER
    return min(end, alloc.app.running_due_ns) if alloc.app.running_timer else end, alloc.arrived, alloc.id


def _handed_over(alloc: Ask) -> bool:
    """Tell whether a real ask will replace this allocation, or it is that real ask."""
    flying = alloc.app.gang.flying
    return any(real is alloc or (real.place is alloc and real.node is alloc.node) for real in flying)


def _running(partition: Partition) -> Iterator[Ask]:
    """All allocations, and the asks in flight that are on a node of their own."""
    yield from partition.allocations()
    for app in partition.apps.values():
        yield from (real for real in app.gang.flying if real.place is not None and real.node is not real.place.node)


def _plan(partition: Partition, asks: list[Ask], hold: Hold | None) -> tuple[Placing, End] | None:
    """By bisection over what ends, in its order."""
    sums = Sums(partition)
    usable = Trial(partition, sums, hold, predicates=False).open
    ending = sorted((a for a in _running(partition) if a.node in usable), key=end_of)

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
    for alloc in _running(partition):
        if alloc.node is node and _counts(hold, alloc):
            room = plus(room, alloc.amounts)
    return room


def _planned(hold: Hold, node: Node) -> Amounts:
    return sum_of([ask for ask, where in hold.placing if where is node])


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
    if app.atomic is not gang or partition.apps.get(app.id) is not app or not app.asks:
        return []
    if any(ask.claim for ask in app.asks.values()):
        return []  # it has its nodes
    asks = members(app) if gang.barred_ns <= partition.now_ns else None
    holds_some = partition.atomic.hold is not None and partition.atomic.hold.gang is gang
    fits_it = asks and fits_quota(sums, app, asks, claims_count=not holds_some)
    return asks if asks and fits_it and sums.may_run(app) else []


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
    atomic = partition.atomic
    hold = atomic.hold
    if hold is not None:
        asks = _may_hold(partition, hold.app, hold.gang)
        if not asks:
            give_up(partition, hold.gang)
            hold.gang.stale = True
            return True
        if atomic.planned:
            return False
        atomic.planned = True
        return _follow_plan(partition, hold, asks)
    if atomic.planned:
        return False
    atomic.planned = True
    for leaf in list(_leaves(partition, partition.root)):
        for app in Sums(partition).apps_in_order(leaf):
            asks = _may_hold(partition, app, app.atomic) if app.atomic is not None else []
            plan = _plan(partition, asks, None) if asks else None
            if plan is None:
                continue
            if plan[1][0] >= 0 and (nodes := _to_hold(partition, plan[0], [])):
                assert app.atomic is not None
                _hold(partition, Hold(app, app.atomic, *plan, nodes))
                return False
            if partition.predicate is None:
                changed(app)
                return True
    return False


def _follow_plan(partition: Partition, hold: Hold, asks: list[Ask]) -> bool:
    plan = _plan(partition, asks, hold)
    good = _still_good(partition, hold, asks)
    if plan is None and not good:
        give_up(partition, hold.gang)
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
    partition.atomic.hold = hold

    def over() -> None:
        if partition.atomic.hold is hold:
            partition.atomic.hold = None
            hold.gang.barred_ns = partition.now_ns + HOLD_NS

    partition.at(partition.now_ns + HOLD_NS, over)


# -- in front of the gang ----------------------------------------------------------------------------------


def in_front(partition: Partition) -> Iterator[tuple[Ask, Node]]:
    """Asks that may run on held nodes, one after the other; each is placed before the next one is looked for."""
    hold = partition.atomic.hold
    if hold is None or hold.last[0] == FOREVER:
        return
    taken: dict[Node, Amounts] = {}
    first: dict[Node, Amounts] = {}
    for leaf in _leaves(partition, partition.root):
        for app in Sums(partition).apps_in_order(leaf):
            if app.atomic is not None:
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
    if (
        ask.required
        or ask.placeholder
        or waits(ask)
        or not claims.has_headroom(sums, app, ask)
        or not _leaves_quota(sums, hold, app, ask)
    ):
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
    both = plus(sum_of([member for member, _ in hold.placing]), ask.amounts)
    queues = [q for q in app.queue.lineage() if q in hold.app.queue.lineage() and q.parent is not None]
    keys = [key for key in trackers(app) if key in trackers(hold.app)]
    limits = [(q.maximum, sums.allocated[q]) for q in queues]
    limits += [(limit_of(sums.partition, key).amounts, sums.used[key]) for key in keys]
    if not all(fits_limit(rest(limit, used), both) for limit, used in limits):
        return False
    lowest = min(member.priority for member, _ in hold.placing)
    return ask.claim is not None or claims.leave_at(sums, hold.app, lowest, both, [*queues, *keys])
