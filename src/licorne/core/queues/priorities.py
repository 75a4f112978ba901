"""The priority of an application or queue: the highest of what is pending in it.

Asks come and go all the time, and a queue must know the highest priority after each. So priorities are counted in a
multiset that has its maximum at hand.

Source: docs/spec/scheduling.md, section 4.2.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from licorne._plain import cython
from licorne.core.constants import NO_PRIORITY


@cython.cclass
class PriorityBag:
    """A multiset of priorities with its maximum, `top`, at hand; NO_PRIORITY does not count.

    `count` is how often the maximum occurs. The next maximum comes from a heap, not from a scan of all: a tenant may
    give each of its asks a priority of its own.
    """

    top: cython.longlong
    count: cython.longlong
    rest: dict[int, int]  # how often each lower priority occurs
    below: list[int]  # a heap of those, negated; it may hold some that no longer occur, or one twice

    def __init__(self) -> None:
        self.top = NO_PRIORITY
        self.count = 0
        self.rest = {}
        self.below = []

    @cython.cfunc
    @cython.exceptval(-1)
    def add(self, priority: cython.longlong) -> cython.bint:
        """Add a priority; True if the maximum changed."""
        if priority == NO_PRIORITY:
            return False
        if self.count and priority == self.top:
            self.count += 1
            return False
        if self.count == 0 or priority > self.top:
            if self.count:
                self._lower(self.top, self.count)
            self.top = priority
            self.count = 1
            return True
        self._lower(priority, self.rest.get(priority, 0) + 1)
        return False

    @cython.cfunc
    def _lower(self, priority: cython.longlong, count: cython.longlong) -> cython.void:
        """Set how often a priority below the maximum occurs."""
        if priority not in self.rest:
            heappush(self.below, -priority)
            # Stale entries are removed in bulk once they are the majority, so that the heap stays bounded.
            if len(self.below) > 2 * len(self.rest) + 16:
                self.below = [-lower for lower in self.rest]
                self.below.append(-priority)
                heapify(self.below)
        self.rest[priority] = count

    @cython.cfunc
    @cython.exceptval(-1)
    def remove(self, priority: cython.longlong) -> cython.bint:
        """Remove a priority that was added; True if the maximum changed."""
        if priority == NO_PRIORITY:
            return False
        if priority == self.top:
            self.count -= 1
            if self.count:
                return False
            if self.rest:
                self.top = -heappop(self.below)
                # The heap may hold priorities that no longer occur.
                while self.top not in self.rest:
                    self.top = -heappop(self.below)
                self.count = self.rest.pop(self.top)
            else:
                self.top = NO_PRIORITY
            return True
        left: cython.longlong = self.rest[priority] - 1
        if left:
            self.rest[priority] = left
        else:
            del self.rest[priority]
        return False

    def refill(self, priorities: list[int]) -> None:
        """Replace everything by these priorities."""
        self.top = NO_PRIORITY
        self.count = 0
        self.rest = {}
        self.below = []
        for priority in priorities:
            self.add(priority)
