# Derived from licorne.core.constants at build time; do not edit.
cdef extern from *:
    """
    #define licorne_core_constants_UNLIMITED ((long long) 9223372036854775807LL)
    #define licorne_core_constants_NEVER ((long long) 9223372036854775807LL)
    #define licorne_core_constants_SUM_MAX ((long long) 4611686018427387903LL)
    #define licorne_core_constants_PRIORITY_LOWEST ((long long) -2147483648LL)
    #define licorne_core_constants_PRIORITY_HIGHEST ((long long) 2147483647LL)
    #define licorne_core_constants_NO_PRIORITY ((long long) -2147483648LL)
    #define licorne_core_constants_LIVE ((int) 0)
    #define licorne_core_constants_NO_NODE ((int) 1)
    #define licorne_core_constants_REFUSED ((int) 2)
    #define licorne_core_constants_AWAITS_NODE ((int) 3)
    #define licorne_core_constants_AWAITS_PLACEHOLDER ((int) 4)
    #define licorne_core_constants_AWAITS_GANG ((int) 5)
    #define licorne_core_constants_READ ((int) 0)
    #define licorne_core_constants_NOTHING_IN_IT ((int) 1)
    #define licorne_core_constants_NEGATIVE ((int) 2)
    #define licorne_core_constants_TOO_LARGE ((int) 3)
    #define licorne_core_constants_NEW_TYPES ((int) 4)
    """
    const long long UNLIMITED "licorne_core_constants_UNLIMITED"
    const long long NEVER "licorne_core_constants_NEVER"
    const long long SUM_MAX "licorne_core_constants_SUM_MAX"
    const long long PRIORITY_LOWEST "licorne_core_constants_PRIORITY_LOWEST"
    const long long PRIORITY_HIGHEST "licorne_core_constants_PRIORITY_HIGHEST"
    const long long NO_PRIORITY "licorne_core_constants_NO_PRIORITY"
    const int LIVE "licorne_core_constants_LIVE"
    const int NO_NODE "licorne_core_constants_NO_NODE"
    const int REFUSED "licorne_core_constants_REFUSED"
    const int AWAITS_NODE "licorne_core_constants_AWAITS_NODE"
    const int AWAITS_PLACEHOLDER "licorne_core_constants_AWAITS_PLACEHOLDER"
    const int AWAITS_GANG "licorne_core_constants_AWAITS_GANG"
    const int READ "licorne_core_constants_READ"
    const int NOTHING_IN_IT "licorne_core_constants_NOTHING_IN_IT"
    const int NEGATIVE "licorne_core_constants_NEGATIVE"
    const int TOO_LARGE "licorne_core_constants_TOO_LARGE"
    const int NEW_TYPES "licorne_core_constants_NEW_TYPES"
