"""Bounds on data that others wrote, before anything is made of them: compressed data, streams, lines and JSON.

A kilobyte of zlib or gzip may hold a megabyte, two bytes of JSON become an object of 64, and a server may answer for ever. So
whatever is read from a file, a server or standard input passes these functions, with a bound that docs/reference/limits.md has.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, AnyStr, Final, Protocol

import msgspec

DOCUMENT_BYTES: Final = 16 << 20
"""Bytes of a text that people write, at most, such as a manifest with configurations, each of which has a bound of its own."""
DUMP_BYTES: Final = 512 << 20
"""Bytes of a state dump, or of a checkpoint, at most: a dump of 150,000 allocations has about 150 MB."""
LINE_BYTES: Final = 32 << 20
"""Bytes of a line of a workload, at most: one may hold a configuration, whose characters JSON may write with six bytes each."""
CONTAINERS_MAX: Final = 8_000_000
"""Objects and lists in JSON, at most; those 150 MB have 2,200,000."""
COMMAS_MAX: Final = 32_000_000


class TooLargeError(ValueError):
    """The data are longer, or hold more, than what is wanted here can; the text says what the bound is."""


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Lines(Protocol[AnyStr]):
    def readline(self, size: int, /) -> AnyStr: ...


def mib(count: int) -> str:
    """Return a number of bytes as a text."""
    return f"{count >> 20:,} MiB" if count >> 20 else f"{count:,} bytes"


def unpacked(data: bytes, bytes_max: int, *, gzip: bool = False) -> bytes:
    """Return data that are compressed by zlib, or with gzip, as they were before.

    Raises:
        TooLargeError: they are more than `bytes_max`.
        ValueError: they are damaged, or cut off.
    """
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else zlib.MAX_WBITS)
    try:
        found = unpacking.decompress(data, bytes_max + 1)
    except zlib.error as error:
        raise ValueError(f"is compressed and cannot be unpacked: {error}") from None
    if len(found) > bytes_max:
        raise TooLargeError(f"has more than {mib(bytes_max)} once it is unpacked")
    if not unpacking.eof:
        raise ValueError("is compressed and cut off")
    return found


def read_all(stream: _Stream, bytes_max: int) -> bytes:
    """Return what a stream has up to its end. Raises TooLargeError: it has more than `bytes_max`."""
    found = stream.read(bytes_max + 1)
    if len(found) > bytes_max:
        raise TooLargeError(f"has more than {mib(bytes_max)}")
    return found


def lines(stream: _Lines[AnyStr], line_max: int) -> Iterator[AnyStr]:
    """Yield the lines of a stream; one that is longer than `line_max`, which the caller refuses, comes in pieces that are longer too."""
    while line := stream.readline(line_max + 1):
        yield line


def json_value(data: bytes) -> Any:  # noqa: ANN401  any value of JSON
    """Return the value that JSON holds, which is counted before it is made.

    Raises:
        TooLargeError: it has more values than anything that is wanted here.
        msgspec.DecodeError, RecursionError: it is no JSON, or nested too deep.
    """
    # Signs within texts are counted too, so these are upper bounds.
    if data.count(b"{") + data.count(b"[") > CONTAINERS_MAX or data.count(b",") > COMMAS_MAX:
        raise TooLargeError(f"has more than {CONTAINERS_MAX:,} objects and lists, or {COMMAS_MAX:,} values")
    return msgspec.json.decode(data)


__all__ = [
    "DOCUMENT_BYTES",
    "DUMP_BYTES",
    "LINE_BYTES",
    "TooLargeError",
    "json_value",
    "lines",
    "mib",
    "read_all",
    "unpacked",
]
