"""Starts the process that writes the checkpoints of a run (`licorne.recording.checkpoints`), one at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .checkpoints import checkpoints_in


class Checkpointer:
    """Has a checkpoint written after so many bytes of a run, or after as many as the last one has, if these are more.

    So the checkpoints of a run have at most as many bytes as the rest of it, however large the cluster is.
    """

    def __init__(self, bytes_between: int) -> None:
        self._bytes_between = bytes_between
        self._since = 0
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Begin with a new run."""
        self.end()
        self._since = 0

    def written(self, run: Path, count: int) -> None:
        """Count bytes of the run, and start the process if it is time. Raises OSError if it cannot be started."""
        self._since += count
        if not self._bytes_between or self._since < self._bytes_between:
            return
        if self._process is not None and self._process.poll() is None:
            return
        if self._since < self.last_bytes(run):
            return
        self._since = 0
        program = [sys.executable, "-m", "licorne.recording", str(run)]
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


__all__ = ["Checkpointer"]
