"""The hunt for victims: the best set over all nodes for an ask below its guarantee (spec preemption.md, section 2).

A hunt is a picture of all eligible victims, made once for all asks of a leaf with the same priority, the same root of
the search and the same types, and kept while nothing but preemption happens. Most asks need one victim: candidates stand
in the order of sets of one, and the first that serves is the best. For the others each node has bounds of what is
possible there (`Site`); a node is searched only if its bound is better than the best set so far.
"""

from __future__ import annotations

from typing import Any

import cython

from .victims import rank_of

if cython.compiled:
    from cython.cimports.licorne.core.asks import Ask
    from cython.cimports.licorne.core.guarantees import Ledger
    from cython.cimports.licorne.core.herds import Candidate, Herd, Level, Site
    from cython.cimports.licorne.core.nodes import Need
    from cython.cimports.licorne.core.queue import Queue
    from cython.cimports.licorne.core.vectors import Vec, new_vec
    from cython.cimports.licorne.core.victims import Search
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .asks import Ask
    from .guarantees import Ledger
    from .herds import Candidate, Herd, Level, Site
    from .nodes import Need
    from .queue import Queue
    from .vectors import Vec, new_vec
    from .victims import Search

ENDLESS = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
EFFORT_MAX = cython.declare(cython.longlong, 200_000)
"""After so many steps for one ask no further node is searched, if there is a set that serves."""
FAR_MAX = cython.declare(cython.Py_ssize_t, 64)  # candidates elsewhere that a search looks at
OLD_NS = cython.declare(cython.longlong, 7_202_000_000_000)
"""120 minutes and 2 seconds: the reservation of an ask older than this does not keep out one of higher priority."""


