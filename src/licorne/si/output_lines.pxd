# Derived from licorne.si.output_lines at build time; do not edit.
cimport cython

from licorne.si.allocations cimport NewAllocation, Released

cdef tuple[bytes, cython.py_int] _written(object outputs, bint texts)
cdef bytes _new_bytes(Py_ssize_t length)
cdef Py_ssize_t _size(str text) except? -1
cdef Py_ssize_t _put(char* out, Py_ssize_t at, str text, int end) except? -1
cdef Py_ssize_t _copy(char* out, Py_ssize_t at, bytes line) except? -1
