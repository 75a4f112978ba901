# Derived from licorne.core.partition at build time; do not edit.
cimport cython

cdef class Partition

from licorne.core.contents cimport PartitionContents
from licorne.core.inputs.intake cimport Intake
from licorne.core.inputs.releases cimport Releases
from licorne.core.scheduling.descent cimport Descent
from licorne.core.scheduling.host_orders cimport GivenOrders

@cython.final
cdef class Partition(PartitionContents):
    cdef public object numbering
    cdef public object events
    cdef public object gangs
    cdef public object placer
    cdef public object replacement
    cdef public Descent descent
    cdef public Intake intake
    cdef public object lifecycle
    cdef public Releases releases
    cdef public object reservations
    cdef public object quotas
    cdef public object disruption_budgets
    cdef public object guarantee_preemption
    cdef public object claims
    cdef public object evictions
    cdef public object preemption_predicates
    cdef public object atomic
    cdef public object cleaner
    cdef public long long inspections
    cdef public long long _inspection_ns
    cpdef list[Output] drain_outputs(self)
    cpdef long long schedule(self, long long limit)
