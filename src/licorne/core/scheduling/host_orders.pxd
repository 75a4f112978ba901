# Derived from licorne.core.scheduling.host_orders at build time; do not edit.
cimport cython

cdef class GivenOrders

from licorne.core.base.order cimport Ranked
from licorne.core.queues.application cimport Application
from licorne.core.queues.queue cimport Queue

@cython.final
cdef class GivenOrders:
    cdef public object choose_node
    cdef public object queue_key
    cdef public object application_key
    cdef Application next_application(self, Queue root)

cdef Ranked least(list[Any] items, object key, Ranked own_first)
