# Derived from licorne.core.amounts.vectors at build time; do not edit.
cimport cython

cdef class Vec

@cython.final
cdef class Vec:
    cdef long long* v
    cdef public int n
    cdef public int allocated_length
    cdef public dict beyond
    cdef long long[4] inside
    cdef public long long fill
    cdef public bint is_sum
    cdef void initialise(self, Py_ssize_t n, long long fill)
    cdef void grow(self, Py_ssize_t n)
    cdef void _move(self, Py_ssize_t room)
    cdef void cut(self, Py_ssize_t n) noexcept
    cpdef long long at(self, Py_ssize_t d) noexcept
    cpdef int plus(self, Vec other) except? -1
    cpdef int minus(self, Vec other) except? -1
    cdef void add_times(self, Vec other, long long times)
    cpdef bint covers(self, Vec ask) noexcept
    cdef void lower_to(self, Vec other)
    cdef void raise_to(self, Vec other)
    cdef void lower_to_rest(self, Vec limit, Vec used)
    cpdef bint binds(self, Vec used, Vec ask) noexcept
    cpdef bint above(self, Vec other) noexcept
    cpdef bint same(self, Vec other) noexcept
    cpdef bint zero(self) noexcept
    cdef void copy_from(self, Vec other)
    cdef void set_all(self, long long value) noexcept
    cdef void _set_aside(self)

cdef Vec new_vec(Py_ssize_t n, long long fill)
cpdef Vec new_sum()
