"""Files of compressed blocks: entries are appended to a file, and what a crash has torn off its end is noticed.

A file begins with a line that names the format. Each block has a header of three numbers (4 bytes each, little-endian):
the length of the compressed bytes, their CRC-32, and the length when they are decompressed. The first block that is not
right ends the file: it and what follows do not count, and everything before it does. If the file ends within this block, it is
torn, as a crash leaves it; otherwise it is damaged (`Rest`).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, NamedTuple

import msgspec

from licorne._bounded import CutOffError, few_containers, unpacked
from licorne._files import opened
from licorne.core.base.states import TIME_MAX_NS

from .entries import TIME

MAGIC: Final = b"licorne recording, format 1\n"
HEADER: Final = struct.Struct("<III")
BLOCK_BYTES: Final = 1 << 20
"""Bytes of entries after which a block is written, before they are compressed."""
BLOCK_BYTES_MAX: Final = 128 << 20
"""Bytes of the largest block that is read; a header that says more is damaged. A recorder keeps 64 MiB at most (`Bounds.queue_bytes`)."""
LEVEL: Final = 1
"""The level of zlib's compression. Level 6 takes three times as long, for a tenth fewer bytes."""

_encoder = msgspec.msgpack.Encoder()
_Entry = Annotated[list[Any], msgspec.Meta(min_length=1, max_length=16)]
_decoder = msgspec.msgpack.Decoder(Annotated[list[_Entry], msgspec.Meta(max_length=100_000)])


class Rest(NamedTuple):
    """The end of a file that does not count: its bytes, where it begins, and what is damaged there; "": it is only torn."""

    bytes: int = 0
    at: int = 0
    damage: str = ""


class BlockWriter:
    """Writes a file of blocks, which only its owner may read; raises OSError as the file system does."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file: BinaryIO = os.fdopen(descriptor, "wb", buffering=0)
        self.bytes = 0
        self._put(MAGIC)

    def write(self, entries: list[tuple[object, ...]]) -> None:
        """Append a block of entries; compressing does not hold the interpreter's lock."""
        raw = _encoder.encode(entries)
        data = zlib.compress(raw, LEVEL)
        self._put(HEADER.pack(len(data), zlib.crc32(data), len(raw)) + data)

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]
        self.bytes += len(data)

    def close(self) -> None:
        """Close the file, when its bytes are on the disk."""
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()


def block_bytes(path: Path) -> list[int]:
    """Return the bytes of each block of a file, its header among them, without reading the entries."""
    found = []
    with opened(path) as file:
        file.seek(len(MAGIC))
        while len(header := file.read(HEADER.size)) == HEADER.size and (length := HEADER.unpack(header)[0]):
            found.append(HEADER.size + length)
            file.seek(length, os.SEEK_CUR)
    return found


def read_blocks(path: Path, skipped: int = 0) -> Generator[list[list[Any]], None, Rest]:
    """Yield the entries of each complete block, up to the first that is not; the first `skipped` blocks are not read.

    Returns, as the value of the generator, what does not count of the file.
    """
    with opened(path) as file:
        good, damage = 0, ""
        if (magic := file.read(len(MAGIC))) != MAGIC:
            torn = MAGIC.startswith(magic.rstrip(b"\0")) and _ends_in_zeros(file)
            damage = "" if torn else "it does not begin as a segment"
        while not damage and magic == MAGIC:
            good = file.tell()
            if skipped and len(header := file.read(HEADER.size)) == HEADER.size:
                skipped -= 1
                file.seek(HEADER.unpack(header)[0], os.SEEK_CUR)
                continue
            try:
                block = _next_block(file)
            except (ValueError, RecursionError, msgspec.DecodeError) as error:
                damage = str(error)
                break
            if block is None:
                break
            yield block
        bytes_now = os.fstat(file.fileno()).st_size  # the file may have grown since it was opened
        return Rest(max(bytes_now - good, 0), good, damage)


def _next_block(file: BinaryIO) -> list[list[Any]] | None:
    """Read a block; None where the file ends before it does.

    Raises:
        ValueError, RecursionError, msgspec.DecodeError: it is damaged.
    """
    header = file.read(HEADER.size)
    if (len(header) < HEADER.size or not header.strip(b"\0")) and _ends_in_zeros(file):
        return None
    length, checksum, raw_length = HEADER.unpack(header)
    if not length or max(length, raw_length) > BLOCK_BYTES_MAX:
        raise ValueError("a block has an impossible length")
    data = file.read(length)
    whole = len(data) == length
    if not whole or zlib.crc32(data) != checksum:
        if _ends_in_zeros(file, data[-16:]):
            return None
        if whole:
            raise ValueError("the checksum of a block is wrong")
    try:
        raw = unpacked(data, raw_length)
    except CutOffError:
        return None
    if not whole:
        raise ValueError("a block has an impossible length")
    block: list[list[Any]] = _decoder.decode(few_containers(raw))
    for word, *values in block:
        if type(word) is not str or (
            word == TIME and not (list(map(type, values)) == [int] and 0 <= values[0] <= TIME_MAX_NS)
        ):
            raise ValueError("an entry is malformed")
    return block


def _ends_in_zeros(file: BinaryIO, before: bytes = b"") -> bool:
    """Return whether only zeros follow, with `before` sixteen, as some file systems leave them at the end after a power failure."""
    rest = file.read(BLOCK_BYTES_MAX)
    return len(rest) < BLOCK_BYTES_MAX and not (rest.strip(b"\0") or (before + rest)[-16:].strip(b"\0"))
