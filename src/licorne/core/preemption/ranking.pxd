# Derived from licorne.core.preemption.ranking at build time; do not edit.
cimport cython

cdef class VictimRank

from licorne.core.queues.ask cimport Ask

@cython.final
cdef class VictimRank:
    cdef public long long reluctant
    cdef public long long count
    cdef public long long priorities
    cdef public long long created
    cdef public long long seq
    cdef public list ages
    cdef public long long node_order
    cpdef bint precedes(self, VictimRank other) except? -1
    cpdef bint admits(self, long long reluctant, long long count) noexcept

cpdef bint is_reluctant(Ask alloc) noexcept
cdef VictimRank lowest_rank(long long reluctant, long long count, long long priorities, long long created, long long seq)
