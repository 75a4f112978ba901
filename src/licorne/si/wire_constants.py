"""Numbers of protobuf's format, and of the plans by which messages are read and written, that several modules share.

The build declares them to Cython by their values (`tools/pxd.py`), so that hot modules have them as C numbers: they take them
from `cython.cimports.licorne.si.wire_constants`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cython

# The wire types: what stands in the lowest three bits of a tag.
VARINT: cython.int = 0
FIXED64: cython.int = 1
SPAN: cython.int = 2  # a length, and so many bytes
GROUP: cython.int = 3
GROUP_END: cython.int = 4
FIXED32: cython.int = 5

# The kinds of fields (`licorne.si._schema.Kind`); up to ENUM they are varints.
BOOL: cython.int = 0
INT32: cython.int = 1
INT64: cython.int = 2
ENUM: cython.int = 3
STRING: cython.int = 4
MESSAGE: cython.int = 5
AMOUNTS: cython.int = 6
MAP: cython.int = 7
QUANTITIES: cython.int = 8

# Tags: the key and the value of a map's entry; an entry of a Resource; the value of a Quantity.
ENTRY_KEY: cython.int = 1 << 3 | SPAN
ENTRY_VALUE: cython.int = 2 << 3 | SPAN
RESOURCE_ENTRY: cython.int = 1 << 3 | SPAN
QUANTITY_VALUE: cython.int = 1 << 3 | VARINT

# What a field is to an ask (`licorne.si.wire_roles`): numbers, and after them what has a length.
UNKNOWN: cython.int = 0  # another field, of which nothing is known here
PRIORITY: cython.int = 1
PLACEHOLDER: cython.int = 2
ORIGINATOR: cython.int = 3
REPEATS: cython.int = 4
TIMEOUT: cython.int = 5
POLICY_SELF: cython.int = 6
POLICY_OTHER: cython.int = 7
PRIORITY_CLASS: cython.int = 8
KEY: cython.int = 9
APPLICATION: cython.int = 10
PARTITION: cython.int = 11
NODE: cython.int = 12
TASK_GROUP: cython.int = 13
RESOURCE: cython.int = 14
TAGS: cython.int = 15
WITHIN: cython.int = 16  # a message of numbers

BITS_64: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
"""A longer number that stands in the text of a hot module is a Python object to Cython."""
