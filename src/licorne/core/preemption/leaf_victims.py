"""Which allocations of a leaf are evicted when a quota was lowered (docs/spec/preemption.md, section 4.5).

A victim set is *feasible* if it fits the budget of the leaf, which is what the leaf has to give back, and no further
candidate fits what remains of the budget. The best feasible set is the one of the lowest rank
(`licorne.core.preemption.ranking`). The original takes originators and those that refuse first, by a slip in its order.

Candidates that are equal in reluctance and in the amounts that matter form a *group*. Within a group only the number of
victims is open, because those of the lowest priority are taken first, and of equals the newest. What remains is a
depth-first search over these numbers. Its bound is how many victims must still be taken so that no candidate that was
left out fits in the end. It starts from good sets (large candidates first, and the same order with each group moved to
the front or the end) and stops with the best set, or after a given number of steps: it is exact on leaves with a few
groups, and nearly so on others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING

from .ranking import VictimRank, is_reluctant, newest_first, set_rank, victim_order

if TYPE_CHECKING:
    from licorne.core.queues.ask import Ask

GROUPS_MAX = 24
"""With more groups than this there is no search: the best of the sets that it would start from is the result."""

Size = tuple[int, ...]
Age = tuple[int, int, int]
"""A sort key that puts the newest first: `newest_first` of the allocation, and its index among the candidates."""


def choose(
    candidates: Sequence[Ask],
    budget: Mapping[int, int],
    steps: int,
    refusing: Callable[[Sequence[Ask]], Container[Ask]] = lambda _: (),
) -> list[Ask]:
    """The best feasible victim set among the candidates, found in about `steps` steps; empty if none fits the budget.

    `budget[d]` is how much of the type with index d may be given back; a type of which any amount may is absent. Of
    allocations of one ask, which are equally old, those that come first among the candidates count as newer. `refusing`
    returns those of the candidates given to it that are reluctant for a reason outside of them.
    """
    fitting = [a for a in candidates if all(a.shape.amounts.at(d) <= max(0, left) for d, left in budget.items())]
    if not fitting:
        return []
    types = [d for d in sorted(budget) if any(a.shape.amounts.at(d) for a in fitting)]
    groups: dict[tuple[bool, Size], VictimGroup] = {}
    refused = refusing(fitting)
    for alloc in fitting:
        kind = (is_reluctant(alloc) or alloc in refused, tuple(alloc.shape.amounts.at(d) for d in types))
        if kind not in groups:
            groups[kind] = VictimGroup(*kind)
        groups[kind].members.append(alloc)
    ordered = sorted(groups.values(), key=lambda group: group.fill_order([budget[d] for d in types]))
    ages = {alloc: (*newest_first(alloc), place) for place, alloc in enumerate(candidates)}
    for group in ordered:
        group.members.sort(key=group.victim_order)
    search = LeafVictimSearch(ordered, [budget[d] for d in types], steps, ages)
    search.run()
    return [alloc for group, number in zip(ordered, search.best, strict=True) for alloc in group.members[:number]]


class VictimGroup:
    """Candidates that differ in priority and age only. `size` is their amounts of the types that matter."""

    def __init__(self, reluctant: bool, size: Size) -> None:
        self.reluctant = reluctant
        self.size = size
        self.members: list[Ask] = []

    def victim_order(self, alloc: Ask) -> tuple[bool, int, int, int]:
        """The order in which members are evicted."""
        return victim_order(alloc, self.reluctant, alloc.priority)

    def fill_order(self, room: Sequence[int]) -> tuple[bool, int, Size]:
        """The order in which a good first set is filled: reluctant groups last, large sizes first.

        A size is compared by the largest part of the budget that it takes, in millionths.
        """
        part = max(
            (size * 1_000_000 // left for size, left in zip(self.size, room, strict=True) if left > 0), default=0
        )
        return self.reluctant, -part, tuple(-size for size in self.size)

    def max_count(self, rest: Sequence[int]) -> int:
        """How many members of the group fit into `rest`."""
        number = len(self.members)
        for size, left in zip(self.size, rest, strict=True):
            if size:
                number = min(number, left // size)
        return number


class LeafVictimSearch:
    """The search for the number of victims from each group; `best` holds the best numbers found, by group."""

    def __init__(self, groups: list[VictimGroup], room: list[int], steps: int, ages: Mapping[Ask, Age]) -> None:
        self.groups = groups
        self.budget = room
        self.steps = steps
        self.ages = ages
        self.best: list[int] = []
        self.best_rank: VictimRank | None = None
        self.numbers = [0] * len(groups)
        # For the groups from each index on, by type: the sums of all members, the sums without reluctant ones, and the
        # largest size.
        self.suffix_sums: list[tuple[list[int], list[int], list[int]]] = []
        zeros = [0] * len(room)
        tail = (zeros, zeros, zeros)
        self.suffix_sums.append(tail)
        for group in reversed(groups):
            whole = [size * len(group.members) for size in group.size]
            tail = (
                [a + b for a, b in zip(tail[0], whole, strict=True)],
                tail[1] if group.reluctant else [a + b for a, b in zip(tail[1], whole, strict=True)],
                [max(a, b) for a, b in zip(tail[2], group.size, strict=True)],
            )
            self.suffix_sums.append(tail)
        self.suffix_sums.reverse()

    def run(self) -> None:
        """Find the best victim set, or a good one if the steps are used up first."""
        order = list(range(len(self.groups)))
        self._fill(order)
        for place in order if len(order) > 1 else ():
            others = order[:place] + order[place + 1 :]
            self._fill([place, *others])
            self._fill([*others, place])
            if self.steps <= 0:
                return
        if len(self.groups) <= GROUPS_MAX:
            self.numbers = [0] * len(self.groups)
            self._descend(0, list(self.budget), 0, 0)

    def _fill(self, order: list[int]) -> None:
        """Take as many as fit from each group, in this order. No other candidate fits then, so the set is feasible."""
        rest = list(self.budget)
        for place in order:
            group = self.groups[place]
            number = self.numbers[place] = group.max_count(rest)
            rest = [left - number * size for left, size in zip(rest, group.size, strict=True)]
        self.steps -= len(order)
        self._consider()

    def _consider(self) -> None:
        """Keep the current numbers, which are a feasible set, if it is the best so far."""
        reluctant = sum(number for group, number in zip(self.groups, self.numbers, strict=True) if group.reluctant)
        if self.best_rank is not None and not self.best_rank.admits(reluctant, 0, sum(self.numbers)):
            return
        victims = [a for g, number in zip(self.groups, self.numbers, strict=True) for a in g.members[:number]]
        self.steps -= len(victims) // 8
        rank = set_rank(reluctant, [a.priority for a in victims], [self.ages[a] for a in victims])
        if self.best_rank is None or rank.precedes(self.best_rank):
            self.best_rank = rank
            self.best = list(self.numbers)

    def _descend(self, at: int, rest: list[int], reluctant: int, taken: int) -> None:
        """Try all numbers for the groups from index `at` on; the numbers of those before it are fixed."""
        self.steps -= 1 + at // 8  # `_can_improve` costs more the more groups precede
        if not self._can_improve(at, rest, reluctant, taken):
            return
        if at == len(self.groups):
            self._consider()
            return
        group = self.groups[at]
        for number in range(group.max_count(rest), -1, -1):
            if self.steps <= 0:
                return
            self.numbers[at] = number
            left = [amount - number * size for amount, size in zip(rest, group.size, strict=True)]
            self._descend(at + 1, left, reluctant + (number if group.reluctant else 0), taken + number)

    def _can_improve(self, at: int, rest: list[int], reluctant: int, taken: int) -> bool:
        """Can the numbers chosen so far lead to a feasible set that is not worse than the best one?

        A candidate that was left out of an earlier group must not fit in the end. So the groups that follow must take
        enough of some type: that needs a number of further victims, and reluctant ones if the others are not enough.
        """
        more = more_reluctant = 0
        for place in range(at):
            group = self.groups[place]
            if self.numbers[place] < len(group.members):
                needed = self._needed_to_block(group.size, at, rest)
                if needed is None:
                    return False
                more = max(more, needed[0])
                more_reluctant = max(more_reluctant, needed[1])
        return self.best_rank is None or self.best_rank.admits(reluctant + more_reluctant, 0, taken + more)

    def _needed_to_block(self, size: Size, at: int, rest: list[int]) -> tuple[int, int] | None:
        """The least number of victims, and of reluctant ones, that must follow so that a size does not fit.

        None: it always will fit.
        """
        whole, good, largest = self.suffix_sums[at]
        least: int | None = None
        least_reluctant = 0
        for d, left in enumerate(rest):
            lacking = left - size[d] + 1  # what must be taken of this type, at least, so that the size does not fit
            if size[d] == 0 or lacking > whole[d]:
                continue
            if lacking <= 0:
                return 0, 0
            number = -(-lacking // largest[d])
            number_reluctant = max(0, -(-(lacking - good[d]) // largest[d]))
            least_reluctant = number_reluctant if least is None else min(least_reluctant, number_reluctant)
            least = number if least is None else min(least, number)
        return None if least is None else (least, least_reluctant)
