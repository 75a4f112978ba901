# Derived from licorne.core.nodes.columns at build time; do not edit.
cimport cython

cdef class Grid
cdef class Columns

from licorne.core.amounts.vectors cimport Vec

@cython.final
cdef class Grid:
    cdef long long[2] low
    cdef long long[2] high
    cdef long long[14] steps
    cdef public bint last
    cdef bint take_in(self, Vec ask)
    cdef void _divide(self, Py_ssize_t d)
    cdef int level(self, Py_ssize_t d, long long amount) noexcept
    cdef int cell(self, Vec ask) noexcept
    cdef unsigned long long cells(self, Vec room) noexcept
    cdef unsigned long long cells_below(self, long long first, long long second) noexcept

cdef class Columns:
    cdef long long* v
    cdef public Py_ssize_t gone
    cdef public Py_ssize_t count
    cdef public Py_ssize_t width
    cdef public Py_ssize_t words
    cdef public Py_ssize_t columns
    cdef public Py_ssize_t cells
    cdef public Py_ssize_t keys
    cdef public bint exact
    cdef bint starts_by(self, Py_ssize_t at, long long key, long long rank) noexcept
    cdef Py_ssize_t where(self, long long key, long long rank) noexcept
    cdef void open_row(self, Py_ssize_t at) noexcept
    cdef void close_row(self, Py_ssize_t at) noexcept
    cdef void center(self, Py_ssize_t count) noexcept
    cdef void _shift(self, Py_ssize_t by, Py_ssize_t number) noexcept
    cdef void copy_rows(self, Py_ssize_t start, Columns to, Py_ssize_t row)
    cdef bint lift_row(self, Py_ssize_t at, Vec room, Vec marks, unsigned long long cells) noexcept
    cdef void join_rows(self, Py_ssize_t at, Py_ssize_t other)
    cdef void divide(self, Grid grid) noexcept
    cdef void upper(self, Columns to, Py_ssize_t row)
    cdef bint fits(self, Vec ask, Py_ssize_t word, long long mark, int cell, Py_ssize_t row) noexcept
    cdef Py_ssize_t first(self, Vec ask, Py_ssize_t word, long long mark, int cell, Py_ssize_t start) noexcept

cdef long long _truncated(double x) noexcept
