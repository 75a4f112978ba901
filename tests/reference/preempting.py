"""Preemption as in the specification, with both kinds tried by brute force.

Source: docs/spec/preemption.md, sections 2 and 3.

Sums are taken anew for every question. All victim sets that can be reached are looked at, by number of bad members
and of members, so that the best is among the first feasible ones. "Law" means the laws of `docs/understand/preemption.md`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from licorne.si.messages import Termination
from reference import atomic, claims
from reference.gangs import waits
from reference.life import notify_released, unreserve
from reference.model import (
    SECOND_NS,
    Amounts,
    App,
    Ask,
    Node,
    Partition,
    Queue,
    Reservation,
    fits,
    fits_limit,
    lowest,
    minus,
    plus,
    rest,
)
from reference.sums import Sums, choose_group, meets

RETRY_NS = 15 * SECOND_NS
PAUSE_NS = SECOND_NS // 10
OLD_NS = (120 * 60 + 2) * SECOND_NS
OVERDUE_NS = 630 * SECOND_NS
ATTEMPTS = 10
Rank = tuple[bool, int, int, int, int, list[tuple[int, int]]]
Kept = Callable[[tuple[Ask, ...]], bool]
Reserve = Callable[[Ask, Node], None]


class Check(NamedTuple):
    """A search in vain: when, and what there was."""

    at_ns: int
    seen: object


# -- what the scenarios draw -----------------------------------------------------------------------------


def properties(rng: random.Random) -> dict[str, str]:
    """A queue's properties that matter here."""
    found = {}
    if rng.random() < 0.25:
        found["preemption.policy"] = rng.choice(["fence", "disabled", "default"])
    if rng.random() < 0.7:
        found["preemption.delay"] = rng.choice(["1s", "2s", "10s"])
    return found


def may_preempt(key: str) -> bool:
    """Whether the ask of this key may evict others."""
    return random.Random(f"preempts {key}").random() < 0.7


# -- sums ------------------------------------------------------------------------------------------------


def total(asks: list[Ask]) -> Amounts:
    found: Amounts = {}
    for ask in asks:
        found = plus(found, ask.amounts)
    return found


def triggered(partition: Partition) -> list[Ask]:
    """The asks that have preempted and have a reservation."""
    return [a for app in partition.apps.values() for a in app.asks.values() if a.triggered and a.reservation]


def _place(ask: Ask) -> Node | None:
    return ask.reservation.node if ask.reservation is not None else None


def planned(partition: Partition, queue: Queue, outranked: Sequence[Ask] = ()) -> Amounts:
    """allocated − preempting + claims, but for those that are outranked."""
    allocs = [a for a in partition.allocations() if queue in a.app.queue.lineage() and not a.preempted]
    return plus(total(allocs), total(_claiming(partition, queue, outranked)))


def _claiming(partition: Partition, queue: Queue, outranked: Sequence[Ask]) -> list[Ask]:
    return [a for a in claims.of(partition) if queue in a.app.queue.lineage() and a not in outranked]


def room_on(sums: Sums, node: Node, ask: Ask, outranked: Sequence[Ask] = ()) -> Amounts:
    """The free amount of a node, with that of allocations being evicted, without what others have claimed."""
    going = [a for a in sums.partition.allocations() if a.node is node and a.preempted]
    others = [a for a in triggered(sums.partition) if a is not ask and _place(a) is node and a not in outranked]
    return minus(plus(sums.free(node), total(going)), total(others))


def refuses(alloc: Ask) -> bool:
    """Tell whether the allocation is to be evicted last."""
    return alloc.originator or not alloc.allow_self


def breaks(partition: Partition, victims: Iterable[Ask]) -> bool:
    """Tell whether a set takes more of a disruption budget than is left."""
    ids = {a.id for a in victims}
    return any(len(ids & budget.members) > budget.left() for budget in partition.budgets.values())


def goes_last(partition: Partition, alloc: Ask) -> bool:
    """Tell whether it refuses, or counts for a budget that has nothing left."""
    return refuses(alloc) or breaks(partition, [alloc])


