"""The parts of a preemption snapshot: queue budgets, candidates by leaf and by node, and bounds of what nodes can give.

Source: docs/spec/preemption.md, section 2.

All of these objects describe one moment. They are kept while nothing but preemption happens, updated after each
eviction (`licorne.core.preemption.node_search`), and then thrown away. The bounds are what makes searches cheap: most
nodes are ruled out by comparing a few numbers.
"""

from __future__ import annotations

from typing import Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_vec
from licorne.core.constants import UNLIMITED
from licorne.core.nodes.node import Node
from licorne.core.queues.ask import Ask
from licorne.core.queues.queue import Queue

from .disruption_budgets import nothing_left
from .ranking import VictimRank, is_reluctant, lowest_rank, victim_order

EXACT_SIZES = cython.declare(cython.Py_ssize_t, 8)  # the largest victim set for which each node has a bound of its own
OLD_NS = cython.declare(cython.longlong, 7_202_000_000_000)
"""120 minutes and 2 seconds: the reservation of an ask older than this does not exclude an ask of higher priority."""


@cython.cclass
class QueueBudget:
    """How much victims may take from one queue so that it keeps its guarantee.

    `planned` is what the queue will use when all victims have ended and all asks that have preempted run. `slack` is
    how much may be taken from it, by type; `UNLIMITED` for a type that is not guaranteed. `taken` is what the victim
    set that is being tried takes. Of a queue above its guarantee what is above it may be taken; where the victims are
    `within` the ask's own leaf, as much as the ask brings as well, so that a queue is no further below its guarantee.
    `outranked` are claims that do not count (`NodeSearch`).
    """

    queue: Queue
    parent: QueueBudget | None
    planned: Vec
    slack: Vec
    taken: Vec
    on_path: cython.bint  # the ask's leaf, or an ancestor of it
    inside: cython.bint  # below the root of the search
    guarded: cython.bint  # the queue must keep its guarantee
    within: cython.bint
    outranked: Vec

    def __init__(self, queue: Queue, parent: QueueBudget | None, planned: Vec) -> None:
        self.queue = queue
        self.parent = parent
        self.planned = planned
        self.slack = Vec(0, UNLIMITED)
        self.taken = Vec()
        self.on_path = False
        self.inside = False
        self.guarded = False
        self.within = False
        self.outranked = Vec()

    @cython.ccall
    def recompute(self, ask: Vec) -> cython.void:
        """Recompute `slack`, for an ask of this size: where the queue is above the ask, it also gains that much."""
        d: cython.Py_ssize_t
        rest: cython.longlong
        self.slack.set_all(UNLIMITED)
        if not self.guarded:
            return
        self.slack.grow(self.queue.guaranteed.n)
        for d in range(self.queue.guaranteed.n):
            if self.queue.guaranteed.v[d] >= 0:
                rest = self.planned.at(d) - self.queue.guaranteed.v[d]
                if self.within:
                    rest = max(rest, 0)
                if self.on_path:
                    rest += ask.at(d)
                self.slack.v[d] = max(rest, 0)

    @cython.ccall
    @cython.exceptval(check=False)
    def allows(self, amounts: Vec) -> cython.bint:
        """May these amounts be taken from the queue, beyond what is taken already?"""
        d: cython.Py_ssize_t
        for d in range(min(self.slack.n, amounts.n)):
            if amounts.v[d] > 0 and self.slack.v[d] != UNLIMITED:
                if self.taken.at(d) + amounts.v[d] > self.slack.v[d]:
                    return False
        return True


@cython.cclass
class LeafCandidates:
    """The candidates of one leaf queue.

    `budgets` are those of the leaf and its ancestors that must keep their guarantee. `max_loss` is the size of the
    largest victim that they allow, by type; `largest` the largest amounts of any candidate. `eligible` is false while
    the leaf is within its guarantee, so that none of its allocations may be evicted (section 2.4). `own`: it is the leaf
    of the ask, so the set with the lowest highest priority is best (`VictimRank`). The root of the search sees the priority of
    each allocation as `frozen`, or, if that is None, as its own and `carried`.
    """

    budget: QueueBudget
    budgets: list[QueueBudget]
    members: list[Candidate]
    max_loss: Vec
    largest: Vec
    eligible: cython.bint
    own: cython.bint
    carried: cython.longlong
    frozen: Any

    def __init__(self, budget: QueueBudget, budgets: list[Any], carried: int = 0, frozen: int | None = None) -> None:
        self.budget = budget
        self.budgets = budgets
        self.members = []
        self.max_loss = Vec(0, UNLIMITED)
        self.largest = Vec()
        self.eligible = True
        self.own = budget.within
        self.carried = carried
        self.frozen = frozen

    def priority_of(self, alloc: Ask) -> int:
        """The priority of an allocation of the leaf as the root of the search sees it."""
        return alloc.priority + self.carried if self.frozen is None else self.frozen

    @cython.ccall
    def recompute(self) -> cython.void:
        """Recompute `max_loss`, after the slack of `budgets` has changed."""
        budget: QueueBudget
        self.max_loss.set_all(UNLIMITED)
        for each in self.budgets:
            budget = each
            self.max_loss.lower_to(budget.slack)


