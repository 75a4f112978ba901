# Derived from licorne.core.calls at build time; do not edit.
cimport cython

cdef class Calls

from licorne.core.cluster cimport Cluster
from licorne.core.connection cimport ManagerConnection

cdef class Calls:
    cdef public Cluster cluster
    cdef public list callback_errors
    cdef public object input_log
    cdef public object _incidents
    cdef public bint _strict
    cdef public object _clock
    cdef public object _on_output
    cdef public dict _connections
    cdef public list _syncing
    cdef public bint _predicates
    cdef public bint _busy
    cdef void _check(self, str rm_id, str kind, bint first_interface)
    cdef void _take_made(self, str rm_id, object translation, object now_ns)
    cdef void _take(self, str rm_id, object translation, object now_ns)
    cdef void _enter(self, str rm_id, object inputs, object refusals, object part, object now_ns)
    cpdef void _begin(self, object now_ns)
    cpdef void _end_refused(self, str rm_id)
    cpdef void _deliver(self)

cdef bint _is_request(object request, object of)
