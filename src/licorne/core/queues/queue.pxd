# Derived from licorne.core.queues.queue at build time; do not edit.
cimport cython

cdef class Queue

from licorne.core.amounts.types cimport Types
from licorne.core.amounts.vectors cimport Vec
from licorne.core.base.order cimport Order, Ranked
from licorne.core.queues.priorities cimport PriorityBag

@cython.final
cdef class Queue(Ranked):
    cdef public long long priority
    cdef public double share
    cdef public Queue parent
    cdef public Vec allocated
    cdef public Vec weights
    cdef public Vec limit
    cdef public Vec pending
    cdef public Order order
    cdef public long long asks_pending
    cdef public long long awake_count
    cdef public long long backoff_after
    cdef public bint is_leaf
    cdef public bint by_priority
    cdef public bint fair
    cdef public bint stateaware
    cdef public list tied
    cdef public long long tied_priority
    cdef public double tied_share
    cdef public Py_ssize_t next_turn
    cdef public Queue last_turn
    cdef public bint skipped_sleeping
    cdef public bint last_changed
    cdef public long long tie_sorts
    cdef public str name
    cdef public str path
    cdef public dict children
    cdef public dict apps
    cdef public bint reachable
    cdef public bint managed
    cdef public object state
    cdef public Vec preempting
    cdef public Vec size
    cdef public Vec guaranteed
    cdef public dict max_config
    cdef public dict guaranteed_config
    cdef public long long max_apps
    cdef public long long running
    cdef public dict accepted
    cdef public PriorityBag bag
    cdef public long long offset
    cdef public bint fence
    cdef public object settings
    cdef public dict properties
    cdef public object submit_acl
    cdef public object admin_acl
    cdef public object template
    cdef public bint inherited_template
    cdef public long long with_pending
    cdef public dict blocked
    cdef public dict reserved
    cdef public list by_name
    cdef public Types types
    cdef bint same_rank(self, Queue other) noexcept
    cdef void reshare(self) noexcept
    cdef long long exported(self) noexcept
    cdef Queue first_child(self)
    cdef Queue _break_tie(self, Queue first)
    cpdef list[Any] still_tied(self)
    cdef bint has_turns(self) noexcept
    cpdef bint ties(self, Queue other) noexcept
    cpdef void changed(self)
    cpdef void children_changed(self)
    cdef list[Any] children_by_name(self)
    cpdef list[Any] in_order(self, Queue rank_of)
