"""Enforcing a lowered quota: how much is taken from which queue, and which allocations are evicted.

Source: docs/spec/preemption.md, sections 4.3 to 4.5.

The amount above the max is divided among the queues below, in proportion to what each uses above its guarantee, down to
the leaves; in each leaf `licorne.core.preemption.leaf_victims` picks the victims that fit its share. Two rules are
stricter than the original's:

* no queue falls below its guarantee: an allocation is a victim only if its queue, and each queue above it up to the one
  whose max was lowered, keeps what it is guaranteed of the types that the victim uses. For the same reason what a queue
  lacks of its guarantee does not count as surplus (section 4.4, Q).
* what is being evicted already counts as gone, not only for the amount but also for the shares.

Amounts are maps from a type's index to an int. They hold only the types that count, so that a type that is not listed
can be told from an amount of 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .evictions import Eviction, evict
from .leaf_victims import choose
from .ranking import newest_first
from .together import may_be_evicted, with_the_others

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .disruption_budgets import DisruptionBudgets

Room = dict[int, int]
"""Amounts by the index of their type."""

STEPS = 20_000
"""How many steps the search for the best victims may take in one run, divided among the leaves."""
STEPS_OF_A_LEAF = 500
"""How many steps it may take in each leaf at least."""

RULE = (
    "a queue whose max was lowered gives back what it uses above it, when its delay is over"
    " (docs/spec/preemption.md, section 4)"
)


def enforce(partition: Partition, queue: Queue) -> None:
    """Evict what the queue uses above its max, as far as guarantees and the sizes of allocations allow.

    Allocations that are evicted together with a victim come on top: single victims that they make unnecessary go all the same.
    """
    excess = above_max(queue)
    amount = above_guarantees(queue, excess)
    victims = with_the_others(select(queue, amount, partition.disruption_budgets))
    names = partition.types.names
    missing = {names[d]: value for d, value in sorted(excess.items(), key=lambda item: names[item[0]])}
    for victim in victims:
        app: Application = victim.app
        record = Eviction(
            "quota-change", "", "", queue.path, missing, RULE, victim.id, app.id, app.queue.path, partition.now, None
        )
        message = f"preempting allocations to enforce new max quota for queue : {queue.path}"
        evict(partition, victim, record, message)
    if partition.events is not None:
        partition.events.quota_enforced(queue, amount, victims)


def used(queue: Queue) -> list[int]:
    """What the queue uses, by the index of the type, without what is being evicted."""
    return [amount - queue.preempting.at(d) for d, amount in enumerate(queue.allocated.values())]


def above_max(queue: Queue) -> Room:
    """What the queue uses above its own max, without what is being evicted."""
    limit = queue.limit
    return {d: amount - limit.at(d) for d, amount in enumerate(used(queue)) if amount > limit.at(d)}


def above_guarantees(queue: Queue, excess: Room) -> Room:
    """The amount to be given back (section 4.3).

    It is `excess`, but of a type no more than this queue or an ancestor uses above its guarantee. Of these the queue
    with the most above its guarantee counts; a queue that has not reached its guarantee does not count.
    """
    amount = dict(excess)
    for d in excess:
        most = max(
            (
                level.allocated.at(d) - level.preempting.at(d) - level.guaranteed.at(d)
                for level in queue.lineage()
                if level.guaranteed.at(d) >= 0
            ),
            default=0,
        )
        if most > 0:
            amount[d] = min(excess[d], most)
    return amount


def shares(queue: Queue, amount: Room) -> Iterator[tuple[Queue, Room]]:
    """The leaves below the queue that give something back, with the share of each, by name (section 4.4)."""
    if not any(amount.values()):
        return
    if queue.is_leaf:
        yield queue, amount
        return
    givers: dict[Queue, Room] = {}
    for name in sorted(queue.children):
        child = queue.children[name]
        surplus = _surplus(child)
        if any(surplus.values()):
            givers[child] = surplus
    total = {d: sum(surplus.get(d, 0) for surplus in givers.values()) for d in amount}
    for child, surplus in givers.items():
        share = {d: surplus.get(d, 0) * wanted // total[d] if surplus.get(d, 0) else 0 for d, wanted in amount.items()}
        yield from shares(child, share)


def _surplus(queue: Queue) -> Room:
    """What the queue uses above its guarantee; if it has one, only the types that the guarantee lists."""
    guaranteed = queue.guaranteed_config
    return {
        d: amount - max(0, queue.guaranteed.at(d))
        for d, amount in enumerate(used(queue))
        if amount > queue.guaranteed.at(d) and (not guaranteed or queue.guaranteed.at(d) >= 0)
    }


def select(queue: Queue, amount: Room, disruption_budgets: DisruptionBudgets) -> list[Ask]:
    """The victims in all leaves below the queue: leaf by leaf, application by application, the newest first."""

    def refusing(candidates: Sequence[Ask]) -> set[Ask]:
        return disruption_budgets.refusing(candidates, found)

    found: list[Ask] = []
    # What each queue may still give without falling below its guarantee. Leaves share it, as they share ancestors.
    spare: dict[Queue, Room] = {}
    leaves = list(shares(queue, amount))
    for leaf, share in leaves:
        room = dict(share)
        levels = leaf.lineage()
        levels = levels[: levels.index(queue) + 1]
        for level in levels:
            for d, left in spare.setdefault(level, _spare(level)).items():
                room[d] = min(left, room.get(d, left))
        candidates = _candidates(leaf, share)
        chosen = dict.fromkeys(choose(candidates, room, max(STEPS_OF_A_LEAF, STEPS // len(leaves)), refusing))
        victims = [alloc for alloc in candidates if alloc in chosen]
        for victim in victims:
            for d, value in enumerate(victim.shape.amounts.values()):
                for level in levels:
                    if d in spare[level]:
                        spare[level][d] -= value
        found += sorted(victims, key=_telling_order)
    return found


def _spare(queue: Queue) -> Room:
    """What the queue uses above its guarantee, by type that is guaranteed; negative where it uses less."""
    present = used(queue)
    return {
        d: (present[d] if d < len(present) else 0) - least
        for d, least in enumerate(queue.guaranteed.values())
        if least >= 0
    }


def _candidates(leaf: Queue, share: Room) -> list[Ask]:
    """The allocations of a leaf that may be evicted and would give something back (section 4.5).

    Allocations of an application come in reverse order, so that of one ask the one that was placed last comes first.
    """
    wanted = [d for d, amount in share.items() if amount > 0]
    app: Application
    return [
        alloc
        for app in leaf.apps.values()
        if may_be_evicted(app, None)
        for alloc in reversed(app.allocations.values())
        if alloc.may_go and any(alloc.shape.amounts.at(d) > 0 for d in wanted)
    ]


def _telling_order(alloc: Ask) -> tuple[int, int, int]:
    app: Application = alloc.app
    return app.seq, *newest_first(alloc)
