"""Numbers that several modules of the core share, each with its reason.

In plain modules these are Python integers. A hot module needs them as C integers, because a Python integer is looked up
and compared as an object. Cython cannot import a C constant of another module, so the build declares them by their
values (`tools/pxd.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cython

UNLIMITED: cython.longlong = 0x7FFFFFFFFFFFFFFF
"""As a limit or headroom: nothing limits this. In a search: worse than anything that is found."""
NEVER: cython.longlong = UNLIMITED
"""As a time or an age: the moment does not come."""
SUM_MAX: cython.longlong = (1 << 62) - 1
"""The largest amount, and the largest value that a sum shows: so differences of two sums fit in an int64 as well."""

PRIORITY_LOWEST: cython.longlong = -0x80000000
PRIORITY_HIGHEST: cython.longlong = 0x7FFFFFFF
"""A priority is an integer of 32 bits."""
NO_PRIORITY: cython.longlong = PRIORITY_LOWEST
"""The priority of a queue in which nothing is pending."""

# Why an ask is parked. LIVE: it is not parked, and is tried when its application is visited.
LIVE: cython.int = 0
NO_NODE: cython.int = 1  # its shape fits no node; woken by an event on a node, or by its age (it may reserve then)
REFUSED: cython.int = 2  # a predicate said no; tried again at the next call, as the answer may change unseen
AWAITS_NODE: cython.int = 3  # its required node has no room, or is missing; woken by an event on that node
AWAITS_PLACEHOLDER: cython.int = (
    4  # its task group has placeholders; their end wakes it (`licorne.core.gangs.placeholders`)
)
AWAITS_GANG: cython.int = 5  # its application starts as a whole (`licorne.core.gangs.atomic`), and has not yet

# What `Types.read` finds in an ask's map of amounts. READ: no fault.
READ: cython.int = 0
NOTHING_IN_IT: cython.int = 1
NEGATIVE: cython.int = 2
TOO_LARGE: cython.int = 3
NEW_TYPES: cython.int = 4

# Why a term about pods shuts an ask out of a domain (`licorne.core.nodes.domains`).
IS_APART: cython.int = 0  # such pods run there
IS_NEAR: cython.int = 1  # none does
IS_SPREAD: cython.int = 2  # there would be too many more of them than elsewhere
