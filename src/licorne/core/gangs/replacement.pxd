# Derived from licorne.core.gangs.replacement at build time; do not edit.
cimport cython

cdef class Replacement

from licorne.core.amounts.vectors cimport Vec
from licorne.core.gangs.placeholders cimport Gangs, PlaceholderGang, TaskGroup
from licorne.core.nodes.index cimport NodeIndex
from licorne.core.nodes.node cimport Node
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask, Shape
from licorne.core.waiting.accounting cimport Accounting
from licorne.core.waiting.parking cimport Parking
from licorne.core.waiting.wakeups cimport WakeUps

@cython.final
cdef class Replacement:
    cdef public object partition
    cdef public Accounting accounting
    cdef public Parking parking
    cdef public WakeUps wakeups
    cdef public NodeIndex index
    cdef public Gangs gangs
    cdef public bint fits
    cpdef long long run(self, long long limit)
    cdef long long _run_in(self, Application app, long long limit)
    cdef list[Any] _asks(self, PlaceholderGang gang)
    cdef Ask _place_for(self, TaskGroup group, Ask ask, bint own_node)
    cdef bint _may_stay(self, Ask ask, Ask place)
    cdef Node _other_node(self, Ask ask, Ask place)
    cdef void _link(self, Application app, PlaceholderGang gang, Ask ask, Ask place, Node node)
    cdef void _to_node(self, Ask real, Ask place)
    cdef void _on_node(self, Ask real, Node node)
    cdef void _off_node(self, Ask real)
    cpdef void ended(self, Application app, Ask alloc, object termination)
    cpdef void node_lost(self, Application app, Ask alloc, str message)
    cdef void _end(self, Application app, PlaceholderGang gang, Ask alloc, Ask real, str message)
    cdef void _follow(self, Application app, PlaceholderGang gang, Ask alloc, bint timed_out)
    cdef void _confirm(self, Application app, PlaceholderGang gang, Ask place, Ask real)
    cdef void _swap(self, Application app, Node node, Ask place, Ask real)
    cdef void _unlink(self, Application app, PlaceholderGang gang, Ask place, Ask real)
    cdef void _withdraw(self, PlaceholderGang gang, Ask place, Ask real)
    cdef void _forget(self, PlaceholderGang gang, Ask place, Ask real)
