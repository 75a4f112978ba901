"""The priority of an application or queue: the highest of what is pending in it.

Source: docs/spec/scheduling.md, section 4.2.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import cython

if cython.compiled:
    from cython.cimports.licorne.core.constants import NO_PRIORITY
else:
    from licorne.core.constants import NO_PRIORITY


@cython.cclass
class PriorityBag:
    """A multiset of priorities with its maximum at hand; NO_PRIORITY does not count.

    The next maximum comes from a heap, not from a look at all: a tenant may give each of its asks a priority of its own.
    """

    top: cython.longlong
    count: cython.longlong
    rest: dict[int, int]  # how often each lower priority occurs
    below: list[int]  # a heap of these, negated; perhaps with some that occur no longer, or twice

    def __init__(self) -> None:
        self.top = NO_PRIORITY
        self.count = 0
        self.rest = {}
        self.below = []

    @cython.cfunc
    @cython.exceptval(-1)
    def add(self, priority: cython.longlong) -> cython.bint:
        """Put one in; did the maximum change?"""
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
        """A priority below the maximum occurs so often now."""
        if priority not in self.rest:
            heappush(self.below, -priority)
            if len(self.below) > 2 * len(self.rest) + 16:
                self.below = [-lower for lower in self.rest]
                self.below.append(-priority)
                heapify(self.below)
        self.rest[priority] = count

    @cython.cfunc
    @cython.exceptval(-1)
    def remove(self, priority: cython.longlong) -> cython.bint:
        """Take one out; did the maximum change?"""
        if priority == NO_PRIORITY:
            return False
        if priority == self.top:
            self.count -= 1
            if self.count:
                return False
            if self.rest:
                self.top = -heappop(self.below)
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
        """Hold these and no others, whatever was in it."""
        self.top = NO_PRIORITY
        self.count = 0
        self.rest = {}
        self.below = []
        for priority in priorities:
            self.add(priority)
