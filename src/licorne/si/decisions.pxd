# Derived from licorne.si.decisions at build time; do not edit.
cimport cython

from licorne.si.allocations cimport NewAllocation, Released
from licorne.si.partitions cimport QualifiedPartitions

cpdef Py_ssize_t run_end(list[Any] outputs, Py_ssize_t start)
cpdef list[AllocationV19] as_v19(list[Any] outputs, Py_ssize_t start, Py_ssize_t end)
cpdef list[AllocationRelease] released_v19(list[Any] outputs, Py_ssize_t start, Py_ssize_t end, str rm_id)
cpdef list[Any] responses_v19(list[Any] outputs, str rm_id, object others)
