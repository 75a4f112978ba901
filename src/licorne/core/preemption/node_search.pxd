# Derived from licorne.core.preemption.node_search at build time; do not edit.
cimport cython

cdef class NodeSearch

from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.node cimport Need
from licorne.core.preemption.candidates cimport Candidate, LeafCandidates, NodeCandidates, QueueBudget
from licorne.core.preemption.planned_usage cimport PlannedUsage
from licorne.core.preemption.ranking cimport VictimRank
from licorne.core.preemption.victim_search cimport VictimSearch
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.queue cimport Queue

@cython.final
cdef class NodeSearch:
    cdef public PlannedUsage planned_usage
    cdef public Queue leaf
    cdef public Queue top
    cdef public dict budgets
    cdef public list path
    cdef public dict ancestors
    cdef public bint has_guarantee
    cdef public list wanted
    cdef public list leaf_groups
    cdef public list node_groups
    cdef public dict by_node
    cdef public list by_rank
    cdef public list reachable_by_rank
    cdef public Vec max_room
    cdef public list guarded_ancestors
    cdef public Vec slack_size
    cdef public list infeasible
    cdef public VictimSearch search
    cdef public long long now
    cdef public VictimRank best
    cdef public NodeCandidates best_node
    cdef public list best_victims
    cdef public long long searched
    cdef public dict held
    cdef public dict hanging
    cdef public object disruption_budgets
    cdef public bint has_budgets
    cdef bint _shares_a_type(self, Vec amounts)
    cpdef void set_ask_size(self, Vec amounts)
    cdef bint _could_run(self, NodeCandidates node_group, Ask ask)
    cdef bint _enough(self, Vec room, Vec more, Vec ask) noexcept
    cdef VictimRank _bound(self, NodeCandidates node_group, Ask ask, VictimRank best)
