# Derived from licorne.si.wire_read at build time; do not edit.
cimport cython

cdef class WireReader

from licorne.si.wire_plan cimport MessagePlan, Slot

@cython.final
cdef class WireReader:
    cdef public bytes data
    cdef public Py_ssize_t at
    cdef public Slot apart
    cdef public list lengths
    cdef public int step_depth
    cdef public int left
    cdef public Slot held
    cdef public Py_ssize_t held_end
    cdef unsigned long long varint(self, Py_ssize_t end, int most) except? -1
    cdef unsigned int tag(self, Py_ssize_t end) except? -1
    cdef Py_ssize_t span(self, Py_ssize_t end) except? -1
    cdef str text(self, Py_ssize_t end)
    cdef void skip(self, unsigned int tag, Py_ssize_t end, int depth)

cdef long long as_signed(unsigned long long value, int bits) except? -1
cdef void _read_message(WireReader reader, MessagePlan plan, dict[str, Any] values, Py_ssize_t end, int depth)
cdef void _read_field(WireReader reader, Slot slot, dict[str, Any] values, Py_ssize_t end, int depth)
cdef void _read_entry(WireReader reader, Slot slot, dict[str, Any] entries, Py_ssize_t end, int depth)
cdef object _build(MessagePlan plan, dict[str, Any] values)
cdef WireReader _reader_apart(object message, bytes data, str attribute)
cdef object _decoded(object message, WireReader reader, Py_ssize_t end, int depth, str path)
