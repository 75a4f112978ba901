"""Writing lines of the log in a thread, so that the service never waits for the reader of the log.

A log may be a pipe that nobody reads, or a file on a full disk. Decisions go on all the same: lines wait, up to a number of
characters; further ones are dropped and counted, and the next line that is taken has one before it that says how many are
missing. Lines are written whole and in order.

The thread is a daemon: if it is stuck in a write, the process can still end.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

WAITING_CHARS = 4 << 20
"""Characters of the lines that wait, at most."""
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
        self._skipped = 0  # lines dropped and not reported yet
        self._change = threading.Condition()
        self._closed = False
        self.dropped = 0
        """Lines dropped so far."""
        threading.Thread(target=self._work, name="licorne-log", daemon=True).start()

    def write(self, line: str) -> None:
        """Queue a line, which includes its line break; drop it if the queue is full."""
        with self._change:
            if self._closed or self._chars + len(line) > WAITING_CHARS:
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
            self._change.wait_for(lambda: not self._lines, timeout_s)

    def _put(self, line: str) -> None:
        self._lines.append(line)
        self._chars += len(line)

    # -- in the thread ---------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._lines or self._closed)
                if not self._lines:
                    return
                line = self._lines[0]
            self._write(line.encode("utf-8", "replace"))
            with self._change:
                self._lines.popleft()
                self._chars -= len(line)
                self._change.notify_all()

    def _write(self, data: bytes) -> None:
        """Write all of it, or give up if writing fails and the writer is closed."""
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # another process that shares the descriptor has made it non-blocking
                waiting = select.poll()
                waiting.register(self._descriptor, select.POLLOUT)
                waiting.poll(RETRY_S * 1000)
            except OSError:  # a full disk, or a pipe without a reader
                with self._change:
                    if self._change.wait_for(lambda: self._closed, RETRY_S):
                        return
