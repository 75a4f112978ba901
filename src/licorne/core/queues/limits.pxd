# Derived from licorne.core.queues.limits at build time; do not edit.
cimport cython

cdef class Maxima
cdef class LimitsOfQueue
cdef class Limits

from licorne.core.amounts.types cimport Types
from licorne.core.amounts.vectors cimport Vec
from licorne.core.queues.application cimport Application
from licorne.core.queues.queue cimport Queue
from licorne.core.queues.usage cimport Tracker

@cython.final
cdef class Maxima:
    cdef public Vec resources
    cdef public long long max_apps
    cdef public bint wildcard

@cython.final
cdef class LimitsOfQueue:
    cdef public dict users
    cdef public dict groups

@cython.final
cdef class Limits:
    cdef public Types types
    cdef public dict configured
    cdef public dict tracked_users
    cdef public dict tracked_groups
    cdef public object regrouped
    cpdef Tracker first_refusal(self, Application app)
    cpdef void attach(self, Application app)
    cdef str _matching_group(self, Application app)
    cdef Maxima _applying(self, str kind, str name, str path)
    cdef bint _set_limit(self, Tracker tracker)
    cdef dict[str, Any] _by_path(self, str kind, str name)
    cdef Tracker _add(self, str kind, str name, str path)
    cdef void _retain(self, str kind, str name, Queue leaf, list[Any] held)
    cdef void _release(self, list[Any] trackers)
    cdef void _forget_unused(self, Tracker tracker)

cdef bint _same(Vec one, Vec other)
