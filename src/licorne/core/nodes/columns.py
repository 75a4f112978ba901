"""Columns of what is free: what a search for a node looks at, of nodes, of blocks of nodes and of groups of blocks.

`Columns` hold up to 64 rows. A row is a node, or the bounds of some: an upper bound of what is free on any of them, for
each resource type, and the union of their bits. `first` finds the first row that has room for an ask, or may have. Its
loops are straight and free of branches, so that the C compiler turns them into SIMD code.

Bounds of each type alone say little of a full cluster, where some nodes of a block have processors left and others
memory. So each row also has a set of `cells`: a `Grid` divides the sizes of asks, by the two types that every cluster
has, into 8 x 8 cells, and a row has those in which there is an ask that it may hold.
"""

from __future__ import annotations

from typing import Annotated

import cython

if cython.compiled:
    from cython.cimports.libc.math import sqrt
    from cython.cimports.libc.stdlib import calloc, free
    from cython.cimports.libc.string import memcpy, memmove
    from cython.cimports.licorne.core.amounts.vectors import Vec
else:
    from math import sqrt

    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec

ROW_OF_BITS = cython.declare(cython.ulonglong, 0x0101010101010101)


@cython.cfunc
@cython.exceptval(check=False)
def _truncated(x: cython.double) -> cython.longlong:
    return cython.cast(cython.longlong, x) if cython.compiled else int(x)


