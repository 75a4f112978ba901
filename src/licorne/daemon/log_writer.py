"""Lines of the log on their way out: a thread writes them, so that nobody waits for whoever reads the log.

A log may be a pipe that nobody reads, or a file on a disk that is full. Then decisions go on: lines wait, up to a number
of characters; beyond that, and where writing fails, they are dropped and counted. As soon as a line can be written again,
one more says how many are missing. What is written leaves whole and in order.

The thread is a daemon: one that is stuck in a write does not keep the process from ending.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

WAITING_CHARS = 4 << 20
"""Characters of lines that may wait."""
RETRY_S = 1.0
"""How long the thread rests after a write that failed."""


class LogWriter:
    """A stream, as far as a log needs one, that never makes its writer wait.

    Parameters:
        descriptor: where the lines go.
        missing: makes the line that tells how many lines were dropped.
    """

    def __init__(self, descriptor: int, missing: Callable[[int], str]) -> None:
        self._descriptor = descriptor
        self._missing = missing
        self._lines: deque[str] = deque()
        self._chars = 0
        self._skipped = 0  # dropped behind what waits, and no line has said so
        self._failed = 0  # dropped before what waits, and no line has said so
        self._rest = b""  # of a line that was cut short
        self._change = threading.Condition()
        self._closed = False
        self._writing = False
        self.dropped = 0
        """Lines that were not written."""
        threading.Thread(target=self._work, name="licorne-log", daemon=True).start()

    def write(self, line: str) -> None:
        """Write a line, with its end; soon, or never if too much waits."""
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
        """What waits is on its way; nobody waits for it here."""

    def close(self, timeout_s: float) -> None:
        """Wait until all is written, but not longer than this; what comes later is dropped."""
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
            if self._failed and self._write(self._missing(self._failed)):
                self._failed = 0
            if self._failed or not self._write(line):
                self._failed += 1
                with self._change:
                    self.dropped += 1
                    self._change.wait_for(lambda: self._closed, RETRY_S)

    def _write(self, line: str) -> bool:
        """Write it whole, behind what is left of one that was cut short; False if that fails."""
        behind = line.encode("utf-8", "replace")
        data = self._rest + behind
        try:
            while data:
                data = data[self._some(data) :]
        except OSError:
            is_cut = len(data) < len(behind)  # some of it has left
            self._rest = data if is_cut else data[: max(0, len(data) - len(behind))]
            return is_cut
        self._rest = b""
        return True

    def _some(self, data: bytes) -> int:
        """Write what can be written; how many bytes."""
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # another process has made it so
            waiting = select.poll()
            waiting.register(self._descriptor, select.POLLOUT)
            waiting.poll(RETRY_S * 1000)
            return 0


__all__ = ["RETRY_S", "WAITING_CHARS", "LogWriter"]
