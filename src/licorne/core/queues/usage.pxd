# Derived from licorne.core.queues.usage at build time; do not edit.
cimport cython

cdef class Tracker

from licorne.core.amounts.vectors cimport Vec

@cython.final
cdef class Tracker:
    cdef public str kind
    cdef public str name
    cdef public str path
    cdef public Vec used
    cdef public Vec limit
    cdef public long long max_apps
    cdef public bint wildcard
    cdef public long long holders
    cdef public dict apps
    cdef public dict blocked
    cpdef bint may_run(self, object app)
