# Derived from licorne.core.queues.ask at build time; do not edit.
cimport cython

cdef class Shape
cdef class Ask

from licorne.core.amounts.vectors cimport Vec
from licorne.core.nodes.node cimport Need, Node

@cython.final
cdef class Shape:
    cdef public Vec amounts
    cdef public dict resource
    cdef public Need need
    cdef public Ask first
    cdef public int waiting
    cdef public bint failed
    cdef void initialise(self, Vec amounts, dict[str, cython.py_int] resource, Need need) noexcept

@cython.final
cdef class Ask:
    cdef public Shape shape
    cdef public int parked
    cdef public bint attempted
    cdef public object block
    cdef public Ask prior
    cdef public Ask next
    cdef public str required
    cdef public Node reserved
    cdef public long long repeats
    cdef public str key
    cdef public str id
    cdef public long long priority
    cdef public Node node
    cdef public long long bound_ns
    cdef public dict tags
    cdef public str task_group
    cdef public long long timeout_ns
    cdef public bint placeholder
    cdef public bint originator
    cdef public bint allow_self
    cdef public bint allow_other
    cdef public object app
    cdef public long long created
    cdef public long long seq
    cdef public long long reserved_ns
    cdef public Node expired_node
    cdef public long long replaced_ns
    cdef public object deadline
    cdef public long long outstanding
    cdef public bint triggered
    cdef public bint preempted
    cdef public bint released
    cdef void initialise(self, str key, object app, Shape shape, long long priority, long long created, long long seq) noexcept
    cdef Ask another(self)
    cdef bint before(self, Ask other) noexcept
    cpdef bint after(self, long long priority, long long created, long long seq) noexcept
