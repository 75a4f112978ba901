"""The thread that writes a recording, so that the scheduler waits neither for the disk nor for compression.

Entries come through a queue. The thread digests the decisions, collects entries into blocks, and writes a block when it is
full or `FLUSH_S` old. An error of the file system ends the run: it is told once, and the scheduler goes on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from .blocks import BLOCK_BYTES, BlockWriter
from .bounds import Bounds
from .checkpointer import TIMES_THE_LOG, Checkpointer
from .digest import Digest
from .entries import CHECK, GAP, TIME, Entry
from .folder import new_run
from .noting import DELIVERED, START
from .retention import make_room

POLL_S: Final = 0.1
"""How often the thread looks into the queue. The scheduler wakes nobody, which would cost more than to write an entry."""
FLUSH_S: Final = 1.0
"""After how many seconds a block is written even if it is not full; a crash of the process loses no more than that."""
SEGMENT_BYTES: Final = 64 << 20
"""The size of a segment in bytes from which on the next one is begun; less in a small recording (`SEGMENTS_LEAST`)."""
SEGMENTS_LEAST: Final = 16
"""Into how many segments a recording that is full is divided at least: its beginning is removed in these portions."""


class Counts(msgspec.Struct):
    """What a recorder has written since its start: bytes, entries, allocations, runs, and runs that ended as inputs were lost."""

    bytes: int = 0
    entries: int = 0
    allocations: int = 0
    runs: int = 0
    gaps: int = 0


class Writer:
    """The thread that takes entries from `queue`, which holds pairs of a size in bytes and an entry, and writes them."""

    def __init__(self, folder: Path, bounds: Bounds, trouble: Callable[[str], object]) -> None:
        self.queue: deque[tuple[int, Entry]] = deque()
        self.taken_bytes = 0
        """The sizes of all entries that have left the queue."""
        self.failed = False
        """The current run has ended because it could not be written."""
        self.counts = Counts()
        self.drained_s = time.monotonic()
        """When the queue was last empty."""
        self._folder = folder
        self._bounds = bounds
        self._trouble = trouble
        self._file: BlockWriter | None = None
        self._run = folder
        self._segments = 0
        self._block: list[Entry] = []
        self._block_bytes = 0
        self._flushed_s = time.monotonic()
        self._checked_s = 0.0
        self._digest = Digest()
        self._segment_bytes = min(SEGMENT_BYTES, bounds.bytes_max // SEGMENTS_LEAST)
        self._checkpointer = Checkpointer(min(bounds.checkpoint_bytes, self._segment_bytes))
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="licorne-record", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Write what is queued, and end; returns whether that was done in time."""
        self._closing.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # -- in the thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        closing = False
        while not closing:
            closing = self._closing.wait(POLL_S)
            try:
                self._drain()
                self.drained_s = time.monotonic()
                if closing:
                    self._add(0, self._check())
                if closing or time.monotonic() - self._flushed_s >= FLUSH_S:
                    self._flush()
                if closing:
                    self._close_file()
                    self._checkpointer.end()
            except OSError as error:
                self._fail(f"cannot be written: {error.strerror}")
            except Exception as error:  # noqa: BLE001  the thread must go on, or the queue would stay full
                self._fail(f"cannot be written: {error!r}")

    def _drain(self) -> None:
        while self.queue:
            size, entry = self.queue.popleft()
            self.taken_bytes += size
            kind = entry[0]
            if kind == START:
                self._begin()
            elif self._file is None:
                continue
            elif kind == DELIVERED:
                _, rm_id, lines, count, allocations = entry
                self._digest.add_lines(rm_id, lines, count, allocations)
                self.counts.allocations += allocations
            elif kind == GAP:
                self._end(entry[1])
            else:
                if kind == TIME and time.monotonic() - self._checked_s >= FLUSH_S:
                    self._add(0, self._check())
                self._add(size, entry)

    def _check(self) -> Entry:
        self._checked_s = time.monotonic()
        return (CHECK, self._digest.count, self._digest.hex())

    def _add(self, size: int, entry: Entry) -> None:
        self._block.append(entry)
        self._block_bytes += size
        if self._block_bytes >= BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._flushed_s = time.monotonic()
        block, self._block, self._block_bytes = self._block, [], 0
        if not block or self._file is None:
            return
        before = self._file.bytes
        self._file.write(block)
        self.counts.bytes += self._file.bytes - before
        self.counts.entries += len(block)
        self._checkpointer.written(self._run, self._file.bytes - before, len(block))
        if self._file.bytes >= self._segment_bytes:
            self._next_segment()

    def _begin(self) -> None:
        self._add(0, self._check())
        self._flush()
        self._close_file()
        self.failed = False
        self._digest = Digest()
        self._checkpointer.begin()
        self._run = new_run(self._folder)
        self._segments = 0
        self.counts.runs += 1
        self._next_segment()

    def _next_segment(self) -> None:
        self._close_file()
        bytes_max = self._bounds.bytes_max
        room = (1 + TIMES_THE_LOG) * self._segment_bytes + self._checkpointer.last_bytes(self._run)
        if make_room(self._folder, self._run, self._bounds, room) + room > bytes_max:
            self._fail(
                f"is full: {bytes_max} bytes are too few for this run, of which no checkpoint replaces the beginning"
            )
            return
        self._segments += 1
        self._file = BlockWriter(self._run / f"segment-{self._segments:06d}")

    def _end(self, reason: str) -> None:
        """End the run as further inputs are lost."""
        self._add(0, (GAP, reason))
        self._flush()
        self._close_file()
        self._tell(reason)

    def _fail(self, reason: str) -> None:
        self._block, self._block_bytes = [], 0
        file, self._file = self._file, None
        if not self.failed:
            self.failed = True
            self._tell(reason)
        if file is not None:
            try:
                file.close()
            except OSError:
                return  # the first error has been told

    def _tell(self, reason: str) -> None:
        self.counts.gaps += 1
        self._trouble(reason)

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
