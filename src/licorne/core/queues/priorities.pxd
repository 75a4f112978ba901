# Derived from licorne.core.queues.priorities at build time; do not edit.
cimport cython

cdef class PriorityBag

@cython.final
cdef class PriorityBag:
    cdef public long long top
    cdef public long long count
    cdef public dict rest
    cdef public list below
    cdef bint add(self, long long priority) except? -1
    cdef void _lower(self, long long priority, long long count)
    cdef bint remove(self, long long priority) except? -1
