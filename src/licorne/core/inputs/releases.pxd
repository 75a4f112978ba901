# Derived from licorne.core.inputs.releases at build time; do not edit.
cimport cython

cdef class Releases

from licorne.core.inputs.lifecycle cimport Lifecycle
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask
from licorne.core.scheduling.descent cimport Descent
from licorne.core.waiting.accounting cimport Accounting
from licorne.si.allocations cimport Release, Released

@cython.final
cdef class Releases:
    cdef public object partition
    cdef public dict applications
    cdef public Accounting accounting
    cdef public Descent descent
    cdef public Lifecycle lifecycle
    cdef public str partition_name
    cpdef void take(self, Release message)
    cdef Application _owner(self, Release message)
    cdef void _end_allocations(self, Application app, Release message)
    cdef void _end(self, Application app, Ask alloc, object termination)
    cdef void _drop_asks(self, Application app, str key)
    cpdef void notify_released(self, Ask alloc, object termination, str text)
