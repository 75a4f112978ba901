"""The resource types of a partition, and how a map of amounts becomes a vector (docs/spec/scheduling.md, section 1)."""

from __future__ import annotations

from typing import Annotated, Any

from licorne._plain import cython
from licorne.core.constants import NEGATIVE, NEW_TYPES, NOTHING_IN_IT, READ, SUM_MAX, TOO_LARGE

from .vectors import Vec, new_vec

OTHER_TYPES: str = "licorne/other-types"  # the name under which the shared number is shown


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

    TRANSIENT = ("met", "met_most", "met_at")  # a cache

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
        """Return the number of a resource type; a type without one gets the smallest free number."""
        if name not in self.index:
            if not self.free:
                self.free.append(len(self.names))
                self.names.append("")
            self.index[name] = self.free.pop()
            self.names[self.index[name]] = name
        return self.index[name]

    def forget(self, name: str) -> int:
        """Remove a resource type and return its number, which no other type gets before `set_free` is called for it."""
        at = self.index.pop(name)
        self.names[at] = ""
        self.met = [None] * 8
        return at

    def set_free(self, numbers: list[int]) -> None:
        """Let other types have these numbers: their types are removed, and no vector has an amount there any more."""
        self.free = sorted([*self.free, *numbers], reverse=True)

    def shared(self) -> int:
        """Return the number that all types without one of their own share; there is none before the first call."""
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
        """Return the vector of a sparse map of amounts; types without a number get one.

        Types that are not in the map have the value `fill`.
        """
        for name in amounts or {}:
            self.slot(name)
        return self.known(amounts, fill)

    def known(self, amounts: dict[str, int] | None, fill: int) -> Vec:
        """Return the vector of a sparse map of amounts, leaving out types without a number.

        Types that are not in the map have the value `fill`.
        """
        vec: Vec = Vec(0, fill)
        for name, value in (amounts or {}).items():
            if name in self.index:
                at = self.index[name]
                vec.grow(at + 1)
                vec.v[at] = value
        return vec
