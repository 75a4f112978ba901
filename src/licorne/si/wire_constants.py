"""The numbers of protobuf's format, and of the plans by which messages are read and written, shared by several modules.

The build declares their values to Cython (`tools/pxd.py`), so that hot modules have them as C constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cython

# The wire types: the lowest three bits of a tag.
VARINT: cython.int = 0
FIXED64: cython.int = 1
SPAN: cython.int = 2  # a length, and as many bytes: text or an embedded message
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

# The meaning of a field of an ask (`licorne.si.wire_roles`): first varints, then, from KEY on, fields with a length.
UNKNOWN: cython.int = 0  # any other field: the ask is left to the slow path
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
WITHIN: cython.int = 16  # an embedded message of varints

BITS_64: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
"""The mask of 64 bits. Cython would make a Python object of a literal this long in the text of a hot module."""