@cython.cclass
class Grid:
    """Divides amounts of two resource types into 8 levels each, from the sizes of the asks that were searched for.

    It decides nothing: cells only say where a search is in vain.
    """

    low: Annotated[list[int], cython.longlong[2]]  # the smallest amount that was asked for, and the largest
    high: Annotated[list[int], cython.longlong[2]]
    steps: Annotated[list[int], cython.longlong[14]]  # level i + 1 begins at steps[i], for each of the two
    last: cython.bint  # C arrays are not the last member, so that bounds checks work

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
        """Cover the size of this ask; True if the levels had to be changed for it."""
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
        """Levels of equal ratio; the lowest is for what is less than any ask wants.

        They are found by square roots, which are the same on every machine, other powers not quite.
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
        """The level of an amount, 0 to 7: so many of the steps are no larger; found by halving."""
        i: cython.Py_ssize_t = d * 7
        level: cython.int = 4 * (amount >= self.steps[i + 3])
        level += 2 * (amount >= self.steps[i + level + 1])
        level += amount >= self.steps[i + level]
        return level

    @cython.cfunc
    @cython.exceptval(check=False)
    def cell(self, ask: Vec) -> cython.int:
        """The number of the cell in which an ask is, 0 to 63."""
        column: cython.int = self.level(0, ask.v[0]) if ask.n > 0 else 0
        row: cython.int = self.level(1, ask.v[1]) if ask.n > 1 else 0
        return column * 8 + row

    @cython.cfunc
    @cython.exceptval(check=False)
    def cells(self, room: Vec) -> cython.ulonglong:
        """The cells in which there may be an ask that fits in this room: as bits."""
        return self.cells_below(room.v[0] if room.n > 0 else 0, room.v[1] if room.n > 1 else 0)

    @cython.cfunc
    @cython.exceptval(check=False)
    def cells_below(self, first: cython.longlong, second: cython.longlong) -> cython.ulonglong:
        """The same for the amounts of the two types."""
        column: cython.int = self.level(0, first)
        row: cython.int = self.level(1, second)
        rows: cython.ulonglong = (cython.cast(cython.ulonglong, 2) << row) - 1
        return (ROW_OF_BITS >> (56 - 8 * column)) * rows

    def cells_of(self, room: Vec) -> int:
        """The same, for who is not compiled."""
        return self.cells(room)


@cython.cclass
class Columns:
    """Up to 64 rows of integers, column after column in `v`.

    Each column has 64 places. Compiled, the rows stand in those from `gone` on, and `v` points at the first of them: when
    the first row leaves, as it mostly is, no other moves, and else those on the side that has fewer.

    First come `width` columns of what is free, one for each resource type; then `words` columns of marks, bit sets of
    the needs that are met (`licorne.core.nodes.needs`); the cells; last keys and ranks, in whose order the rows are.
    """

    v: cython.p_longlong
    gone: cython.Py_ssize_t  # places before the first row
    count: cython.Py_ssize_t  # rows
    width: cython.Py_ssize_t
    words: cython.Py_ssize_t
    columns: cython.Py_ssize_t
    cells: cython.Py_ssize_t  # where the column of the cells begins
    keys: cython.Py_ssize_t  # where that of the keys begins; that of the ranks is the next
    exact: cython.bint  # `upper` has been told since a row became smaller

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
            # All zeros, since a search also looks at rows that are not there yet, though it finds none of them.
            self.v = cython.cast(cython.p_longlong, calloc(self.columns * 64, 8))
            if self.v == cython.NULL:
                raise MemoryError
        else:
            self.v = [0] * (self.columns * 64)

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.v - self.gone)

    def entry(self, column: int, row: int) -> int:
        """One entry, its 64 bits as a number without sign: to prove that it is right."""
        at: cython.Py_ssize_t = column * 64 + row
        return int(self.v[at]) & 0xFFFFFFFFFFFFFFFF

    def start_of(self, row: int) -> tuple[float, int]:
        """The key and the rank of a row, for the same."""
        at: cython.Py_ssize_t = self.keys + row
        return self.v[at], self.v[at + 64]

    # -- order -----------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def starts_by(self, at: cython.Py_ssize_t, key: cython.longlong, rank: cython.longlong) -> cython.bint:
        """Is this row at or before (key, rank)?"""
        here: cython.longlong = self.v[self.keys + at]
        return here < key or (here == key and self.v[self.keys + 64 + at] <= rank)

    @cython.cfunc
    @cython.exceptval(check=False)
    def where(self, key: cython.longlong, rank: cython.longlong) -> cython.Py_ssize_t:
        """The row with this key and rank, or where it belongs."""
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
        """Make room for a row; there must be some."""
        c: cython.Py_ssize_t
        rest: cython.Py_ssize_t = self.count - at
        v: cython.p_longlong = self.v
        self.count += 1
        if cython.compiled:
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
        """Take out a row."""
        c: cython.Py_ssize_t
        rest: cython.Py_ssize_t = self.count - at - 1
        v: cython.p_longlong = self.v
        self.count -= 1
        self.exact = False
        if cython.compiled:
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
        """Move the rows so that with this count there is as much room before as behind them."""
        self._shift((64 - count) // 2 - self.gone, self.count)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _shift(self, by: cython.Py_ssize_t, number: cython.Py_ssize_t) -> cython.void:
        """Move the beginning of all columns, with so many rows."""
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
        """Copy the rows from `start` on to the end, which is `row`, of other columns of the same kind."""
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
        """Lift the bounds that a row holds to these; were they lower?"""
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
        """Lift the bounds that a row holds to those in another row."""
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
        """The grid has other levels: find the cells of all rows anew."""
        j: cython.Py_ssize_t
        for j in range(self.count):
            self.v[self.cells + j] = grid.cells_below(
                self.v[j] if self.width > 0 else 0, self.v[64 + j] if self.width > 1 else 0
            )

    @cython.cfunc
    def upper(self, to: Columns, row: cython.Py_ssize_t) -> cython.void:
        """Write the exact bounds of all rows into a row of the columns above."""
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
        """Has this row room for the ask, this mark, and the ask's cell?"""
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
        """The first row from `start` on with room for the ask, this mark (in this word), and the ask's cell; or -1."""
        d: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        want: cython.longlong
        column: cython.p_longlong
        for d in range(self.width, ask.n):
            if ask.v[d] > 0:
                return -1
        if start < self.count and self.fits(ask, word, mark, cell, start):  # the common case: it is the very first
            return start
        if not cython.compiled:  # row after row, which suits an interpreter
            for j, has in enumerate(self.v[self.cells + start + 1 : self.cells + self.count], start + 1):
                if has >> cell & 1 and self.fits(ask, word, mark, cell, j):
                    return j
            return -1
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
                    # The sign of what would be left: neither can be beyond vectors.SUM_MAX, so it does not overflow.
                    for j in range(8):
                        unfit[j] |= cython.cast(cython.ulonglong, column[j] - want) >> 63
            for j in range(8):
                if unfit[j] == 0 and start <= i + j < self.count:
                    return i + j
        return -1
