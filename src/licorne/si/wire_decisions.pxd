# Derived from licorne.si.wire_decisions at build time; do not edit.
cimport cython

cdef class Writer

from licorne.si.allocations cimport NewAllocation

@cython.final
cdef class Writer:
    cdef public bytearray data
    cdef unsigned char* out
    cdef public Py_ssize_t size
    cdef public list names
    cdef public list amounts
    cdef public list order
    cdef public list heads
    cdef public list resources
    cdef Py_ssize_t[256] starts
    cdef Py_ssize_t[256] ends
    cdef void make_room(self, Py_ssize_t at, Py_ssize_t more)
    cdef Py_ssize_t number(self, Py_ssize_t at, int tag, unsigned long long value) except? -1
    cdef Py_ssize_t flag(self, Py_ssize_t at, int tag, bint value) except? -1
    cdef Py_ssize_t text(self, Py_ssize_t at, int tag, str value) except? -1
    cdef Py_ssize_t entry_text(self, Py_ssize_t at, int tag, str value) except? -1
    cdef Py_ssize_t raw(self, Py_ssize_t at, bytes value) except? -1
    cdef Py_ssize_t begin(self, Py_ssize_t at, int tag, Py_ssize_t length_bytes) except? -1
    cdef Py_ssize_t finish(self, Py_ssize_t body, Py_ssize_t end, Py_ssize_t length_bytes) except? -1
    cdef void move(self, Py_ssize_t start, Py_ssize_t to, Py_ssize_t length)
    cdef Py_ssize_t priority(self, Py_ssize_t at, long long value) except? -1
    cdef Py_ssize_t tags(self, Py_ssize_t at, int tag, dict[str, str] value) except? -1
    cdef Py_ssize_t resource(self, Py_ssize_t at, int tag, dict[str, cython.py_int] value) except? -1
    cdef bint take_amounts(self, dict[str, cython.py_int] value) except? -1
    cdef void learn_names(self, Py_ssize_t at, dict[str, cython.py_int] value)

cdef int _length(unsigned long long value)
cdef unsigned long long _unsigned(long long value)
