"""The wire: messages of both dialects as protobuf bytes, without generated code.

Everything follows from one table: the field numbers and types in the declarations of the messages
(`licorne.si._schema.fields`). This module reads and writes any message by that table. The two kinds of messages that
come by the million, asks in and allocations out, have fast paths (`licorne.si.wire_asks`,
`licorne.si.wire_decisions`), which handle the regular cases and leave all others to this slow path.

Why by hand, although the package `protobuf` is a dependency of the service: its parser, in C, decodes a request of 1,000
asks of 172 bytes in 0.6 µs an ask, but what it returns must be read attribute by attribute and entry by entry, and so an
ask becomes the core's `Allocation` only after 7.1 µs. Here, compiled, that takes 1.05 µs from the bytes. Nodes, which take
the slow path, become objects of the dialect after 3.2 µs, with `protobuf` after 6.7 µs (`python -m bench codec`). A pod
without tags takes 3 µs in all from the bytes of its ask to the bytes of its decision (`python -m bench run b-bytes`).

One class reads numbers, lengths and tags, `licorne.si.wire_read.WireReader`; the fast path for asks itself reads the
lengths of one byte. There are two writers, since decisions are written into memory that is reserved in advance.

The rules are those of proto3, as the official implementations apply them: fields come in any order; a field that is
unknown, or has the wrong wire type, is skipped; if a scalar comes twice the last value counts, an embedded message that
comes twice is merged, and of a oneof the last field wins; integers of 32 bits are truncated; an enum keeps a number
that it does not know; an entry of a map may lack its key or value; text must be valid UTF-8. Bytes that are not such a
message are refused as a whole: `WireError` names the field and the byte. The bytes are untrusted, so every read is
checked against the end of the message that it belongs to, and groups may nest only to a limit.

The output is the shortest possible encoding, and always the same for the same message: fields in the order of their
numbers, default values left out, the entries of a map in the order of their keys. So equal messages have equal bytes.
"""

from __future__ import annotations

from licorne.si.wire_plan import WireError
from licorne.si.wire_read import decode
from licorne.si.wire_write import encode

__all__ = ["WireError", "decode", "encode"]
