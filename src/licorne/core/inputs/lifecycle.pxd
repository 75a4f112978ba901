# Derived from licorne.core.inputs.lifecycle at build time; do not edit.
cimport cython

cdef class Lifecycle

from licorne.core.queues.application cimport Application
from licorne.core.queues.ask cimport Ask
from licorne.core.queues.limits cimport Limits
from licorne.core.queues.queue cimport Queue
from licorne.core.waiting.wakeups cimport WakeUps

@cython.final
cdef class Lifecycle:
    cdef public object partition
    cdef public Limits limits
    cdef public WakeUps wakeups
    cdef public object timers
    cdef bint _fire(self, Application app, object event, str message)
    cdef void _enter(self, Application app, object old, object new, str message)
    cdef void _set_timer(self, Application app, object state)
    cdef void _started(self, Application app)
    cdef void _count_running(self, Application app, long long change)
    cdef void _leave_accepted(self, Application app)
    cpdef bint may_be_tried(self, Application app)
    cpdef Queue refusing_queue(self, Application app)
    cpdef void emptied(self, Application app)
    cdef void _leave_limits(self, Application app, bint gone)
