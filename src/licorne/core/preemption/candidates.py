"""What a search for victims looks at: queues with what they may lose, their allocations, and the nodes these are on.

Source: docs/spec/preemption.md, section 2. All of it is a picture of one moment, kept while nothing but preemption
happens (`licorne.core.preemption.guarantees`), and thrown away after.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec, new_vec
    from cython.cimports.licorne.core.constants import UNLIMITED
    from cython.cimports.licorne.core.nodes.node import Node
    from cython.cimports.licorne.core.queues.ask import Ask
    from cython.cimports.licorne.core.queues.queue import Queue
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec, new_vec
    from licorne.core.constants import UNLIMITED
    from licorne.core.nodes.node import Node
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

EXACT_SIZES = cython.declare(cython.Py_ssize_t, 8)  # up to so many victims on a node a bound is known


@cython.cclass
class QueueBudget:
    """A queue as a search for victims sees it.

    `planned` is what it will use when all victims are gone and all asks that have preempted run; `slack` what may be
    taken from it so that it keeps its guarantee, `UNLIMITED` for a type of which nothing is guaranteed; `taken` what
    the set at hand takes.
    """

    queue: Queue
    parent: QueueBudget | None
    planned: Vec
    slack: Vec
    taken: Vec
    on_path: cython.bint  # the ask is below it
    inside: cython.bint  # it is below the root of the search
    guarded: cython.bint  # it must keep its guarantee

    def __init__(self, queue: Queue, parent: QueueBudget | None, planned: Vec) -> None:
        self.queue = queue
        self.parent = parent
        self.planned = planned
        self.slack = Vec(0, UNLIMITED)
        self.taken = Vec()
        self.on_path = False
        self.inside = False
        self.guarded = False

    @cython.ccall
    def recompute(self, ask: Vec) -> cython.void:
        """Compute `slack` anew, for an ask of this size."""
        d: cython.Py_ssize_t
        rest: cython.longlong
        self.slack.set_all(UNLIMITED)
        if not self.guarded:
            return
        self.slack.grow(self.queue.guaranteed.n)
        for d in range(self.queue.guaranteed.n):
            if self.queue.guaranteed.v[d] >= 0:
                rest = self.planned.at(d) - self.queue.guaranteed.v[d]
                if self.on_path:
                    rest += ask.at(d)
                self.slack.v[d] = max(rest, 0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def allows(self, amounts: Vec) -> cython.bint:
        """May this be taken as well?"""
        d: cython.Py_ssize_t
        for d in range(min(self.slack.n, amounts.n)):
            if amounts.v[d] > 0 and self.slack.v[d] != UNLIMITED:
                if self.taken.at(d) + amounts.v[d] > self.slack.v[d]:
                    return False
        return True


@cython.cclass
class LeafCandidates:
    """The candidates of one leaf queue; `budgets` are the queues above them that must keep a guarantee.

    `max_loss` is what one of them may use at most, `eligible` whether the leaf may lose anybody at all (section 2.4).
    """

    budget: QueueBudget
    budgets: list[QueueBudget]
    members: list[Candidate]
    max_loss: Vec
    largest: Vec
    eligible: cython.bint

    def __init__(self, budget: QueueBudget, budgets: list[Any]) -> None:
        self.budget = budget
        self.budgets = budgets
        self.members = []
        self.max_loss = Vec(0, UNLIMITED)
        self.largest = Vec()
        self.eligible = True

    @cython.ccall
    def recompute(self) -> cython.void:
        """Compute `max_loss` anew, after the slack of the levels has changed."""
        budget: QueueBudget
        self.max_loss.set_all(UNLIMITED)
        for each in self.budgets:
            budget = each
            self.max_loss.lower_to(budget.slack)


@cython.cclass
class Candidate:
    """An allocation that may be evicted. `priority` is its priority as the ask's queues see it."""

    alloc: Ask
    leaf_group: LeafCandidates
    node_group: NodeCandidates
    amounts: Vec
    reluctant: cython.bint  # it refuses, or is an originator
    priority: cython.longlong
    created: cython.longlong
    seq: cython.longlong

    def __init__(self, alloc: Ask, leaf_group: LeafCandidates, node_group: NodeCandidates, priority: int) -> None:
        self.alloc = alloc
        self.leaf_group = leaf_group
        self.node_group = node_group
        self.amounts = alloc.shape.amounts
        self.reluctant = alloc.originator or not alloc.allow_self
        self.priority = priority
        self.created = alloc.created
        self.seq = alloc.seq

    @cython.ccall
    @cython.exceptval(check=False)
    def usable(self) -> cython.bint:
        """May it be evicted still, as far as it alone is concerned?"""
        alloc: Ask = self.alloc
        if alloc.preempted or alloc.released or not self.leaf_group.eligible:
            return False
        return self.leaf_group.max_loss.covers(self.amounts)

    @property
    def order(self) -> tuple[int, int, int, int]:
        """The order of sets of one: the best first."""
        return int(self.reluctant), self.priority, -self.created, -self.seq

    @property
    def newness(self) -> tuple[int, int]:
        """Newest first."""
        return -self.created, -self.seq


