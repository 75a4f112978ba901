"""Vectors: how amounts of resources are held, added and compared (docs/spec/scheduling.md, section 1).

A resource is a sparse map from type to int64. The core holds it as a `Vec`: one number for each resource type known to
the partition, in the order in which the types were numbered (`licorne.core.amounts.types`). A vector may be shorter than
the list of types; the types that it does not hold have its `fill` value: 0 for amounts, `UNLIMITED` for limits and
headroom, where "not listed" means "without limit". So a new resource type costs nothing for the vectors that exist.

An amount in a message is at most `SUM_MAX`. Additions saturate there, so that no sum and no difference of sums
overflows. What is pending, allocated, occupied or free is the sum of many tenants' amounts, and must be right again when
a large amount is taken back. Such a vector is made by `new_sum`: it *shows* at most `SUM_MAX` and at least `-SUM_MAX`,
and keeps what lies beyond, exactly, in a map that is empty as long as amounts are ordinary. Whatever reads a sum (rules,
REST, metrics) reads the value that it shows. Rejected: refusing what would raise a sum above its bound (one tenant's ask
would then stop all others); leaving large asks out of the sums (which are left out would depend on the order of
arrival); sums of 128 bits (every addition pays).

Sums are no class of their own: compiled, a method that a subclass may override is looked up before each call, which
doubles the cost of a comparison of vectors.

`plus` and `minus` return 0, as nothing, because a C function without a result is asked for errors after each call.

Compiled, `v` is a C array: inside the object for up to four types, as is common, else allocated apart; interpreted, a
list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from licorne._plain import cython
from licorne.core.constants import SUM_MAX, UNLIMITED

if TYPE_CHECKING:
    from .types import Types

if cython.compiled:
    from cython.cimports.libc.stdlib import free, malloc
    from cython.cimports.libc.string import memcpy

INSIDE = cython.declare(cython.Py_ssize_t, 4)  # amounts that a vector holds without a separate allocation


@cython.cfunc
def new_vec(n: cython.Py_ssize_t, fill: cython.longlong) -> Vec:
    """Return `Vec(n, fill)` without the cost of a call from Python."""
    vec: Vec = Vec.__new__(Vec)
    vec.initialise(n, fill)
    return vec


@cython.ccall
def new_sum() -> Vec:
    """Return an empty sum: a vector from which all that was added can be taken back."""
    vec: Vec = new_vec(0, 0)
    vec.is_sum = True
    return vec


def vec_of(values: list[int], fill: int, is_sum: bool) -> Vec:
    """Return a vector that holds these amounts."""
    d: cython.Py_ssize_t
    vec: Vec = new_vec(len(values), fill)
    for d in range(len(values)):
        vec.v[d] = values[d]
    vec.is_sum = is_sum
    return vec


@cython.no_gc  # a map of integers can be part of no reference cycle
@cython.cclass
class Vec:
    """A vector of int64 amounts, one for each resource type; types from `n` on have the value `fill`.

    A sum (`is_sum`) is a vector from which all that was added can be taken back. `beyond` is what it does not show, by
    the number of the type; None while it shows everything, and in all other vectors.
    """

    # The fields are laid out in memory in this order: what an addition reads comes first.
    v: cython.p_longlong
    n: cython.int
    allocated_length: cython.int
    beyond: dict[int, int] | None
    inside: Annotated[list[int], cython.longlong[4]]
    fill: cython.longlong
    is_sum: cython.bint

    def __init__(self, n: cython.Py_ssize_t = 0, fill: cython.longlong = 0) -> None:
        self.initialise(n, fill)

    @cython.cfunc
    def initialise(self, n: cython.Py_ssize_t, fill: cython.longlong) -> cython.void:
        """Set the fields of a new vector: n amounts, all `fill`; to be called once."""
        d: cython.Py_ssize_t
        self.n = n
        self.fill = fill
        self.is_sum = False
        self.beyond = None
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
    @cython.exceptval(-1)
    def plus(self, other: Vec) -> cython.int:
        """Add another vector in place, saturating. The vector grows to the types of the other.

        Of another sum this adds only what it shows; `add_sum` adds all of it.
        """
        d: cython.Py_ssize_t
        out: cython.bint = False
        if self.beyond is not None:
            self._add_exactly(other, 1)
            return 0
        if self.n < other.n:
            self.grow(other.n)
        v: cython.p_longlong = self.v
        w: cython.p_longlong = other.v
        for d in range(other.n):
            v[d] += w[d]
            if not -SUM_MAX <= v[d] <= SUM_MAX:
                out = True
        if out:
            self._set_aside()
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def minus(self, other: Vec) -> cython.int:
        """Subtract another vector in place, saturating; from a sum this takes back what `plus` added to it."""
        d: cython.Py_ssize_t
        out: cython.bint = False
        if self.beyond is not None:
            self._add_exactly(other, -1)
            return 0
        if self.n < other.n:
            self.grow(other.n)
        v: cython.p_longlong = self.v
        w: cython.p_longlong = other.v
        for d in range(other.n):
            v[d] -= w[d]
            if not -SUM_MAX <= v[d] <= SUM_MAX:
                out = True
        if out:
            self._set_aside()
        return 0

    @cython.cfunc
    def add_times(self, other: Vec, times: cython.longlong) -> cython.void:
        """Add a vector `times` times to this sum; a negative number takes it back as often."""
        d: cython.Py_ssize_t
        out: cython.bint = self.beyond is not None
        # Amounts up to `bound` can be multiplied and added without overflow of an int64.
        bound: cython.longlong = SUM_MAX // (times if times > 0 else -times) if times else SUM_MAX
        for d in range(other.n):
            if other.v[d] > bound or other.v[d] < -bound:
                out = True
        if out:
            self._add_exactly(other, times)
            return
        if self.n < other.n:
            self.grow(other.n)
        v: cython.p_longlong = self.v
        for d in range(other.n):
            v[d] += other.v[d] * times
            if not -SUM_MAX <= v[d] <= SUM_MAX:
                out = True
        if out:
            self._set_aside()

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
        return found if len(found) < 2 else {name: found[name] for name in sorted(found)}

    # -- sums: what they show, and what lies beyond ---------------------------------------------------------------

    def add_sum(self, other: Vec, times: int) -> None:
        """Add another sum `times` times to this one, with the amounts that the other does not show."""
        for d in range(other.n):
            self._set_exact(d, self.exact(d) + other.exact(d) * times)

    def exact(self, d: int) -> int:
        """Return the exact sum of the resource type with this number, also where it is more than the sum shows."""
        return int(self.at(d)) + (0 if self.beyond is None else self.beyond.get(d, 0))

    def agrees(self, other: Vec) -> bool:
        """Return whether both sums are equal, also in the amounts that they do not show."""
        return self.same(other) and (self.beyond or {}) == (other.beyond or {})

    @cython.cfunc
    def _set_aside(self) -> cython.void:
        """Bring values outside the bounds back to them; a sum keeps the difference in `beyond`.

        An addition of one amount leaves them outside by at most `SUM_MAX`, so they have not overflowed.
        """
        d: cython.Py_ssize_t
        for d in range(self.n):
            if self.v[d] > SUM_MAX or self.v[d] < -SUM_MAX:
                self._set_exact(d, int(self.v[d]))

    def _add_exactly(self, other: Vec, times: int) -> None:
        """Add a vector `times` times in integers of any size."""
        d: cython.Py_ssize_t
        for d in range(other.n):
            if other.v[d] != 0:
                self._set_exact(d, self.exact(d) + int(other.v[d]) * times)

    def _set_exact(self, d: int, value: int) -> None:
        """Set the sum of this type to `value`; if that is too large to be shown, a sum keeps the rest in `beyond`."""
        shown: int = max(-SUM_MAX, min(SUM_MAX, value))
        self.grow(d + 1)
        self.v[d] = shown
        if not self.is_sum:
            return
        if value != shown:
            if self.beyond is None:
                self.beyond = {}
            self.beyond[d] = value - shown
        elif self.beyond is not None:
            self.beyond.pop(d, None)
            if not self.beyond:
                self.beyond = None
