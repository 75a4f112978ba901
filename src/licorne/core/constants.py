"""Numbers that several modules of the core share, each with its reason, once.

To the plain modules these are Python's. A hot module needs them as C numbers, since one of Python's is looked up and compared as
an object; C constants of another module cannot be had through Cython, so the build declares these to it by their values
(`tools/pxd.py`), and a hot module takes them from `cython.cimports.licorne.core.constants`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cython

UNLIMITED: cython.longlong = 0x7FFFFFFFFFFFFFFF
"""In place of a limit or of headroom: there is none. In a search: worse than anything."""
NEVER: cython.longlong = UNLIMITED
"""In place of a time or an age: it does not come."""
SUM_MAX: cython.longlong = (1 << 62) - 1
"""No amount is larger, no sum shows more: differences of sums fit in an int64 as well."""

PRIORITY_LOWEST: cython.longlong = -0x80000000
PRIORITY_HIGHEST: cython.longlong = 0x7FFFFFFF
"""A priority is an integer of 32 bits."""
NO_PRIORITY: cython.longlong = PRIORITY_LOWEST
"""Of a queue in which nothing is pending."""

# Why an ask is parked. LIVE: it is not, and will be tried when its application is looked at.
LIVE: cython.int = 0
NO_NODE: cython.int = 1  # its shape fits no node; woken by an event on a node, or by its age (a reservation)
REFUSED: cython.int = 2  # a predicate said no; tried again at the next call, for its answer may change unseen
AWAITS_NODE: cython.int = 3  # its required node has no room, or is not there; woken by an event on that node
AWAITS_PLACEHOLDER: cython.int = (
    4  # placeholders of its task group live; woken by their end (`licorne.core.gangs.placeholders`)
)
AWAITS_GANG: cython.int = 5  # its application starts as a whole (`licorne.core.gangs.atomic`), and has not yet

# What `Types.read` finds in an ask's map of amounts. READ: all is well.
READ: cython.int = 0
NOTHING_IN_IT: cython.int = 1
NEGATIVE: cython.int = 2
TOO_LARGE: cython.int = 3
NEW_TYPES: cython.int = 4
