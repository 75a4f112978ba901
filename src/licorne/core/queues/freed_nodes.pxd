# Derived from licorne.core.queues.freed_nodes at build time; do not edit.
cimport cython

cdef class FreedNodes

from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.node cimport Node
from licorne.core.queues.ask cimport Shape

@cython.final
cdef class FreedNodes:
    cdef public list nodes
    cdef public Vec most
    cdef public dict partly_parked
    cdef void add(self, Node node)
    cdef void clear(self)
    cdef void measure(self)
    cdef bint fit(self, Shape shape)
    cdef list[Node] in_order(self)
