# Derived from licorne.core.waiting.wakeups at build time; do not edit.
cimport cython

cdef class WakeUps

from licorne.core.nodes.index cimport NodeIndex
from licorne.core.nodes.node cimport Node
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.usage cimport Tracker
from licorne.core.waiting.parking cimport Parking

@cython.final
cdef class WakeUps:
    cdef public Parking parking
    cdef public NodeIndex index
    cdef public long long reservations
    cdef public bint reserved_due
    cdef public bint replacements_due
    cdef public bint gangs_due
    cdef public dict newly_freed
    cdef public dict newly_opened
    cpdef void node_freed(self, Node node)
    cdef void room_returned(self, Application app)
    cpdef void slot_freed(self, Queue queue)
    cpdef void may_run(self, Application app)
    cpdef void claims_changed(self)
    cpdef void quota_changed(self, Queue queue)
    cdef void ask_pending(self, Application app, Ask ask)
    cpdef void gang_changed(self, Application app)
    cpdef void members_freed(self, Application app)
    cpdef bint must_try_reserved(self) noexcept
    cpdef void apply_node_events(self)
    cpdef void retry_everything(self, Queue root)
