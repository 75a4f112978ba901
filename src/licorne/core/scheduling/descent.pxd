# Derived from licorne.core.scheduling.descent at build time; do not edit.
cimport cython

cdef class Descent

from licorne.core.amounts.vectors cimport Vec
from licorne.core.base.uuids cimport Uuids
from licorne.core.gangs.placeholders cimport Gangs
from licorne.core.nodes.index cimport NodeIndex
from licorne.core.nodes.node cimport Node
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask, Shape
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.usage cimport Tracker
from licorne.core.scheduling.host_orders cimport GivenOrders
from licorne.core.waiting.accounting cimport Accounting
from licorne.core.waiting.parking cimport Parking
from licorne.core.waiting.wakeups cimport WakeUps
from licorne.si.allocations cimport NewAllocation

@cython.final
cdef class Descent:
    cdef public Queue root
    cdef public Accounting accounting
    cdef public Parking parking
    cdef public WakeUps wakeups
    cdef public NodeIndex index
    cdef public Gangs gangs
    cdef public dict nodes
    cdef public object partition
    cdef public str partition_name
    cdef public object predicates
    cdef public Vec headroom_left
    cdef public Vec quotas_left
    cdef public list out
    cdef public bint first_interface
    cdef public Uuids uuids
    cdef public long long visits
    cdef public long long attempts
    cdef public bint refused
    cdef public dict claims
    cdef public bint reduced_by_claims
    cdef public long long claims_priority
    cdef public dict unplaced
    cdef public GivenOrders orders
    cpdef long long decide(self, long long limit)
    cdef int regular_pass(self) except? -1
    cpdef void accept(self, Application app)
    cdef int visit(self, Application app) except? -1
    cdef int visit_in_order(self, Application app)
    cdef void headroom(self, Application app)
    cdef bint fits_headroom(self, Ask ask) noexcept
    cdef bint subtract_claims(self, Application app, Ask ask) except? -1
    cdef int attempt(self, Application app, Ask ask) except? -1
    cpdef Node first_node(self, Ask ask)
    cdef Node first_freed_node(self, Ask ask)
    cdef Node chosen_node(self, Ask ask)
    cdef bint allowed(self, Ask ask, Node node) except? -1
    cdef int attempt_required(self, Application app, Ask ask)
    cdef bint node_takes(self, Ask ask, Node node)
    cpdef void allocate(self, Application app, Ask ask, Node node)
    cpdef Ask split(self, Ask ask)
    cpdef void announce(self, Application app, Ask alloc)
