# Derived from licorne.core.nodes.block at build time; do not edit.
cimport cython

cdef class NodeBlock
cdef class NodeGroup

from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.columns cimport Columns
from licorne.core.nodes.node cimport Node

@cython.final
cdef class NodeBlock(Columns):
    cdef public list nodes
    cdef public NodeGroup group
    cdef public Py_ssize_t position
    cdef Py_ssize_t row_of(self, Node node) noexcept
    cdef void prefetch_next(self) noexcept
    cdef void prefetch_fields(self) noexcept
    cdef void put(self, Node node, Py_ssize_t at, long long key, unsigned long long cells)
    cdef void write(self, Node node, Py_ssize_t at, long long key, unsigned long long cells) noexcept
    cdef void remove(self, Py_ssize_t at)
    cdef void give(self, Py_ssize_t start, NodeBlock to)

@cython.final
cdef class NodeGroup(Columns):
    cdef public list blocks
    cdef public Py_ssize_t position
    cdef void add(self, NodeBlock block, Py_ssize_t at)
    cdef void drop(self, Py_ssize_t at)
    cdef void tighten(self, Py_ssize_t at)
    cdef void show_start(self, Columns top, Py_ssize_t row) noexcept
    cdef NodeGroup halve(self)
    cdef void absorb(self, NodeGroup other)
    cdef void _renumber_from(self, Py_ssize_t start)

cdef long long order_key(double score) noexcept
