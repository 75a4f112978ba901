# Derived from licorne.core.preemption.candidates at build time; do not edit.
cimport cython

cdef class QueueBudget
cdef class LeafCandidates
cdef class Candidate
cdef class NodeCandidates
cdef class Bounds

from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.node cimport Node
from licorne.core.preemption.ranking cimport VictimRank
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.queue cimport Queue

@cython.final
cdef class QueueBudget:
    cdef public Queue queue
    cdef public QueueBudget parent
    cdef public Vec planned
    cdef public Vec slack
    cdef public Vec taken
    cdef public bint on_path
    cdef public bint inside
    cdef public bint guarded
    cpdef void recompute(self, Vec ask)
    cdef bint allows(self, Vec amounts) noexcept

@cython.final
cdef class LeafCandidates:
    cdef public QueueBudget budget
    cdef public list budgets
    cdef public list members
    cdef public Vec max_loss
    cdef public Vec largest
    cdef public bint eligible
    cpdef void recompute(self)

@cython.final
cdef class Candidate:
    cdef public Ask alloc
    cdef public LeafCandidates leaf_group
    cdef public NodeCandidates node_group
    cdef public Vec amounts
    cdef public bint reluctant
    cdef public long long priority
    cdef public tuple disruption_budgets
    cpdef bint usable(self) noexcept

@cython.final
cdef class NodeCandidates:
    cdef public Node node
    cdef public Py_ssize_t order
    cdef public list members
    cdef public Vec room
    cdef public Bounds willing
    cdef public Bounds all
    cdef public bint stale
    cpdef void recompute(self)

@cython.final
cdef class Bounds:
    cdef public list max_free
    cdef public list lowest
    cdef VictimRank lowest_for(self, Vec amounts, Py_ssize_t least)

cdef void add_at(Vec vec, Py_ssize_t d, long long amount)
