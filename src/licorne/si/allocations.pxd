# Derived from licorne.si.allocations at build time; do not edit.
cimport cython

cdef class Allocation
cdef class NewAllocation
cdef class Release
cdef class Released

@cython.final
cdef class Allocation:
    cdef public str key
    cdef public str application_id
    cdef public str partition
    cdef public dict resource
    cdef public long long priority
    cdef public str priority_class
    cdef public dict tags
    cdef public str node_id
    cdef public str task_group
    cdef public bint placeholder
    cdef public bint originator
    cdef public bint allow_preempt_self
    cdef public bint allow_preempt_other
    cdef public long long max_allocations
    cdef public long long timeout_ms
    cdef public str uuid
    cdef public bint independent

@cython.final
cdef class NewAllocation:
    cdef public str key
    cdef public str application_id
    cdef public str node_id
    cdef public dict resource
    cdef public str partition
    cdef public str queue
    cdef public long long priority
    cdef public dict tags
    cdef public str task_group
    cdef public bint placeholder
    cdef public bint originator
    cdef public bint allow_preempt_self
    cdef public bint allow_preempt_other
    cdef public str uuid

@cython.final
cdef class Release:
    cdef public str partition
    cdef public str application_id
    cdef public str key
    cdef public str uuid
    cdef public object termination
    cdef public str message
    cdef public str what

@cython.final
cdef class Released:
    cdef public str key
    cdef public str application_id
    cdef public object termination
    cdef public str message
    cdef public str partition
    cdef public str uuid
    cdef public bint ask
