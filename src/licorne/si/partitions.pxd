# Derived from licorne.si.partitions at build time; do not edit.
cimport cython

cdef class PartitionNames
cdef class ShortPartitions
cdef class QualifiedPartitions
cdef class NamesFor

cdef class PartitionNames:
    cdef public str rm_id
    cdef public tuple known
    cdef str translate(self, str name)

@cython.final
cdef class ShortPartitions(PartitionNames):
    pass

@cython.final
cdef class QualifiedPartitions(PartitionNames):
    pass

@cython.final
cdef class NamesFor:
    cdef public str rm_id
    cdef public ShortPartitions short
    cdef public QualifiedPartitions qualified

cpdef NamesFor names_for(str rm_id)