def rank(
    partition: Partition, victims: tuple[Ask, ...], priority: Callable[[Ask], int], *, within: bool = False
) -> Rank:
    """The smallest is the best."""
    bad = sum(goes_last(partition, a) for a in victims)
    newest = sorted((-a.created_ns, -a.arrived) for a in victims)
    highest = max(map(priority, victims)) if within else 0
    return breaks(partition, victims), bad, highest, len(victims), sum(map(priority, victims)), newest


def best_set(
    partition: Partition,
    pool: list[Ask],
    serves: Callable[[tuple[Ask, ...]], bool],
    reaches: Callable[[list[Ask]], bool],
    rank_: Callable[[tuple[Ask, ...]], Rank],
    *,
    kept: Kept | None = None,
) -> tuple[Ask, ...] | None:
    """The best of all sets that serve: one that breaks a disruption budget only if no other does."""
    found = _best(partition, pool, lambda v: serves(v) and not breaks(partition, v), reaches, rank_, kept)
    if found is None and breaks(partition, pool):
        found = _best(partition, pool, serves, reaches, rank_, kept)
    return found


def _best(
    partition: Partition,
    pool: list[Ask],
    serves: Callable[[tuple[Ask, ...]], bool],
    reaches: Callable[[list[Ask]], bool],
    rank_: Callable[[tuple[Ask, ...]], Rank],
    kept: Kept | None,
) -> tuple[Ask, ...] | None:
    """The best of all sets that serve; one with members that can be left out is not among them.

    With `kept`, which says of a set whether it may be part of another, the highest priority counts before the number.
    """
    all_reluctant = [a for a in pool if goes_last(partition, a)]
    all_willing = [a for a in pool if a not in all_reluctant]
    if not reaches(pool):
        return None
    for bads in range(len(all_reluctant) + 1):
        for highest in sorted({a.priority for a in pool}) if kept else [None]:
            bad, good = (
                [a for a in of if highest is None or a.priority <= highest] for of in (all_reluctant, all_willing)
            )
            if not reaches(good + bad if bads else good):
                continue
            for count in range(max(1, bads), len(good) + bads + 1):
                sets = [
                    one + other
                    for one in _sets((), bad, bads, kept)
                    for other in _sets(one, good, count - bads, kept)
                    if serves(one + other)
                ]
                if sets:
                    return min(sets, key=rank_)
    return None


def _sets(first: tuple[Ask, ...], pool: list[Ask], count: int, kept: Kept | None) -> Iterator[tuple[Ask, ...]]:
    """All sets of so many of the pool that may go together with the first ones."""
    if kept is None or count == 0:
        yield from combinations(pool, count)
        return
    for place, one in enumerate(pool):
        if kept((*first, one)):
            for others in _sets((*first, one), pool[place + 1 :], count - 1, kept):
                yield (one, *others)


# -- required nodes (section 3) --------------------------------------------------------------------------


def make_room(partition: Partition, ask: Ask, node: Node) -> None:
    """The best set on the node that the ask requires; free room and allocations being evicted count first (difference 14)."""
    if not meets(ask, node) or _hangs(partition, node):
        return
    room = room_on(Sums(partition), node, ask)

    def serves(victims: tuple[Ask, ...] | list[Ask]) -> bool:
        return fits(plus(room, total(list(victims))), ask.amounts)

    if serves(()):
        return
    pool = [a for a in partition.allocations() if a.node is node and may_go(a, ask) and a.priority <= ask.priority]
    found = best_set(partition, pool, serves, serves, lambda victims: rank(partition, victims, lambda a: a.priority))
    if found is not None:
        evict(partition, found)
        claims.made(partition, ask)
        claims.review(partition, ask)


def _hangs(partition: Partition, node: Node) -> bool:
    """Whether a victim on the node does not end, so that nobody else is evicted there."""
    return any(alloc.overdue and alloc.node is node for alloc in partition.allocations())


def may_go(alloc: Ask, ask: Ask) -> bool:
    """Whether it may be a victim of any kind, and has something of what is wanted."""
    return not (alloc.required or alloc.preempted or alloc.released) and bool(set(alloc.amounts) & set(ask.amounts))


