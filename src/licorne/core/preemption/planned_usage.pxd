# Derived from licorne.core.preemption.planned_usage at build time; do not edit.
cimport cython

cdef class PlannedUsage

from licorne.core.amounts.vectors cimport Vec
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.usage cimport Tracker

@cython.final
cdef class PlannedUsage:
    cdef public object claims
    cdef public dict by_queue
    cpdef Vec planned(self, Queue queue)

cdef bint over(Vec limit, Vec planned, Vec more)
