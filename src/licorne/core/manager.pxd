# Derived from licorne.core.manager at build time; do not edit.
cimport cython

cdef class RegisteredManager

from licorne.core.partition cimport Partition

@cython.final
cdef class RegisteredManager:
    cdef public str rm_id
    cdef public object configuration
    cdef public object settings
    cdef public bint first_interface
    cdef public object predicates
    cdef public object preemption_predicates
    cdef public dict partitions
    cdef public list ordered
    cdef public list out
    cdef public bint listens
    cdef public object store
    cdef public object recorder
    cdef public bint paused
    cdef object __weakref__
