"""Bounds on data that others wrote, before anything is made of them: compressed data, streams, lines and JSON.

A kilobyte of zlib or gzip may hold a megabyte, two bytes of JSON become an object of 64, and a server may answer for ever. The
bounds stand in docs/reference/limits.md. Files are read by `licorne._files`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, AnyStr, Final

import msgspec

DOCUMENT_BYTES: Final = 16 << 20
"""Bytes of a text that people write, such as a manifest with configurations, each of which has a bound of its own."""
DUMP_BYTES: Final = 512 << 20
"""Bytes of a state dump, or of a checkpoint: a dump of 150,000 allocations has about 150 MB."""
LINE_BYTES: Final = 32 << 20
"""Bytes of a line of a workload, which may hold a configuration."""
CONTAINERS_MAX: Final = 8_000_000
"""Objects and lists in JSON; those 150 MB have 2,200,000."""
COMMAS_MAX: Final = 32_000_000
CHECKPOINT_BYTES: Final = 256 << 20
"""Bytes of a checkpoint, each of which may become an item of a list, of eight bytes."""
PACKED_CONTAINERS_MAX: Final = 2 * CONTAINERS_MAX
"""Lists and maps in MessagePack."""
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises of JSON or MessagePack that is malformed, of another type, no UTF-8, or nested too deep."""
_CONTAINERS: Final = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
"""How lists and maps begin in MessagePack. An empty one takes 64 times its bytes in memory, so they are counted first."""


class TooLargeError(ValueError):
    """Raised where data are longer, or hold more values, than a bound allows, which the text gives."""


class CutOffError(ValueError):
    """Raised where compressed data end before they are complete."""


def unpacked(data: bytes, bytes_max: int, *, gzip: bool = False) -> bytes:
    """Return data that zlib has compressed, or gzip; raises TooLargeError, CutOffError, ValueError if they are damaged."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else zlib.MAX_WBITS)
    try:
        found = unpacking.decompress(data, bytes_max + 1)
    except zlib.error as error:
        raise ValueError(f"is compressed and cannot be unpacked: {error}") from None
    if len(found) > bytes_max:
        raise TooLargeError(f"has more than {bytes_max:,} bytes once it is unpacked")
    if not unpacking.eof:
        raise CutOffError("is compressed and cut off")
    return found


def unpacked_head(data: bytes, count: int) -> bytes:
    """Return the first bytes, so many at most, of what `data` begins; raises ValueError if they are damaged."""
    try:
        return zlib.decompressobj().decompress(data, count)
    except zlib.error as error:
        raise ValueError(f"is compressed and cannot be unpacked: {error}") from None


def read_all(read: Callable[[int], bytes], bytes_max: int) -> bytes:
    """Return what a stream has up to its end. Raises TooLargeError: that is more than `bytes_max`."""
    found = read(bytes_max + 1)
    if len(found) > bytes_max:
        raise TooLargeError(f"has more than {bytes_max:,} bytes")
    return found


def lines(readline: Callable[[int], AnyStr], line_max: int) -> Iterator[AnyStr]:
    """Yield the lines of a stream.

    Of a line longer than `line_max` first `line_max + 1` characters or bytes are yielded, so that the caller can refuse it.
    """
    while line := readline(line_max + 1):
        yield line


def few_containers(data: bytes) -> bytes:
    """Return MessagePack that may be decoded; raises TooLargeError if it may have more than `PACKED_CONTAINERS_MAX` lists and maps."""
    # Bytes within texts and numbers are counted too, so this is an upper bound.
    if len(data) - len(data.translate(None, _CONTAINERS)) > PACKED_CONTAINERS_MAX:
        raise TooLargeError(f"has more than {PACKED_CONTAINERS_MAX:,} lists and maps")
    return data


def json_value(data: bytes) -> Any:  # noqa: ANN401  any value of JSON
    """Return the value that JSON holds; raises TooLargeError, RecursionError if it is nested too deep, msgspec.DecodeError."""
    # Signs within texts are counted too, so these are upper bounds.
    if data.count(b"{") + data.count(b"[") > CONTAINERS_MAX or data.count(b",") > COMMAS_MAX:
        raise TooLargeError(f"has more than {CONTAINERS_MAX:,} objects and lists, or {COMMAS_MAX:,} values")
    try:
        return msgspec.json.decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None
