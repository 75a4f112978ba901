# Derived from licorne.sim.scenarios.draws at build time; do not edit.
cimport cython

cdef class Source

@cython.final
cdef class Source:
    cdef public object uniform
    cdef public double _spare
    cdef public bint _has_spare
    cpdef double exponential(self)
    cpdef double normal(self)

cpdef double ln(double x) noexcept
cpdef double exp(double x) noexcept
