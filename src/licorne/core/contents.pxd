# Derived from licorne.core.contents at build time; do not edit.
cimport cython

cdef class PartitionContents

from licorne.core.waiting.parking cimport Parking
from licorne.core.waiting.wakeups cimport WakeUps

cdef class PartitionContents:
    cdef public str name
    cdef public str owner
    cdef public bint first_interface
    cdef public object settings
    cdef public object config
    cdef public bint starting
    cdef public object types
    cdef public object state
    cdef public object paused
    cdef public object now
    cdef public object started_ns
    cdef public dict applications
    cdef public dict terminated
    cdef public object on_end
    cdef public object rejected
    cdef public dict nodes
    cdef public dict foreign
    cdef public object total
    cdef public object limits
    cdef public object timers
    cdef public Parking parking
    cdef public WakeUps wakeups
    cdef public object index
    cdef public object needs
    cdef public object accounting
    cdef public object tree
    cdef public bint dirty
    cdef public long long generation
    cdef public object _applications_seen
    cdef public object _last_moment
    cdef public bint _resized
    cdef object __weakref__
    cpdef void changed(self)
