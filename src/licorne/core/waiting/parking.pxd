# Derived from licorne.core.waiting.parking at build time; do not edit.
cimport cython

cdef class Parking

from licorne.core.amounts.minima cimport Minima
from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.node cimport Need, Node
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask, Shape
from licorne.core.queues.freed_nodes cimport FreedNodes
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.usage cimport Tracker

@cython.final
cdef class Parking:
    cdef public long long now
    cdef public long long reserve_after_ns
    cdef public object timers
    cdef public bint enabled
    cdef public bint may_preempt
    cdef public long long active_count
    cdef public long long wakeups
    cdef public dict maybe_inactive
    cdef public dict waiting
    cdef public dict waiting_for_claims
    cdef public dict gangs
    cdef public dict failed
    cdef public dict failed_needs
    cdef public Minima waiting_minima
    cdef public long long failed_looks
    cdef public dict refused
    cdef public dict awaiting_node
    cdef public FreedNodes freed_nodes
    cpdef void wake(self, Application app)
    cdef void wake_for_freed_node(self, Application app)
    cpdef void sleep(self, Application app)
    cdef void block(self, Application app)
    cpdef void block_at(self, Application app, object levels)
    cdef void wake_fitting(self, dict[Any, Any] blocked, Vec limit, Vec used)
    cdef void _wake_some(self, dict[Any, Any] blocked, list[Any] woken)
    cdef void wake_blocked(self, dict[Any, Any] blocked)
    cdef void wake_slots(self, dict[Any, Any] blocked)
    cdef void wake_tree(self, Queue queue)
    cdef void park(self, Ask ask)
    cdef void _await_age(self, Ask ask)
    cdef bint is_old(self, Ask ask) noexcept
    cdef void ask_added(self, Ask ask)
    cdef void fail(self, Shape shape)
    cdef void revive(self, Shape shape)
    cdef void clear_failed(self, Shape shape)
    cdef void forget_need(self, Need need)
    cpdef void retry(self, Ask ask)
    cdef void refuse(self, Ask ask)
    cdef void await_node(self, Ask ask)
    cdef void forget_parked(self, Ask ask)
    cdef void revive_fitting(self, dict[Node, None] freed, dict[Node, None] opened)
    cdef void _wake_for_freed_nodes(self)
    cdef bint idle(self) except? -1
    cdef void _tighten(self)
    cdef void release_freed_nodes(self)
    cdef void revive_on_freed_nodes(self, Application app)
    cdef void _forget_failures_within(self, Vec room)
    cdef void _revive_on_changed_nodes(self, list[Any] nodes, dict[Node, None] opened)
