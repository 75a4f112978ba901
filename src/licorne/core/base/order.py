"""A kept order: a binary heap whose items know their place, so that a changed item is mended, not re-sorted.

Queues among their siblings and applications within their leaf stand in an `Order`. What comes first is said by
`Ranked.before`, which must be a total order for the items of one heap. By `Ranked.precedes`, which need not be one,
items are sorted once.
"""

from __future__ import annotations

from typing import Any

import cython

if not cython.compiled:
    from licorne._plain import cython  # type: ignore[no-redef]


@cython.cclass
class Ranked:
    """Something that stands in an `Order`; `heap_index` is -1 while it stands in none."""

    heap_index: cython.Py_ssize_t

    @cython.cfunc
    @cython.exceptval(check=False)
    def before(self, other: Ranked) -> cython.bint:
        """Does it come before the other of the same heap? Each kind of item says it in its own way."""
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def precedes(self, other: Ranked) -> cython.bint:
        """Does it come before the other where they are sorted? A partial order."""
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    def equals(self, other: Ranked) -> cython.bint:
        """Are they alike for `precedes`, so that neither goes before the other, and all others before both or after?"""
        return False


@cython.cclass
class Order:
    """Push, drop and mend cost O(log n), the first costs nothing."""

    items: list[Ranked]

    def __init__(self) -> None:
        self.items = []

    @cython.cfunc
    def top(self) -> Ranked:
        """The first; there must be one."""
        return cython.cast(Ranked, self.items[0])

    @cython.cfunc
    def push(self, item: Ranked) -> cython.void:
        """Put in an item that stands in no order."""
        item.heap_index = len(self.items)
        self.items.append(item)
        self._up(item)

    @cython.cfunc
    def drop(self, item: Ranked) -> cython.void:
        """Take out an item that stands in this order."""
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
        """The item's rank changed: put it where it belongs now."""
        if not self._up(item):
            self._down(item)

    def refill(self, items: list[Ranked]) -> None:
        """Hold these items and no others: after a change of what `before` compares."""
        item: Ranked
        for item in self.items:
            item.heap_index = -1
        self.items = []
        for item in items:
            self.push(item)

    def validate(self) -> None:
        """Prove that every item knows its place and stands behind none that it is before."""
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
    """What a stable insertion sort by `precedes` makes.

    Each item is compared with those before it, from the last one on, until it goes before one of them no more. Should
    that take long, places are found by halving: where any two items compare, all stable sorts agree.
    """
    found: list[Any] | None = _inserted(items, len(items) * 16)
    if found is None:
        found = _inserted_by_halving(items)
        if not any_two_compare(found):
            found = _inserted(items, len(items) * len(items))
    return cython.cast(list, found)


@cython.cfunc
def _inserted(items: list[Any], moves: cython.Py_ssize_t) -> list[Any] | None:
    """None: it would take more moves, each of one item past another."""
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
    """Does each go before the next one, or equal it? Then `precedes` is a total order of these items."""
    i: cython.Py_ssize_t
    item: Ranked
    other: Ranked
    for i in range(1, len(items)):
        item, other = cython.cast(Ranked, items[i - 1]), cython.cast(Ranked, items[i])
        if not item.precedes(other) and not item.equals(other):
            return False
    return True
