"""UUIDs of allocations, made from the stream of decisions: the same inputs give the same UUIDs on every machine.

They are of version 8 (RFC 9562): 122 bits that are ours to choose. A digest of the names of the resource manager and the
partition gives two numbers; the number of the decision is mixed into them as in SplitMix64 (Steele, Lea and Flood 2014),
which takes a tenth of the time of a digest for each.
"""

from __future__ import annotations

from hashlib import sha256

import cython

if not cython.compiled:
    from licorne._plain import cython  # type: ignore[no-redef]

BITS_64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
STEP = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
BITS_48 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFF)
FACTOR_1 = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
FACTOR_2 = cython.declare(cython.ulonglong, 0x94D049BB133111EB)


@cython.cfunc
@cython.exceptval(check=False)
@cython.overflowcheck(False)  # the bits that are too many are meant to be lost
def mixed(x: cython.ulonglong) -> cython.ulonglong:
    """Another number of 64 bits for each, in which every bit depends on every bit of this one."""
    x = ((x ^ (x >> 30)) * FACTOR_1) & BITS_64
    x = ((x ^ (x >> 27)) * FACTOR_2) & BITS_64
    return x ^ (x >> 31)


@cython.cclass
class Uuids:
    """The UUIDs of one partition of one resource manager, the owner; `count` were made."""

    first: cython.ulonglong
    second: cython.ulonglong
    count: cython.ulonglong

    def __init__(self, owner: str, partition: str) -> None:
        digest = sha256(f"{owner}\0{partition}".encode()).digest()
        self.first = int.from_bytes(digest[:8], "big")
        self.second = int.from_bytes(digest[8:16], "big")
        self.count = 0

    @cython.ccall
    @cython.overflowcheck(False)
    def next(self) -> str:
        """The UUID of the next allocation."""
        self.count += 1
        high: cython.ulonglong = mixed((self.first + self.count * STEP) & BITS_64)
        low: cython.ulonglong = mixed(high ^ self.second)
        a: cython.longlong = high >> 32
        b: cython.longlong = high >> 16 & 0xFFFF
        c: cython.longlong = high & 0xFFF
        d: cython.longlong = low >> 48 & 0x3FFF | 0x8000
        e: cython.longlong = low & BITS_48
        return f"{a:08x}-{b:04x}-8{c:03x}-{d:04x}-{e:012x}"