@cython.cclass
class Candidate:
    """An allocation that may be evicted.

    `priority` is its priority as the root of the search sees it; for a required node, and in the ask's own leaf, its own.
    `disruption_budgets` are those that it counts for (`licorne.core.preemption.disruption_budgets`); it is reluctant if one has nothing left.
    """

    alloc: Ask
    leaf_group: LeafCandidates
    node_group: NodeCandidates
    amounts: Vec
    reluctant: cython.bint
    priority: cython.longlong
    disruption_budgets: tuple[Any, ...]

    def __init__(
        self,
        alloc: Ask,
        leaf_group: LeafCandidates,
        node_group: NodeCandidates,
        priority: int,
        disruption_budgets: tuple[Any, ...] = (),
    ) -> None:
        self.alloc = alloc
        self.leaf_group = leaf_group
        self.node_group = node_group
        self.amounts = alloc.shape.amounts
        self.reluctant = is_reluctant(alloc) or (bool(disruption_budgets) and nothing_left(disruption_budgets))
        self.priority = priority
        self.disruption_budgets = disruption_budgets

    @cython.ccall
    @cython.exceptval(check=False)
    def usable(self) -> cython.bint:
        """May this allocation still be evicted, judged on its own, without other victims?"""
        alloc: Ask = self.alloc
        if alloc.preempted or alloc.released or not self.leaf_group.eligible:
            return False
        return self.leaf_group.max_loss.covers(self.amounts)

    @property
    def order(self) -> tuple[bool, int, int, int]:
        """A sort key of candidates: as the only victim, the first is the best."""
        return victim_order(self.alloc, self.reluctant, self.priority)


@cython.cclass
class NodeCandidates:
    """A node with the candidates on it.

    `room` is what is free there, with what evicted allocations that have not ended yet will give back, without what asks
    claim. `order` is the position of the node among all nodes. `willing` are the bounds of victim sets without reluctant candidates, `all` of those with any;
    both are out of date while `stale`.
    """

    node: Node
    order: cython.Py_ssize_t
    members: list[Candidate]
    room: Vec
    willing: Bounds
    all: Bounds
    stale: cython.bint

    def __init__(self, node: Node, order: int) -> None:
        self.node = node
        self.order = order
        self.members = []
        self.room = node.free.clone()
        self.willing = Bounds([], self.room, False)
        self.all = self.willing
        self.stale = True

    def usable(self) -> list[Any]:
        """The candidates on the node that may still be evicted."""
        return [c for c in self.members if c.usable()]

    @cython.cfunc
    def lowest_for(self, amounts: Vec, least: cython.Py_ssize_t) -> VictimRank | None:
        """A rank that no set of at least so many precedes which makes room for these amounts; None if there is no such set."""
        found: VictimRank | None = self.willing.lowest_for(amounts, least)
        return self.all.lowest_for(amounts, least) if found is None else found

    @cython.ccall
    def recompute(self) -> cython.void:
        """Recompute the bounds."""
        members: list[Any] = self.usable()
        willing: list[Any] = [c for c in members if not c.reluctant]
        self.stale = False
        self.willing = Bounds(willing, self.room, False)
        self.all = self.willing if len(willing) == len(members) else Bounds(members, self.room, True)


