"""The wire: messages of both dialects as protobuf bytes, with no generated code.

Everything follows from one table, the numbers and types that stand in the declarations of the messages
(`licorne.si._schema.fields`). This module reads and writes any message by that table. The two things that come by the
million, asks in and allocations out, have shorter ways (`licorne.si.wire_asks`, `licorne.si.wire_decisions`), which do
the regular cases and leave the others to this one.

The rules are those of proto3, as the official implementations have them: fields in any order; what is unknown, or has
the wrong wire type, is skipped; of a scalar that comes twice the last counts, an embedded message that comes twice is
merged, and of a oneof the last field stands; integers of 32 bits lose what is beyond; an enum keeps a number that it
does not know; an entry of a map may lack key or value; text is valid UTF-8. What is no such message is refused whole:
`WireError` says in which field and at which byte. Bytes come from strangers, so every read is checked against the end
of the message that it belongs to, and groups nest to a limit.

Output is the shortest there is and always the same for the same message: fields in the order of their numbers, those
with default values left out, the entries of a map in the order of their keys. So equal messages have equal bytes.
"""

from __future__ import annotations

from licorne.si.wire_plan import WireError
from licorne.si.wire_read import decode
from licorne.si.wire_write import encode

__all__ = ["WireError", "decode", "encode"]
