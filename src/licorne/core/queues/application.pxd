# Derived from licorne.core.queues.application at build time; do not edit.
cimport cython

cdef class Application

from licorne.core.amounts.vectors cimport Vec
from licorne.core.base.order cimport Ranked
from licorne.core.queues.ask cimport Ask, Shape
from licorne.core.queues.priorities cimport PriorityBag
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.requests cimport Requests
from licorne.core.queues.usage cimport Tracker

@cython.final
cdef class Application(Ranked):
    cdef public Queue queue
    cdef public object state
    cdef public long long backoff_until
    cdef public object atomic
    cdef public Requests requests
    cdef public list trackers
    cdef public dict asks
    cdef public Vec pending
    cdef public long long asks_pending
    cdef public PriorityBag bag
    cdef public dict allocations
    cdef public Vec allocated
    cdef public str id
    cdef public bint group_chosen
    cdef public bint active
    cdef public long long seq
    cdef public long long submitted
    cdef public str user
    cdef public tuple groups
    cdef public dict tags
    cdef public list state_log
    cdef public Vec placeholders
    cdef public Vec high
    cdef public list usage
    cdef public Shape last_shape
    cdef public long long visited_seq
    cdef public bint ask_reentered
    cdef public dict reservations
    cdef public str group
    cdef public bint starting
    cdef public bint independent
    cdef public bint forced
    cdef public bint requires_nodes
    cdef public long long running_timeout_ns
    cdef public Vec placeholder_ask
    cdef public dict placeholder_resource
    cdef public object gang
    cdef public object timer
    cdef public object backoff_timer
    cdef public object running_timer
    cdef public object table
    cdef public long long started_ns
    cdef public long long finished_ns
    cdef public str message
    cdef public object past
    cdef void prefetch_fields(self) noexcept
    cdef void prefetch_more(self) noexcept
    cpdef void recompute_usage(self)
