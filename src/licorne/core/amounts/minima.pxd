# Derived from licorne.core.amounts.minima at build time; do not edit.
cimport cython

cdef class Minima

from licorne.core.amounts.vectors cimport Vec

@cython.final
cdef class Minima:
    cdef long long* low
    cdef public Py_ssize_t width
    cdef public Py_ssize_t count
    cdef public bint discards_excess
    cdef bint any_within(self, Vec room) noexcept
    cdef bint _below(self, Py_ssize_t i, Vec room) noexcept
    cdef bint _above(self, Py_ssize_t i, Vec vec) noexcept
    cdef bint add(self, Vec vec)
    cdef void add_all(self, Minima others)
    cdef void forget_below(self, Vec room)
    cdef void clear(self)
    cpdef Vec row(self, Py_ssize_t i)
    cdef void _append(self, Vec vec)
    cdef void _drop(self, Py_ssize_t i)
    cdef void _widen(self, Py_ssize_t width)
