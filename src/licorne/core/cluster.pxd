# Derived from licorne.core.cluster at build time; do not edit.
cimport cython

cdef class Cluster

from licorne.core.manager cimport RegisteredManager
from licorne.core.partition cimport Partition

@cython.final
cdef class Cluster:
    cdef public object now
    cdef public object watcher
    cdef public dict managers
    cdef public list listening
    cdef public object recorder
    cdef public object read
    cdef public object orders
    cdef public list _ordered
    cdef public list _deciding
    cdef public bint usage_watched
    cdef object __weakref__
    cpdef void submit(self, str rm_id, object inputs)
    cpdef long long schedule(self, long long limit)
    cpdef list[tuple[str, list[Output]]] outputs(self)
