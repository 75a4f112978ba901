"""The hunt for victims: the best set over all nodes for an ask below its guarantee.

Source: docs/spec/preemption.md, section 2.

Most asks need one victim: candidates stand
in the order of sets of one, and the first that serves is the best. For the others each node has bounds of what is
possible there (`Site`); a node is searched only if its bound is better than the best set so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

from .victims import rank_of

if cython.compiled:
    from cython.cimports.licorne.core.asks import Ask
    from cython.cimports.licorne.core.constants import UNLIMITED
    from cython.cimports.licorne.core.guarantees import Ledger
    from cython.cimports.licorne.core.herds import Bounds, Candidate, Level, Site
    from cython.cimports.licorne.core.nodes import Need
    from cython.cimports.licorne.core.picture import Picture
    from cython.cimports.licorne.core.queue import Queue
    from cython.cimports.licorne.core.vectors import Vec, new_vec
    from cython.cimports.licorne.core.victims import Search
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .asks import Ask
    from .constants import UNLIMITED
    from .guarantees import Ledger
    from .herds import Bounds, Candidate, Level, Site
    from .nodes import Need
    from .picture import Picture
    from .queue import Queue
    from .vectors import Vec, new_vec
    from .victims import Search

if TYPE_CHECKING:
    from .nodes import Node

EFFORT_MAX = cython.declare(cython.longlong, 200_000)
"""After so many steps for one ask no further node is searched, if there is a set that serves."""
GONE_MAX = cython.declare(cython.Py_ssize_t, 256)  # passed over before they are left out
FAR_MAX = cython.declare(cython.Py_ssize_t, 64)  # candidates elsewhere that a search looks at
OLD_NS = cython.declare(cython.longlong, 7_202_000_000_000)
"""120 minutes and 2 seconds: the reservation of an ask older than this does not keep out one of higher priority."""


def blocked_by_reservation(node: Node, ask: Ask, now: int) -> bool:
    """Do others hold the node so that this ask may not preempt there (section 2.7, step 1)?"""
    other: Ask
    for each in node.reservations:
        other = each
        if other is not ask and (
            other.required or other.triggered or other.priority >= ask.priority or now - other.created <= OLD_NS
        ):
            return True
    return False


@cython.cclass
class Hunt(Picture):
    """The search in a picture, for one ask after the other."""

    barren: list[Any]  # (need, size): no victim alone serves
    search: Search
    now: cython.longlong
    aim_bad: cython.longlong  # of the set that is to be beaten; so the others
    aim_count: cython.longlong
    aim_sum: cython.longlong
    aim_created: cython.longlong
    aim_seq: cython.longlong
    bound_bad: cython.longlong  # of the last node that was asked for its bound
    bound_count: cython.longlong
    bound_sum: cython.longlong
    bound_created: cython.longlong
    bound_seq: cython.longlong
    searched: cython.longlong  # nodes: counted work

    def __init__(self, ledger: Ledger, ask: Ask, top: Queue, seen: dict[Queue, int], nodes: list[Node]) -> None:
        self.paint(ledger, ask, top, seen, nodes)
        self.barren = []
        self.search = Search()
        self.now = 0
        self.searched = 0
        self._aim(None)

    # -- the search ------------------------------------------------------------------------------------

    def find(self, ask: Ask, now: int, refused: dict[Site, None]) -> tuple[Site, list[Any]] | None:
        """The best set, and the node that it makes room on; empty if there is room already, or will be. None: no set serves.

        `refused` are sites that will not do.
        """
        amounts: Vec = ask.shape.amounts
        short: Vec | None = self._over_quota(amounts)
        best: tuple[Any, ...] | None = None
        self.now = now
        if short is None:
            return None
        self.size(amounts)
        roomy = self._roomy(ask, refused)
        if short.zero() and roomy is not None:
            return roomy, []
        single = self._single(ask, short, roomy, refused)
        if single is not None:
            best = single
            if not single[0][0]:  # nobody bad, and only one
                return single[2], single[3]
        if roomy is not None:
            best = self._better(best, self._try_site(roomy, ask, short, best))
        best = self._search_sites(ask, short, best, refused)
        return None if best is None else (best[2], best[3])

    def _over_quota(self, amounts: Vec) -> Vec | None:
        """What victims must give back so that the ask fits all quotas; None if none could help (law 2)."""
        short: Vec = new_vec(amounts.n, 0)
        level: Level
        d: cython.Py_ssize_t
        x: cython.longlong
        below: cython.bint = True
        for each in self.path:
            level = each
            if level.queue is self.top:
                below = level.queue is self.leaf
            for d in range(amounts.n):
                if amounts.v[d] > 0 and level.queue.limit.at(d) != UNLIMITED:
                    x = level.planned.at(d) + amounts.v[d] - level.queue.limit.at(d)
                    if x > 0 and below:
                        return None
                    short.v[d] = max(short.v[d], x)
        return short

    @cython.cfunc
    def _suits(self, site: Site, ask: Ask) -> cython.bint:
        """Could the ask run on the node if it were empty (section 2.7)?"""
        need: Need = ask.shape.need
        if not site.node.schedulable or not site.node.capacity.holds(ask.shape.amounts):
            return False
        if site.node.reservations:
            return not blocked_by_reservation(site.node, ask, self.now) and need.matches(site.node)
        return site.node.meets(need)

    def _roomy(self, ask: Ask, refused: dict[Site, None]) -> Site | None:
        """The first node that has room already, or will when those have gone that are going."""
        site: Site
        for each in self.sites:
            site = each
            if site.room.holds(ask.shape.amounts) and self._suits(site, ask) and site not in refused:
                return site
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _enough(self, room: Vec, more: Vec, ask: Vec) -> cython.bint:
        """Is there room when this is given back?"""
        d: cython.Py_ssize_t
        for d in range(ask.n):
            if ask.v[d] > 0 and room.at(d) + more.at(d) < ask.v[d]:
                return False
        return True

    def _single(self, ask: Ask, short: Vec, roomy: Site | None, refused: dict[Site, None]) -> tuple[Any, ...] | None:
        """The best set of one."""
        amounts: Vec = ask.shape.amounts
        c: Candidate
        gone: cython.Py_ssize_t = 0
        late: bool = False  # one would have served, but for a quota or a refusal
        found: Candidate | None = None
        where: Site | None = None
        if roomy is None:
            if not self.reach.holds(amounts):
                return None
            for need, least in self.barren:
                if need is ask.shape.need and amounts.holds(least):
                    return None
        candidates: list[Any] = self.near if roomy is None else self.singles
        for each in candidates:
            c = each
            if c.alloc.preempted or c.alloc.released or (c.site.closed and roomy is None):
                gone += 1
                continue
            here = self._enough(c.site.room, c.amounts, amounts) and self._suits(c.site, ask)
            if here and c.site in refused:
                here = False
                late = True
            if not here and roomy is None:
                continue
            if not c.usable() or not c.amounts.holds(short):
                late = True
                continue
            found = c
            where = c.site if here else roomy
            if here and roomy is not None and roomy.order < c.site.order:
                where = roomy
            break
        if gone > GONE_MAX and roomy is None:
            self.near = [c for c in self.near if not c.alloc.preempted and not c.site.closed]
        if found is None:
            if roomy is None and not late:
                self.barren.append((ask.shape.need, amounts))
            return None
        assert where is not None
        return rank_of([found]), where.order, where, [found]

    @staticmethod
    def _better(best: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if best is None or (other is not None and other[:2] < best[:2]):
            return other
        return best

    def _search_sites(
        self, ask: Ask, short: Vec, best: tuple[Any, ...] | None, refused: dict[Site, None]
    ) -> tuple[Any, ...] | None:
        """Search the nodes whose bound is better than the best set so far: first the one with the best bound."""
        start: cython.longlong = self.search.steps
        site: Site
        first: Site | None = None
        self._aim(best)
        for each in self.sites:
            site = each
            if not site.closed and self._may_be_better(site, ask) and self._suits(site, ask) and site not in refused:
                self._aim_at_bound()
                first = site
        self._aim(best)
        if first is None:
            return best
        best = self._better(best, self._try_site(first, ask, short, best))
        self._aim(best)
        for each in self.sites:
            site = each
            if site is first or site.closed or not self._may_be_better(site, ask):
                continue
            if best is not None and self.search.steps - start > EFFORT_MAX:
                break
            if self._suits(site, ask) and site not in refused:
                best = self._better(best, self._try_site(site, ask, short, best))
                self._aim(best)
        return best

    def _aim(self, best: tuple[Any, ...] | None) -> None:
        """Only what is better than this set is of interest from now on."""
        if best is None:
            self.aim_bad = self.aim_count = self.aim_sum = self.aim_created = self.aim_seq = UNLIMITED
            self.aim_created = self.aim_seq = -UNLIMITED
            return
        rank = best[0]
        self.aim_bad = rank[0]
        self.aim_count = rank[1]
        self.aim_sum = rank[2]
        self.aim_created = -rank[3][0][0]
        self.aim_seq = -rank[3][0][1]

    @cython.cfunc
    def _aim_at_bound(self) -> cython.void:
        """Only what is better than the last bound is of interest."""
        self.aim_bad = self.bound_bad
        self.aim_count = self.bound_count
        self.aim_sum = self.bound_sum
        self.aim_created = self.bound_created
        self.aim_seq = self.bound_seq

    @cython.cfunc
    def _may_be_better(self, site: Site, ask: Ask) -> cython.bint:
        """Could a set for this node be better than what is aimed at? Not if there is room without: others see to that."""
        bounds: Bounds
        amounts: Vec = ask.shape.amounts
        count: cython.Py_ssize_t
        if site.stale:
            site.settle()
        bounds = site.mild
        self.bound_bad = 0
        count = bounds.fewest(amounts)
        if count < 0:
            self.bound_bad = 1
            bounds = site.all
            count = bounds.fewest(amounts)
        if count <= 0 or self.bound_bad > self.aim_bad:
            return False
        self.bound_count = count
        self.bound_sum = bounds.lows.v[count]
        self.bound_created = bounds.created.v[count]
        self.bound_seq = bounds.seq.v[count]
        if self.bound_bad != self.aim_bad:
            return True
        if count != self.aim_count:
            return count < self.aim_count
        if self.bound_sum != self.aim_sum:
            return self.bound_sum < self.aim_sum
        if self.bound_created != self.aim_created:
            return self.bound_created > self.aim_created
        return self.bound_seq >= self.aim_seq

    def _try_site(self, site: Site, ask: Ask, short: Vec, best: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        """The best set for this node: its rank, the node's place, the node, the set."""
        d: cython.Py_ssize_t
        amounts: Vec = ask.shape.amounts
        here: Vec = new_vec(amounts.n, 0)
        elsewhere: bool = False
        self.searched += 1
        for d in range(amounts.n):
            if amounts.v[d] > 0:
                here.v[d] = max(amounts.v[d] - site.room.at(d), 0)
                elsewhere = elsewhere or short.v[d] > here.v[d]
        far = self._far(site, short) if elsewhere else []
        found = self.search.find(site.usable(), far, here, short.clone(), None if best is None else best[0])
        return None if found is None else (rank_of(found), site.order, site, found)

    def _far(self, site: Site, short: Vec) -> list[Any]:
        """Candidates on other nodes that may help with a quota: of those that are alike the newest, as many as help."""
        c: Candidate
        d: cython.Py_ssize_t
        helpful: cython.longlong
        taken: dict[object, int] = {}
        found: list[Any] = []
        for each in self.singles:  # of those that are alike the newest come first
            c = each
            if c.site is site or not c.usable():
                continue
            helpful = 0
            for d in range(short.n):
                if short.v[d] > 0 and c.amounts.at(d) > 0:
                    helpful = max(helpful, (short.v[d] + c.amounts.v[d] - 1) // c.amounts.v[d])
            key = (c.herd, c.bad, c.priority, tuple(c.amounts.values()))
            if taken.get(key, 0) < helpful:
                taken[key] = taken.get(key, 0) + 1
                found.append(c)
                if len(found) >= FAR_MAX:
                    break
        return found
