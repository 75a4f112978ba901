"""The smallest of many amounts: does any of them fit into this, is any of them in that?

Of a set of vectors those are kept that no other is below or equal to. Two questions are then short: does at least one
fit into a room, and is at least one no larger than an ask. Two things are known of the set:

* what waits: where one does not fit, none does (`licorne.core.requests`). When there are more minima than `MOST`, two of
  them are replaced by their common lower bound: the answer may then be yes for nothing, never no.
* what found no node: what is no smaller finds none either (`licorne.core.nodes.Need`). Here a minimum too many is left
  out: the answer may then be no for nothing, never yes.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.vectors import Vec, new_vec
else:
    from .vectors import Vec, new_vec

KEPT = cython.declare(cython.Py_ssize_t, 16)


@cython.cfunc
@cython.exceptval(check=False)
def _below(low: Vec, high: Vec) -> cython.bint:
    """Is no amount of `low` larger than that of `high`? What a vector does not hold is 0."""
    d: cython.Py_ssize_t
    n: cython.Py_ssize_t = min(low.n, high.n)
    for d in range(n):
        if low.v[d] > high.v[d] and low.v[d] > 0:  # as `Vec.holds`: who wants nothing fits a negative room
            return False
    for d in range(n, low.n):
        if low.v[d] > 0:
            return False
    return True


@cython.cclass
class Minima:
    """The minima of a set of vectors, which are shared and must not change."""

    items: list[Any]  # Vec
    lossless: cython.bint  # a minimum too many is left out; else two are joined

    def __init__(self, lossless: bool) -> None:
        self.items = []
        self.lossless = lossless

    @cython.cfunc
    @cython.exceptval(check=False)
    def reach(self, room: Vec) -> cython.bint:
        """Is one of them below `room`, or equal to it?"""
        i: cython.Py_ssize_t
        for i in range(len(self.items)):
            if _below(cython.cast(Vec, self.items[i]), room):
                return True
        return False

    @cython.cfunc
    def add(self, vec: Vec) -> cython.void:
        """One more vector is in the set."""
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t = len(self.items)
        kept: cython.Py_ssize_t = 0
        if self.reach(vec):
            return
        for i in range(count):
            if not _below(vec, cython.cast(Vec, self.items[i])):
                if kept != i:
                    self.items[kept] = self.items[i]
                kept += 1
        if kept < count:
            del self.items[kept:]
        if kept < KEPT:
            self.items.append(vec)
        elif not self.lossless:
            joined: Vec = new_vec(0, 0)
            joined.copy_from(vec)
            joined.lower_to(cython.cast(Vec, self.items.pop()))
            self.add(joined)

    @cython.cfunc
    def add_all(self, others: Minima) -> cython.void:
        """All of another set are in this one as well."""
        i: cython.Py_ssize_t
        for i in range(len(others.items)):
            self.add(cython.cast(Vec, others.items[i]))

    @cython.cfunc
    def forget_below(self, room: Vec) -> cython.void:
        """What fits into this room is in the set no more."""
        if self.items and self.reach(room):
            self.items = [vec for vec in self.items if not _below(vec, room)]

    @cython.cfunc
    def clear(self) -> cython.void:
        """The set is empty."""
        if self.items:
            self.items.clear()
