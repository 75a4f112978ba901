# Derived from licorne.si.reading at build time; do not edit.
cimport cython

from licorne.si.allocations cimport Allocation, Release
from licorne.si.partitions cimport ShortPartitions

cdef list[Allocation] _read(object values, object of, int dialect, object partitions, object slow_path)
cdef void _prefetch(list[Any] values, Py_ssize_t index, object of, Py_ssize_t key, Py_ssize_t resource) noexcept
cdef Py_ssize_t _place(object message, object value)
cdef Allocation _ask_v19(tuple[Any, ...] row)
cdef Allocation _ask_first(tuple[Any, ...] row)
cpdef list[Any] read_ends_v19(object request)
cdef Release _release_v19(object value, object partitions)
cdef bint _is_text(object value)
cdef bint _is_flag(object value)
cdef bint _is_int64(object value)
cdef bint _is_int32(object value)
cdef bint _are_tags(object value)
cdef bint _are_amounts(object value)
cdef bint _is_within(object values, Py_ssize_t most, Py_ssize_t most_entries)
