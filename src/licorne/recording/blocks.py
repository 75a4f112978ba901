"""Files of compressed blocks: entries are appended to a file, and what a crash has torn off its end is noticed.

A file begins with a line that names the format. Each block has a header of three numbers (4 bytes each, little-endian):
the length of the compressed bytes, their CRC-32, and the length when they are decompressed. A block that is incomplete, or
whose checksum is wrong, ends the file: it and what follows do not count, and everything before it does.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

MAGIC: Final = b"licorne recording, format 1\n"
HEADER: Final = struct.Struct("<III")
BLOCK_BYTES: Final = 1 << 20
"""Bytes of entries after which a block is written, before they are compressed."""
BLOCK_BYTES_MAX: Final = 256 << 20
"""Bytes of the largest block that is read; a header that says more is damaged."""
LEVEL: Final = 1
"""The level of zlib's compression. Level 6 takes three times as long, for a tenth fewer bytes."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[list[Any]])


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
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        while len(header := file.read(HEADER.size)) == HEADER.size:
            length = HEADER.unpack(header)[0]
            found.append(HEADER.size + length)
            file.seek(length, os.SEEK_CUR)
    return found


def read_blocks(path: Path, skipped: int = 0) -> Generator[list[list[Any]], None, int]:
    """Yield the entries of each complete block, up to the first that is not; the first `skipped` blocks are not read.

    Returns, as the value of the generator, how many bytes at the end of the file do not count.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return os.fstat(file.fileno()).st_size
        while True:
            good = file.tell()
            header = file.read(HEADER.size)
            if len(header) < HEADER.size:
                break
            length, checksum, raw_length = HEADER.unpack(header)
            # No block is empty: zeros are what some file systems leave at the end of a file after a power failure.
            if not length or max(length, raw_length) > BLOCK_BYTES_MAX:
                break
            if skipped:
                skipped -= 1
                file.seek(length, os.SEEK_CUR)
                continue
            data = file.read(length)
            if len(data) < length or zlib.crc32(data) != checksum:
                break
            yield _decoder.decode(zlib.decompress(data, bufsize=raw_length))
        return os.fstat(file.fileno()).st_size - good  # asked for now: the file may have grown since it was opened
