"""Sums that saturate, and from which all that was added can be taken back (docs/spec/scheduling.md, section 1).

What is pending, allocated, occupied or free is the sum of many amounts, and any tenant may send an amount of up to
`SUM_MAX`. A sum that overflows would be wrong; a sum that merely stopped at its bound would be wrong once the large
amount is gone; and if a tenant's ask were refused because of another tenant's large ask, one tenant could stop another.
So a `Sum` shows at most `SUM_MAX` and at least `-SUM_MAX`, as the specification's saturating arithmetic does, and keeps
what lies beyond, exactly, in a map that is empty as long as amounts are ordinary. An addition costs one comparison more
than a plain one. Whatever reads a sum (rules, REST, metrics) reads the value that it shows.

No arithmetic on what sums show can overflow: the difference of two of them is within 2^63 - 2.

Rejected: refusing what would raise a sum above its bound (one ask would then stop all others); leaving large asks out
of the sums (which asks are left out would depend on the order of arrival); sums of 128 bits (every addition pays).
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.constants import SUM_MAX
else:
    from licorne.core.constants import SUM_MAX

    from .vectors import Vec


@cython.no_gc  # a map of integers can be part of no reference cycle
@cython.cclass
class Sum(Vec):
    """A sum of amounts. `beyond`: what it does not show, by the number of the type; None while it shows everything."""

    beyond: dict[int, int] | None

    def __init__(self) -> None:
        self.initialise(0, 0)
        self.beyond = None

    @cython.ccall
    def plus(self, other: Vec) -> cython.void:
        """Add amounts (of a `Vec`; for a `Sum` see `add_sum`)."""
        d: cython.Py_ssize_t
        out: cython.bint = False
        if self.beyond is not None:
            self._exact(other, 1)
            return
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

    @cython.ccall
    def minus(self, other: Vec) -> cython.void:
        """Subtract amounts, or take back amounts that were added."""
        d: cython.Py_ssize_t
        out: cython.bint = False
        if self.beyond is not None:
            self._exact(other, -1)
            return
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

    @cython.cfunc
    def add_times(self, other: Vec, times: cython.longlong) -> cython.void:
        """Add amounts `times` times; a negative number takes them back."""
        d: cython.Py_ssize_t
        out: cython.bint = self.beyond is not None
        # Amounts up to `bound` can be multiplied and added without overflow of an int64.
        bound: cython.longlong = SUM_MAX // (times if times > 0 else -times) if times else SUM_MAX
        for d in range(other.n):
            if other.v[d] > bound or other.v[d] < -bound:
                out = True
        if out:
            self._exact(other, times)
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

    def add_sum(self, other: Sum, times: int) -> None:
        """Add another sum `times` times, including what lies beyond it."""
        for d in range(other.n):
            self._put(d, self.exact(d) + other.exact(d) * times)

    def exact(self, d: int) -> int:
        """Return the exact sum of the type with this number."""
        return int(self.at(d)) + (0 if self.beyond is None else self.beyond.get(d, 0))

    def agrees(self, other: Sum) -> bool:
        """Return whether both sums are equal, including what lies beyond them."""
        return self.same(other) and (self.beyond or {}) == (other.beyond or {})

    @cython.cfunc
    def _set_aside(self) -> cython.void:
        """Move what is outside the bounds, at most one amount for each type, into `beyond`."""
        d: cython.Py_ssize_t
        for d in range(self.n):
            if self.v[d] > SUM_MAX or self.v[d] < -SUM_MAX:
                self._put(d, int(self.v[d]))

    def _exact(self, other: Vec, times: int) -> None:
        """Add amounts `times` times, however large the result is."""
        d: cython.Py_ssize_t
        for d in range(other.n):
            if other.v[d] != 0:
                self._put(d, self.exact(d) + int(other.v[d]) * times)

    def _put(self, d: int, value: int) -> None:
        """Set the exact sum of this type to `value`."""
        shown: int = max(-SUM_MAX, min(SUM_MAX, value))
        self.grow(d + 1)
        self.v[d] = shown
        if value != shown:
            if self.beyond is None:
                self.beyond = {}
            self.beyond[d] = value - shown
        elif self.beyond is not None:
            self.beyond.pop(d, None)
            if not self.beyond:
                self.beyond = None
