# Derived from licorne.core.base.order at build time; do not edit.
cimport cython

cdef class Ranked
cdef class Order

cdef class Ranked:
    cdef public Py_ssize_t heap_index
    cdef bint before(self, Ranked other) noexcept
    cdef bint precedes(self, Ranked other) noexcept
    cdef bint equals(self, Ranked other) noexcept

@cython.final
cdef class Order:
    cdef public list items
    cdef Ranked top(self)
    cdef void push(self, Ranked item)
    cdef void drop(self, Ranked item)
    cdef void mend(self, Ranked item) noexcept
    cdef bint _up(self, Ranked item) noexcept
    cdef void _down(self, Ranked item) noexcept

cdef list[Any] sorted_by_insertion(list[Any] items)
cdef list[Any] _inserted(list[Any] items, Py_ssize_t moves)
cdef list[Any] _inserted_by_halving(list[Any] items)
cpdef bint any_two_compare(list[Any] items) noexcept