def evict(partition: Partition, victims: tuple[Ask, ...]) -> None:
    partition.number("evicted")
    for victim in sorted(victims, key=lambda a: (_class(a), a.priority, -a.created_ns, -a.arrived)):
        mark(partition, victim)
        notify_released(partition, victim, Termination.PREEMPTED_BY_SCHEDULER)


def mark(partition: Partition, victim: Ask) -> None:
    """Count an allocation as evicted."""
    victim.preempted = True
    partition.at(partition.now_ns + OVERDUE_NS, lambda: _stop_expecting(partition, victim))
    for budget in partition.budgets.values():
        budget.going |= {victim.id} & budget.members


def _stop_expecting(partition: Partition, victim: Ask) -> None:
    """Forget that it was evicted, if it still runs; nobody evicts it again (difference 154)."""
    if victim.preempted and victim in partition.allocations():
        victim.preempted, victim.released, victim.overdue = False, True, True
        claims.review(partition)


def evicted(partition: Partition) -> int:
    """The number of asks for which others were evicted, or that had no need of that, so far."""
    return partition.numbers.get("evicted", 0)


def _class(alloc: Ask) -> int:
    return 3 if alloc.originator else 1 if alloc.allow_self else 2


# -- below the guarantee (section 2) ---------------------------------------------------------------------


def seen(partition: Partition) -> object:
    """The state that a failed search has seen: the search is repeated only when this state has changed."""
    return (
        tuple(partition.numbers.get(name, 0) for name in ("placed", "reservation", "node", "configuration")),
        frozenset(a.id for a in partition.allocations()),
        frozenset(
            (a.key, a.reservation.node.id) for x in partition.apps.values() for a in x.asks.values() if a.reservation
        ),
        frozenset(partition.nodes),
        frozenset(node.id for node in partition.nodes.values() if atomic.holds(partition, node)),
    )


def at_rest(partition: Partition, leaves: Iterator[Queue], reserve: Reserve) -> None:
    """Act when nothing more can be placed."""
    if not partition.config.preemption_enabled:
        return
    for leaf in leaves:
        able = leaf.settings.preempts_within or any(q.guaranteed for q in leaf.lineage())
        if able and partition.pauses.get(leaf, 0) <= partition.now_ns:
            _visit(partition, leaf, reserve)


def _visit(partition: Partition, leaf: Queue, reserve: Reserve) -> None:
    attempts = ATTEMPTS
    answers: dict[object, bool] = {}
    now = partition.now_ns
    for app in Sums(partition).apps_in_order(leaf):
        for asks in _together(partition, app):
            ask = asks[0]
            if not _is_due(partition, asks) or not _may_be_tried(partition, app, asks):
                continue
            key = app if len(asks) > 1 else (tuple(sorted(ask.amounts.items())), ask.constraints, ask.priority)
            if key not in answers:
                if not attempts:
                    partition.pauses[leaf] = now + PAUSE_NS
                    continue
                plans, searched = _plans(partition, asks)
                within = not plans and leaf.settings.preempts_within
                if within:
                    plans, entitled = _plans(partition, asks, within=True)
                    searched = searched or entitled
                if len(asks) == 1 and plans and not plans[0][2] and _has_room(partition, *plans[0][:2]):
                    plans = []
                for plan in plans:
                    _keep(partition, *plan, reserve)
                    if within:
                        claims.review(partition, plan[0])
                if plans:
                    if app.atomic is not None:
                        atomic.give_up(partition, app.atomic)
                    for each in asks:
                        partition.checks.pop(each, None)
                    continue
                attempts -= searched
                answers[key] = False
            partition.checks |= dict.fromkeys(asks, Check(now, seen(partition)))


def _together(partition: Partition, app: App) -> Iterator[list[Ask]]:
    """The asks that may preempt; members of a gang that wait are one list."""
    pending = Sums.asks_in_order(app)
    if app.atomic is not None:
        members = atomic.members(app) or []
        once = len(set(map(id, members))) == len(members)
        if members and once and all(map(_may_ever, members)) and atomic.fits_quota(Sums(partition), app, members):
            yield members
        return
    able = [ask for ask in pending if _may_ever(ask) and not waits(ask)]
    yield from ([ask] for ask in able if not ask.placeholder)
    if places := [ask for ask in able if ask.placeholder]:
        yield places


