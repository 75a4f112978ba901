"""The columns that a search for a node compares: of nodes, of blocks of nodes, and of groups of blocks.

`Columns` hold up to 64 rows. A row describes one node, or holds bounds of several: for each resource type an upper
bound of what is free on any of them, and the union of their constraint bitmaps. `first` finds the first row that has
room for an ask, or, of bounds, that may have. Its loops are straight and free of branches, so that the C compiler
vectorises them.

Bounds of each type alone exclude little on a full cluster, where some nodes of a block have processors left and others
memory. So each row also has a set of `cells`: a `Grid` divides the sizes of asks, by the two types that every cluster
has, into 8 x 8 cells, and a row has those cells in which some ask may fit it.
"""

from __future__ import annotations

from typing import Annotated

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec

if cython.compiled:
    from cython.cimports.libc.math import sqrt
    from cython.cimports.libc.stdlib import calloc, free
    from cython.cimports.libc.string import memcpy, memmove
else:
    from math import sqrt

ROW_OF_BITS = cython.declare(cython.ulonglong, 0x0101010101010101)


@cython.cfunc
@cython.exceptval(check=False)
def _truncated(x: cython.double) -> cython.longlong:
    """Convert to an integer as C does, towards zero."""
    return cython.cast(cython.longlong, x) if cython.compiled else int(x)


