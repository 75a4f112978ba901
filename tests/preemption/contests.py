"""Small full clusters, decided by the product and by a reference that tries all sets of victims; and faults that this shows.

`python -m preemption.contests NAME`, in the interpreted core, where every function can be replaced, plants one fault,
compares until something differs, and prints what it was.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import seeds
from licorne.core.preemption import evictions, node_search
from licorne.core.preemption.disruption_budgets import DisruptionBudgets, nothing_left
from licorne.core.preemption.guarantee_preemption import GuaranteePreemption
from licorne.core.preemption.node_search import NodeSearch
from licorne.core.preemption.planned_usage import PlannedUsage
from licorne.core.preemption.victim_search import VictimSearch
from licorne.core.queues.tree import Tree
from licorne.core.scheduling.descent import Descent
from reference import preempting
from reference.compare import DisagreementError, run
from reference.contests import Contest
from reference.situations import Situations

SEED = seeds.first_seed("LICORNE_REFERENCE_SEED")
ENOUGH = 3000
"""A fault that is not caught in so many scenarios is not caught."""


def compare(count: int, first: int = SEED) -> tuple[Counter[str], str]:
    """Compare scenarios; return the situations that were met, and the first disagreement."""
    met: Counter[str] = Counter()
    sound = preempting.NodeSearch.find

    def find(self: preempting.NodeSearch) -> Any:
        found = sound(self)
        met["nobody"] += found is None
        if found is not None:
            node, victims = found
            met[f"{min(len(victims), 3)} victims"] += 1
            met["a member of a gang"] += self.ask.app.atomic is not None or self.ask.placeholder
            met["beside a claim"] += any(other.claim for other in node.reserved_by)
            met["somebody bad"] += any(a.originator or not a.allow_self for a in victims)
            met["a budget broken"] += preempting.breaks(self.partition, victims)
            met["a budget kept"] += any(
                budget.members & {a.id for a in victims} for budget in self.partition.budgets.values()
            ) and not preempting.breaks(self.partition, victims)
            met["elsewhere"] += any(a.node is not node for a in victims)
            met["inside a fence or under a quota"] += self.top.parent is not None
            met["within the queue"] += self.within and bool(victims)
            met["more than one within the queue"] += self.within and len(victims) > 1
            met["nested queues"] += any(len(a.app.queue.lineage()) > 2 for a in victims)
            met["by an ancestor's guarantee"] += not self.leaf.guaranteed
            met["beside a node that has too little"] += self.sums.bound != self.sums.cluster
        return found

    preempting.NodeSearch.find = find  # type: ignore[method-assign]
    try:
        for seed in range(first, first + count):
            run(seed, Situations(), parking_off=seed % 4 == 0, kind=Contest)
    except DisagreementError as error:
        return met, str(error)
    finally:
        preempting.NodeSearch.find = sound  # type: ignore[method-assign]
    return met, ""


def _takes_below_the_guarantee(_: Any) -> Any:
    return lambda self, queue: _unguarded(LEVEL(self, queue))


def _unguarded(level: Any) -> Any:
    level.guarded = False
    return level


def _free_within(search: Any, queue: Any) -> Any:
    level = LEVEL(search, queue)
    level.guarded = level.guarded and not search.within
    return level


def _leaves_the_fence(_: Any) -> Any:
    return lambda self, ask: (_top(ask), ROOT(self, ask)[1] | {_top(ask): ask.priority})


def _top(ask: Any) -> Any:
    return ask.app.queue.lineage()[-1]


def _only_what_is_free(search: NodeSearch, node_group: Any) -> None:
    for alloc in node_group.node.allocations:
        if alloc.preempted:
            node_group.room.plus(alloc.shape.amounts)


def _closed(node: Any, ask: Any, *_others: Any) -> bool:
    return any(other is not ask for other in node.reservations)


def _one_by_one(sound: Any) -> Any:
    return lambda self, app: ([ask] for asks in sound(self, app) for ask in asks)


LEVEL = NodeSearch.budget
ROOT = PlannedUsage.fence_root
FAULTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "below the guarantee": (NodeSearch, "budget", _takes_below_the_guarantee),
    "everybody is entitled": (PlannedUsage, "shortfall", lambda _: lambda *_arguments: {0: 0}),
    "priorities": (
        NodeSearch,
        "_gather",
        lambda sound: lambda s, leaf, _highest, *more: sound(s, leaf, None, *more),
    ),
    "equal priorities within the queue": (
        NodeSearch,
        "_gather",
        lambda sound: lambda s, leaf, highest, *more: sound(s, leaf, highest and highest + s.within, *more),
    ),
    "within the queue no guarantee counts": (NodeSearch, "budget", lambda _: _free_within),
    "outside the fence": (PlannedUsage, "fence_root", _leaves_the_fence),
    "disruption budgets do not count": (DisruptionBudgets, "of", lambda _: lambda _self, _alloc: ()),
    "what was evicted does not count for its budget": (
        DisruptionBudgets,
        "evicted",
        lambda _: lambda _self, _alloc: None,
    ),
    "a set may take more of a budget than is left": (
        VictimSearch,
        "within_budgets",
        lambda _: lambda _self, c: not nothing_left(c.disruption_budgets),
    ),
    "what one node has too much is charged to the others": (Tree, "bound_root", lambda _: lambda *_arguments: False),
    "a full cluster keeps off asks that require their node": (
        Descent,
        "fits_headroom",
        lambda _: lambda self, ask: self.headroom_left.covers(ask.shape.amounts),
    ),
    "what others claim on a node is free": (NodeSearch, "_count_room", lambda _: _only_what_is_free),
    "a node with a claim is closed": (node_search, "blocked_by_reservation", lambda _: _closed),
    "members of a gang preempt one by one": (GuaranteePreemption, "_together", _one_by_one),
    "a victim that does not end is waited for": (evictions, "OVERDUE_NS", lambda _: 10**18),
    "no second try": (GuaranteePreemption, "_something_changed", lambda _: lambda self: self._failed.clear()),
}


if __name__ == "__main__":
    where, function, broken = FAULTS[sys.argv[1]]
    setattr(where, function, broken(getattr(where, function)))
    for number in range(1, ENOUGH + 1):
        fault = compare(1, SEED + number - 1)[1]
        if fault:
            sys.stdout.write(f"caught after {number} scenarios: {fault.splitlines()[0]}")
            break
    else:
        sys.stdout.write("not caught")
