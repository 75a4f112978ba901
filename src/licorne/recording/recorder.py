"""What notes the inputs of a scheduler for a recording: `SchedulerAPI.input_log` of a host that records."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from .bounds import Bounds
from .folder import claim
from .noting import Noting
from .writer import Counts, Writer


class Recorder(Noting):
    """Records a scheduler into a folder; see `licorne.core.input_log.InputLog` for the calls.

    Parameters:
        folder: a folder that is empty or a recording; it is made if it is not there.
        bounds: how large the recording and its queue may be.
        trouble: told the reason, from any thread, when a run has ended because inputs were lost.

    Raises:
        RecordingError: the folder cannot be used.
    """

    def __init__(
        self, folder: Path, bounds: Bounds | None = None, trouble: Callable[[str], object] = lambda _: None
    ) -> None:
        bounds = bounds or Bounds()
        self._lock = claim(folder)
        self._writer = Writer(folder, bounds, trouble)
        super().__init__(
            self._writer,
            bounds.queue_bytes,
            "the disk is too slow: inputs came faster than they could be written",
        )

    @property
    def counts(self) -> Counts:
        """What has been written so far."""
        return self._writer.counts

    def __enter__(self) -> Self:
        """Return itself; the end of the `with` block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the recording."""
        self.close()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write the rest and end the recording; returns whether that was done in time."""
        done = self._writer.close(timeout_s)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        return done


__all__ = ["Recorder"]
