# Derived from licorne.sim.use at build time; do not edit.
cimport cython

cdef class Use

from licorne.core.queues.queue cimport Queue
from licorne.sim.gauges cimport Gauge, Share

@cython.final
cdef class Use:
    cdef public object from_ns
    cdef public object to_ns
    cdef public Share share
    cdef public dict gauges
    cdef public Queue _root
    cdef public set _changed
    cdef public bint _resized
    cdef public list _names
