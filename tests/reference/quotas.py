"""Lowered quotas (docs/spec/preemption.md, section 4): when they are enforced, and which allocations are evicted.

A start time is forgotten here at the moment at which its queue is within its max: `settle` is called after everything
that may end an allocation. Victims are found by trying all sets that differ in more than which of equals they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from licorne.si.messages import Termination
from reference.life import notify_released
from reference.model import SECOND_NS, Amounts, Ask, Partition, Queue, minus, plus, rest
from reference.preempting import mark, refuses
from reference.sums import Sums

Known = dict[Queue, tuple[Amounts, int]]
"""The max and the delay of each queue."""


def settle(partition: Partition) -> None:
    """Forget the start times of queues that are gone, or within their max."""
    if partition.quota_starts:
        sums = Sums(partition)
        there = list(partition.root.walk())
        for queue in list(partition.quota_starts):
            if queue not in there or not _over(sums, queue):
                del partition.quota_starts[queue]


def known(partition: Partition) -> Known:
    """How queues are configured, before that changes."""
    settle(partition)
    return {q: (q.maximum, q.settings.quota_preemption_delay_ns) for q in partition.root.walk() if q.parent is not None}


def reloaded(partition: Partition, before: Known) -> None:
    """Start times after a reload (section 4.1)."""
    sums = Sums(partition)
    starts = partition.quota_starts
    for queue, (old, old_delay) in before.items():
        delay = queue.settings.quota_preemption_delay_ns
        if not queue.managed:
            continue
        if delay == 0 or not any(queue.maximum.values()) or not _over(sums, queue):
            starts.pop(queue, None)
            continue
        steps = minus(queue.maximum, old).values()
        raised, lowered = any(step > 0 for step in steps), any(step < 0 for step in steps)
        if raised and lowered:
            continue
        if queue in starts:
            starts[queue] += delay - old_delay
        elif lowered or (not raised and old_delay == 0):
            starts[queue] = partition.now_ns + delay
            partition.number("quota: start time")
    _watch(partition)


def forced(partition: Partition, leaf: Queue, old: Amounts, new: Amounts) -> None:
    """So much more is used, whatever the quota; it is counted already. To be called before `settle`."""
    if not partition.config.quota_preemption_enabled or all(step <= 0 for step in minus(new, old).values()):
        return
    sums = Sums(partition)
    for queue in leaf.lineage():
        delay = queue.settings.quota_preemption_delay_ns
        wanted = queue.managed and queue.parent is not None and delay > 0 and any(queue.maximum.values())
        if wanted and _over(sums, queue) and queue not in partition.quota_starts:
            partition.quota_starts[queue] = partition.now_ns + delay
            partition.number("quota: start time by forced usage")
    _watch(partition)


def _over(sums: Sums, queue: Queue) -> bool:
    return any(left < 0 for left in rest(queue.maximum, sums.allocated[queue]).values())


def _watch(partition: Partition) -> None:
    """Be there when a quota is to be enforced; if that should have been already, a second from now."""
    if not partition.config.quota_preemption_enabled:
        return
    for queue, start in partition.quota_starts.items():
        if start <= partition.now_ns:
            partition.quota_starts[queue] = partition.now_ns + SECOND_NS
            partition.number("quota: start time moved")
        partition.at(partition.quota_starts[queue], lambda: _look(partition))


def _look(partition: Partition) -> None:
    """Enforce what is due, from the root down, and nothing below a queue that is enforced."""
    if not partition.config.quota_preemption_enabled:
        return
    settle(partition)
    _look_at(partition, partition.root)
    _watch(partition)


def _look_at(partition: Partition, queue: Queue) -> None:
    if partition.quota_starts.get(queue, partition.now_ns + 1) <= partition.now_ns:
        del partition.quota_starts[queue]
        _enforce(partition, queue)
        return
    for name in sorted(queue.children):
        _look_at(partition, queue.children[name])


# -- how much (sections 4.3 and 4.4) ---------------------------------------------------------------------


def _used(partition: Partition, queue: Queue) -> Amounts:
    """The usage that will stay."""
    found: Amounts = {}
    for alloc in partition.allocations():
        if queue in alloc.app.queue.lineage() and not alloc.preempted:
            found = plus(found, alloc.amounts)
    return found


def _above(partition: Partition, queue: Queue) -> Amounts:
    """The usage above the guarantee, for the types that it names."""
    return minus({}, rest(queue.guaranteed, _used(partition, queue)))


def _enforce(partition: Partition, queue: Queue) -> None:
    amount = {n: -left for n, left in rest(queue.maximum, _used(partition, queue)).items() if left < 0}
    for name, excess in amount.items():
        above = [_above(partition, level).get(name, 0) for level in queue.lineage()]
        if max(above) > 0:
            amount[name] = min(excess, max(above))
    victims: list[Ask] = []
    for leaf, share in list(_shares(partition, queue, amount)):  # drawn up before anybody has to go
        levels = leaf.lineage()[: leaf.lineage().index(queue) + 1]
        mine = _choice(partition, leaf, share, levels)
        for alloc in sorted(mine, key=lambda a: (a.app.arrived, *_age(a))):
            mark(partition, alloc)  # so that it does not count for the next leaf
            victims.append(alloc)
    partition.number("quota: enforced" if victims else "quota: nothing to take")
    if len({alloc.app.queue for alloc in victims}) > 1:
        partition.number("quota: victims in several leaves")
    for alloc in victims:
        notify_released(partition, alloc, Termination.PREEMPTED_BY_SCHEDULER)


def _shares(partition: Partition, queue: Queue, amount: Amounts) -> Iterator[tuple[Queue, Amounts]]:
    if queue.leaf:
        yield queue, amount
        return
    counts: dict[Queue, Amounts] = {}
    for child in queue.children.values():
        above = _above(partition, child) if child.guaranteed else _used(partition, child)
        counts[child] = {name: max(0, above.get(name, 0)) for name in amount}
    for name in sorted(queue.children):
        share = {}
        for kind, wanted in amount.items():
            total = sum(count[kind] for count in counts.values())
            share[kind] = counts[queue.children[name]][kind] * wanted // total if total else 0
        yield from _shares(partition, queue.children[name], share)


# -- who (section 4.5, with the order of the law) --------------------------------------------------------


def _choice(partition: Partition, leaf: Queue, share: Amounts, levels: list[Queue]) -> list[Ask]:
    spare = [_above(partition, level) for level in levels]

    def serve(victims: Iterable[Ask]) -> bool:
        total: Amounts = {}
        for alloc in victims:
            total = plus(total, alloc.amounts)
        return all(amount <= room[name] for room in (share, *spare) for name, amount in total.items() if name in room)

    candidates = [
        alloc
        for app in partition.apps_of(leaf)
        for alloc in app.allocations.values()
        if not alloc.required and not alloc.released and not alloc.preempted
        if any(share.get(name, 0) > 0 for name in alloc.amounts) and serve([alloc])
    ]
    last = _last(partition, candidates)
    # Of those that are alike, the lowest priority and then the newest go first: no set is better that has another.
    alike: dict[object, list[Ask]] = {}
    for alloc in sorted(candidates, key=lambda a: (a.priority, _age(a))):
        sizes = [
            (name, n) for name, n in sorted(alloc.amounts.items()) if any(name in room for room in (share, *spare))
        ]
        alike.setdefault((alloc in last, tuple(sizes)), []).append(alloc)
    sets: list[list[Ask]] = [[]]
    for first in alike.values():
        sets = [[*some, *first[:n]] for some in sets for n in range(len(first) + 1) if serve([*some, *first[:n]])]
    final = (some for some in sets if not any(serve([*some, more]) for more in candidates if more not in some))
    return min(final, key=lambda victims: _worth(victims, last))


def _worth(victims: list[Ask], last: list[Ask]) -> tuple[int, int, int, list[tuple[int, int, int]]]:
    return (
        sum(a in last for a in victims),
        len(victims),
        sum(a.priority for a in victims),
        sorted(map(_age, victims)),
    )


def _last(partition: Partition, candidates: list[Ask]) -> list[Ask]:
    """Those who refuse, and those whose disruption budgets have nothing left when the better ones have gone."""
    left = {name: budget.left() for name, budget in partition.budgets.items()}
    found = [a for a in candidates if refuses(a)]
    for alloc in sorted(candidates, key=lambda a: (refuses(a), a.priority, -a.created_ns, -a.arrived)):
        mine = [name for name, budget in partition.budgets.items() if alloc.id in budget.members]
        if any(left[name] <= 0 for name in mine):
            found.append(alloc)
        else:
            left.update({name: left[name] - 1 for name in mine})
    return found


def _age(alloc: Ask) -> tuple[int, int, int]:
    """The newest first; of one ask's the one that was placed last."""
    return -alloc.created_ns, -alloc.arrived, -alloc.placed
