"""The best victim set on one node: which allocations are evicted so that an ask has room.

Source: docs/understand/preemption.md, "The choice of victims"; docs/spec/preemption.md, sections 2 and 3.

A victim set is feasible if its members on the node give back at least what is lacking there (`short_on_node`), all of
its members together at least what is over a quota (`short_of_quota`), nothing else keeps the ask off the node when they have
ended (`verdict`), and no queue falls below its guarantee. While `keeps_budgets` is set, no disruption budget may be broken
either. The best feasible set is the one of the lowest rank (`licorne.core.preemption.ranking`).

The search is exact. For each number of reluctant members and of members it tries the combinations, the newest first,
and cuts a branch that can give too little, or nothing better. It counts its steps; a search that takes too many is
replaced by a greedy one, whose set then loses every member that it can do without.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_vec
from licorne.core.constants import UNLIMITED
from licorne.core.queues.ask import Ask

from .candidates import Candidate, LeafCandidates, NodeCandidates, QueueBudget, candidate_order
from .ranking import VictimRank, newest_first, rank_of

STEPS_MAX = cython.declare(cython.longlong, 20_000)
"""How many steps an exact search may take before a greedy one replaces it."""
LIFT_STEPS = cython.declare(cython.longlong, 100)
"""For how many more steps an addition counts after which devices are searched for (`NodeVerdict.frees_devices`)."""
POOL_MAX = cython.declare(cython.Py_ssize_t, 200)
"""With more candidates than this no exact search is tried."""
FAR_MAX = cython.declare(cython.Py_ssize_t, 64)  # candidates on other nodes that the search of one node considers


@cython.cclass
class VictimSearch:
    """The search for the best victim set among the candidates of a pool."""

    pool: list[Candidate]  # newest first
    amounts_on_node: list[Vec]  # by index in the pool: the candidate's amounts if it is on the node, else empty
    short_on_node: Vec  # what is still lacking on the node; at 0 or below, nothing is
    short_of_quota: Vec  # what must still be given back to keep the quotas, on whatever node
    # Of the candidates from this index of the pool on:
    largest_on_node: list[Vec]  # the largest amounts on the node, by type
    largest: list[Vec]  # the largest amounts, by type
    lowest_priority: list[int]
    reluctant_from: list[int]  # the number of reluctant ones
    needed_from: list[int]  # the number of those that are in every feasible set
    needed: dict[Ask, None]  # all of these
    picked: list[Candidate]
    best: list[Candidate] | None
    best_sum: cython.longlong
    steps_left: cython.longlong  # of the search that is running
    steps: cython.longlong  # counted work: steps of all searches
    keeps_budgets: cython.bint
    verdict: Any  # of the node, about more than amounts (`NodeVerdict`); None: they alone count

    def __init__(self) -> None:
        self.pool = []
        self.amounts_on_node = []
        self.short_on_node = Vec()
        self.short_of_quota = Vec()
        self.largest_on_node = []
        self.largest = []
        self.lowest_priority = []
        self.reluctant_from = []
        self.needed_from = []
        self.needed = {}
        self.picked = []
        self.best = None
        self.best_sum = 0
        self.steps_left = 0
        self.steps = 0
        self.keeps_budgets = True
        self.verdict = None

    def find(
        self,
        near: list[Any],
        far: list[Any],
        short_on_node: Vec,
        short_of_quota: Vec,
        bound: VictimRank | None,
    ) -> list[Any] | None:
        """The best victim set among candidates on the node (`near`) and elsewhere (`far`); None if none is feasible.

        `bound` is the rank of a set that is known: one that is worse need not be found.
        """
        nothing: Vec = new_vec(0, 0)
        both: list[Any] = [(newest_first(c.alloc), c, c.amounts) for c in near]
        both += [(newest_first(c.alloc), c, nothing) for c in far]
        both.sort(key=itemgetter(0))
        self.pool = [each[1] for each in both]
        self.amounts_on_node = [each[2] for each in both]
        self.short_on_node = short_on_node
        self.short_of_quota = short_of_quota
        if not self._reachable():
            return None
        self.needed = {}
        if self.verdict is not None:
            allocations = [each[1].alloc for each in both]
            self.steps += len(allocations) + LIFT_STEPS * sum(map(self.verdict.frees_devices, allocations))
            if not self.verdict.may_suffice_without(allocations):
                return None
            self.needed = self.verdict.must_go(allocations)
        self.steps_left = STEPS_MAX if len(both) <= POOL_MAX else 0
        if self.steps_left:
            self._prepare()
        found = self._exact(bound) if self.steps_left else None
        if self.steps_left <= 0:
            greedy = self._greedy()
            if greedy is not None and (found is None or rank_of(greedy).precedes(rank_of(found))):
                found = greedy
        return found

    def helpful_elsewhere(
        self, node_group: NodeCandidates, over_quota: Vec, by_rank: list[Any], by_node: dict[Any, Any]
    ) -> list[Any]:
        """Candidates on other nodes that may help to keep a quota, or to open a topology domain, at most `FAR_MAX`.

        Of those for a quota that are alike in leaf, reluctance, priority, amounts and disruption budgets the newest are
        taken, no more than could help.
        """
        c: Candidate
        d: cython.Py_ssize_t
        helpful: cython.longlong
        taken: dict[object, int] = {}
        found: list[Any] = [] if self.verdict is None else self._in_domains(node_group, by_node)
        known: dict[Candidate, None] = dict.fromkeys(found)
        if over_quota.zero():
            return found
        for each in by_rank:  # among those that are alike, the newest come first
            if len(found) >= FAR_MAX:
                break
            c = each
            if c.node_group is node_group or not c.usable() or c in known:
                continue
            if self.keeps_budgets and not self.within_budgets(c):
                continue
            helpful = 0
            for d in range(over_quota.n):
                if over_quota.v[d] > 0 and c.amounts.at(d) > 0:
                    helpful = max(helpful, (over_quota.v[d] + c.amounts.v[d] - 1) // c.amounts.v[d])
            key = (c.leaf_group, c.reluctant, c.priority, tuple(c.amounts.values()), c.disruption_budgets)
            if taken.get(key, 0) < helpful:
                taken[key] = taken.get(key, 0) + 1
                found.append(c)
        return found

    def _in_domains(self, node_group: NodeCandidates, by_node: dict[Any, Any]) -> list[Any]:
        """Candidates on other nodes that shut the ask out of a topology domain of the node, the best first, at most `FAR_MAX`."""
        c: Candidate
        found: list[Any] = []
        for node in self.verdict.neighbours():
            if node is node_group.node or node not in by_node:
                continue
            for each in cython.cast(NodeCandidates, by_node[node]).members:
                c = each
                self.steps += 1
                if c.usable() and self.verdict.helps(c.alloc):
                    if not self.keeps_budgets or self.within_budgets(c):
                        found.append(c)
        found.sort(key=candidate_order)
        return found[:FAR_MAX]

    # -- exact -----------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        i: cython.Py_ssize_t
        c: Candidate
        n: cython.Py_ssize_t = len(self.pool)
        most: Vec = new_vec(0, 0)
        most_near: Vec = new_vec(0, 0)
        self.largest = [most] * (n + 1)
        self.largest_on_node = [most_near] * (n + 1)
        self.lowest_priority = [0] * (n + 1)
        self.reluctant_from = [0] * (n + 1)
        self.needed_from = [0] * (n + 1)
        for i in range(n - 1, -1, -1):
            c = self.pool[i]
            most = most.clone()
            most.raise_to(c.amounts)
            most_near = most_near.clone()
            most_near.raise_to(cython.cast(Vec, self.amounts_on_node[i]))
            self.largest[i] = most
            self.largest_on_node[i] = most_near
            self.lowest_priority[i] = c.priority if i == n - 1 else min(self.lowest_priority[i + 1], c.priority)
            self.reluctant_from[i] = self.reluctant_from[i + 1] + (1 if c.reluctant else 0)
            self.needed_from[i] = self.needed_from[i + 1] + (1 if c.alloc in self.needed else 0)

    def _reachable(self) -> bool:
        """Would all candidates together be enough, if each leaf gives no more than it may lose?"""
        c: Candidate
        given: dict[LeafCandidates, Vec] = {}
        total: Vec = new_vec(0, 0)
        near: Vec = new_vec(0, 0)
        capped: Vec
        for i in range(len(self.pool)):
            c = self.pool[i]
            near.plus(cython.cast(Vec, self.amounts_on_node[i]))
            if c.leaf_group not in given:
                given[c.leaf_group] = new_vec(0, 0)
            capped = given[c.leaf_group]
            capped.plus(c.amounts)
        if not near.covers(self.short_on_node):
            return False
        for leaf_group, amounts in given.items():
            capped = amounts
            capped.lower_to(leaf_group.max_loss)
            total.plus(capped)
        return total.covers(self.short_of_quota) and total.covers(self.short_on_node)

    def _exact(self, bound: VictimRank | None) -> list[Any] | None:
        reluctant: cython.Py_ssize_t
        pool: list[Any] = self.pool
        amounts: list[Any] = self.amounts_on_node
        all_reluctant: cython.Py_ssize_t = self.reluctant_from[0] if pool else 0
        own: bool = bool(pool) and cython.cast(Candidate, pool[0]).leaf_group.own
        levels = sorted({c.priority for c in pool}) if own else [0]
        found: list[Any] | None = None
        # Numbers are tried in the order of rank, so the first of them with a feasible set have the best set.
        for reluctant in range(all_reluctant + 1):
            for highest in levels:
                if own:
                    self._narrow(pool, amounts, highest)
                found = self._of_numbers(reluctant, highest, bound)
                if found is not None or self.steps_left <= 0:
                    break
            if found is not None or self.steps_left <= 0:
                break
        self.pool = pool
        self.amounts_on_node = amounts
        return found

    @cython.cfunc
    def _narrow(self, pool: list[Any], amounts: list[Any], highest: cython.longlong) -> cython.void:
        """Search only among those of the pool whose priority is not above `highest`."""
        i: cython.Py_ssize_t
        kept: list[int] = [i for i in range(len(pool)) if cython.cast(Candidate, pool[i]).priority <= highest]
        self.pool = [pool[i] for i in kept]
        self.amounts_on_node = [amounts[i] for i in kept]
        self.steps_left -= len(pool)
        self.steps += len(pool)
        self._prepare()

    def _of_numbers(
        self, reluctant: cython.Py_ssize_t, highest: cython.longlong, bound: VictimRank | None
    ) -> list[Any] | None:
        """The best set with so many reluctant members, of those in the pool; None if there is none, or the steps are used up."""
        count: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.pool)
        all_reluctant: cython.Py_ssize_t = self.reluctant_from[0]
        needed: cython.Py_ssize_t = len(self.needed)
        if reluctant > all_reluctant or self.needed_from[0] < needed or not self._enough(n):
            return None
        for count in range(max(reluctant, needed, 1), n - all_reluctant + reluctant + 1):
            if bound is not None and not bound.admits(reluctant, highest, count):
                return None
            if not self._enough(count):
                continue
            self.best = None
            self.best_sum = UNLIMITED
            # A set with the same sum of priorities as the bound may still be newer, so that sum is not cut off.
            if bound is not None and (reluctant, highest, count) == (bound.reluctant, bound.highest, bound.count):
                self.best_sum = bound.priorities + 1
            self.picked = []
            self._pick(0, count, reluctant, 0)
            if self.best is not None:
                return self.best
            if self.steps_left <= 0:
                return None
        return None

    @cython.cfunc
    def _enough(self, count: cython.Py_ssize_t) -> cython.bint:
        """Could `count` candidates be enough? For each type on its own, the `count` largest of it are compared."""
        d: cython.Py_ssize_t
        i: cython.Py_ssize_t
        for d in range(max(self.short_on_node.n, self.short_of_quota.n)):
            if self.short_on_node.at(d) > 0:
                amounts = sorted(
                    [cython.cast(Vec, self.amounts_on_node[i]).at(d) for i in range(len(self.amounts_on_node))]
                )
                if sum(amounts[-count:]) < self.short_on_node.at(d):
                    return False
            if self.short_of_quota.at(d) > 0:
                amounts = sorted([cython.cast(Candidate, self.pool[i]).amounts.at(d) for i in range(len(self.pool))])
                if sum(amounts[-count:]) < self.short_of_quota.at(d):
                    return False
        return True

    @cython.cfunc
    def _pick(
        self, start: cython.Py_ssize_t, count: cython.Py_ssize_t, reluctant: cython.Py_ssize_t, total: cython.longlong
    ) -> cython.void:
        """Pick `count` more candidates from index `start` on, `reluctant` of them reluctant.

        `total` is the sum of priorities of those picked already.
        """
        i: cython.Py_ssize_t
        c: Candidate
        least: cython.longlong
        n: cython.Py_ssize_t = len(self.pool)
        if count == 0:
            # Combinations come newest first, so of two with the same sum the one found first is better.
            if total < self.best_sum and self._covered():
                self.best = list(self.picked)
                self.best_sum = total
            return
        for i in range(start, n - count + 1):
            self.steps_left -= 1
            self.steps += 1
            if self.steps_left <= 0:
                return
            least = self.lowest_priority[i]
            # What rules out this start rules out all later ones too, hence `return` and not `continue`.
            if (
                self.reluctant_from[i] < reluctant
                or self.needed_from[i] < self.needed_from[start]
                or self.needed_from[i] > count
                or (self.best_sum != UNLIMITED and total + least * count >= self.best_sum)
            ):
                return
            if not self._within_reach(i, count):
                return
            c = self.pool[i]
            if (c.reluctant and reluctant == 0) or (not c.reluctant and reluctant == count):
                continue
            if not self._add(c, cython.cast(Vec, self.amounts_on_node[i])):
                continue
            self.picked.append(c)
            try:
                self._pick(i + 1, count - 1, reluctant - 1 if c.reluctant else reluctant, total + c.priority)
            finally:
                self.picked.pop()
                self._remove(c, cython.cast(Vec, self.amounts_on_node[i]))

    @cython.cfunc
    def _within_reach(self, i: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.bint:
        """Can `count` candidates from index `i` on give what is lacking? (One of them must give its share of it.)"""
        d: cython.Py_ssize_t
        near: Vec = cython.cast(Vec, self.largest_on_node[i])
        most: Vec = cython.cast(Vec, self.largest[i])
        for d in range(self.short_on_node.n):
            if self.short_on_node.v[d] > 0 and near.at(d) < (self.short_on_node.v[d] + count - 1) // count:
                return False
        for d in range(self.short_of_quota.n):
            if self.short_of_quota.v[d] > 0 and most.at(d) < (self.short_of_quota.v[d] + count - 1) // count:
                return False
        return True

    @cython.cfunc
    def _covered(self) -> cython.bint:
        """Do the candidates that were added give all that is needed, on the node and for the quotas?"""
        d: cython.Py_ssize_t
        for d in range(self.short_on_node.n):
            if self.short_on_node.v[d] > 0:
                return False
        for d in range(self.short_of_quota.n):
            if self.short_of_quota.v[d] > 0:
                return False
        return self.verdict is None or self.verdict.suffices()

    @cython.cfunc
    def _add(self, c: Candidate, near: Vec) -> cython.bint:
        """Add a candidate to the set.

        False, and nothing changed, if a queue would fall below its guarantee, or a disruption budget be broken.
        """
        budget: QueueBudget
        for each in c.leaf_group.budgets:
            budget = each
            if not budget.allows(c.amounts):
                return False
        if c.disruption_budgets and self.keeps_budgets and not self.within_budgets(c):
            return False
        if self.verdict is not None:
            if self.verdict.frees_devices(c.alloc):
                self.steps_left -= LIFT_STEPS
                self.steps += LIFT_STEPS
            self.verdict.add(c.alloc)  # first, as an error there leaves all counts as they were
        for each in c.disruption_budgets:
            each.taken += 1
        for each in c.leaf_group.budgets:
            budget = each
            budget.taken.plus(c.amounts)
        self.short_on_node.minus(near)
        self.short_of_quota.minus(c.amounts)
        return True

    @cython.cfunc
    def _remove(self, c: Candidate, near: Vec) -> cython.void:
        budget: QueueBudget
        for each in c.disruption_budgets:
            each.taken -= 1
        for each in c.leaf_group.budgets:
            budget = each
            budget.taken.minus(c.amounts)
        self.short_on_node.plus(near)
        self.short_of_quota.plus(c.amounts)
        if self.verdict is not None:
            self.verdict.remove(c.alloc)

    @cython.ccall
    @cython.exceptval(-1)
    def within_budgets(self, c: Candidate) -> cython.bint:
        """May the candidate be added without breaking a disruption budget?"""
        for each in c.disruption_budgets:
            if each.taken >= each.left:
                return False
        return True

    # -- greedy ----------------------------------------------------------------------------------------

    def _greedy(self) -> list[Any] | None:
        """A greedy victim set: add candidates that give something lacking, the best first; then drop unneeded ones."""
        c: Candidate
        near: Vec
        found: list[Any] = []
        order = sorted([(self.pool[i].order, i) for i in range(len(self.pool))])
        added: dict[Any, Vec] = {}
        try:
            for _, i in order:
                c = self.pool[i]
                near = self.amounts_on_node[i]
                if self._covered():
                    break
                if self._helps(c, near) and self._add(c, near):
                    added[c] = near
            if not self._covered():
                return None
            found = list(added)
            for c in reversed(found):  # the worst are dropped first
                near = added.pop(c)
                self._remove(c, near)
                if not self._covered() and self._add(c, near):
                    added[c] = near
            return [c for c in found if c in added]
        finally:  # budgets and shortages are as before
            for c, near in added.items():
                self._remove(c, near)

    @cython.cfunc
    def _helps(self, c: Candidate, near: Vec) -> cython.bint:
        """Does the candidate give anything of a type that is lacking, or hold what keeps the ask off the node else?"""
        d: cython.Py_ssize_t
        amounts: Vec = c.amounts
        if self.verdict is not None and self.verdict.helps(c.alloc) and not self.verdict.suffices():
            return True
        for d in range(max(self.short_on_node.n, self.short_of_quota.n)):
            if self.short_on_node.at(d) > 0 and near.at(d) > 0:
                return True
            if self.short_of_quota.at(d) > 0 and amounts.at(d) > 0:
                return True
        return False


def wanted_part(lacking: Vec, wanted: Vec) -> Vec:
    """What is lacking of the types that are wanted; 0 where nothing is."""
    d: cython.Py_ssize_t
    found: Vec = new_vec(wanted.n, 0)
    for d in range(wanted.n):
        if wanted.v[d] > 0:
            found.v[d] = max(lacking.at(d), 0)
    return found
