# Derived from licorne.si.wire_asks at build time; do not edit.
cimport cython

cdef class AskReader

from licorne.si.allocations cimport Allocation
from licorne.si.wire_read cimport WireReader

@cython.final
cdef class AskReader:
    cdef public bytes data
    cdef public list lengths
    cdef public bytes roles
    cdef public bytes inner_roles
    cdef public bint first_interface
    cdef public object partitions
    cdef public object slow_path
    cdef public str partition
    cdef public str short
    cdef public Py_ssize_t at
    cdef public Py_ssize_t stop
    cdef public WireReader wire
    cdef public int cache_credit
    cdef public list known
    cdef Py_ssize_t[272] starts
    cdef Py_ssize_t[272] ends
    cdef bint ask(self, Allocation ask, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef bint take_number(self, Allocation ask, int role, Py_ssize_t end) except? -1
    cdef unsigned long long varint(self, Py_ssize_t end) except? -1
    cdef Py_ssize_t span(self, Py_ssize_t end) except? -1
    cdef int place(self, Py_ssize_t start, Py_ssize_t end, int first, int places) except? -1
    cdef bint remembers(self, int place, Py_ssize_t start, Py_ssize_t end) except? -1
    cdef void remember(self, int place, Py_ssize_t start, Py_ssize_t end, object value)
    cdef str text(self, Py_ssize_t end)
    cdef str known_text(self, int place, Py_ssize_t start, Py_ssize_t end)
    cdef dict[str, cython.py_int] resource(self, Py_ssize_t end)
    cdef dict[str, cython.py_int] read_resource(self, Py_ssize_t end)
    cdef dict[str, str] tags(self, Py_ssize_t start, Py_ssize_t limit)
    cdef dict[str, str] read_tags(self, Py_ssize_t end)
    cdef str entry(self, Py_ssize_t end, int place)

cdef Allocation _blank()
cdef bint _finish_first(Allocation ask)
