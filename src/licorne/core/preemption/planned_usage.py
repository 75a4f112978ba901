"""Guarantees and planned usage of queues: which asks may preempt, and which queues are protected.

Source: docs/spec/preemption.md, sections 2.3 and 2.5.

All comparisons use the *planned* usage of a queue: what is allocated, less what victims give back, plus what asks claim
while their victims end. So several asks that preempt at one moment take each other into account, and what one of them
has claimed is not taken from its queue again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_vec
from licorne.core.constants import UNLIMITED
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.queue import Queue
from licorne.core.queues.usage import Tracker

if TYPE_CHECKING:
    from .claims import Claims


@cython.cclass
class PlannedUsage:
    """The planned usage of each queue, kept while nothing but preemption happens.

    `claims` (`licorne.core.preemption.claims`) knows the claimed amounts. What is left of a guarantee is given as a map
    from a type's index to an amount: negative where more is planned than guaranteed; a missing type is unlimited.
    """

    claims: Claims
    by_queue: dict[Queue, Vec]

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self.by_queue = {}

    @cython.ccall
    def planned(self, queue: Queue) -> Vec:
        """The planned usage of the queue; `record_eviction` updates the returned vector in place."""
        found: Vec | None = self.by_queue.get(queue)
        if found is None:
            found = queue.allocated.clone()
            found.minus(queue.preempting)
            found.plus(cython.cast(Vec, self.claims.claimed(queue)))
            self.by_queue[queue] = found
        return found

    def record_eviction(self, ask: Ask, victims: list[Any]) -> dict[Queue, None]:
        """Enter an eviction before it is made: victims leave, the ask has a claim. Return the queues that changed."""
        changed: dict[Queue, None] = {}
        victim: Ask
        queue: Queue | None
        for each in victims:
            victim = each
            queue = victim.app.queue
            while queue is not None:
                self.planned(queue).minus(victim.shape.amounts)
                changed[queue] = None
                queue = queue.parent
        queue = ask.app.queue
        while queue is not None:
            self.planned(queue).plus(ask.shape.amounts)
            changed[queue] = None
            queue = queue.parent
        return changed

    # -- guarantees ------------------------------------------------------------------------------------

    def own_remaining(self, queue: Queue) -> dict[int, int]:
        """What is left of the queue's own guarantee, by type; empty if nothing is guaranteed to it."""
        d: cython.Py_ssize_t
        planned: Vec = self.planned(queue)
        return {
            d: queue.guaranteed.v[d] - planned.at(d) for d in range(queue.guaranteed.n) if queue.guaranteed.v[d] >= 0
        }

    def entitlement(self, leaf: Queue) -> dict[int, int]:
        """What the leaf may still claim, by type.

        It is what is left of the leaf's own guarantee; of a leaf without one, the least that is left to its ancestors.
        """
        found: dict[int, int] = self.own_remaining(leaf)
        queue: Queue | None = leaf.parent
        if found:
            return found
        while queue is not None:
            for d, rest in self.own_remaining(queue).items():
                found[d] = min(rest, found.get(d, rest))
            queue = queue.parent
        return found

    def shortfall(self, amounts: Vec, leaf: Queue) -> dict[int, int] | None:
        """What the leaf lacks of its guarantee in the types of an ask; None if the ask may not preempt (FitInActual).

        The ask may preempt if it fits what the leaf is entitled to in every type that the guarantee lists, and asks for
        at least one of these types.
        """
        d: cython.Py_ssize_t
        rest: dict[int, int] = self.entitlement(leaf)
        listed: bool = False
        for d in range(amounts.n):
            if amounts.v[d] > 0 and d in rest:
                listed = True
                if amounts.v[d] > rest[d]:
                    return None
        return {d: rest[d] for d in rest if amounts.at(d) > 0} if listed else None

    def remaining(
        self, queue: Queue | None, ancestors: dict[Queue, None], has_guarantee: bool
    ) -> dict[int, int] | None:
        """R of section 2.5 for a queue other than the ask's, by type; None where the specification says nil.

        `ancestors` are those of the ask's leaf, `has_guarantee` tells whether that leaf has a guarantee of its own.
        """
        if queue is None:
            return None
        parent: dict[int, int] | None = self.remaining(queue.parent, ancestors, has_guarantee)
        found: dict[int, int] = self.own_remaining(queue)
        if not parent and not found:
            return None
        # A common ancestor does not pass its guarantee down to victims if the ask's leaf has a guarantee of its own.
        if found and has_guarantee and queue in ancestors and queue.parent is not None:
            return None
        for d, rest in (parent or {}).items():
            found[d] = min(rest, found.get(d, rest))
        return found

    def protected(self, queue: Queue, ancestors: dict[Queue, None], own_rest: bool) -> bool:
        """Is the leaf within its guarantee, so that none of its allocations is a candidate (section 2.4)?"""
        rest = self.remaining(queue, ancestors, own_rest)
        return rest is not None and all(each >= 0 for each in rest.values())

    # -- the root of the search ------------------------------------------------------------------------

    def fence_root(self, ask: Ask) -> tuple[Queue, dict[Queue, int]]:
        """The root of the search, and the ask's priority as each queue up to it sees it (section 2.3).

        Victims are chosen only below this root. It is the lowest queue that is a preemption fence, or whose effective
        maximum (the least of its own and its ancestors') the ask would exceed; else the root queue.
        """
        priority: int = ask.priority
        seen: dict[Queue, int] = {}
        queue: Queue = ask.app.queue
        limits: list[Vec] = []
        above: Queue | None = queue
        most: Vec
        while above is not None:
            limits.append(above.limit)
            above = above.parent
        depth: cython.Py_ssize_t = 0
        while True:
            priority = queue.offset if queue.fence else priority + queue.offset
            seen[queue] = priority
            most = new_vec(0, UNLIMITED)
            for limit in limits[depth:]:
                most.lower_to(limit)
            depth += 1
            if queue.parent is None or queue.settings.preemption_policy == "fence":
                return queue, seen
            if over(most, self.planned(queue), ask.shape.amounts):
                return queue, seen
            queue = queue.parent


@cython.cfunc
def over(limit: Vec, planned: Vec, more: Vec) -> cython.bint:
    """Would planned usage and `more` together exceed the limit in any type? A sum of 0 or less never does."""
    d: cython.Py_ssize_t
    x: cython.longlong
    for d in range(limit.n):
        if limit.v[d] != UNLIMITED:
            x = planned.at(d) + more.at(d)
            if x > limit.v[d] and x > 0:
                return True
    return False


def can_preempt(leaf: Queue) -> bool:
    """May asks of the leaf preempt: is anything guaranteed to it or above it, or may they do so within it?"""
    return leaf.settings.preempts_within or has_any_guarantee(leaf)


def has_any_guarantee(leaf: Queue) -> bool:
    """Is any type guaranteed to this leaf or to an ancestor of it?"""
    d: cython.Py_ssize_t
    queue: Queue | None = leaf
    while queue is not None:
        for d in range(queue.guaranteed.n):
            if queue.guaranteed.v[d] >= 0:
                return True
        queue = queue.parent
    return False


def user_room(app: Application, amounts: Vec) -> bool:
    """Do the limits of the application's user and group leave room for these amounts?"""
    tracker: Tracker
    for each in app.trackers:
        tracker = each
        if tracker.limit is not None and tracker.limit.binds(tracker.used, amounts):
            return False
    return True
