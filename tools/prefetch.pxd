# What C compilers offer and Cython has no name for: the processor is told that the memory at an address will be read
# soon, and fetches it into its cache while it goes on. Nothing else happens, whatever the address.

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define licorne_prefetch(address) __builtin_prefetch(address)
    #else
    #define licorne_prefetch(address) ((void)(address))
    #endif
    """
    void prefetch "licorne_prefetch"(const void *address) noexcept nogil

cdef extern from "Python.h":
    ctypedef struct PyDictObject:
        void *ma_keys  # its entries
