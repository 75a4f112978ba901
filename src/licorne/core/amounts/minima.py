"""The minima of many amounts: does any of them fit into this, is any of them no larger than that?

Of a set of vectors those are kept that no other is below or equal to (databases call this a skyline). Two questions
then need few comparisons: does at least one of the set fit into some room, and is at least one no larger than an ask.
Two sets are kept this way:

* amounts that wait for a node: where none of the minima fits, nothing fits (`licorne.core.queues.requests`). When there
  are more than 16 minima, two of them are replaced by their common lower bound: the answer may then be a needless yes,
  never a wrong no.
* amounts for which no node was found: for anything no smaller there is none either (`licorne.core.nodes.node.Need`).
  Here a minimum beyond 16 is dropped: the answer may then be a needless no, never a wrong yes.
"""

from __future__ import annotations

from licorne._plain import cython

from .vectors import Vec, new_vec

if cython.compiled:
    from cython.cimports.libc.stdlib import free, malloc

ROWS_MAX = cython.declare(cython.Py_ssize_t, 16)
WIDTH_MAX = 1 << 16  # of a set that is made of amounts, so that its rows are no larger than any partition needs


@cython.cclass
class Minima:
    """The minima of a set of vectors: up to 16 rows of amounts, one for each of `width` resource types.

    Entries that a vector does not hold are 0; a zero request fits even where the free amount is negative (as
    `Vec.covers`).
    """

    low: cython.p_longlong  # row by row
    width: cython.Py_ssize_t
    count: cython.Py_ssize_t
    discards_excess: cython.bint  # a minimum beyond 16 is dropped; else two are joined

    def __init__(self, discards_excess: bool) -> None:
        self.width = 0
        self.count = 0
        self.discards_excess = discards_excess
        if not cython.compiled:
            self.low = []

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.low)

    @cython.cfunc
    @cython.exceptval(check=False)
    def any_within(self, room: Vec) -> cython.bint:
        """Return whether one of the minima is at most `room` in every type."""
        i: cython.Py_ssize_t
        for i in range(self.count):  # one of the first mostly is, so a search by columns would not pay
            if self._below(i, room):
                return True
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def _below(self, i: cython.Py_ssize_t, room: Vec) -> cython.bint:
        """Return whether the minimum in this row is at most `room` in every type."""
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
        """Return whether the minimum in this row is at least `vec` in every type."""
        d: cython.Py_ssize_t
        for d in range(max(self.width, vec.n)):
            if vec.at(d) > (self.low[i * self.width + d] if d < self.width else 0):
                return False
        return True

    @cython.cfunc
    def add(self, vec: Vec) -> cython.bint:
        """Add a vector to the set; False if nothing changes because one in the set is no larger."""
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
            # Their common lower bound fits wherever one of the two does.
            joined: Vec = self.row(ROWS_MAX - 1)
            joined.lower_to(vec)
            self._drop(ROWS_MAX - 1)
            self.add(joined)
        return True

    @cython.cfunc
    def add_all(self, others: Minima) -> cython.void:
        """Add all minima of another set."""
        i: cython.Py_ssize_t
        for i in range(others.count):
            self.add(others.row(i))

    @cython.cfunc
    def forget_below(self, room: Vec) -> cython.void:
        """Remove the minima that fit into this room."""
        i: cython.Py_ssize_t = self.count - 1
        while i >= 0:
            if self._below(i, room):
                self._drop(i)
            i -= 1

    @cython.cfunc
    def clear(self) -> cython.void:
        """Remove all."""
        self.count = 0

    @cython.ccall
    def row(self, i: cython.Py_ssize_t) -> Vec:
        """Return a copy of one of the minima."""
        d: cython.Py_ssize_t
        vec: Vec = new_vec(self.width, 0)
        for d in range(self.width):
            vec.v[d] = self.low[i * self.width + d]
        return vec

    def rows(self) -> list[list[int]]:
        """Return the amounts of all minima, `width` each."""
        i: cython.Py_ssize_t
        d: cython.Py_ssize_t
        return [[self.low[i * self.width + d] for d in range(self.width)] for i in range(self.count)]

    def set_rows(self, amounts: list[int], width: int) -> None:
        """Make an empty set hold these minima, of `width` amounts each, in their order.

        Raises:
            ValueError: the amounts are not those of at most 16 rows.
        """
        at: cython.Py_ssize_t
        count: int = len(amounts) // width if width > 0 else 0
        if not 0 <= width <= WIDTH_MAX or count > ROWS_MAX or count * width != len(amounts):
            raise ValueError(f"{len(amounts)} amounts in rows of {width}")
        if width:
            self._widen(width)
            for at in range(len(amounts)):
                self.low[at] = amounts[at]
            self.count = count

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
        """Remove this row; the last one moves into its place."""
        d: cython.Py_ssize_t
        self.count -= 1
        for d in range(self.width):
            self.low[i * self.width + d] = self.low[self.count * self.width + d]

    @cython.cfunc
    def _widen(self, width: cython.Py_ssize_t) -> cython.void:
        """Extend the rows to `width` amounts each; the new ones are 0."""
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
