# Derived from licorne.core.nodes.index at build time; do not edit.
cimport cython

cdef class NodeIndex

from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.block cimport NodeBlock, NodeGroup
from licorne.core.nodes.columns cimport Columns, Grid
from licorne.core.nodes.node cimport Need, Node, ScorePolicy

@cython.final
cdef class NodeIndex:
    cdef public Py_ssize_t width
    cdef public Py_ssize_t words
    cdef public ScorePolicy policy
    cdef public Grid grid
    cdef public list groups
    cdef public list tops
    cdef public list by_id
    cdef public NodeBlock target
    cdef public NodeBlock spare
    cdef public long long visits
    cdef public long long moves
    cdef public long long generation
    cpdef void set_constraint_bit(self, Node node)
    cdef void aim(self, Node node)
    cdef void prefetch_target(self) noexcept
    cpdef void mend(self, Node node)
    cdef void _rewrite(self, NodeBlock block, Py_ssize_t at, long long key, Node node) noexcept
    cdef bint _stays(self, NodeBlock block, Py_ssize_t at, long long key, long long rank) noexcept
    cdef void _insert(self, Node node, long long key)
    cdef NodeBlock _block_for(self, long long key, long long rank)
    cdef void _lift(self, NodeBlock block, Node node, unsigned long long cells) noexcept
    cdef void _take_out(self, NodeBlock block, Py_ssize_t at)
    cdef void _drop(self, NodeBlock block)
    cdef void _join(self, NodeGroup group)
    cdef void _split(self, NodeBlock block)
    cdef void _lift_group(self, NodeGroup group)
    cdef void _top(self)
    cpdef Node find(self, Vec ask, Need need, Node after)
    cdef void _divide_anew(self)