def blocked_by_reservation(node: Any, ask: Any, now: int) -> bool:
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
class Hunt:
    """All eligible victims for asks like the first one. `levels` are the queues looked at so far."""

    ledger: Ledger
    leaf: Queue
    top: Queue  # the root of the search
    levels: dict[Queue, Level]
    path: list[Any]  # Level: the ask's leaf, and up to root
    ancestors: dict[Queue, None]
    own_rest: cython.bint  # the leaf has a guarantee of its own
    wanted: list[int]  # the places of the types that are wanted
    herds: list[Any]
    sites: list[Any]  # in node order
    by_node: dict[Any, Site]
    singles: list[Any]  # candidates in the order of sets of one
    reach: Vec  # no node has more room than this when one victim goes
    barren: list[Any]  # (need, size): no victim alone serves
    shared: list[Any]  # levels of `path` that must keep a guarantee
    sized: Vec | None  # the size that their slack is for
    search: Search
    now: cython.longlong
    searched: cython.longlong  # nodes: counted work

    def __init__(self, ledger: Ledger, ask: Ask, top: Queue, seen: dict[Queue, int], nodes: list[Any]) -> None:
        d: cython.Py_ssize_t
        level: Level
        queue: Queue | None
        self.ledger = ledger
        self.leaf = ask.app.queue
        self.top = top
        self.levels = {}
        self.wanted = [d for d in range(ask.shape.amounts.n) if ask.shape.amounts.v[d] > 0]
        self.own_rest = bool(ledger.own(self.leaf))
        self.herds = []
        self.singles = []
        self.barren = []
        self.reach = new_vec(0, 0)
        self.sized = None
        self.search = Search()
        self.now = 0
        self.searched = 0
        self.path = []
        self.ancestors = {}
        queue = self.leaf
        while queue is not None:
            self.ancestors[queue] = None
            queue = queue.parent
        self.path = [self.level(queue) for queue in self.ancestors]
        self.shared = [level for level in self.path if level.guarded]
        self.sites = [Site(node, place) for place, node in enumerate(nodes)]
        self.by_node = {}
        for site in self.sites:
            self._note_going(site)
            self.by_node[site.node] = site
        self._descend(self.top, seen, seen[self.top], False, 0, None)
        for herd in self.herds:
            self.singles += herd.members
        self.singles.sort(key=_order)
        self.size(ask.shape.amounts)
        self._measure()

    @staticmethod
    def _note_going(site: Any) -> None:
        for alloc in site.node.allocations:
            if alloc.preempted:
                site.room.plus(alloc.shape.amounts)

    def level(self, queue: Queue) -> Level:
        """The queue with what may be taken from it; those above it too."""
        found: Level | None = self.levels.get(queue)
        if found is None:
            above = None if queue.parent is None else self.level(queue.parent)
            found = Level(queue, above, self.ledger.planned(queue))
            found.on_path = queue in self.ancestors
            inside = queue is not self.top and (above is not None and (above.queue is self.top or above.inside))
            found.inside = inside
            # Who claims what is guaranteed to an ancestor must not take it from below that ancestor.
            found.guarded = inside or (found.on_path and not self.own_rest)
            found.settle(new_vec(0, 0))
            self.levels[queue] = found
        return found

    # -- who is eligible (section 2.4) -----------------------------------------------------------------

    def _descend(
        self, queue: Queue, seen: dict[Queue, int], priority: int, fenced: bool, carried: int, frozen: int | None
    ) -> None:
        """`priority`: the ask's, as this queue sees it; `carried`: the offsets between the root of the search and it.

        Inside a priority fence the ask's priority is compared no more, and all count with the fence's (`frozen`).
        """
        child: Queue
        if queue is self.leaf or queue.allocated.zero():
            return
        if queue.is_leaf:
            if queue.settings.preemption_policy != "disabled":
                self._gather(queue, None if fenced else priority, carried, frozen)
            return
        for name in sorted(queue.children):
            child = queue.children[name]
            below = carried + child.offset
            kept = below if child.fence and frozen is None else frozen
            if child in seen:
                self._descend(child, seen, seen[child], False, below, kept)
            elif fenced:
                self._descend(child, seen, priority, True, below, kept)
            elif not child.fence:
                self._descend(child, seen, priority - child.offset, False, below, kept)
            elif child.offset <= priority:
                self._descend(child, seen, priority, True, below, kept)

    def _gather(self, leaf: Queue, highest: int | None, carried: int, frozen: int | None) -> None:
        """The candidates of a leaf; `highest`: no one of a higher priority than this."""
        level: Level | None = self.level(leaf)
        victim: Ask
        site: Site | None
        found: Candidate
        levels: list[Any] = []
        herd: Herd = Herd(self.level(leaf), levels)
        while level is not None:
            if level.guarded:
                levels.append(level)
            level = level.parent
        for app in leaf.apps.values():
            for each in app.allocations.values():
                victim = each
                if victim.required or victim.preempted or victim.released:
                    continue
                if highest is not None and victim.priority > highest:
                    continue
                site = self.by_node.get(victim.node)
                if site is None or not self._shares_a_type(victim.shape.amounts):
                    continue
                found = Candidate(victim, herd, site, victim.priority + carried if frozen is None else frozen)
                herd.members.append(found)
                herd.largest.raise_to(found.amounts)
                site.members.append(found)
        if herd.members:
            herd.alive = not self.ledger.protected(leaf, self.ancestors, self.own_rest)
            self.herds.append(herd)

    @cython.cfunc
    def _shares_a_type(self, amounts: Vec) -> cython.bint:
        for d in self.wanted:
            if amounts.at(d) > 0:
                return True
        return False

    # -- what changes ----------------------------------------------------------------------------------

    @cython.ccall
    def size(self, amounts: Vec) -> cython.void:
        """The next ask has this size: queues that it shares with victims may lose more or less."""
        level: Level
        if self.sized is not None and (not self.shared or self.sized.same(amounts)):
            return
        self.sized = amounts
        for each in self.shared:
            level = each
            level.settle(amounts)
        self._settle_herds(None)

    def traded(self, changed: dict[Queue, None], victims: list[Any]) -> None:
        """Somebody was evicted; the ledger has been told, and `changed` are the queues whose plan is another."""
        level: Level
        site: Site | None
        empty: Vec = new_vec(0, 0)
        for queue in changed:
            found = self.levels.get(queue)
            if found is not None:
                level = found
                level.settle(empty if self.sized is None else self.sized)
        for victim in victims:
            site = self.by_node.get(victim.node)
            if site is not None:
                site.room.plus(victim.shape.amounts)
                site.stale = True
        self._settle_herds(changed)

    def _settle_herds(self, changed: dict[Queue, None] | None) -> None:
        """What each leaf may lose now; where that is another matter for anybody, bounds of nodes are taken anew."""
        herd: Herd
        level: Level | None
        touched: bool
        could: bool
        for each in self.herds:
            herd = each
            touched = changed is None or bool(self.shared) or not self.own_rest
            level = herd.leaf
            while not touched and level is not None and not level.on_path:
                touched = changed is not None and level.queue in changed
                level = level.parent
            if not touched:
                continue
            could = herd.alive and herd.loose.holds(herd.largest)
            herd.settle()
            if changed is not None:
                herd.alive = not self.ledger.protected(herd.leaf.queue, self.ancestors, self.own_rest)
            if not (could and herd.alive and herd.loose.holds(herd.largest)):
                for member in herd.members:
                    member.site.stale = True

    def _measure(self) -> None:
        """`reach`, as an upper bound of what a node can have when one victim has gone."""
        site: Site
        best: Vec
        for each in self.sites:
            site = each
            best = new_vec(0, 0)
            for member in site.members:
                best.raise_to(cython.cast(Candidate, member).amounts)
            best.plus(site.room)
            self.reach.raise_to(best)

    # -- the search ------------------------------------------------------------------------------------

    def find(self, ask: Ask, now: int, refused: dict[Any, None]) -> tuple[Site, list[Any]] | None:
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
                if amounts.v[d] > 0 and level.queue.limit.at(d) != ENDLESS:
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

    def _roomy(self, ask: Ask, refused: dict[Any, None]) -> Site | None:
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

    def _single(self, ask: Ask, short: Vec, roomy: Site | None, refused: dict[Any, None]) -> tuple[Any, ...] | None:
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
        for each in self.singles:
            c = each
            if c.alloc.preempted or c.alloc.released:
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
        if gone > 64 and gone * 2 > len(self.singles):
            self.singles = [c for c in self.singles if not c.alloc.preempted]
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
        self, ask: Ask, short: Vec, best: tuple[Any, ...] | None, refused: dict[Any, None]
    ) -> tuple[Any, ...] | None:
        """Search the nodes whose bound is better than the best set so far: first the one with the best bound."""
        start: cython.longlong = self.search.steps
        bounds: list[Any] = []
        site: Site
        for each in self.sites:
            site = each
            if site.room.holds(ask.shape.amounts):
                continue
            bound = self._bound(site, ask)
            if bound is None or (best is not None and bound > best[0][:4]):
                continue
            if self._suits(site, ask) and site not in refused:
                bounds.append((bound, site.order, site))
        if bounds:
            first = min(bounds)
            best = self._better(best, self._try_site(first[2], ask, short, best))
            for bound, _, each in bounds:
                if each is first[2] or (best is not None and bound > best[0]):
                    continue
                if best is not None and self.search.steps - start > EFFORT_MAX:
                    break
                best = self._better(best, self._try_site(each, ask, short, best))
        return best

    def _bound(self, site: Site, ask: Ask) -> tuple[int, int, int, list[tuple[int, int]]] | None:
        """No set for this node is better than this; None if it cannot have room."""
        if site.stale:
            site.settle()
        count: cython.Py_ssize_t = site.fewest(ask.shape.amounts, True)
        bad = 0
        if count < 0:
            count = site.fewest(ask.shape.amounts, False)
            bad = 1
        if count < 0:
            return None
        return bad, count, site.lows[count], [(-site.created, -site.seq)]

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
        taken: dict[Any, int] = {}
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


def _order(c: Candidate) -> tuple[int, int, int, int]:
    return c.order
