# Derived from licorne.core.queues.requests at build time; do not edit.
cimport cython

cdef class AskBlock
cdef class Requests

from licorne.core.amounts.minima cimport Minima
from licorne.core.amounts.vectors cimport Vec
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.freed_nodes cimport FreedNodes

@cython.final
cdef class AskBlock:
    cdef public list items
    cdef public Py_ssize_t gone
    cdef public Vec low
    cdef public Minima waiting_minima
    cdef public Py_ssize_t live
    cdef public Py_ssize_t position
    cdef void prefetch_after(self, Py_ssize_t i) noexcept
    cdef void count_in(self, Ask ask)
    cdef void recount(self)
    cdef void put(self, Ask ask)
    cdef Py_ssize_t where(self, Ask ask)

@cython.final
cdef class Requests:
    cdef public list blocks
    cdef public AskBlock head
    cdef public AskBlock tail
    cdef public long long priority
    cdef public long long created
    cdef public long long seq
    cdef public Py_ssize_t waiting_count
    cdef public Minima waiting_minima
    cdef void insert(self, Ask ask)
    cdef void remove(self, Ask ask)
    cdef void park(self, Ask ask, int why)
    cpdef void unpark(self, Ask ask)
    cdef Ask next_fit(self, Vec room, Vec room_of_required, FreedNodes freed_nodes)
    cdef bint least_live(self, Vec least)
    cdef void _gather(self)
    cdef void _shorten(self, AskBlock block)
    cdef void _renumber_from(self, Py_ssize_t start)
