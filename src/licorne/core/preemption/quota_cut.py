"""What a lowered quota costs: how much is taken from which queue, and from whom.

Source: docs/spec/preemption.md, sections 4.3 to 4.5.

The amount above the max is shared out among the queues below by what each uses above its guarantee, down to the leaves;
in each leaf `licorne.core.preemption.leaf_victims` picks the victims that fit its share. Two rules are stricter than the original's:

* nobody falls below a guarantee: a victim is taken only if its queue, and each one above it up to the one whose max was
  lowered, keeps what it is guaranteed of the types that the victim uses. For the same reason what a queue lacks of its
  guarantee does not count as something that it has above it (section 4.4, Q).
* what is being evicted already counts as gone, not only for the amount but also for the shares.

Amounts are maps from a type's place to int, only of the types that count, so that "not listed" is plain to see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .evictions import Eviction, evict
from .leaf_victims import choose

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

Room = dict[int, int]
"""Amounts by the place of their type."""

STEPS = 20_000
"""The search for the best victims takes so many steps in one run, over all leaves; in each leaf no less than ..."""
STEPS_OF_A_LEAF = 500

RULE = (
    "a queue whose max was lowered gives back what it uses above it, when its delay is over"
    " (docs/spec/preemption.md, section 4)"
)


def enforce(partition: Partition, queue: Queue) -> None:
    """Evict what the queue uses above its max, as far as that is possible; nothing, if it is not."""
    excess = above_max(queue)
    amount = above_guarantees(queue, excess)
    victims = select(queue, amount)
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
        claimed: dict[str, int] = {}
        for victim in victims:
            for d, value in enumerate(victim.shape.amounts.values()):
                if value:
                    claimed[names[d]] = claimed.get(names[d], 0) + value
        wanted = {names[d]: value for d, value in amount.items()}
        partition.events.quota_enforced(queue, wanted, claimed, len(victims))


def used(queue: Queue) -> list[int]:
    """What the queue uses, by type, without what is being evicted."""
    return [amount - queue.preempting.at(d) for d, amount in enumerate(queue.allocated.values())]


def above_max(queue: Queue) -> Room:
    """What the queue uses above its own max."""
    limit = queue.limit
    return {d: amount - limit.at(d) for d, amount in enumerate(used(queue)) if amount > limit.at(d)}


def above_guarantees(queue: Queue, excess: Room) -> Room:
    """The amount to be given back (section 4.3): no more of a type than this queue, or one above, has above its guarantee.

    Of several the one with the most counts, and a queue that has not reached its guarantee does not.
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
    """The leaves below that give something, with the share of each, by name (section 4.4)."""
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
    """What the queue uses above its guarantee; of a queue that is guaranteed something, only in types of its guarantee."""
    guaranteed = queue.guaranteed_config
    return {
        d: amount - max(0, queue.guaranteed.at(d))
        for d, amount in enumerate(used(queue))
        if amount > queue.guaranteed.at(d) and (not guaranteed or queue.guaranteed.at(d) >= 0)
    }


def select(queue: Queue, amount: Room) -> list[Ask]:
    """The victims of all leaves below, leaf by leaf and in each application by application, the newest first."""
    found: list[Ask] = []
    spare: dict[Queue, Room] = {}  # what each queue may still give without falling below its guarantee
    leaves = list(shares(queue, amount))
    for leaf, share in leaves:
        room = dict(share)
        levels = leaf.lineage()
        levels = levels[: levels.index(queue) + 1]
        for level in levels:
            for d, left in spare.setdefault(level, _spare(level)).items():
                room[d] = min(left, room.get(d, left))
        candidates = _candidates(leaf, share)
        chosen = dict.fromkeys(choose(candidates, room, max(STEPS_OF_A_LEAF, STEPS // len(leaves))))
        victims = [alloc for alloc in candidates if alloc in chosen]
        for victim in victims:
            for d, value in enumerate(victim.shape.amounts.values()):
                for level in levels:
                    if d in spare[level]:
                        spare[level][d] -= value
        found += sorted(victims, key=_telling_order)
    return found


def _spare(queue: Queue) -> Room:
    """What the queue uses above its guarantee, of each type that is guaranteed; negative where it lacks something."""
    present = used(queue)
    return {
        d: (present[d] if d < len(present) else 0) - least
        for d, least in enumerate(queue.guaranteed.values())
        if least >= 0
    }


def _candidates(leaf: Queue, share: Room) -> list[Ask]:
    """Who may be a victim in a leaf, and would bring something (section 4.5); of one ask the last to be placed first."""
    wanted = [d for d, amount in share.items() if amount > 0]
    app: Application
    return [
        alloc
        for app in leaf.apps.values()
        for alloc in reversed(app.allocations.values())
        if alloc.may_go and any(alloc.shape.amounts.at(d) > 0 for d in wanted)
    ]


def _telling_order(alloc: Ask) -> tuple[int, int, int]:
    app: Application = alloc.app
    return app.seq, -alloc.created, -alloc.seq
