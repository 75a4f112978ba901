"""Vectors: how amounts of resources are held, added and compared (docs/spec/scheduling.md, section 1).

A resource is a sparse map from type to int64. The core holds it as a `Vec`: one number for each resource type known to
the partition, in the order in which the types were numbered (`Types`). A vector may be shorter than the list of types;
the types that it does not hold have its `fill` value: 0 for amounts, `UNLIMITED` for limits and headroom, where "not
listed" means "without limit". So a new resource type costs nothing for the vectors that exist.

An amount in a message is at most `SUM_MAX`. Additions saturate there, so that no sum and no difference of sums
overflows; what is counted and taken back again is a `Sum` (`licorne.core.amounts.sums`), which keeps what lies beyond.

Compiled, `v` is a C array: inside the object for up to four types, as is common, else allocated apart; interpreted, a
list.
"""

from __future__ import annotations

from typing import Annotated, Any

import cython

if cython.compiled:
    from cython.cimports.libc.stdlib import free, malloc
    from cython.cimports.libc.string import memcpy
    from cython.cimports.licorne.core.constants import (
        NEGATIVE,
        NEW_TYPES,
        NOTHING_IN_IT,
        READ,
        SUM_MAX,
        TOO_LARGE,
        UNLIMITED,
    )
else:
    from licorne.core.constants import NEGATIVE, NEW_TYPES, NOTHING_IN_IT, READ, SUM_MAX, TOO_LARGE, UNLIMITED

OTHER_TYPES: str = "licorne/other-types"  # the name under which the shared number is shown

INSIDE = cython.declare(cython.Py_ssize_t, 4)  # amounts that a vector holds without a separate allocation


@cython.cclass
class Types:
    """The resource types of a partition, each with its number, which is its index in every vector.

    Which types get a number is decided in `licorne.core.inputs.numbering`. `free` are the numbers of forgotten types,
    the smallest last. `other` is the number shared by all types without one of their own; -1 while there is none. `met`
    are the names in the last map that was read, in its order, `met_at` their numbers, and `met_most` the length of its
    vector: the next map mostly has the same names, and the very same objects, so that they need not be looked up.
    """

    names: list[str]
    index: dict[str, int]
    free: list[int]
    other: cython.Py_ssize_t
    met: list[Any]
    met_at: Annotated[list[int], cython.Py_ssize_t[8]]
    met_most: cython.Py_ssize_t  # comes last: if a C array did, bounds checks would fail

    def __init__(self) -> None:
        self.names = []
        self.index = {}
        self.free = []
        self.other = -1
        self.met = [None] * 8
        self.met_most = 0
        if not cython.compiled:
            self.met_at = [0] * 8

    def slot(self, name: str) -> int:
        """Return the number of a type; a type without one gets the smallest that is free."""
        if name not in self.index:
            if not self.free:
                self.free.append(len(self.names))
                self.names.append("")
            self.index[name] = self.free.pop()
            self.names[self.index[name]] = name
        return self.index[name]

    def forget(self, name: str) -> int:
        """Take a type's number away and return it; it is free for another type only after `set_free`."""
        at = self.index.pop(name)
        self.names[at] = ""
        self.met = [None] * 8
        return at

    def set_free(self, numbers: list[int]) -> None:
        """Free these numbers, which were forgotten and are no longer used in any vector."""
        self.free = sorted([*self.free, *numbers], reverse=True)

    def shared(self) -> int:
        """Return the number shared by types without one of their own."""
        if self.other < 0:
            self.other = self.slot(OTHER_TYPES)
            del self.index[OTHER_TYPES]
        return self.other

    @cython.ccall
    def amounts(self, resource: dict[str, int]) -> Vec:
        """Return the vector of a map of amounts, without zeros; types without a number count under the shared one."""
        vec: Vec = new_vec(0, 0)
        d: cython.Py_ssize_t
        for name, value in resource.items():
            if value:
                d = self.index[name] if name in self.index else self.shared()
                vec.grow(d + 1)
                vec.v[d] = min(SUM_MAX, int(vec.v[d]) + value)
        return vec

    @cython.cfunc
    @cython.exceptval(-1)
    def read(self, resource: dict[Any, Any], vec: Vec) -> cython.int:
        """Set `vec` to an ask's map of amounts, as `amounts` makes it; returns READ, or what is wrong with the map.

        NEW_TYPES means that it holds types not known yet, and that no amount is negative or too large.
        """
        d: cython.Py_ssize_t
        i: cython.Py_ssize_t = 0
        amount: cython.longlong
        unknown: cython.bint = False
        most: cython.Py_ssize_t = 0
        vec.cut(0)
        vec.grow(self.met_most)
        try:
            for name, value in resource.items():
                amount = value
                if not 0 < amount <= SUM_MAX:
                    if amount == 0:
                        continue
                    return NEGATIVE if amount < 0 else TOO_LARGE
                if i < 8 and self.met[i] is name:
                    d = self.met_at[i]
                else:
                    at = self.index.get(name)
                    if at is None:
                        unknown = True
                        continue
                    d = at
                    if i < 8:
                        self.met[i] = name
                        self.met_at[i] = d
                i += 1
                if d >= most:
                    most = d + 1
                    if d >= vec.n:
                        vec.grow(most)
                vec.v[d] = amount
        except OverflowError:  # compiled only: the value is too large for a C integer
            return NEGATIVE if value < 0 else TOO_LARGE
        vec.cut(most)
        self.met_most = most
        return NEW_TYPES if unknown else READ if most else NOTHING_IN_IT

    def vector(self, amounts: dict[str, int] | None, fill: int = 0) -> Vec:
        """Return the vector of a sparse map, numbering all its types; types not in it have the value `fill`."""
        for name in amounts or {}:
            self.slot(name)
        return self.known(amounts, fill)

    def known(self, amounts: dict[str, int] | None, fill: int) -> Vec:
        """Return the vector of a sparse map, leaving out types without a number.

        Types that are not in the map have the value `fill`.
        """
        vec: Vec = Vec(0, fill)
        for name, value in (amounts or {}).items():
            if name in self.index:
                at = self.index[name]
                vec.grow(at + 1)
                vec.v[at] = value
        return vec


