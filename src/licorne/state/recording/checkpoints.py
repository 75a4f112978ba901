"""Checkpoints in a recording: the state at some moments of a run, so that a later moment need not be repeated from its start.

The scheduler that is recorded is not stopped for them. From time to time another process (`python -m licorne.state.recording RUN`)
repeats what was recorded since the newest checkpoint, and writes the next one: it needs nothing but the files, and proves
on the way that the decisions are those of the recording. A checkpoint that is damaged, or of another version of licorne, is passed over: the one before
it serves, or the beginning.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from pathlib import Path
from typing import Final

import msgspec

from licorne._bounded import CHECKPOINT_BYTES, UNDECODABLE, few_containers, unpacked, unpacked_head
from licorne._files import file_bytes, opened

from .blocks import HEADER
from .folder import UNREADABLE, RecordingError, write_in_one_step

MAGIC: Final = b"licorne checkpoint in a recording, format 1\n"
LEVEL: Final = 1
HEAD_BYTES: Final = 512
"""Bytes within which the time of a checkpoint stands, compressed or not."""


class Place(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A position in the log of a run, before an entry: the segment, and how many of its blocks, then of its entries, to skip."""

    segment: int = 1
    blocks: int = 0
    entries: int = 0


class Saved(msgspec.Struct, frozen=True, array_like=True):
    """The state of a repetition before the entry at `place`, at the time of the last call (ns).

    `requests`: the bytes of the last request of each resource manager, of which parts may follow. `position`: how many
    entries of the scheduler come before it in the run (`Replay.position`). `settings`: of each resource manager, as they
    were recorded. The rest is as in `Replay`.
    """

    place: Place
    now_ns: int
    calls: int
    allocations: int
    messages: int
    left_ns: int | None
    requests: dict[str, bytes]
    state: bytes
    position: int
    settings: dict[str, dict[str, str]]


_head = msgspec.msgpack.Decoder(tuple[Place, int])
_TWO: Final = b"\x92"
"""How an array of two begins in MessagePack."""


def write(run: Path, saved: Saved) -> Path:
    """Write a checkpoint of a run in one step; returns its file. Raises OSError as the file system does."""
    raw = msgspec.msgpack.encode(saved)
    data = zlib.compress(raw, LEVEL)
    place = saved.place
    path = run / f"checkpoint-{place.segment:06d}-{place.blocks:06d}-{place.entries:06d}"
    for unfinished in run.glob(".checkpoint-*"):  # of a process that was killed
        unfinished.unlink(missing_ok=True)
    write_in_one_step(path, MAGIC + HEADER.pack(len(data), zlib.crc32(data), len(raw)) + data)
    _sync_folder(run)  # what came before the checkpoint may be removed now
    return path


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> Saved:
    """Read a checkpoint.

    Raises:
        RecordingError: it is damaged.
    """
    try:
        data = file_bytes(path, CHECKPOINT_BYTES)
        if not data.startswith(MAGIC):
            raise RecordingError(f"{path}: no checkpoint of a recording")
        length, checksum, raw_length = HEADER.unpack_from(data, len(MAGIC))
        packed = data[len(MAGIC) + HEADER.size :]
        if len(packed) != length or zlib.crc32(packed) != checksum or raw_length > CHECKPOINT_BYTES:
            raise RecordingError(f"{path}: is damaged")
        return msgspec.msgpack.decode(few_containers(unpacked(packed, raw_length)), type=Saved)
    except (OSError, struct.error, *UNREADABLE) as error:
        raise RecordingError(f"{path}: is damaged: {error}") from None


def time_of(path: Path) -> int:
    """Return the time of a checkpoint (ns), reading only its beginning, a hundredth of the work of `read`; 0 if that is damaged."""
    with contextlib.suppress(OSError, ValueError), opened(path) as file:
        file.seek(len(MAGIC) + HEADER.size)
        head = unpacked_head(file.read(HEAD_BYTES), HEAD_BYTES)
        for end in range(len(head)):  # where the second value of `Saved` ends depends on its size
            with contextlib.suppress(*UNDECODABLE):
                return _head.decode(_TWO + head[1:end])[1]
    return 0


def place_of(path: Path) -> Place:
    """Return the place of a checkpoint in its run."""
    return Place(*map(int, path.name.split("-")[1:]))
