# Derived from licorne.si.wire_plan at build time; do not edit.
cimport cython

cdef class Slot
cdef class MessagePlan

@cython.final
cdef class Slot:
    cdef public str attribute
    cdef public str name
    cdef public unsigned int tag
    cdef public int kind
    cdef public bint repeated
    cdef public bint present
    cdef public dict members
    cdef public MessagePlan plan
    cdef public tuple others

@cython.final
cdef class MessagePlan:
    cdef public object message
    cdef public str name
    cdef public dict slots
    cdef public list ordered
    cdef public list nested
