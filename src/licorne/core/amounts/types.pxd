# Derived from licorne.core.amounts.types at build time; do not edit.
cimport cython

cdef class Types

from licorne.core.amounts.vectors cimport Vec

@cython.final
cdef class Types:
    cdef public list names
    cdef public dict index
    cdef public list free
    cdef public Py_ssize_t other
    cdef public list met
    cdef Py_ssize_t[8] met_at
    cdef public Py_ssize_t met_most
    cpdef Vec amounts(self, dict[str, cython.py_int] resource)
    cdef int read(self, dict[Any, Any] resource, Vec vec) except? -1