@cython.cclass
class Bounds:
    """Bounds of what victim sets of k candidates on a node can achieve.

    `max_free[k]` is never below, in any type, what is free when any k of them have ended; its last entry is for all of
    them. No set of k candidates precedes `lowest[k]`. Sets larger than `EXACT_SIZES` share the last entry. With
    `reluctant` only sets with a reluctant member count, as those without are known not to be enough.
    """

    max_free: list[Vec]
    lowest: list[VictimRank]

    def __init__(self, members: list[Any], room: Vec, reluctant: bool) -> None:
        k: cython.Py_ssize_t
        known: cython.Py_ssize_t = min(len(members), EXACT_SIZES)
        total: cython.longlong = 0
        c: Candidate
        alloc: Ask
        newest: tuple[int, int] = (-UNLIMITED, -UNLIMITED)
        at: cython.Py_ssize_t = 0
        highest: cython.longlong = 0
        self.max_free = self._sums(members, room, known)
        self.lowest = [lowest_rank(0, 0, 0, 0, UNLIMITED, UNLIMITED)]
        ordered = sorted(members, key=_by_priority)
        for k in range(1, len(self.max_free)):
            c = ordered[k - 1]
            total += c.priority
            highest = c.priority if c.leaf_group.own else 0
            # Every candidate of the k-th lowest priority may belong to a set with the lowest sum, so all count.
            while at < len(ordered) and cython.cast(Candidate, ordered[at]).priority <= c.priority:
                alloc = cython.cast(Candidate, ordered[at]).alloc
                newest = max(newest, (alloc.created, alloc.seq))
                at += 1
            self.lowest.append(lowest_rank(reluctant, highest, k, total, newest[0], newest[1]))

    def _sums(self, members: list[Any], room: Vec, known: cython.Py_ssize_t) -> list[Any]:
        """For k = 0, 1 ...: what is free when the k largest of each type have ended; the last entry is for all."""
        d: cython.Py_ssize_t
        k: cython.Py_ssize_t
        total: cython.longlong
        sums: list[Any] = [room.clone() for _ in range(known + 1)]
        every: Vec = room.clone()
        largest: Vec = new_vec(0, 0)
        for c in members:
            largest.raise_to(cython.cast(Candidate, c).amounts)
            every.plus(cython.cast(Candidate, c).amounts)
        for d in range(largest.n):
            amounts = sorted([cython.cast(Candidate, c).amounts.at(d) for c in members], reverse=True)
            total = 0
            for k in range(1, known + 1):
                total += amounts[k - 1]
                add_at(sums[k], d, total)
        if len(members) > known:
            sums.append(every)
        return sums

    @cython.cfunc
    def lowest_for(self, amounts: Vec, least: cython.Py_ssize_t) -> VictimRank | None:
        """A rank that no set of at least so many precedes which is enough to fit these amounts; None if there is no such set."""
        k: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.max_free)
        if cython.cast(Vec, self.max_free[n - 1]).covers(amounts):
            for k in range(least, n):
                if cython.cast(Vec, self.max_free[k]).covers(amounts):
                    return self.lowest[k]
        return None


def blocked_by_reservation(node: Node, ask: Ask, now: int, within: bool) -> bool:
    """Do other asks' reservations of the node forbid that this ask preempts there (docs/spec/preemption.md, section 2.7)?

    Those of asks with claims do not, where it is known what they leave: their amounts are not part of the node's room. Nor do
    those of asks of lower priority in the same leaf if it preempts `within` that.
    """
    other: Ask
    for each in node.reservations:
        other = each
        if other is ask:
            continue
        if other.triggered:
            if ask.shape.need.excludes(other.shape.need):
                return True
        elif other.required or other.priority >= ask.priority:
            return True
        elif now - other.created <= OLD_NS and not (within and other.app.queue is ask.app.queue):
            return True
    return False


def _by_priority(c: Candidate) -> int:
    return c.priority


@cython.cfunc
def add_at(vec: Vec, d: cython.Py_ssize_t, amount: cython.longlong) -> cython.void:
    """Add an amount to one type of the vector, which grows if it is too short."""
    vec.grow(d + 1)
    vec.v[d] += amount


@cython.ccall
@cython.exceptval(check=False)
def enough(room: Vec, more: Vec, ask: Vec) -> cython.bint:
    """Does the ask fit into `room` when `more` is given back? Only types that it requests are compared."""
    d: cython.Py_ssize_t
    for d in range(ask.n):
        if ask.v[d] > 0 and room.at(d) + more.at(d) < ask.v[d]:
            return False
    return True


def candidate_order(c: Candidate) -> tuple[int, int, int, int]:
    """Return the sort key of a candidate as the only victim."""
    return c.order
