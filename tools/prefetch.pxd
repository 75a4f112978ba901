# What C compilers offer and Cython has no name for: the processor is told that the memory at an address will be read
# soon, and fetches it into its cache while it goes on. Nothing else happens, whatever the address. Addresses are not
# objects here, since Cython would count a reference to an object, and so wait for what is only to be fetched.

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define licorne_prefetch(address) __builtin_prefetch(address)
    #else
    #define licorne_prefetch(address) ((void)(address))
    #endif

    static inline void licorne_fetch(const void *address, int lines) {
        int line;
        for (line = 0; line < lines; line++) licorne_prefetch((const char *)address + 64 * line);
    }

    static inline void licorne_fetch_entries(const void *map, int lines) {
        licorne_fetch(((const PyDictObject *)map)->ma_keys, lines);
    }
    """
    void *item "PyList_GET_ITEM"(list items, Py_ssize_t at) noexcept  # no reference is counted
    void prefetch "licorne_fetch"(const void *address, int lines) noexcept nogil  # of 64 bytes
    void prefetch_entries "licorne_fetch_entries"(const void *map, int lines) noexcept nogil  # of a dict that is there
