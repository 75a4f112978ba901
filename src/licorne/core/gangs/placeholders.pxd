# Derived from licorne.core.gangs.placeholders at build time; do not edit.
cimport cython

cdef class TaskGroup
cdef class PlaceholderGang
cdef class Gangs

from licorne.core.amounts.vectors cimport Vec
from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.queue cimport Queue
from licorne.core.waiting.accounting cimport Accounting
from licorne.core.waiting.wakeups cimport WakeUps

@cython.final
cdef class TaskGroup:
    cdef public str name
    cdef public dict resource
    cdef public long long created
    cdef public long long replaced
    cdef public long long released
    cdef public long long timed_out
    cdef public list held
    cdef public Py_ssize_t start
    cdef public Py_ssize_t gone
    cdef public dict waiting
    cpdef long long live(self)
    cpdef bint has_placeholder(self)
    cpdef void one_gone(self)

@cython.final
cdef class PlaceholderGang:
    cdef public bint hard
    cdef public long long timeout_ns
    cdef public object timer
    cdef public dict groups
    cdef public Py_ssize_t placed
    cdef public Vec gained
    cdef public bint was_complete
    cdef public bint placeholders_timed_out
    cdef public dict replacing
    cdef public dict arriving

@cython.final
cdef class Gangs:
    cdef public object partition
    cdef public Accounting accounting
    cdef public WakeUps wakeups
    cdef public dict due
    cdef public dict stuck
    cpdef void joined(self, Ask ask)
    cdef void _wait(self, Application app, TaskGroup group, Ask ask)
    cpdef void left(self, Ask ask)
    cpdef void settle(self, Application app, TaskGroup group)
    cpdef void placed(self, Application app, Ask alloc)
    cdef void _start_clock(self, Application app, PlaceholderGang gang)
    cdef void _stop_clock(self, PlaceholderGang gang)
    cpdef void ended(self, Application app, Ask alloc, bint timed_out)
    cpdef void gone(self, Application app, TaskGroup group)
    cpdef void none_placed(self, Application app)
    cpdef bint has_more(self, Application app)
