# Derived from licorne.core.waiting.accounting at build time; do not edit.
cimport cython

cdef class Accounting

from licorne.core.amounts.types cimport Types
from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.index cimport NodeIndex
from licorne.core.nodes.node cimport Need, Node
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask, Shape
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.usage cimport Tracker
from licorne.core.waiting.parking cimport Parking
from licorne.core.waiting.wakeups cimport WakeUps

@cython.final
cdef class Accounting:
    cdef public Parking parking
    cdef public WakeUps wakeups
    cdef public NodeIndex index
    cdef public Types types
    cdef public object needs
    cdef public object gangs
    cdef public list watchers
    cdef public long long asks_seen
    cdef public dict overused
    cdef public dict victims
    cdef public dict overdue
    cdef public long long asked_to_end
    cpdef Shape shape(self, Vec amounts, dict[str, cython.py_int] resource, Need need)
    cpdef bint describes(self, Shape shape, Vec amounts, dict[str, cython.py_int] resource)
    cdef Shape shape_for(self, Application app, Vec amounts, dict[str, cython.py_int] resource, Need need)
    cpdef void pend(self, Application app, Ask ask)
    cpdef void unpend(self, Application app, Ask ask)
    cdef void _forget_shape(self, Shape shape)
    cpdef void retain_need(self, Need need) noexcept
    cpdef void release_need(self, Need need)
    cdef void _forget_deadline(self, Ask ask)
    cdef void _forget_parked(self, Ask ask)
    cdef void _count(self, Application app, Ask ask, int change)
    cdef void _add_priority(self, Application app, long long priority)
    cdef void _remove_priority(self, Application app, long long priority)
    cdef void _export(self, Application app, long long old)
    cpdef void add_allocation(self, Application app, Ask alloc, Node node)
    cpdef void remove_allocation(self, Application app, Ask alloc)
    cdef void _return_use(self, Application app, Vec amounts)
    cdef void _use(self, Application app, Vec amounts, bint more)
    cdef void _unpreempt(self, Queue queue, Vec amounts)
    cpdef void may_be_overused(self, Node node)