def _has_room(partition: Partition, ask: Ask, node: Node) -> bool:
    """Whether the node takes it now, so that something else keeps it off."""
    closed = node.reserved_by or atomic.holds(partition, node)
    return node.schedulable and not closed and fits(Sums(partition).free(node), ask.amounts)


def _may_ever(ask: Ask) -> bool:
    return ask.allow_other and not ask.triggered and not ask.required


def _plans(
    partition: Partition, asks: list[Ask], *, within: bool = False
) -> tuple[list[tuple[Ask, Node, tuple[Ask, ...]]], bool]:
    """A node and victims for each of the asks, or none at all; and whether all that were tried are entitled."""
    plans: list[tuple[Ask, Node, tuple[Ask, ...]]] = []
    before = [(ask, ask.reservation) for ask in asks]
    going = {name: set(budget.going) for name, budget in partition.budgets.items()}
    leaf = asks[0].app.queue
    found = None
    entitled = _outranks(partition, leaf, asks) if within else _entitled(partition, leaf, total(asks))
    for ask in asks if entitled else []:
        entitled = within or _entitled(partition, leaf, ask.amounts)
        found = NodeSearch(partition, ask, within=within).find() if entitled else None
        if found is None:
            break
        node, victims = found
        plans.append((ask, node, victims))
        for victim in victims:
            victim.preempted = True
            for budget in partition.budgets.values():
                budget.going |= {victim.id} & budget.members
        ask.triggered, ask.reservation, ask.claim = True, Reservation(node, 0), claims.Claim(0, 0, {})
        node.reserved_by.append(ask)
    for ask, node, victims in reversed(plans):
        for victim in victims:
            victim.preempted = False
        ask.triggered, ask.claim = False, None
        del node.reserved_by[-1]
    for ask, reservation in before:
        ask.reservation = reservation
    for name, ids in going.items():
        partition.budgets[name].going = ids
    return (plans if found is not None else []), entitled


def _is_due(partition: Partition, asks: list[Ask]) -> bool:
    ask = asks[0]
    due_ns = max(each.created_ns for each in asks) + ask.app.queue.settings.preemption_delay_ns
    check = partition.checks.get(ask)
    if check is not None:
        if check.seen == seen(partition):
            return False
        due_ns = max(due_ns, check.at_ns + RETRY_NS)
    if ask.gave_up_ns is not None:
        due_ns = max(due_ns, ask.gave_up_ns + RETRY_NS)
    return due_ns <= partition.now_ns


def _may_be_tried(partition: Partition, app: App, asks: list[Ask]) -> bool:
    choose_group(partition, app)
    sums = Sums(partition)
    room = sums.user_headroom(app)
    fits_user = fits_limit(room, total(asks)) and claims.leave_user(sums, app, total(asks))
    return sums.may_run(app) and app.backoff_until_ns <= partition.now_ns and fits_user


def _entitled(partition: Partition, leaf: Queue, amounts: Amounts) -> bool:
    """The leaf's own guarantee decides, or that of all ancestors where it has none; something of it must be wanted."""
    left: Amounts = {}
    for queue in [leaf] if leaf.guaranteed else leaf.lineage():
        left = lowest(left, rest(queue.guaranteed, planned(partition, queue)))
    return bool(set(left) & set(amounts)) and all(
        amount <= left[name] for name, amount in amounts.items() if name in left
    )


def _outranks(partition: Partition, leaf: Queue, asks: list[Ask]) -> bool:
    """Whether an allocation of the leaf has a lower priority than one of the asks."""
    lower = [
        alloc.priority
        for alloc in partition.allocations()
        if alloc.app.queue is leaf and not (alloc.required or alloc.preempted or alloc.released)
    ]
    off = leaf.settings.preemption_policy == "disabled"
    return not off and bool(lower) and min(lower) < max(ask.priority for ask in asks)


