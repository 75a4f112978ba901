# Derived from licorne.core.inputs.intake at build time; do not edit.
cimport cython

cdef class Intake

from licorne.core.amounts.types cimport Types
from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.node cimport Need
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask, Shape
from licorne.core.queues.queue cimport Queue
from licorne.core.scheduling.descent cimport Descent
from licorne.core.waiting.accounting cimport Accounting
from licorne.core.waiting.parking cimport Parking
from licorne.core.waiting.wakeups cimport WakeUps
from licorne.si.allocations cimport Allocation

@cython.final
cdef class Intake:
    cdef public object partition
    cdef public dict applications
    cdef public Accounting accounting
    cdef public Descent descent
    cdef public Parking parking
    cdef public WakeUps wakeups
    cdef public Types types
    cdef public Queue root
    cdef public Need plain
    cdef public Vec amounts
    cdef public list asked
    cdef public list ahead
    cdef public bint active
    cdef public bint first_interface
    cdef void _fetch_ahead(self, list[Any] messages, Py_ssize_t i)
    cdef void _take(self, Allocation message)
    cdef object _fault(self, Application app, Allocation message)
    cdef object _known_or_new(self, Application app, Allocation message, Need need)
    cdef void submitted_with(self, Application app, Ask ask)
    cdef Ask make(self, Application app, Allocation message, Need need)
