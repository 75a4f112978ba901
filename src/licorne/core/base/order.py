"""A kept order: a binary heap whose items know their heap index, so that a changed item is moved, not re-sorted.

Queues among their siblings and applications within their leaf are kept in an `Order`. Its items compare themselves by
`Ranked.before`, which must be a total order of the items of one heap. `Ranked.precedes` may be a partial order: by it
items are sorted all at once (`sorted_by_insertion`), always in the same way, because the outcome depends on it.
"""

from __future__ import annotations

from typing import Any

from licorne._plain import cython


@cython.cclass
class Ranked:
    """An item of an `Order`; `heap_index` is -1 while it is in none."""

    heap_index: cython.Py_ssize_t

    @cython.cfunc
    @cython.exceptval(check=False)
    def before(self, other: Ranked) -> cython.bint:
        """Return whether it comes before the other item of the same heap; each kind of item overrides this."""
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def precedes(self, other: Ranked) -> cython.bint:
        """Return whether it comes before the other where items are sorted; this may be a partial order."""
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def equals(self, other: Ranked) -> cython.bint:
        """Return whether `precedes` does not tell the two apart: a third item comes before both or after both."""
        return False


@cython.cclass
class Order:
    """A binary heap of items: push, drop and mend cost O(log n), the first item costs nothing."""

    items: list[Ranked]

    def __init__(self) -> None:
        self.items = []

    @cython.cfunc
    def top(self) -> Ranked:
        """Return the first item; the order must not be empty."""
        return cython.cast(Ranked, self.items[0])

    @cython.cfunc
    def push(self, item: Ranked) -> cython.void:
        """Insert an item that is in no order."""
        item.heap_index = len(self.items)
        self.items.append(item)
        self._up(item)

    @cython.cfunc
    def drop(self, item: Ranked) -> cython.void:
        """Remove an item of this order."""
        i: cython.Py_ssize_t = item.heap_index
        last: Ranked = cython.cast(Ranked, self.items.pop())
        item.heap_index = -1
        if last is not item:
            last.heap_index = i
            self.items[i] = last
            self.mend(last)

    @cython.cfunc
    @cython.exceptval(check=False)
    def mend(self, item: Ranked) -> cython.void:
        """Move an item whose rank has changed to where it belongs now."""
        if not self._up(item):
            self._down(item)

    def refill(self, items: list[Ranked]) -> None:
        """Replace all items by these, after a change of what `before` compares."""
        item: Ranked
        for item in self.items:
            item.heap_index = -1
        self.items = []
        for item in items:
            self.push(item)

    def validate(self) -> None:
        """Prove that every item has the right heap index and does not come before its parent in the heap."""
        item: Ranked
        above: Ranked
        for i, each in enumerate(self.items):
            item = each
            assert item.heap_index == i, f"place of {each} in an order"
            if i:
                above = self.items[(i - 1) >> 1]
                assert not item.before(above), f"{each} stands behind {above}"

    @cython.cfunc
    @cython.exceptval(check=False)
    def _up(self, item: Ranked) -> cython.bint:
        """Move the item towards the top as far as it belongs; False if it stays."""
        items: list[Any] = self.items
        i: cython.Py_ssize_t = item.heap_index
        start: cython.Py_ssize_t = i
        p: cython.Py_ssize_t
        q: Ranked
        while i > 0:
            p = (i - 1) >> 1
            q = cython.cast(Ranked, items[p])
            if not item.before(q):
                break
            items[i] = q
            q.heap_index = i
            i = p
        if i == start:
            return False
        items[i] = item
        item.heap_index = i
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    def _down(self, item: Ranked) -> cython.void:
        """Move the item away from the top as far as it belongs."""
        items: list[Any] = self.items
        n: cython.Py_ssize_t = len(items)
        i: cython.Py_ssize_t = item.heap_index
        start: cython.Py_ssize_t = i
        c: cython.Py_ssize_t
        q: Ranked
        r: Ranked
        c = 2 * i + 1
        while c < n:
            q = cython.cast(Ranked, items[c])
            if c + 1 < n:
                r = cython.cast(Ranked, items[c + 1])
                if r.before(q):
                    q = r
                    c += 1
            if not q.before(item):
                break
            items[i] = q
            q.heap_index = i
            i = c
            c = 2 * i + 1
        if i != start:
            items[i] = item
            item.heap_index = i


@cython.cfunc
def sorted_by_insertion(items: list[Any]) -> list[Any]:
    """Return what a stable insertion sort by `precedes` makes of the items.

    That sort compares each item with those before it, from the last one on, as long as it precedes them. If that takes
    too many moves, places are found by binary search instead: where `precedes` totally orders the items, all stable
    sorts agree. Where it does not, the insertion sort is run to its end.
    """
    found: list[Any] | None = _inserted(items, len(items) * 16)
    if found is None:
        found = _inserted_by_halving(items)
        if not any_two_compare(found):
            found = _inserted(items, len(items) * len(items))
    return cython.cast(list, found)


@cython.cfunc
def _inserted(items: list[Any], moves: cython.Py_ssize_t) -> list[Any] | None:
    """Sort by insertion; None if that takes more than `moves` moves, each of one item past another."""
    found: list[Any] = []
    item: Ranked
    i: cython.Py_ssize_t
    for item in items:
        i = len(found)
        while i > 0 and item.precedes(cython.cast(Ranked, found[i - 1])):
            i -= 1
            moves -= 1
        if moves < 0:
            return None
        found.insert(i, item)
    return found


@cython.cfunc
def _inserted_by_halving(items: list[Any]) -> list[Any]:
    """Sort by insertion, finding each place by binary search."""
    found: list[Any] = []
    item: Ranked
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    middle: cython.Py_ssize_t
    for item in items:
        low, high = 0, len(found)
        while low < high:
            middle = (low + high) >> 1
            if item.precedes(cython.cast(Ranked, found[middle])):
                high = middle
            else:
                low = middle + 1
        found.insert(low, item)
    return found


@cython.ccall
@cython.exceptval(check=False)
def any_two_compare(items: list[Any]) -> cython.bint:
    """Return whether each item precedes the next one, or equals it: then `precedes` is a total order of these items."""
    i: cython.Py_ssize_t
    item: Ranked
    other: Ranked
    for i in range(1, len(items)):
        item, other = cython.cast(Ranked, items[i - 1]), cython.cast(Ranked, items[i])
        if not item.precedes(other) and not item.equals(other):
            return False
    return True