def _keep(partition: Partition, ask: Ask, node: Node, victims: tuple[Ask, ...], reserve: Reserve) -> None:
    evict(partition, victims)
    for other in [a for a in node.reserved_by if a is not ask and not a.triggered]:
        unreserve(other)
    if ask.reservation is None or ask.reservation.node is not node:
        unreserve(ask)
        reserve(ask, node)
    claims.made(partition, ask)
    if ask.app.state == "Accepted":
        ask.app.holds_slot = True


class NodeSearch:
    """The search for victims for one ask."""

    def __init__(self, partition: Partition, ask: Ask, *, within: bool) -> None:
        self.within = within
        self.partition = partition
        self.ask = ask
        self.leaf = ask.app.queue
        self.path = self.leaf.lineage()
        self.sums = Sums(partition)
        self.used = {queue: planned(partition, queue) for queue in partition.root.walk()}
        self.outranked = [
            a
            for a in claims.of(partition)
            if within and a.claim.tops and claims.outranks(self.leaf, ask.priority, a.claim)
        ]
        self.counted = {queue: planned(partition, queue, self.outranked) for queue in self.path}
        self.top, self.seen = self._root()
        self.effective: dict[Ask, int] = {}
        for alloc in partition.allocations():
            if may_go(alloc, ask):
                self._consider(alloc)

    def _root(self) -> tuple[Queue, dict[Queue, int]]:
        """Section 2.3."""
        priority, seen_ = self.ask.priority, {}
        for queue in self.path:
            offset = queue.settings.priority_offset
            priority = seen_[queue] = offset if queue.settings.priority_fence else priority + offset
            most: Amounts = {}
            for above in queue.lineage():
                most = lowest(most, self.sums.limit(above))
            wanted = plus(self.used[queue], self.ask.amounts)
            over = any(amount > most[name] for name, amount in wanted.items() if name in most and amount > 0)
            if queue.parent is None or queue.settings.preemption_policy == "fence" or over:
                return queue, seen_
        raise AssertionError("root ends it")

    def _consider(self, alloc: Ask) -> None:
        """Sections 2.4 and 2.5: is it eligible, and with which priority?"""
        if self.within:
            if alloc.app.queue is self.leaf and alloc.priority < self.ask.priority:
                self.effective[alloc] = alloc.priority
            return
        lineage = alloc.app.queue.lineage()
        if self.top not in lineage or alloc.app.queue is self.leaf:
            return
        # Nobody comes to it (docs/spec/config.md, section 6.3).
        if not alloc.app.queue.leaf or any(queue.leaf for queue in lineage[1:]):
            return
        if alloc.app.queue.settings.preemption_policy == "disabled":
            return
        below = lineage[: lineage.index(self.top)]
        allowed, fenced = self.seen[self.top], False
        for queue in reversed(below):
            offset = queue.settings.priority_offset
            if queue in self.seen:
                allowed = self.seen[queue]
            elif queue.settings.priority_fence:
                if offset > allowed:
                    return
                fenced = True
            else:
                allowed -= offset
        left = self._remaining(alloc.app.queue)
        if (left is not None and all(amount >= 0 for amount in left.values())) or (
            not fenced and alloc.priority > allowed
        ):
            return
        priority = alloc.priority
        for queue in below:
            offset = queue.settings.priority_offset
            priority = offset if queue.settings.priority_fence else priority + offset
        self.effective[alloc] = priority

    def _remaining(self, queue: Queue | None) -> Amounts | None:
        if queue is None:
            return None
        above = self._remaining(queue.parent)
        own = rest(queue.guaranteed, self.used[queue])
        if not above and not own:
            return None
        if own and queue in self.path and queue.parent is not None and self.leaf.guaranteed:
            return None
        return lowest(own, above or {})

    def find(self) -> tuple[Node, tuple[Ask, ...]] | None:
        """The best set over all nodes, the first in order of equals; None if there is none. It is empty if nobody need go."""
        best: tuple[tuple[Any, ...], Node, tuple[Ask, ...]] | None = None
        for node in self.sums.nodes_in_order:
            if not self._suits(node):
                continue
            if self._serves(node, ()):
                return node, ()
            found = best_set(
                self.partition,
                self._pool(node),
                lambda victims, node=node: self._serves(node, victims),  # type: ignore[misc]
                lambda pool, node=node: self._reaches(node, pool),  # type: ignore[misc]
                self._rank,
                kept=self._all_kept if self.within else None,
            )
            if found is not None:
                mine = self._rank_of_node(found)
                if best is None or mine < best[0]:
                    best = mine, node, found
        return None if best is None else (best[1], best[2])

    def _rank(self, victims: tuple[Ask, ...]) -> Rank:
        return rank(self.partition, victims, self.effective.__getitem__, within=self.within)

    def _rank_of_node(self, victims: tuple[Ask, ...]) -> tuple[Any, ...]:
        """Of two nodes, within the queue, the one whose victims of the highest priority began later comes before the newer set."""
        *first, newest = self._rank(victims)
        top = max(a.priority for a in victims)
        oldest = max((-a.created_ns, -a.arrived) for a in victims if a.priority == top)
        return (*first, oldest if self.within else (0, 0), newest)

    def _suits(self, node: Node) -> bool:
        """Section 2.7."""
        ask = self.ask
        for other in node.reserved_by:
            old = self.partition.now_ns - other.created_ns > OLD_NS or (self.within and other.app.queue is self.leaf)
            old = old and other.priority < ask.priority
            if other is not ask and not other.triggered and (other.required or not old):
                return False
        if not node.schedulable or not fits(node.capacity, ask.amounts) or not meets(ask, node):
            return False
        if _hangs(self.partition, node):
            return False
        hold = self.partition.atomic.hold
        if hold is not None and node in hold.nodes and hold.app is not ask.app:
            return False
        return self.partition.predicate is None or self.partition.predicate(ask.key, node.id, False)

    def _pool(self, node: Node) -> list[Ask]:
        """Without those who bring nothing of what is lacking, on the node or under a quota."""
        room = room_on(self.sums, node, self.ask, self.outranked)
        lacking = {n for n, a in self.ask.amounts.items() if a > room.get(n, 0)}
        over = {name for queue in self.path for name, amount in self._over(queue).items() if amount > 0}
        return [a for a in self.effective if set(a.amounts) & (over | (lacking if a.node is node else set()))]

    def _over(self, queue: Queue) -> Amounts:
        """The amounts by which the ask would exceed the queue's maximum. The size of the cluster is none: nodes decide alone."""
        most = queue.maximum
        wanted = plus(self.counted[queue], self.ask.amounts)
        return {name: wanted[name] - most[name] for name in self.ask.amounts if name in most}

    def _reaches(self, node: Node, pool: list[Ask]) -> bool:
        here = total([a for a in pool if a.node is node])
        if not fits(plus(room_on(self.sums, node, self.ask, self.outranked), here), self.ask.amounts):
            return False
        return all(self._under(queue, pool) for queue in self.path)

    def _under(self, queue: Queue, victims: list[Ask]) -> bool:
        given = total([a for a in victims if queue in a.app.queue.lineage()])
        return all(amount <= given.get(name, 0) for name, amount in self._over(queue).items() if amount > 0)

    def _serves(self, node: Node, victims: tuple[Ask, ...]) -> bool:
        """The three laws of a set."""
        return self._reaches(node, list(victims)) and self._all_kept(victims)

    def _all_kept(self, victims: tuple[Ask, ...]) -> bool:
        return all(
            self._kept(queue, [a for a in victims if queue in a.app.queue.lineage()])
            for queue in dict.fromkeys(q for a in victims for q in a.app.queue.lineage())
        )

    def _kept(self, queue: Queue, victims: list[Ask]) -> bool:
        gone = total(victims)
        if self.within:  # no further below its guarantee than it was
            above = minus(self.used[queue], queue.guaranteed)
            return all(
                amount <= self.ask.amounts.get(n, 0) + max(above.get(n, 0), 0)
                for n, amount in gone.items()
                if n in queue.guaranteed
            )
        inside = self.top in queue.lineage() and queue is not self.top
        if not inside and (self.leaf.guaranteed or queue not in self.path):
            return True
        left = minus(self.used[queue], gone)
        if queue in self.path:
            left = plus(left, self.ask.amounts)
        return all(left.get(n, 0) >= amount for n, amount in queue.guaranteed.items() if gone.get(n, 0) > 0)
