"""Writing lines of the log in a thread, so that the service never waits for the reader of the log.

A log may be a pipe that nobody reads, or a file on a full disk. Decisions go on all the same: lines are queued, up to a
number of characters; beyond that, or if writing fails, they are dropped and counted. When a line can be written again,
another line before it says how many are missing. Lines are written whole and in order.

The thread is a daemon: if it is stuck in a write, the process can still end.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

WAITING_CHARS = 4 << 20
"""Characters of queued lines, at most."""
RETRY_S = 1.0
"""How long the thread waits after a write that failed."""


class LogWriter:
    """A stream for a log, whose `write` never blocks.

    Parameters:
        descriptor: the file descriptor to which lines are written.
        missing: makes the line that says how many lines were dropped.
    """

    def __init__(self, descriptor: int, missing: Callable[[int], str]) -> None:
        self._descriptor = descriptor
        self._missing = missing
        self._lines: deque[str] = deque()
        self._chars = 0
        self._skipped = 0  # lines dropped after the queued ones, and not reported yet
        self._failed = 0  # lines dropped before the queued ones, and not reported yet
        self._rest = b""  # the remaining bytes of a line that was written in part
        self._change = threading.Condition()
        self._closed = False
        self._writing = False
        self.dropped = 0
        """Lines dropped so far."""
        threading.Thread(target=self._work, name="licorne-log", daemon=True).start()

    def write(self, line: str) -> None:
        """Queue a line, which includes its line break; drop it if the queue is full."""
        with self._change:
            if self._chars + len(line) > WAITING_CHARS:
                self.dropped += 1
                self._skipped += 1
                return
            if self._skipped:
                self._put(self._missing(self._skipped))
                self._skipped = 0
            self._put(line)
            self._change.notify_all()

    def flush(self) -> None:
        """Do nothing: the thread writes the queued lines, and the caller must not wait for it."""

    def close(self, timeout_s: float) -> None:
        """Wait until all lines are written, but no longer than `timeout_s`; later lines are dropped."""
        with self._change:
            self._closed = True
            self._change.notify_all()
            self._change.wait_for(lambda: not self._lines and not self._writing, timeout_s)
            self._chars = WAITING_CHARS

    def _put(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line)

    # -- in the thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._change:
                self._writing = False
                self._change.notify_all()
                self._change.wait_for(lambda: self._lines or self._closed)
                if not self._lines:
                    return
                line = self._lines.popleft()
                self._chars -= len(line)
                self._writing = True
            # The report of missing lines goes first. If it cannot be written, the next line is lost too.
            if self._failed and self._write(self._missing(self._failed)):
                self._failed = 0
            if self._failed or not self._write(line):
                self._failed += 1
                with self._change:
                    self.dropped += 1
                    self._change.wait_for(lambda: self._closed, RETRY_S)

    def _write(self, line: str) -> bool:
        """Write a line after the rest of one that was written in part; False if the line is lost.

        If only a part of the line can be written, it counts as written, and its rest goes before the next line.
        """
        behind = line.encode("utf-8", "replace")
        data = self._rest + behind
        try:
            while data:
                data = data[self._some(data) :]
        except OSError:
            is_cut = len(data) < len(behind)  # a part of this line was written
            self._rest = data if is_cut else data[: max(0, len(data) - len(behind))]
            return is_cut
        self._rest = b""
        return True

    def _some(self, data: bytes) -> int:
        """Write as many bytes as the descriptor accepts, and return their number."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # another process that shares the descriptor has made it non-blocking
            waiting = select.poll()
            waiting.register(self._descriptor, select.POLLOUT)
            waiting.poll(RETRY_S * 1000)
            return 0


__all__ = ["RETRY_S", "WAITING_CHARS", "LogWriter"]
