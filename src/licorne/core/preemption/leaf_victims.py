"""Which allocations of a leaf are its victims when a quota was lowered (docs/spec/preemption.md, section 4.5).

A set of victims *serves* if together they fit the room that the leaf has to give, and no other candidate fits what they
leave of it. Of all sets that serve the best one is wanted: fewest that refuse preemption or are originators, then fewest
victims, then the lowest sum of priorities, then the newest. (The original takes originators and those that refuse first,
by a slip in its order.)

Candidates with the same amounts, as far as these matter, make a *group*: of a group only the number of victims is
open, for those of the lowest priority, and of equals the newest, are taken. What remains is a search over the numbers,
depth first, with bounds on what is still needed so that what is left out cannot be fitted in. It starts from a good set
(large ones first, and that order with each group first or last) and ends with the best one, or after so many steps; it
is exact on leaves with a few groups, and near to that on others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.core.queues.ask import Ask

GROUPS_MAX = 24
"""With more groups the search is not begun: the good sets that were tried are what there is."""

Size = tuple[int, ...]
Age = tuple[int, int, int]
VictimRank = tuple[int, int, int, tuple[Age, ...]]
"""What is to be small: bad ones, victims, the sum of priorities, and when they were made, negated, in order."""


def choose(candidates: Sequence[Ask], budget: Mapping[int, int], steps: int) -> list[Ask]:
    """The best set that serves. `budget`: by a type's place, without a type of which any amount may be given back.

    Of allocations of one ask, which are equally old, those that come first among the candidates count as newer.
    """
    fitting = [a for a in candidates if all(a.shape.amounts.at(d) <= max(0, left) for d, left in budget.items())]
    if not fitting:
        return []
    types = [d for d in sorted(budget) if any(a.shape.amounts.at(d) for a in fitting)]
    groups: dict[tuple[bool, Size], VictimGroup] = {}
    for alloc in fitting:
        kind = (is_reluctant(alloc), tuple(alloc.shape.amounts.at(d) for d in types))
        if kind not in groups:
            groups[kind] = VictimGroup(*kind)
        groups[kind].members.append(alloc)
    ordered = sorted(groups.values(), key=lambda group: group.rank([budget[d] for d in types]))
    ages = {alloc: (-alloc.created, -alloc.seq, place) for place, alloc in enumerate(candidates)}
    for group in ordered:
        group.members.sort(key=_first_to_go)
    search = LeafVictimSearch(ordered, [budget[d] for d in types], steps, ages)
    search.run()
    return [alloc for group, number in zip(ordered, search.best, strict=True) for alloc in group.members[:number]]


def is_reluctant(alloc: Ask) -> bool:
    """Is it to be evicted last: does it refuse preemption, or is it the originator of its application?"""
    return bool(alloc.originator or not alloc.allow_self)


def _first_to_go(alloc: Ask) -> tuple[int, int, int]:
    return alloc.priority, -alloc.created, -alloc.seq


class VictimGroup:
    """Candidates that differ in nothing but priority and age."""

    def __init__(self, reluctant: bool, size: Size) -> None:
        self.reluctant = reluctant
        self.size = size
        self.members: list[Ask] = []

    def rank(self, room: Sequence[int]) -> tuple[bool, int, Size]:
        """The order in which a good set is looked for: bad ones last, large ones first."""
        part = max(
            (size * 1_000_000 // left for size, left in zip(self.size, room, strict=True) if left > 0), default=0
        )
        return self.reluctant, -part, tuple(-size for size in self.size)

    def max_count(self, rest: Sequence[int]) -> int:
        """So many of them fit."""
        number = len(self.members)
        for size, left in zip(self.size, rest, strict=True):
            if size:
                number = min(number, left // size)
        return number


class LeafVictimSearch:
    """The search for the numbers of victims of each group; `best` is the best that was found."""

    def __init__(self, groups: list[VictimGroup], room: list[int], steps: int, ages: Mapping[Ask, Age]) -> None:
        self.groups = groups
        self.budget = room
        self.steps = steps
        self.ages = ages
        self.best: list[int] = []
        self.best_rank: VictimRank | None = None
        self.numbers = [0] * len(groups)
        # Of the groups from each place on: their sums, those of the ones that are not bad, and the largest sizes.
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
        """Find the best set, or a good one when the steps are used up."""
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
        """Take of each group as many as fit, in this order: nothing more fits then."""
        rest = list(self.budget)
        for place in order:
            group = self.groups[place]
            number = self.numbers[place] = group.max_count(rest)
            rest = [left - number * size for left, size in zip(rest, group.size, strict=True)]
        self.steps -= len(order)
        self._consider()

    def _consider(self) -> None:
        """A set that serves: is it the best until now?"""
        reluctant = sum(number for group, number in zip(self.groups, self.numbers, strict=True) if group.reluctant)
        few = (reluctant, sum(self.numbers))
        if self.best_rank is not None and few > self.best_rank[:2]:
            return
        victims = [a for g, number in zip(self.groups, self.numbers, strict=True) for a in g.members[:number]]
        self.steps -= len(victims) // 8
        newest = tuple(sorted(self.ages[a] for a in victims))
        worth = (*few, sum(a.priority for a in victims), newest)
        if self.best_rank is None or worth < self.best_rank:
            self.best_rank = worth
            self.best = list(self.numbers)

    def _descend(self, at: int, rest: list[int], reluctant: int, taken: int) -> None:
        """Try all numbers of the groups from this place on; those before have theirs."""
        self.steps -= 1 + at // 8
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
        """Can a set that serves come of this, and one that is not worse than the best?

        What was left out of the groups before must not fit in the end: in some type what follows must take away so much.
        That needs some victims more, and some bad ones if those that are not bad do not suffice.
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
        return self.best_rank is None or (reluctant + more_reluctant, taken + more) <= self.best_rank[:2]

    def _needed_to_block(self, size: Size, at: int, rest: list[int]) -> tuple[int, int] | None:
        """At least so many victims, and bad ones, must follow so that a size does not fit; None: it always will."""
        whole, good, largest = self.suffix_sums[at]
        least: int | None = None
        least_reluctant = 0
        for d, left in enumerate(rest):
            lacking = left - size[d] + 1  # so much must be taken of this type; where it asks for none, nothing helps
            if size[d] == 0 or lacking > whole[d]:
                continue
            if lacking <= 0:
                return 0, 0
            number = -(-lacking // largest[d])
            number_reluctant = max(0, -(-(lacking - good[d]) // largest[d]))
            least_reluctant = number_reluctant if least is None else min(least_reluctant, number_reluctant)
            least = number if least is None else min(least, number)
        return None if least is None else (least, least_reluctant)
