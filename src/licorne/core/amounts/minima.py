"""The smallest of many amounts: does any of them fit into this, is any of them in that?

Of a set of vectors those are kept that no other is below or equal to. Two questions are then short: does at least one
fit into a room, and is at least one no larger than an ask. Two things are known of the set:

* what waits: where one does not fit, none does (`licorne.core.queues.requests`). When there are more minima than 16, two of
  them are replaced by their common lower bound: the answer may then be yes for nothing, never no.
* what found no node: what is no smaller finds none either (`licorne.core.nodes.node.Need`). Here a minimum too many is left
  out: the answer may then be no for nothing, never yes.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.libc.stdlib import free, malloc
    from cython.cimports.licorne.core.amounts.vectors import Vec, new_vec
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .vectors import Vec, new_vec

ROWS_MAX = cython.declare(cython.Py_ssize_t, 16)


@cython.cclass
class Minima:
    """The minima of a set of vectors: up to 16 rows of amounts, one for each of `width` resource types.

    An amount that a vector does not hold is 0, and who wants nothing fits a negative room (as `Vec.covers`).
    """

    low: cython.p_longlong  # row by row
    width: cython.Py_ssize_t
    count: cython.Py_ssize_t
    discards_excess: cython.bint  # a minimum too many is left out; else two are joined

    def __init__(self, lossless: bool) -> None:
        self.width = 0
        self.count = 0
        self.discards_excess = lossless
        if not cython.compiled:
            self.low = []

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.low)

    @cython.cfunc
    @cython.exceptval(check=False)
    def any_within(self, room: Vec) -> cython.bint:
        """Is one of them below `room`, or equal to it?"""
        i: cython.Py_ssize_t
        for i in range(self.count):  # mostly the first is, or one of the next, so that no columns are needed
            if self._below(i, room):
                return True
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def _below(self, i: cython.Py_ssize_t, room: Vec) -> cython.bint:
        """Is the minimum in this row below `room`, or equal to it?"""
        d: cython.Py_ssize_t
        low: cython.longlong
        for d in range(self.width):
            low = self.low[i * self.width + d]
            if low > 0 and low > (room.v[d] if d < room.n else room.fill):
                return False
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _above(self, i: cython.Py_ssize_t, vec: Vec) -> cython.bint:
        """Is the minimum in this row above `vec`, or equal to it?"""
        d: cython.Py_ssize_t
        for d in range(max(self.width, vec.n)):
            if vec.at(d) > (self.low[i * self.width + d] if d < self.width else 0):
                return False
        return True

    @cython.cfunc
    def add(self, vec: Vec) -> cython.bint:
        """One more vector is in the set. False: one that was in it is no larger."""
        i: cython.Py_ssize_t
        if self.any_within(vec):
            return False
        i = self.count - 1
        while i >= 0:
            if self._above(i, vec):
                self._drop(i)
            i -= 1
        if self.count < ROWS_MAX:
            self._append(vec)
        elif not self.discards_excess:
            joined: Vec = self.row(ROWS_MAX - 1)
            joined.lower_to(vec)
            self._drop(ROWS_MAX - 1)
            self.add(joined)
        return True

    @cython.cfunc
    def add_all(self, others: Minima) -> cython.void:
        """All of another set are in this one as well."""
        i: cython.Py_ssize_t
        for i in range(others.count):
            self.add(others.row(i))

    @cython.cfunc
    def forget_below(self, room: Vec) -> cython.void:
        """What fits into this room is in the set no more."""
        i: cython.Py_ssize_t = self.count - 1
        while i >= 0:
            if self._below(i, room):
                self._drop(i)
            i -= 1

    @cython.cfunc
    def clear(self) -> cython.void:
        """The set is empty."""
        self.count = 0

    @cython.ccall
    def row(self, i: cython.Py_ssize_t) -> Vec:
        """One of the minima, a copy."""
        d: cython.Py_ssize_t
        vec: Vec = new_vec(self.width, 0)
        for d in range(self.width):
            vec.v[d] = self.low[i * self.width + d]
        return vec

    @cython.cfunc
    def _append(self, vec: Vec) -> cython.void:
        d: cython.Py_ssize_t
        if vec.n > self.width:
            self._widen(vec.n)
        for d in range(self.width):
            self.low[self.count * self.width + d] = vec.at(d)
        self.count += 1

    @cython.cfunc
    def _drop(self, i: cython.Py_ssize_t) -> cython.void:
        """The last row takes the place of this one."""
        d: cython.Py_ssize_t
        self.count -= 1
        for d in range(self.width):
            self.low[i * self.width + d] = self.low[self.count * self.width + d]

    @cython.cfunc
    def _widen(self, width: cython.Py_ssize_t) -> cython.void:
        """The rows have so many amounts from now on."""
        i: cython.Py_ssize_t
        d: cython.Py_ssize_t
        old: cython.p_longlong = self.low
        if cython.compiled:
            self.low = cython.cast(cython.p_longlong, malloc(width * ROWS_MAX * 8))
            if self.low == cython.NULL:
                self.low = old
                raise MemoryError
        else:
            self.low = [0] * (width * ROWS_MAX)
        for i in range(self.count):
            for d in range(width):
                self.low[i * width + d] = old[i * self.width + d] if d < self.width else 0
        if cython.compiled:
            free(old)
        self.width = width
