"""Disruption budgets: how many allocations of a set may be evicted before they are replaced.

Source: docs/understand/preemption.md, "Disruption budgets".

The resource manager keeps the budgets (on Kubernetes, from PodDisruptionBudgets) and tells the scheduler of each how many
more evictions it allows, and which allocations count. The scheduler itself counts those that it has evicted, until the
resource manager says that they do not count any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .ranking import is_reluctant, victim_order

if TYPE_CHECKING:
    from licorne.core.queues.ask import Ask
    from licorne.si.messages import DisruptionBudgetUpdate


class DisruptionBudget:
    """A budget. `going` are those of its members that were evicted; `taken` counts those in the set that is being tried."""

    __slots__ = ("allowed", "going", "members", "taken")

    def __init__(self) -> None:
        self.allowed: int = 0
        self.members: dict[str, None] = {}
        self.going: dict[str, None] = {}
        self.taken: int = 0

    @property
    def left(self) -> int:
        """How many more of its allocations may be evicted."""
        return self.allowed - len(self.going)


class DisruptionBudgets:
    """The budgets of one partition, by name and by the id of an allocation. `generation` changes with what is left."""

    def __init__(self) -> None:
        self.by_name: dict[str, DisruptionBudget] = {}
        self.by_id: dict[str, tuple[DisruptionBudget, ...]] = {}
        self.generation: int = 0

    def update(self, message: DisruptionBudgetUpdate) -> None:
        """Take in a budget that is new, has changed or is gone."""
        self.generation += 1
        budget = self.by_name.get(message.name)
        if budget is None:
            if message.allowed is None:
                return
            budget = self.by_name[message.name] = DisruptionBudget()
        for allocation_id in message.left if message.allowed is not None else tuple(budget.members):
            self._leave(budget, allocation_id)
        if message.allowed is None:
            del self.by_name[message.name]
            return
        budget.allowed = message.allowed
        for allocation_id in message.joined:
            if allocation_id not in budget.members:
                budget.members[allocation_id] = None
                self.by_id[allocation_id] = (*self.by_id.get(allocation_id, ()), budget)

    def _leave(self, budget: DisruptionBudget, allocation_id: str) -> None:
        budget.members.pop(allocation_id, None)
        budget.going.pop(allocation_id, None)
        others = tuple(one for one in self.by_id.get(allocation_id, ()) if one is not budget)
        if others:
            self.by_id[allocation_id] = others
        else:
            self.by_id.pop(allocation_id, None)

    def of(self, alloc: Ask) -> tuple[DisruptionBudget, ...]:
        """The budgets that an allocation counts for."""
        return self.by_id.get(alloc.id, ())

    def evicted(self, alloc: Ask) -> None:
        """Count an allocation that was evicted."""
        for budget in self.of(alloc):
            budget.going[alloc.id] = None
            self.generation += 1

    def refusing(self, allocs: Iterable[Ask], chosen: Iterable[Ask] = ()) -> set[Ask]:
        """Those of the allocations that must stay so that no budget is broken, if the best of each budget go first.

        `chosen` are victims that are not evicted yet.
        """
        if not self.by_id:
            return set()
        left = {id(budget): budget.left for budget in self.by_name.values()}
        for alloc in chosen:
            for budget in self.of(alloc):
                left[id(budget)] -= 1
        found = set()
        for alloc in sorted(allocs, key=lambda alloc: victim_order(alloc, is_reluctant(alloc), alloc.priority)):
            budgets = self.of(alloc)
            if any(left[id(budget)] <= 0 for budget in budgets):
                found.add(alloc)
            else:
                for budget in budgets:
                    left[id(budget)] -= 1
        return found


def nothing_left(budgets: tuple[DisruptionBudget, ...]) -> bool:
    """Whether an eviction would break one of these budgets."""
    return any(budget.left <= 0 for budget in budgets)
