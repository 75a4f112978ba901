# Derived from licorne.sim.gauges at build time; do not edit.
cimport cython

cdef class Gauge
cdef class Share

from licorne.core.amounts.vectors cimport Vec

@cython.final
cdef class Gauge:
    cdef public object _since_ns
    cdef public Vec _value
    cdef public list _names
    cdef public dict _integrals
    cdef public dict _peaks
    cpdef object set(self, cython.py_int now_ns, Vec value, list[str] names)
    cdef void _settle(self, cython.py_int now_ns)

@cython.final
cdef class Share:
    cdef public Gauge used
    cdef public Gauge capacity
    cdef public dict _peak
    cdef public Vec _used
    cdef public list _names
    cdef public dict _most
    cdef public object _since_ns
    cpdef object set(self, cython.py_int now_ns, Vec used, list[str] names)
    cdef void _settle(self, cython.py_int now_ns)
