"""The order of victims, for every kind of preemption: which of two victim sets is better.

Source: docs/understand/preemption.md, "The choice of victims"; docs/understand/quota-change.md, "The victims".

The better set has the fewer *reluctant* members, which refuse preemption, are the originator of their application, or
are members of a disruption budget that has nothing left. The first two follow from the allocation alone
(`is_reluctant`); where budgets are looked at, `Candidate.reluctant` has all three.
Of sets that are equal in this the one with fewer members is better, then the one with the lower sum of priorities, then
the newer one: members are compared one by one, newest first. Of sets that are equal in all of it the one for the first
node is chosen. This is the order of `VictimRank`; `victim_order` is the same for single victims. The searches try sets
in this order, or keep the set of the lowest rank.

Within the ask's own leaf the order is that of kube-scheduler: of sets with equally many reluctant members the one whose
highest priority is lower is better, before their numbers are compared; and of two nodes the one is better whose victims of
the highest priority have not run so long. On one node the newest go, as elsewhere.

What a priority is depends on the kind of preemption: for a guarantee it is the one that the root of the search sees,
otherwise the allocation's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.queues.ask import Ask

if TYPE_CHECKING:
    from .candidates import Candidate


@cython.ccall
@cython.exceptval(check=False)
def is_reluctant(alloc: Ask) -> cython.bint:
    """Is the allocation reluctant whatever the disruption budgets say: does it refuse preemption, or is it an originator?"""
    return alloc.originator or not alloc.allow_self


def newest_first(alloc: Ask) -> tuple[int, int]:
    """A sort key that puts the newest allocation first, and of equally old ones the last to arrive."""
    return -alloc.created, -alloc.seq


def victim_order(alloc: Ask, reluctant: bool, priority: int) -> tuple[bool, int, int, int]:
    """A sort key of victims: as the only victim, the first is the best. `priority` is what counts as its priority."""
    return reluctant, priority, -alloc.created, -alloc.seq


def release_order(alloc: Ask) -> tuple[int, int, int, int]:
    """A sort key for the releases of a set of victims: ordinary ones, those that refuse preemption, then originators.

    Within these classes the order is that of victims (docs/spec/preemption.md, section 3).
    """
    return (2 if alloc.originator else int(not alloc.allow_self)), alloc.priority, -alloc.created, -alloc.seq


@cython.cclass
class VictimRank:
    """The rank of a victim set, or a rank that no set of some kind precedes; the set that precedes the others is best.

    `highest` is the highest priority of a member within the ask's own leaf, elsewhere 0. `created` and `seq` are those of
    the newest member; within the leaf, of the oldest of those with the highest priority. `ages` are sort keys of all
    members, the newest first; None if the members are not known, which leaves open which of two sets is better that are
    equal as far as they are known.
    """

    reluctant: cython.longlong
    highest: cython.longlong
    count: cython.longlong
    priorities: cython.longlong  # their sum
    created: cython.longlong
    seq: cython.longlong
    ages: list[Any] | None
    node_order: cython.longlong

    @cython.ccall
    @cython.exceptval(-1)
    def precedes(self, other: VictimRank) -> cython.bint:
        """Is the set of this rank surely better than that of the other?"""
        if self.reluctant != other.reluctant:
            return self.reluctant < other.reluctant
        if self.highest != other.highest:
            return self.highest < other.highest
        if self.count != other.count:
            return self.count < other.count
        if self.priorities != other.priorities:
            return self.priorities < other.priorities
        if self.created != other.created:
            return self.created > other.created
        if self.seq != other.seq:
            return self.seq > other.seq
        if self.ages is None or other.ages is None:
            return False
        return (self.ages, self.node_order) < (other.ages, other.node_order)

    @cython.ccall
    @cython.exceptval(check=False)
    def admits(self, reluctant: cython.longlong, highest: cython.longlong, count: cython.longlong) -> cython.bint:
        """May a set with so many reluctant members, this highest priority, and so many members be as good as this one?"""
        if reluctant != self.reluctant:
            return reluctant < self.reluctant
        return highest < self.highest or (highest == self.highest and count <= self.count)


@cython.cfunc
def lowest_rank(
    reluctant: cython.longlong,
    highest: cython.longlong,
    count: cython.longlong,
    priorities: cython.longlong,
    created: cython.longlong,
    seq: cython.longlong,
) -> VictimRank:
    """Return a bound: no set of victims precedes it that has at least so many members and so high priorities, and no newer member."""
    rank: VictimRank = VictimRank.__new__(VictimRank)
    rank.reluctant = reluctant
    rank.highest = highest
    rank.count = count
    rank.priorities = priorities
    rank.created = created
    rank.seq = seq
    rank.ages = None
    rank.node_order = 0
    return rank


def set_rank(reluctant: int, priorities: list[int], ages: list[tuple[int, ...]], node_order: int = 0) -> VictimRank:
    """The rank of a set by its members: the number of reluctant ones, their priorities, and their `newest_first`."""
    ages.sort()
    rank: VictimRank = lowest_rank(reluctant, 0, len(priorities), sum(priorities), -ages[0][0], -ages[0][1])
    rank.ages = ages
    rank.node_order = node_order
    return rank


def rank_of(victims: list[Candidate], node_order: int = 0) -> VictimRank:
    """The rank of a set of candidates, for the node at this position."""
    rank: VictimRank = set_rank(
        sum([c.reluctant for c in victims]),
        [c.priority for c in victims],
        [newest_first(c.alloc) for c in victims],
        node_order,
    )
    if victims[0].leaf_group.own:
        rank.highest = max([c.priority for c in victims])
        oldest = max([newest_first(c.alloc) for c in victims if c.priority == rank.highest])
        rank.created, rank.seq = -oldest[0], -oldest[1]
    return rank
