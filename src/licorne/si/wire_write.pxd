# Derived from licorne.si.wire_write at build time; do not edit.
cimport cython

from licorne.si.wire_plan cimport MessagePlan, Slot

cdef void _write_message(bytearray out, MessagePlan plan, object message)
cdef void _write_field(bytearray out, Slot slot, object value)
cdef void _write_quantity(bytearray out, unsigned int tag, str name, long long amount)
cdef void _write_varint(bytearray out, unsigned long long value)
cdef void _write_text(bytearray out, unsigned int tag, str value)
cdef void _write_part(bytearray out, unsigned int tag, bytearray part)