@cython.cfunc
def new_vec(n: cython.Py_ssize_t, fill: cython.longlong) -> Vec:
    """Return `Vec(n, fill)` without the cost of a call from Python."""
    vec: Vec = Vec.__new__(Vec)
    vec.initialise(n, fill)
    return vec


@cython.cclass
class Vec:
    """A vector of int64 amounts, one for each resource type; types from `n` on have the value `fill`."""

    v: cython.p_longlong
    n: cython.int
    allocated_length: cython.int
    inside: Annotated[list[int], cython.longlong[4]]
    fill: cython.longlong

    def __init__(self, n: cython.Py_ssize_t = 0, fill: cython.longlong = 0) -> None:
        self.initialise(n, fill)

    @cython.cfunc
    def initialise(self, n: cython.Py_ssize_t, fill: cython.longlong) -> cython.void:
        """Set the fields of a new vector: n amounts, all `fill`; to be called once."""
        d: cython.Py_ssize_t
        self.n = n
        self.fill = fill
        if cython.compiled:
            self.allocated_length = max(n, INSIDE)
            if n <= INSIDE:
                self.v = self.inside
            else:
                self.v = cython.cast(cython.p_longlong, malloc(n * 8))
                if self.v == cython.NULL:
                    raise MemoryError
            for d in range(n):
                self.v[d] = fill
        else:
            self.v = [fill] * n

    def __dealloc__(self) -> None:
        if cython.compiled:
            if self.v != self.inside:
                free(self.v)

    @cython.cfunc
    def grow(self, n: cython.Py_ssize_t) -> cython.void:
        """Extend the vector to at least n types; the new ones have the value `fill`."""
        d: cython.Py_ssize_t
        if n <= self.n:
            return
        if cython.compiled:
            if n > self.allocated_length:
                self._move(n)
            for d in range(self.n, n):
                self.v[d] = self.fill
        else:
            self.v.extend([self.fill] * (n - self.n))
        self.n = n

    @cython.cfunc
    def _move(self, room: cython.Py_ssize_t) -> cython.void:
        """Move the amounts to an allocation for `room` of them."""
        if cython.compiled:
            new: cython.p_longlong = cython.cast(cython.p_longlong, malloc(room * 8))
            if new == cython.NULL:
                raise MemoryError
            memcpy(new, self.v, self.n * 8)
            if self.v != self.inside:
                free(self.v)
            self.v = new
            self.allocated_length = room

    @cython.cfunc
    @cython.exceptval(check=False)
    def cut(self, n: cython.Py_ssize_t) -> cython.void:
        """Shorten the vector to the first n types."""
        self.n = n
        if not cython.compiled:
            del self.v[n:]

    @cython.ccall
    @cython.exceptval(check=False)
    def at(self, d: cython.Py_ssize_t) -> cython.longlong:
        """Return the value of the type with this number."""
        return self.v[d] if d < self.n else self.fill

    @cython.ccall
    def plus(self, other: Vec) -> cython.void:
        """Add in place, saturating; the vector grows to the types of the other."""
        d: cython.Py_ssize_t
        if self.n < other.n:
            self.grow(other.n)
        v: cython.p_longlong = self.v
        for d in range(other.n):
            v[d] += other.v[d]
            if not -SUM_MAX <= v[d] <= SUM_MAX:
                v[d] = SUM_MAX if v[d] > 0 else -SUM_MAX

    @cython.ccall
    def minus(self, other: Vec) -> cython.void:
        """Subtract in place, saturating; the result may be negative."""
        d: cython.Py_ssize_t
        if self.n < other.n:
            self.grow(other.n)
        v: cython.p_longlong = self.v
        for d in range(other.n):
            v[d] -= other.v[d]
            if not -SUM_MAX <= v[d] <= SUM_MAX:
                v[d] = SUM_MAX if v[d] > 0 else -SUM_MAX

    @cython.ccall
    @cython.exceptval(check=False)
    def covers(self, ask: Vec) -> cython.bint:
        """Return whether the ask fits in here; a negative amount here counts as 0.

        This is FitIn; with the fill UNLIMITED it is FitInMaxUndef.
        """
        d: cython.Py_ssize_t
        n: cython.Py_ssize_t = min(ask.n, self.n)
        for d in range(n):
            if ask.v[d] > self.v[d] and ask.v[d] > 0:
                return False
        if ask.n <= n or self.fill == UNLIMITED:
            return True
        for d in range(n, ask.n):
            if ask.v[d] > self.fill and ask.v[d] > 0:
                return False
        return True

    @cython.cfunc
    def lower_to(self, other: Vec) -> cython.void:
        """Take the componentwise minimum with the other, in place."""
        d: cython.Py_ssize_t
        if self.n < other.n:
            self.grow(other.n)
        for d in range(other.n):
            self.v[d] = min(self.v[d], other.v[d])
        for d in range(other.n, self.n):
            self.v[d] = min(self.v[d], other.fill)

    @cython.cfunc
    def raise_to(self, other: Vec) -> cython.void:
        """Take the componentwise maximum with the other, in place."""
        d: cython.Py_ssize_t
        if self.n < other.n:
            self.grow(other.n)
        for d in range(other.n):
            if other.v[d] > self.v[d]:
                self.v[d] = other.v[d]
        for d in range(other.n, self.n):
            if other.fill > self.v[d]:
                self.v[d] = other.fill

    @cython.cfunc
    def lower_to_rest(self, limit: Vec, used: Vec) -> cython.void:
        """Take the componentwise minimum with limit - used, in place; a type without limit is left unchanged."""
        d: cython.Py_ssize_t
        rest: cython.longlong
        if self.n < limit.n:
            self.grow(limit.n)
        for d in range(limit.n):
            rest = limit.v[d]
            if rest != UNLIMITED:
                rest -= used.v[d] if d < used.n else used.fill
                if rest < self.v[d]:
                    self.v[d] = rest

    @cython.ccall
    @cython.exceptval(check=False)
    def binds(self, used: Vec, ask: Vec) -> cython.bint:
        """Return whether, as a limit of which `used` is used, it leaves too little for an ask of up to this size."""
        d: cython.Py_ssize_t
        for d in range(min(self.n, ask.n)):
            if ask.v[d] > 0 and self.v[d] != UNLIMITED and self.v[d] - used.at(d) < ask.v[d]:
                return True
        return False

    @cython.ccall
    @cython.exceptval(check=False)
    def above(self, other: Vec) -> cython.bint:
        """Return whether self - other is above zero in some type and below zero in none (GTZero)."""
        d: cython.Py_ssize_t
        x: cython.longlong
        more: cython.bint = False
        for d in range(max(self.n, other.n)):
            x = self.at(d) - other.at(d)
            if x < 0:
                return False
            if x > 0:
                more = True
        return more

    @cython.ccall
    @cython.exceptval(check=False)
    def same(self, other: Vec) -> cython.bint:
        """Return whether both are equal, with `fill` for the types that one of them does not hold."""
        d: cython.Py_ssize_t
        for d in range(max(self.n, other.n)):
            if (self.v[d] if d < self.n else self.fill) != (other.v[d] if d < other.n else other.fill):
                return False
        return True

    @cython.ccall
    @cython.exceptval(check=False)
    def zero(self) -> cython.bint:
        """Return whether all amounts held are 0."""
        d: cython.Py_ssize_t
        for d in range(self.n):
            if self.v[d] != 0:
                return False
        return True

    @cython.cfunc
    def copy_from(self, other: Vec) -> cython.void:
        """Take over the other's values, and its fill."""
        d: cython.Py_ssize_t
        self.fill = other.fill
        if self.n < other.n:
            self.grow(other.n)
        for d in range(other.n):
            self.v[d] = other.v[d]
        for d in range(other.n, self.n):
            self.v[d] = other.fill

    @cython.cfunc
    @cython.exceptval(check=False)
    def set_all(self, value: cython.longlong) -> cython.void:
        """Set every type to this value, whether it has a number yet or not."""
        d: cython.Py_ssize_t
        self.fill = value
        for d in range(self.n):
            self.v[d] = value

    def set_bit(self, d: cython.Py_ssize_t, bit: cython.longlong, on: bool) -> None:
        """Set or clear this bit in word `d`, for a vector used as a bitmap."""
        self.grow(d + 1)
        if on:
            self.v[d] |= bit
        else:
            self.v[d] &= ~bit

    def clone(self) -> Vec:
        """Return another vector with the same amounts and the same fill."""
        new: Vec = Vec(self.n, self.fill)
        new.copy_from(self)
        return new

    def values(self) -> list[int]:
        """Return the values that are held, in the order of the types' numbers."""
        d: cython.Py_ssize_t
        return [self.v[d] for d in range(self.n)]

    def named(self, types: Types) -> dict[str, int]:
        """Return a map by type, sorted by name; types whose value is `fill` are left out."""
        d: cython.Py_ssize_t
        found = {types.names[d]: self.v[d] for d in range(self.n) if self.v[d] != self.fill}
        return dict(sorted(found.items()))
