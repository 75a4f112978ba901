# Derived from licorne.core.preemption.victim_search at build time; do not edit.
cimport cython

cdef class VictimSearch

from licorne.core.amounts.vectors cimport Vec
from licorne.core.preemption.candidates cimport Candidate, LeafCandidates, QueueBudget
from licorne.core.preemption.ranking cimport VictimRank

@cython.final
cdef class VictimSearch:
    cdef public list pool
    cdef public list amounts_on_node
    cdef public Vec short_on_node
    cdef public Vec short_of_quota
    cdef public list largest_on_node
    cdef public list largest
    cdef public list lowest_priority
    cdef public list reluctant_from
    cdef public list picked
    cdef public list best
    cdef public long long best_sum
    cdef public long long steps_left
    cdef public long long steps
    cdef public bint keeps_budgets
    cdef public object device_room
    cdef bint _enough(self, Py_ssize_t count)
    cdef void _pick(self, Py_ssize_t start, Py_ssize_t count, Py_ssize_t reluctant, long long total)
    cdef bint _within_reach(self, Py_ssize_t i, Py_ssize_t count)
    cdef bint _covered(self)
    cdef bint _add(self, Candidate c, Vec near)
    cdef void _remove(self, Candidate c, Vec near)
    cpdef bint within_budgets(self, Candidate c) except? -1
    cdef bint _helps(self, Candidate c, Vec near)
