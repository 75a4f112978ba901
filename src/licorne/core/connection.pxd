# Derived from licorne.core.connection at build time; do not edit.
cimport cython

cdef class ManagerConnection

@cython.final
cdef class ManagerConnection:
    cdef public str rm_id
    cdef public object callback
    cdef public object plugins
    cdef public str policy_group
    cdef public dict extra
    cdef public bint first_interface
    cdef public object _incidents
    cpdef void call_back(self, list[Output] outputs)
