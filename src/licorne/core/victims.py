"""The best set of victims: who is evicted so that an ask has room (docs/spec/preemption.md, sections 2 and 3).

A set serves if what its members on the node give back covers what is lacking there (`here`), what all of them give back
covers what is over a quota (`whole`), and no queue falls below what is guaranteed to it. Of all sets that serve the best
has, in this order, the fewest bad members (opted out, or originator), the fewest members, the lowest sum of priorities,
and is the newest: members compared one by one, newest first.

The search is exact: for each number of bad members and of members, the combinations in the order of newness, cut where
not enough can be reached, or nothing better. It counts its steps; one that takes too many is given up for a greedy set
from which everybody is taken who can be left out.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.constants import UNLIMITED
    from cython.cimports.licorne.core.herds import Candidate, Herd, Level
    from cython.cimports.licorne.core.vectors import Vec, new_vec
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .constants import UNLIMITED
    from .herds import Candidate, Herd, Level
    from .vectors import Vec, new_vec

STEPS_MAX = cython.declare(cython.longlong, 20_000)
"""How many steps a search may take before it is given up for a greedy set."""
POOL_MAX = cython.declare(cython.Py_ssize_t, 200)
"""With more candidates than this no exact search is tried."""


def rank_of(chosen: list[Candidate]) -> tuple[int, int, int, list[tuple[int, int]]]:
    """What sets are compared by: the smallest is the best."""
    return (
        sum([c.bad for c in chosen]),
        len(chosen),
        sum([c.priority for c in chosen]),
        sorted([c.newness for c in chosen]),
    )


@cython.cclass
class Search:
    """Looks for the best set among the candidates of a pool."""

    pool: list[Candidate]  # newest first
    near: list[Vec]  # for each of them: its amounts if it is on the node, else nothing
    here: Vec  # what is lacking on the node, and what over all: nothing below 0
    whole: Vec
    most_near: list[Vec]  # the largest amounts from this place on
    most: list[Vec]
    least: list[int]  # the lowest priority from this place on
    bads: list[int]  # how many bad ones there are from this place on
    picked: list[Candidate]
    best: list[Candidate] | None
    best_sum: cython.longlong
    left: cython.longlong  # steps
    steps: cython.longlong  # of all searches: counted work

    def __init__(self) -> None:
        self.pool = []
        self.near = []
        self.here = Vec()
        self.whole = Vec()
        self.most_near = []
        self.most = []
        self.least = []
        self.bads = []
        self.picked = []
        self.best = None
        self.best_sum = 0
        self.left = 0
        self.steps = 0

    def find(
        self,
        near: list[Any],
        far: list[Any],
        here: Vec,
        whole: Vec,
        bound: tuple[int, int, int, list[tuple[int, int]]] | None,
    ) -> list[Any] | None:
        """The best set of candidates on the node (`near`) and elsewhere (`far`), None if no set serves.

        One that is worse than `bound` need not be found.
        """
        nothing: Vec = new_vec(0, 0)
        both: list[Any] = [(c.newness, c, c.amounts) for c in near]
        both += [(c.newness, c, nothing) for c in far]
        both.sort(key=itemgetter(0))
        self.pool = [each[1] for each in both]
        self.near = [each[2] for each in both]
        self.here = here
        self.whole = whole
        if not self._reachable():
            return None
        self.left = STEPS_MAX if len(both) <= POOL_MAX else 0
        if self.left:
            self._prepare()
        found = self._exact(bound) if self.left else None
        if self.left <= 0:
            greedy = self._greedy()
            if greedy is not None and (found is None or rank_of(greedy) < rank_of(found)):
                found = greedy
        return found

    # -- exact -----------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        i: cython.Py_ssize_t
        c: Candidate
        n: cython.Py_ssize_t = len(self.pool)
        most: Vec = new_vec(0, 0)
        most_near: Vec = new_vec(0, 0)
        self.most = [most] * (n + 1)
        self.most_near = [most_near] * (n + 1)
        self.least = [0] * (n + 1)
        self.bads = [0] * (n + 1)
        for i in range(n - 1, -1, -1):
            c = self.pool[i]
            most = most.clone()
            most.raise_to(c.amounts)
            most_near = most_near.clone()
            most_near.raise_to(cython.cast(Vec, self.near[i]))
            self.most[i] = most
            self.most_near[i] = most_near
            self.least[i] = c.priority if i == n - 1 else min(self.least[i + 1], c.priority)
            self.bads[i] = self.bads[i + 1] + (1 if c.bad else 0)

    def _reachable(self) -> bool:
        """Could all of them together do, each leaf giving no more than it may?"""
        c: Candidate
        given: dict[Herd, Vec] = {}
        total: Vec = new_vec(0, 0)
        near: Vec = new_vec(0, 0)
        capped: Vec
        for i in range(len(self.pool)):
            c = self.pool[i]
            near.plus(cython.cast(Vec, self.near[i]))
            if c.herd not in given:
                given[c.herd] = new_vec(0, 0)
            capped = given[c.herd]
            capped.plus(c.amounts)
        if not near.holds(self.here):
            return False
        for herd, amounts in given.items():
            capped = amounts
            capped.lower_to(herd.loose)
            total.plus(capped)
        return total.holds(self.whole) and total.holds(self.here)

    def _exact(self, bound: tuple[int, int, int, list[tuple[int, int]]] | None) -> list[Any] | None:
        bad: cython.Py_ssize_t
        count: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.pool)
        all_bad: cython.Py_ssize_t = self.bads[0] if n else 0
        worst: cython.Py_ssize_t = all_bad
        largest: cython.Py_ssize_t
        if bound is not None:
            worst = min(worst, bound[0])
        for bad in range(worst + 1):
            largest = n - all_bad + bad
            if bound is not None and bad == bound[0]:
                largest = min(largest, bound[1])
            for count in range(max(bad, 1), largest + 1):
                if not self._enough(count):
                    continue
                self.best = None
                self.best_sum = UNLIMITED
                if bound is not None and bad == bound[0] and count == bound[1] and bound[2] < UNLIMITED:
                    self.best_sum = bound[2] + 1
                self.picked = []
                self._pick(0, count, bad, 0)
                if self.best is not None:
                    return self.best
                if self.left <= 0:
                    return None
        return None

    @cython.cfunc
    def _enough(self, count: cython.Py_ssize_t) -> cython.bint:
        """Can so many be enough, the largest of each type being taken?"""
        d: cython.Py_ssize_t
        i: cython.Py_ssize_t
        for d in range(max(self.here.n, self.whole.n)):
            if self.here.at(d) > 0:
                amounts = sorted([cython.cast(Vec, self.near[i]).at(d) for i in range(len(self.near))])
                if sum(amounts[-count:]) < self.here.at(d):
                    return False
            if self.whole.at(d) > 0:
                amounts = sorted([cython.cast(Candidate, self.pool[i]).amounts.at(d) for i in range(len(self.pool))])
                if sum(amounts[-count:]) < self.whole.at(d):
                    return False
        return True

    @cython.cfunc
    def _pick(
        self, start: cython.Py_ssize_t, count: cython.Py_ssize_t, bad: cython.Py_ssize_t, total: cython.longlong
    ) -> cython.void:
        """Pick `count` more from `start` on, `bad` of them bad; those picked already have priorities of this sum."""
        i: cython.Py_ssize_t
        c: Candidate
        least: cython.longlong
        n: cython.Py_ssize_t = len(self.pool)
        if count == 0:
            if total < self.best_sum and self._covered():
                self.best = list(self.picked)
                self.best_sum = total
            return
        for i in range(start, n - count + 1):
            self.left -= 1
            self.steps += 1
            if self.left <= 0:
                return
            least = self.least[i]
            if self.bads[i] < bad or (self.best_sum != UNLIMITED and total + least * count >= self.best_sum):
                return
            if not self._within_reach(i, count):
                return
            c = self.pool[i]
            if (c.bad and bad == 0) or (not c.bad and bad == count):
                continue
            if not self._take(c, cython.cast(Vec, self.near[i])):
                continue
            self.picked.append(c)
            self._pick(i + 1, count - 1, bad - 1 if c.bad else bad, total + c.priority)
            self.picked.pop()
            self._put_back(c, cython.cast(Vec, self.near[i]))

    @cython.cfunc
    def _within_reach(self, i: cython.Py_ssize_t, count: cython.Py_ssize_t) -> cython.bint:
        """Can what is lacking come from `count` of those from `i` on?"""
        d: cython.Py_ssize_t
        near: Vec = cython.cast(Vec, self.most_near[i])
        most: Vec = cython.cast(Vec, self.most[i])
        for d in range(self.here.n):
            if self.here.v[d] > 0 and near.at(d) < (self.here.v[d] + count - 1) // count:
                return False
        for d in range(self.whole.n):
            if self.whole.v[d] > 0 and most.at(d) < (self.whole.v[d] + count - 1) // count:
                return False
        return True

    @cython.cfunc
    def _covered(self) -> cython.bint:
        """Is nothing lacking any more?"""
        d: cython.Py_ssize_t
        for d in range(self.here.n):
            if self.here.v[d] > 0:
                return False
        for d in range(self.whole.n):
            if self.whole.v[d] > 0:
                return False
        return True

    @cython.cfunc
    def _take(self, c: Candidate, near: Vec) -> cython.bint:
        """Add it to the set, unless a queue would fall below its guarantee."""
        level: Level
        for each in c.herd.levels:
            level = each
            if not level.spares(c.amounts):
                return False
        for each in c.herd.levels:
            level = each
            level.taken.plus(c.amounts)
        self.here.minus(near)
        self.whole.minus(c.amounts)
        return True

    @cython.cfunc
    def _put_back(self, c: Candidate, near: Vec) -> cython.void:
        level: Level
        for each in c.herd.levels:
            level = each
            level.taken.minus(c.amounts)
        self.here.plus(near)
        self.whole.plus(c.amounts)

    # -- greedy ----------------------------------------------------------------------------------------

    def _greedy(self) -> list[Any] | None:
        """Take whoever brings something that is lacking, the best first; then leave out whom one can."""
        c: Candidate
        near: Vec
        found: list[Any] = []
        serves: bool
        order = sorted([(self.pool[i].order, i) for i in range(len(self.pool))])
        places: dict[Any, int] = {}
        for _, i in order:
            c = self.pool[i]
            near = self.near[i]
            if self._covered():
                break
            if self._helps(c.amounts, near) and self._take(c, near):
                places[c] = i
                found.append(c)
        serves = self._covered()
        for c in reversed(found.copy()):
            self._put_back(c, self.near[places[c]])
            if not serves or self._covered():
                found.remove(c)
            else:
                self._take(c, self.near[places[c]])
        for c in found:
            self._put_back(c, self.near[places[c]])
        return found if serves else None

    @cython.cfunc
    def _helps(self, amounts: Vec, near: Vec) -> cython.bint:
        """Does it bring anything of what is lacking?"""
        d: cython.Py_ssize_t
        for d in range(max(self.here.n, self.whole.n)):
            if self.here.at(d) > 0 and near.at(d) > 0:
                return True
            if self.whole.at(d) > 0 and amounts.at(d) > 0:
                return True
        return False


def wanted_part(lacking: Vec, wanted: Vec) -> Vec:
    """What is lacking of what is wanted, nothing below 0."""
    d: cython.Py_ssize_t
    found: Vec = new_vec(wanted.n, 0)
    for d in range(wanted.n):
        if wanted.v[d] > 0:
            found.v[d] = max(lacking.at(d), 0)
    return found