@cython.cclass
class NodeCandidates:
    """A node, and the candidates on it.

    `room` is what is free there, with what is going already; `order` is the place of the node among all; `reserved`: it is
    kept for an ask that has preempted. The bounds are for sets of these, those with willing ones alone, and of all.
    """

    node: Node
    order: cython.Py_ssize_t
    members: list[Candidate]
    room: Vec
    willing: Bounds
    all: Bounds
    reserved: cython.bint
    stale: cython.bint

    def __init__(self, node: Node, order: int) -> None:
        self.node = node
        self.order = order
        self.members = []
        self.room = node.free.clone()
        self.willing = Bounds([], self.room)
        self.all = self.willing
        self.reserved = False
        self.stale = True

    def usable(self) -> list[Any]:
        """The candidates that may be evicted still."""
        return [c for c in self.members if c.usable()]

    @cython.ccall
    def recompute(self) -> cython.void:
        """Compute the bounds anew."""
        members: list[Any] = self.usable()
        willing: list[Any] = [c for c in members if not c.reluctant]
        self.stale = False
        self.all = Bounds(members, self.room)
        self.willing = self.all if len(willing) == len(members) else Bounds(willing, self.room)


@cython.cclass
class Bounds:
    """What sets of up to k of some candidates on a node can come to.

    `max_free[k]` is at least what is free when they are gone, in each type; its last is for all of them. `min_priorities[k]` is the
    lowest sum of priorities, and a set of k that has it has nobody newer than `created[k]`, `seq[k]`.
    """

    max_free: list[Vec]
    min_priorities: Vec
    created: Vec
    seq: Vec

    def __init__(self, members: list[Any], room: Vec) -> None:
        k: cython.Py_ssize_t
        known: cython.Py_ssize_t = min(len(members), EXACT_SIZES)
        total: cython.longlong = 0
        c: Candidate
        newest: tuple[int, int] = (-UNLIMITED, -UNLIMITED)
        at: cython.Py_ssize_t = 0
        self.max_free = self._sums(members, room, known)
        self.min_priorities = new_vec(known + 2, 0)
        self.created = new_vec(known + 2, -UNLIMITED)
        self.seq = new_vec(known + 2, -UNLIMITED)
        ordered = sorted(members, key=_by_priority)
        for k in range(1, known + 2):
            if k <= len(ordered):
                c = ordered[k - 1]
                total += c.priority
                while at < len(ordered) and cython.cast(Candidate, ordered[at]).priority <= c.priority:
                    newest = max(
                        newest, (cython.cast(Candidate, ordered[at]).created, cython.cast(Candidate, ordered[at]).seq)
                    )
                    at += 1
            self.min_priorities.v[k] = total
            self.created.v[k] = newest[0]
            self.seq.v[k] = newest[1]

    def _sums(self, members: list[Any], room: Vec, known: cython.Py_ssize_t) -> list[Any]:
        """For k = 0, 1 ...: what is free when the k largest in each type are gone; last, when all are."""
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
    def fewest(self, amounts: Vec) -> cython.Py_ssize_t:
        """At least so many victims are needed for room of this size, -1 if all are not enough."""
        k: cython.Py_ssize_t
        n: cython.Py_ssize_t = len(self.max_free)
        if not cython.cast(Vec, self.max_free[n - 1]).covers(amounts):
            return -1
        for k in range(n):
            if cython.cast(Vec, self.max_free[k]).covers(amounts):
                return k
        return -1


def _by_priority(c: Candidate) -> int:
    return c.priority


@cython.cfunc
def add_at(vec: Vec, d: cython.Py_ssize_t, amount: cython.longlong) -> cython.void:
    """Add to one type."""
    vec.grow(d + 1)
    vec.v[d] += amount
