"""Amounts of resources: how they are held, added and compared (docs/spec/scheduling.md, section 1).

A resource is a sparse map from type to int64. The core holds it as a `Vec`: one number for each resource type
known to the cluster, in the order in which the types were first seen (`Types`). A vector may be shorter than the
list of types; what it does not hold has its `fill` value: 0 for amounts, `UNLIMITED` for limits and headroom,
where "not listed" means "without limit". So a new type of resource costs nothing to the vectors that exist.

An amount in a message is at most `SUM_MAX`. Additions saturate there, so that no sum and no difference of sums overflows;
what is counted and taken back again is a `Sum` (`licorne.core.amounts.sums`), which keeps what lies beyond.

Compiled, `v` is a C array: inside of the object up to four types, as is common, else beside it; interpreted, a list.
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

OTHER_TYPES: str = "licorne/other-types"  # how amounts of types that share one number are shown

INSIDE = cython.declare(cython.Py_ssize_t, 4)  # amounts that a vector holds without memory of its own


@cython.cclass
class Types:
    """The resource types of a partition, each with its number, its place in every vector.

    Which types get one is decided in `licorne.core.inputs.numbering`. `free` are the numbers of types that are forgotten, the
    smallest last, and `other` the number that types without one of their own share; -1 as long as there is none. `met` are the names of the last map that was read, in its order, and `met_at` their places: the next map mostly has
    the same names, the very objects, so that they need not be looked up. `met_most` is how long its vector was.
    """

    names: list[str]
    index: dict[str, int]
    free: list[int]
    other: cython.Py_ssize_t
    met: list[Any]
    met_at: Annotated[list[int], cython.Py_ssize_t[8]]
    met_most: cython.Py_ssize_t  # C arrays are not the last member, so that bounds checks work

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
        """The number of a type; a type that has none gets the smallest that is free."""
        if name not in self.index:
            if not self.free:
                self.free.append(len(self.names))
                self.names.append("")
            self.index[name] = self.free.pop()
            self.names[self.index[name]] = name
        return self.index[name]

    def forget(self, name: str) -> int:
        """Take a type's number from it. Which it was; it is free only when `set_free` says so."""
        at = self.index.pop(name)
        self.names[at] = ""
        self.met = [None] * 8
        return at

    def set_free(self, numbers: list[int]) -> None:
        """These numbers, which were forgotten, are no longer used in any vector."""
        self.free = sorted([*self.free, *numbers], reverse=True)

    def shared(self) -> int:
        """The number that types without one of their own share."""
        if self.other < 0:
            self.other = self.slot(OTHER_TYPES)
            del self.index[OTHER_TYPES]
        return self.other

    @cython.ccall
    def amounts(self, resource: dict[str, int]) -> Vec:
        """The vector of a map of amounts, without zeros; types without a number count under the one that they share."""
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
        """`vec` := an ask's map of amounts, as `amounts` makes it, if all is well with it (READ); else what is not.

        NEW_TYPES says that it holds types not known yet, and nothing of the other faults.
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
        except OverflowError:  # only compiled: no C integer holds the value
            return NEGATIVE if value < 0 else TOO_LARGE
        vec.cut(most)
        self.met_most = most
        return NEW_TYPES if unknown else READ if most else NOTHING_IN_IT

    def vector(self, amounts: dict[str, int] | None, fill: int = 0) -> Vec:
        """Build a vector from a sparse map; types that are not in it have the value `fill`. All types get numbers."""
        for name in amounts or {}:
            self.slot(name)
        return self.known(amounts, fill)

    def known(self, amounts: dict[str, int] | None, fill: int) -> Vec:
        """Build a vector from a sparse map, leaving out types without a number; types not in the map have the value `fill`."""
        vec: Vec = Vec(0, fill)
        for name, value in (amounts or {}).items():
            if name in self.index:
                at = self.index[name]
                vec.grow(at + 1)
                vec.v[at] = value
        return vec


@cython.cfunc
def new_vec(n: cython.Py_ssize_t, fill: cython.longlong) -> Vec:
    """The same as `Vec(n, fill)`, without the cost of a call from Python."""
    vec: Vec = Vec.__new__(Vec)
    vec.initialise(n, fill)
    return vec


@cython.cclass
class Vec:
    """A vector of int64 amounts, one for each resource type; see the module's text for `fill`."""

    v: cython.p_longlong
    n: cython.int
    allocated_length: cython.int
    inside: Annotated[list[int], cython.longlong[4]]
    fill: cython.longlong

    def __init__(self, n: cython.Py_ssize_t = 0, fill: cython.longlong = 0) -> None:
        self.initialise(n, fill)

    @cython.cfunc
    def initialise(self, n: cython.Py_ssize_t, fill: cython.longlong) -> cython.void:
        """Hold n amounts, all `fill`; once, when the vector is made."""
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
        """Make room for n types; the new ones have the value `fill`."""
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
        """Hold only the first n types."""
        self.n = n
        if not cython.compiled:
            del self.v[n:]

    @cython.ccall
    @cython.exceptval(check=False)
    def at(self, d: cython.Py_ssize_t) -> cython.longlong:
        """The value of one type, by its place."""
        return self.v[d] if d < self.n else self.fill

    @cython.ccall
    def plus(self, other: Vec) -> cython.void:
        """Add in place, saturating; types that only the other holds are taken in."""
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
        """Does the ask fit in here, a negative amount here being 0 (FitIn; with fill UNLIMITED: FitInMaxUndef)?"""
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
        """Componentwise minimum with the other, in place."""
        d: cython.Py_ssize_t
        if self.n < other.n:
            self.grow(other.n)
        for d in range(other.n):
            self.v[d] = min(self.v[d], other.v[d])
        for d in range(other.n, self.n):
            self.v[d] = min(self.v[d], other.fill)

    @cython.cfunc
    def raise_to(self, other: Vec) -> cython.void:
        """Componentwise maximum with the other, in place."""
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
        """Componentwise minimum with limit - used, in place; a type without limit changes nothing."""
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
        """As a limit with that much used: would an ask of up to this size not fit?"""
        d: cython.Py_ssize_t
        for d in range(min(self.n, ask.n)):
            if ask.v[d] > 0 and self.v[d] != UNLIMITED and self.v[d] - used.at(d) < ask.v[d]:
                return True
        return False

    @cython.ccall
    @cython.exceptval(check=False)
    def above(self, other: Vec) -> cython.bint:
        """Is an amount of self - other above zero, and none below (GTZero)?"""
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
        """Are they equal, what one of them does not hold being its `fill`?"""
        d: cython.Py_ssize_t
        for d in range(max(self.n, other.n)):
            if (self.v[d] if d < self.n else self.fill) != (other.v[d] if d < other.n else other.fill):
                return False
        return True

    @cython.ccall
    @cython.exceptval(check=False)
    def zero(self) -> cython.bint:
        """Is there no amount but 0?"""
        d: cython.Py_ssize_t
        for d in range(self.n):
            if self.v[d] != 0:
                return False
        return True

    @cython.cfunc
    def copy_from(self, other: Vec) -> cython.void:
        """Take over the other's values; its fill too."""
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
        """The same value for every type, known or not."""
        d: cython.Py_ssize_t
        self.fill = value
        for d in range(self.n):
            self.v[d] = value

    def set_bit(self, d: cython.Py_ssize_t, bit: cython.longlong, on: bool) -> None:
        """As a set of bits: set, or clear, this one in this place."""
        self.grow(d + 1)
        if on:
            self.v[d] |= bit
        else:
            self.v[d] &= ~bit

    def clone(self) -> Vec:
        """A vector of its own with the same values."""
        new: Vec = Vec(self.n, self.fill)
        new.copy_from(self)
        return new

    def values(self) -> list[int]:
        """The values that are held, in the order of the types."""
        d: cython.Py_ssize_t
        return [self.v[d] for d in range(self.n)]

    def named(self, types: Types) -> dict[str, int]:
        """As a map by type, keys sorted; what has the value `fill` is left out."""
        d: cython.Py_ssize_t
        found = {types.names[d]: self.v[d] for d in range(self.n) if self.v[d] != self.fill}
        return dict(sorted(found.items()))
