# Derived from licorne.core.nodes.node at build time; do not edit.
cimport cython

cdef class Need
cdef class Node
cdef class ScorePolicy

from licorne.core.amounts.minima cimport Minima
from licorne.core.amounts.vectors cimport Vec

@cython.final
cdef class Need:
    cdef public object constraints
    cdef public Py_ssize_t number
    cdef public Py_ssize_t word
    cdef public long long mask
    cdef public bint exact
    cdef public long long waiting
    cdef public dict answers
    cdef public Minima failed
    cdef public tuple ports
    cdef public object demand
    cdef public bint counted
    cdef public Need empty
    cpdef Need of_empty(self)

cdef class Node:
    cdef public Vec free
    cdef public Vec constraint_bitmap
    cdef public bint open
    cdef public bint schedulable
    cdef public object block
    cdef public double score
    cdef public long long rank
    cdef public Vec capacity
    cdef public Vec allocated
    cdef public dict allocations
    cdef public str id
    cdef public Vec occupied
    cdef public dict attributes
    cdef public object labels
    cdef public dict ports
    cdef public object devices
    cdef public dict reservations
    cdef public dict foreign
    cdef public Vec base_occupied
    cpdef bint fits(self, Vec amounts, Need need) except? -1
    cdef bint meets(self, Need need) except? -1
    cdef void prefetch_fields(self) noexcept
    cdef void prefetch_allocations(self) noexcept
    cdef Vec search_bitmap(self)

@cython.final
cdef class ScorePolicy:
    cdef public bint binpacking
    cdef public Py_ssize_t count
    cdef Py_ssize_t* places
    cdef double* weights
    cdef double score(self, Node node) noexcept