@cython.cclass
class Grid:
    """Divides amounts of two resource types into 8 levels each, according to the sizes of the asks searched for so far.

    It decides nothing: cells only tell where a search cannot succeed.
    """

    # The range of amounts that the levels divide: a quarter wider than the asks that set it, so that it seldom changes.
    low: Annotated[list[int], cython.longlong[2]]
    high: Annotated[list[int], cython.longlong[2]]
    steps: Annotated[list[int], cython.longlong[14]]  # level i + 1 begins at steps[i]; seven steps a type
    last: cython.bint  # unused: a C array must not be the last member, or bounds checks fail

    def __init__(self) -> None:
        d: cython.Py_ssize_t
        if not cython.compiled:
            self.low = [0, 0]
            self.high = [0, 0]
            self.steps = [0] * 14
        for d in range(2):
            self.low[d] = 1 << 62
            self.high[d] = 0
            self._divide(d)

    @cython.cfunc
    def take_in(self, ask: Vec) -> cython.bint:
        """Widen the levels to include the size of this ask; True if they changed and all cells must be recomputed."""
        d: cython.Py_ssize_t
        x: cython.longlong
        changed: cython.bint = False
        for d in range(min(ask.n, 2)):
            x = ask.v[d]
            if x > 0 and (x < self.low[d] or x > self.high[d]):
                self.low[d] = min(self.low[d], x - x // 4)
                self.high[d] = max(self.high[d], x + x // 4)
                self._divide(d)
                changed = True
        return changed

    @cython.cfunc
    def _divide(self, d: cython.Py_ssize_t) -> cython.void:
        """Compute the levels of one type: of equal ratio, the lowest for less than any ask wants.

        The steps are found by square roots, which are the same on every machine; other powers are not quite.
        """
        i: cython.Py_ssize_t = d * 7
        low: cython.double = self.low[d]
        high: cython.double = max(self.high[d], self.low[d])
        middle: cython.double = sqrt(low * high)
        self.steps[i] = self.low[d]
        self.steps[i + 4] = _truncated(middle)
        self.steps[i + 2] = _truncated(sqrt(low * middle))
        self.steps[i + 1] = _truncated(sqrt(low * sqrt(low * middle)))
        self.steps[i + 3] = _truncated(sqrt(sqrt(low * middle) * middle))
        self.steps[i + 6] = _truncated(sqrt(middle * high))
        self.steps[i + 5] = _truncated(sqrt(middle * sqrt(middle * high)))

    @cython.cfunc
    @cython.exceptval(check=False)
    def level(self, d: cython.Py_ssize_t, amount: cython.longlong) -> cython.int:
        """Return the level of an amount, 0 to 7: the number of steps that are no larger, found by binary search."""
        i: cython.Py_ssize_t = d * 7
        level: cython.int = 4 * (amount >= self.steps[i + 3])
        level += 2 * (amount >= self.steps[i + level + 1])
        level += amount >= self.steps[i + level]
        return level

    @cython.cfunc
    @cython.exceptval(check=False)
    def cell(self, ask: Vec) -> cython.int:
        """Return the number of the cell that an ask falls into, 0 to 63."""
        column: cython.int = self.level(0, ask.v[0]) if ask.n > 0 else 0
        row: cython.int = self.level(1, ask.v[1]) if ask.n > 1 else 0
        return column * 8 + row

    @cython.cfunc
    @cython.exceptval(check=False)
    def cells(self, room: Vec) -> cython.ulonglong:
        """Return, as bits, the cells in which some ask may fit into this free amount."""
        return self.cells_below(room.v[0] if room.n > 0 else 0, room.v[1] if room.n > 1 else 0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def cells_below(self, first: cython.longlong, second: cython.longlong) -> cython.ulonglong:
        """Return, as bits, the cells in which some ask may fit into these amounts of the two types."""
        column: cython.int = self.level(0, first)
        row: cython.int = self.level(1, second)
        rows: cython.ulonglong = (cython.cast(cython.ulonglong, 2) << row) - 1
        return (ROW_OF_BITS >> (56 - 8 * column)) * rows

    def cells_of(self, room: Vec) -> int:
        """Python-callable wrapper of `cells`."""
        return self.cells(room)


@cython.cclass
class Columns:
    """Up to 64 rows of integers, column after column in `v`.

    A column has 64 entries. In compiled code the rows are those from `gone` on, and `v` points at the first of them:
    when the first row is removed, as is usual, no other moves; otherwise the rows on the shorter side do.

    The columns are: `width` of free amounts, one for each resource type; `words` of the constraint bitmap, one bit for
    each need that is met (`licorne.core.nodes.needs`); the cells; last the keys and the ranks, by which the rows are
    sorted.
    """

    v: cython.p_longlong
    gone: cython.Py_ssize_t  # free entries before the first row
    count: cython.Py_ssize_t  # rows
    width: cython.Py_ssize_t
    words: cython.Py_ssize_t
    columns: cython.Py_ssize_t
    cells: cython.Py_ssize_t  # the offset of the column of cells
    keys: cython.Py_ssize_t  # the offset of the column of keys; the ranks follow
    exact: cython.bint  # the bounds in the level above are exact: no row became smaller since `upper`

    def __init__(self, width: cython.Py_ssize_t, words: cython.Py_ssize_t) -> None:
        self.gone = 0
        self.count = 0
        self.width = width
        self.words = words
        self.columns = width + words + 3
        self.cells = (width + words) * 64
        self.keys = self.cells + 64
        self.exact = False
        if cython.compiled:
            # Zeroed: a search compares eight rows at once, also those beyond `count`, though it returns none of them.
            self.v = cython.cast(cython.p_longlong, calloc(self.columns * 64, 8))
            if self.v == cython.NULL:
                raise MemoryError
        else:
            self.v = [0] * (self.columns * 64)

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.v - self.gone)

    def entry(self, column: int, row: int) -> int:
        """Return one entry, its 64 bits as an unsigned number; for the check alone."""
        at: cython.Py_ssize_t = column * 64 + row
        return int(self.v[at]) & 0xFFFFFFFFFFFFFFFF

    def start_of(self, row: int) -> tuple[float, int]:
        """Return the key and the rank of a row; for the check alone."""
        at: cython.Py_ssize_t = self.keys + row
        return self.v[at], self.v[at + 64]

    # -- order -----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def starts_by(self, at: cython.Py_ssize_t, key: cython.longlong, rank: cython.longlong) -> cython.bint:
        """Return whether this row is at or before (key, rank)."""
        here: cython.longlong = self.v[self.keys + at]
        return here < key or (here == key and self.v[self.keys + 64 + at] <= rank)

    @cython.cfunc
    @cython.exceptval(check=False)
    def where(self, key: cython.longlong, rank: cython.longlong) -> cython.Py_ssize_t:
        """Return the row with this key and rank, or the one at which it belongs."""
        v: cython.p_longlong = self.v
        start: cython.Py_ssize_t = self.keys
        lo: cython.Py_ssize_t = start
        hi: cython.Py_ssize_t = start + self.count
        mid: cython.Py_ssize_t
        here: cython.longlong
        while lo < hi:
            mid = (lo + hi) >> 1
            here = v[mid]
            if here < key or (here == key and v[mid + 64] < rank):
                lo = mid + 1
            else:
                hi = mid
        return lo - start

    # -- rows ------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def open_row(self, at: cython.Py_ssize_t) -> cython.void:
        """Insert an empty row; there must be fewer than 64."""
        c: cython.Py_ssize_t
        rest: cython.Py_ssize_t = self.count - at
        v: cython.p_longlong = self.v
        self.count += 1
        if cython.compiled:
            # Move the rows before it if they are fewer, or if there is no entry left after the last row.
            if self.gone and (at < rest or self.gone + self.count > 64):
                self._shift(-1, at)
                return
            for c in range(at, self.columns * 64, 64):
                memmove(v + c + 1, v + c, rest * 8)
        else:
            for c in range(at, self.columns * 64, 64):
                v.insert(c, v.pop(c + rest))

    @cython.cfunc
    @cython.exceptval(check=False)
    def close_row(self, at: cython.Py_ssize_t) -> cython.void:
        """Remove a row."""
        c: cython.Py_ssize_t
        rest: cython.Py_ssize_t = self.count - at - 1
        v: cython.p_longlong = self.v
        self.count -= 1
        self.exact = False
        if cython.compiled:
            # Move the rows before it if they are fewer.
            if at < rest:
                self._shift(1, at)
                return
            for c in range(at, self.columns * 64, 64):
                memmove(v + c, v + c + 1, rest * 8)
        else:
            for c in range(at, self.columns * 64, 64):
                v.insert(c + rest, v.pop(c))

    @cython.cfunc
    @cython.exceptval(check=False)
    def center(self, count: cython.Py_ssize_t) -> cython.void:
        """Move the rows so that with `count` rows as many entries are free before them as after them."""
        self._shift((64 - count) // 2 - self.gone, self.count)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _shift(self, by: cython.Py_ssize_t, number: cython.Py_ssize_t) -> cython.void:
        """Move the start of all columns `by` entries, together with their first `number` rows."""
        c: cython.Py_ssize_t
        if cython.compiled:
            v: cython.p_longlong = self.v
            if number:
                for c in range(0, self.columns * 64, 64):
                    memmove(v + c + by, v + c, number * 8)
            self.v = v + by
            self.gone += by

    @cython.cfunc
    def copy_rows(self, start: cython.Py_ssize_t, to: Columns, row: cython.Py_ssize_t) -> cython.void:
        """Copy the rows from `start` on to the end, at `row`, of other columns of the same kind."""
        c: cython.Py_ssize_t
        number: cython.Py_ssize_t = self.count - start
        to.center(row + number)
        for c in range(0, self.columns * 64, 64):
            if cython.compiled:
                memcpy(to.v + c + row, self.v + c + start, number * 8)
            else:
                to.v[c + row : c + row + number] = self.v[c + start : c + start + number]

    @cython.cfunc
    @cython.exceptval(check=False)
    def lift_row(self, at: cython.Py_ssize_t, room: Vec, marks: Vec, cells: cython.ulonglong) -> cython.bint:
        """Raise the bounds in a row to these; True if any of them was lower."""
        v: cython.p_longlong = self.v
        free_: cython.p_longlong = room.v
        d: cython.Py_ssize_t
        i: cython.Py_ssize_t
        x: cython.longlong
        lifted: cython.bint = False
        for d in range(self.width):
            x = free_[d] if d < room.n else 0
            if x > v[d * 64 + at]:
                v[d * 64 + at] = x
                lifted = True
        for d in range(min(self.words, marks.n)):
            i = (self.width + d) * 64 + at
            if marks.v[d] & ~v[i]:
                v[i] |= marks.v[d]
                lifted = True
        if cells & ~v[self.cells + at]:
            v[self.cells + at] |= cells
            lifted = True
        return lifted

    @cython.cfunc
    def join_rows(self, at: cython.Py_ssize_t, other: cython.Py_ssize_t) -> cython.void:
        """Raise the bounds in a row to those in another row."""
        c: cython.Py_ssize_t
        for c in range(0, self.width * 64, 64):
            if self.v[c + other] > self.v[c + at]:
                self.v[c + at] = self.v[c + other]
        for c in range(self.width * 64, self.cells + 1, 64):
            self.v[c + at] |= self.v[c + other]
        self.exact = False

    @cython.cfunc
    @cython.exceptval(check=False)
    def divide(self, grid: Grid) -> cython.void:
        """Recompute the cells of all rows after the levels of the grid have changed."""
        j: cython.Py_ssize_t
        for j in range(self.count):
            self.v[self.cells + j] = grid.cells_below(
                self.v[j] if self.width > 0 else 0, self.v[64 + j] if self.width > 1 else 0
            )

    @cython.cfunc
    def upper(self, to: Columns, row: cython.Py_ssize_t) -> cython.void:
        """Write the exact bounds of all rows into a row of the columns of the level above."""
        c: cython.Py_ssize_t
        x: cython.longlong
        y: cython.longlong
        for c in range(0, self.width * 64, 64):
            x = -1
            for y in self.v[c : c + self.count]:
                if y > x:
                    x = y
            to.v[c + row] = x
        for c in range(self.width * 64, self.cells + 1, 64):
            x = 0
            for y in self.v[c : c + self.count]:
                x |= y
            to.v[c + row] = x
        self.exact = True

    # -- search ----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def fits(
        self, ask: Vec, word: cython.Py_ssize_t, mark: cython.longlong, cell: cython.int, row: cython.Py_ssize_t
    ) -> cython.bint:
        """Return whether this row has room for the ask, the need's bit (`mark` in `word`), and the ask's cell."""
        d: cython.Py_ssize_t
        if self.v[(self.width + word) * 64 + row] & mark == 0 or (self.v[self.cells + row] >> cell) & 1 == 0:
            return False
        for d in range(min(ask.n, self.width)):
            if self.v[d * 64 + row] < ask.v[d] and ask.v[d] > 0:
                return False
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def first(
        self,
        ask: Vec,
        word: cython.Py_ssize_t,
        mark: cython.longlong,
        cell: cython.int,
        start: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Return the first row from `start` on with room for the ask, its cell, and the bit `mark` in `word`; or -1."""
        d: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        want: cython.longlong
        column: cython.p_longlong
        for d in range(self.width, ask.n):
            if ask.v[d] > 0:
                return -1
        if start < self.count and self.fits(ask, word, mark, cell, start):  # the common case: the first row fits
            return start
        if not cython.compiled:  # an interpreter is faster row by row
            for j, has in enumerate(self.v[self.cells + start + 1 : self.cells + self.count], start + 1):
                if has >> cell & 1 and self.fits(ask, word, mark, cell, j):
                    return j
            return -1
        # Eight rows at once, without branches: unfit[j] stays 0 where row i + j meets everything.
        unfit = cython.declare(cython.ulonglong[8])  # type: ignore[valid-type]  # a C array
        marks: cython.p_longlong = self.v + (self.width + word) * 64
        cells: cython.p_longlong = self.v + self.cells
        for i in range(start - (start & 7), self.count, 8):
            for j in range(8):
                unfit[j] = ((marks[i + j] & mark) ^ mark) | ((~(cells[i + j] >> cell)) & 1)
            for d in range(min(ask.n, self.width)):
                want = ask.v[d]
                if want > 0:
                    column = self.v + d * 64 + i
                    # The sign of what would be left; neither is beyond `SUM_MAX`, so it does not overflow.
                    for j in range(8):
                        unfit[j] |= cython.cast(cython.ulonglong, column[j] - want) >> 63
            for j in range(8):
                if unfit[j] == 0 and start <= i + j < self.count:
                    return i + j
        return -1
