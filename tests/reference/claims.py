"""What is kept for asks that have evicted others (`docs/understand/preemption.md`, "What an ask has claimed").

Nothing is summed up beforehand: planned usage is added up from allocations and claims when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from reference.life import unreserve
from reference.model import (
    HIGHEST,
    LOWEST,
    SECOND_NS,
    Amounts,
    App,
    Ask,
    Key,
    Node,
    Partition,
    Queue,
    Reservation,
    fits,
    fits_limit,
    minus,
    plus,
    rest,
)
from reference.sums import Sums, limit_of, meets, trackers

LASTS_NS = 120 * 60 * SECOND_NS
Level = Queue | Key


class Claim(NamedTuple):
    """Of one ask: the number of the claim, when, and the highest priority that was pending in each queue above."""

    number: int
    at_ns: int
    tops: dict[Queue, int]


def made(partition: Partition, ask: Ask) -> None:
    """Record an eviction for the ask, which has reserved its node: the claim lasts 120 minutes from now on."""
    assert ask.reservation is not None
    sums = Sums(partition)
    tops = {queue: sums.base(queue) for queue in ask.app.queue.lineage()}
    ask.triggered = True
    claim = ask.claim = Claim(partition.number("claim"), partition.now_ns, tops)
    ask.app.in_sets = True
    node = ask.reservation.node
    ask.reservation = Reservation(node, ask.reservation.made_ns)

    def too_old() -> None:
        if ask.claim is claim:
            partition.number("claim: 120 minutes")
            unreserve(ask)
            ask.shunned = node

    partition.at(partition.now_ns + LASTS_NS + 1, too_old)


def of(partition: Partition) -> list[Ask]:
    """The asks that have claims, the oldest first."""
    found = [ask for app in partition.apps.values() for ask in app.asks.values() if ask.claim is not None]
    return sorted(found, key=lambda ask: ask.claim.number)


# -- order -----------------------------------------------------------------------------------------------


def outranks(queue: Queue, priority: int, claim: Claim) -> bool:
    """Tell whether an ask of this priority, in this leaf, has a higher order than the claim in the lowest queue above both."""
    for level in queue.lineage():
        if level in claim.tops:
            return priority > claim.tops[level]
        offset = level.settings.priority_offset
        priority = offset if level.settings.priority_fence else max(LOWEST, min(HIGHEST, priority + offset))
    raise AssertionError("root is above all")


def _precedes(one: Ask, other: Ask) -> bool:
    if one.claim.number < other.claim.number:
        return not outranks(other.app.queue, other.priority, one.claim)
    return outranks(one.app.queue, one.priority, other.claim)


# -- what is left ----------------------------------------------------------------------------------------


def leave(sums: Sums, app: App, priority: int, amounts: Amounts, *, cluster: bool = True) -> bool:
    """Tell whether queues, user and group leave room beside the claims that hold against this priority.

    Without `cluster` its size does not count: for an ask that requires its node, and for a gang, which asks its nodes.
    """
    levels = [level for level in _levels(app) if cluster or level is not sums.partition.root]
    return leave_at(sums, app, priority, amounts, levels)


def leave_at(sums: Sums, app: App, priority: int, amounts: Amounts, levels: Iterable[Level]) -> bool:
    """Tell whether these levels leave room beside the claims that hold against this priority."""
    asks = [a for a in of(sums.partition) if not outranks(app.queue, priority, a.claim)]
    return _beside(sums, app, amounts, asks, levels)


def leave_user(sums: Sums, app: App, amounts: Amounts) -> bool:
    """Tell whether user and group leave room beside all claims."""
    return _beside(sums, app, amounts, of(sums.partition), trackers(app))


def has_headroom(sums: Sums, app: App, ask: Ask) -> bool:
    """Tell whether the ask fits now, and beside the claims of others. An ask with a claim was checked before."""
    return sums.has_headroom(app, ask) and (
        ask.claim is not None or leave(sums, app, ask.priority, ask.amounts, cluster=not ask.required)
    )


def leave_node(sums: Sums, ask: Ask, node: Node) -> bool:
    """Tell whether the node has room beside the claims of others that require it."""
    if ask.claim is not None or not node.reserved_by:
        return True
    others = [a for a in of(sums.partition) if not outranks(ask.app.queue, ask.priority, a.claim)]
    return _room(sums, node, others)(ask.amounts)


def _levels(app: App) -> list[Level]:
    return [*app.queue.lineage(), *trackers(app)]


def _beside(sums: Sums, app: App, amounts: Amounts, asks: list[Ask], levels: Iterable[Level]) -> bool:
    for level in levels:
        mine = [a for a in asks if level in _levels(a.app)]
        if not mine:
            continue
        going = [a for a in sums.partition.allocations() if a.preempted and level in _levels(a.app)]
        if isinstance(level, Queue):
            limit, used = sums.limit(level), sums.allocated[level]
        else:
            limit, used = limit_of(sums.partition, level).amounts, sums.used[level]
        if not fits_limit(rest(limit, minus(plus(used, _total(mine)), _total(going))), amounts):
            return False
    return True


def _room(sums: Sums, node: Node, asks: list[Ask]) -> Callable[[Amounts], bool]:
    going = [a for a in sums.partition.allocations() if a.preempted and a.node is node]
    there = [a for a in asks if a.reservation is not None and a.reservation.node is node]
    room = minus(plus(sums.free(node), _total(going)), _total(there))
    return lambda amounts: fits(room, amounts)


def _total(asks: list[Ask]) -> Amounts:
    found: Amounts = {}
    for ask in asks:
        found = plus(found, ask.amounts)
    return found


# -- giving up -------------------------------------------------------------------------------------------


def review(partition: Partition, by: Ask | None = None) -> None:
    """End claims that do not fit any more: the newer of two, unless it is of higher order. `by` was placed, or claims."""
    asks = of(partition)
    if by is not None:
        asks = [ask for ask in asks if outranks(by.app.queue, by.priority, ask.claim)]
    for ask in asks:
        if ask.claim is None:
            continue  # it has ended with that of another member of its gang
        others = [other for other in of(partition) if other is not ask]
        first = [o for o in others if _precedes(o, ask) or (by is not None and o not in asks)]
        _try(partition, ask, first)


def changed(partition: Partition, ask: Ask) -> None:
    """The ask wants something else."""
    if ask.claim is not None:
        _try(partition, ask, [other for other in of(partition) if other is not ask])


def _try(partition: Partition, ask: Ask, others: list[Ask]) -> None:
    assert ask.reservation is not None
    sums = Sums(partition)
    node = ask.reservation.node
    if (
        (node.schedulable or ask.required)
        and partition.nodes.get(node.id) is node
        and meets(ask, node)
        and _room(sums, node, others)(ask.amounts)
        and _all_levels(sums, ask, others)
    ):
        return
    partition.number("claim: given up")
    unreserve(ask)


def _all_levels(sums: Sums, ask: Ask, others: list[Ask]) -> bool:
    return all(_beside(sums, ask.app, ask.amounts, [*others, _nobody(ask)], [level]) for level in _levels(ask.app))


def _nobody(ask: Ask) -> Ask:
    """An ask beside this one that wants nothing, so that every level is looked at."""
    return Ask("", ask.app, {}, 0, 0, 0)
