"""UUIDs of allocations, made from the stream of decisions: the same inputs give the same UUIDs on every machine."""

from __future__ import annotations

from hashlib import sha256


def decision_uuid(owner: str, partition: str, number: int) -> str:
    """The UUID (version 8, RFC 9562) of the allocation with this number in a partition of a resource manager."""
    digest = bytearray(sha256(f"{owner}\0{partition}\0{number}".encode()).digest()[:16])
    digest[6] = 0x80 | digest[6] & 0x0F
    digest[8] = 0x80 | digest[8] & 0x3F
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
