"""Starts the process that writes the checkpoints of a run (`licorne.state.recording.checkpoints`), one at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from .folder import checkpoints_in

ENTRIES_BETWEEN: Final = 100_000
"""Entries after which a run gets a checkpoint, however few bytes they are: where little happens they are compressed to a tenth, and
take as long to repeat as others, about a second."""
TIMES_THE_LOG: Final = 3
"""The checkpoints of a run have at most so many times the bytes of the rest of it, however large the cluster is."""


def is_due(bytes_since: int, entries_since: int, bytes_between: int, last_bytes: int) -> bool:
    """Return whether it is time for a checkpoint of a run.

    Args:
        bytes_since: bytes that were written since the last one.
        entries_since: how many entries these are.
        bytes_between: after how many bytes one is written.
        last_bytes: the size of the last one.
    """
    enough = bytes_since >= bytes_between or entries_since >= ENTRIES_BETWEEN
    return enough and TIMES_THE_LOG * bytes_since >= last_bytes


class Checkpointer:
    """Starts a process that writes a checkpoint of a run, as often as `is_due` says.

    Parameters:
        bytes_between: bytes of the run between two checkpoints; 0: none are written.
    """

    def __init__(self, bytes_between: int) -> None:
        self._bytes_between = bytes_between
        self._bytes_since = self._entries_since = 0
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Begin with a new run."""
        self.end()
        self._bytes_since = self._entries_since = 0

    def written(self, run: Path, count: int, entries: int) -> None:
        """Count bytes and entries of the run, and start the process if it is time. Raises OSError if it cannot be started."""
        self._bytes_since += count
        self._entries_since += entries
        between = self._bytes_between
        if not between or not is_due(self._bytes_since, self._entries_since, between, 0):
            return
        if self._process is not None and self._process.poll() is None:
            return
        if not is_due(self._bytes_since, self._entries_since, between, self.last_bytes(run)):
            return
        self._bytes_since = self._entries_since = 0
        program = [sys.executable, "-m", "licorne.state.recording", str(run)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(program, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603  a program of its own

    @staticmethod
    def last_bytes(run: Path) -> int:
        """Return the size of the newest checkpoint of a run; 0 if there is none."""
        return sum(path.stat().st_size for path in checkpoints_in(run)[-1:])

    def end(self) -> None:
        """End the process, if it works; what it has begun to write is not complete, and so does not count."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
