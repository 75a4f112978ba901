# Derived from licorne.core.base.uuids at build time; do not edit.
cimport cython

cdef class Uuids

@cython.final
cdef class Uuids:
    cdef public unsigned long long first
    cdef public unsigned long long second
    cdef public unsigned long long count
    cpdef str next(self)

cdef unsigned long long mixed(unsigned long long x) noexcept
cdef str _text(unsigned long long high, unsigned long long low)
cdef void _write(unsigned char* text, unsigned long long number, Py_ssize_t digits) noexcept
