"""A picture of all that may be evicted for asks of a kind, and what of it changes as some are.

Source: docs/spec/preemption.md, sections 2.4 to 2.7.

It is made once for all asks of a leaf with the same priority, the same root of the search and the same types, and kept
while nothing but preemption happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.asks import Ask
    from cython.cimports.licorne.core.guarantees import Ledger
    from cython.cimports.licorne.core.herds import Candidate, Herd, Level, Site
    from cython.cimports.licorne.core.queue import Queue
    from cython.cimports.licorne.core.vectors import Vec, new_vec
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .asks import Ask
    from .guarantees import Ledger
    from .herds import Candidate, Herd, Level, Site
    from .queue import Queue
    from .vectors import Vec, new_vec

if TYPE_CHECKING:
    from .nodes import Node


@cython.cclass
class Picture:
    """All eligible victims for asks like the first one. `levels` are the queues looked at so far."""

    ledger: Ledger
    leaf: Queue
    top: Queue  # the root of the search
    levels: dict[Queue, Level]
    path: list[Level]  # the ask's leaf, and up to root
    ancestors: dict[Queue, None]
    own_rest: cython.bint  # the leaf has a guarantee of its own
    wanted: list[int]  # the places of the types that are wanted
    herds: list[Herd]
    sites: list[Site]  # in node order
    by_node: dict[Node | None, Site]
    singles: list[Candidate]  # candidates in the order of sets of one
    near: list[Candidate]  # the same without many that are gone, or whose node is closed
    reach: Vec  # no node has more room than this when one victim goes
    shared: list[Level]  # levels of `path` that must keep a guarantee
    sized: Vec | None  # the size that their slack is for

    def paint(self, ledger: Ledger, ask: Ask, top: Queue, seen: dict[Queue, int], nodes: list[Node]) -> None:
        """Look at everything that matters to asks like this one; `nodes` in their order."""
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
        self.reach = new_vec(0, 0)
        self.sized = None
        self.near = []
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
        self.near = self.singles
        self.size(ask.shape.amounts)
        self._measure()

    @staticmethod
    def _note_going(site: Site) -> None:
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

        Inside a priority fence (`fenced`) it is compared with fences alone, and all count with the outer one's (`frozen`).
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
            elif not child.fence:
                self._descend(child, seen, priority - child.offset, fenced, below, kept)
            elif child.offset <= priority:  # also a fence within a fence
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
                if not victim.may_go:
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

    def traded(self, changed: dict[Queue, None], victims: list[Any], kept: Node | None) -> None:
        """Somebody was evicted, and a node is kept; the ledger has been told, the plan of `changed` queues is another."""
        level: Level
        site: Site | None
        empty: Vec = new_vec(0, 0)
        for queue in changed:
            found = self.levels.get(queue)
            if found is not None:
                level = found
                level.settle(empty if self.sized is None else self.sized)
        site = self.by_node.get(kept)
        if site is not None:
            site.closed = True
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


def _order(c: Candidate) -> tuple[int, int, int, int]:
    return c.order
