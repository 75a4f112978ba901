"""What notes the inputs of a scheduler for a recording: `SchedulerAPI.input_log` of a host that records."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, Self, get_args

import msgspec

from .anonymous import Names
from .bounds import Bounds
from .folder import claim
from .noting import Noting
from .writer import Counts, Writer

State = Literal["waiting", "on", "ended"]
"""Of a recording: no resource manager has registered yet; inputs are recorded; they are not, since some of them were lost."""
STATES: Final[tuple[State, ...]] = get_args(State)


class Figures(msgspec.Struct, frozen=True):
    """How a recording is going.

    `queue_bytes`: about how much waits to be written, `lag_s`: for how many seconds something has waited, at most.
    """

    state: State
    counts: Counts
    queue_bytes: int
    lag_s: float


class Recorder(Noting):
    """Records a scheduler into a folder; see `licorne.core.input_log.InputLog` for the calls.

    Parameters:
        folder: a folder that is empty or a recording; it is made if it is not there.
        bounds: how large the recording and its queue may be.
        trouble: told the reason, from any thread, when a run has ended because inputs were lost.
        names: replaces names of users and groups in everything that is written; None: they are written.

    Raises:
        RecordingError: the folder cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        bounds: Bounds | None = None,
        trouble: Callable[[str], object] = lambda _: None,
        names: Names | None = None,
    ) -> None:
        bounds = bounds or Bounds()
        self.folder = folder
        self._lock = claim(folder)
        self._writer = Writer(folder, bounds, trouble)
        super().__init__(
            self._writer,
            bounds.queue_bytes,
            "the disk is too slow: inputs came faster than they could be written",
            names,
        )

    @property
    def counts(self) -> Counts:
        """What has been written so far."""
        return self._writer.counts

    def figures(self) -> Figures:
        """Return how it is going."""
        writer = self._writer
        on = self._running and not writer.failed
        return Figures(
            state="on" if on else "ended" if writer.counts.gaps else "waiting",
            counts=writer.counts,
            queue_bytes=max(self._put_bytes - writer.taken_bytes, 0) if self._running else 0,
            lag_s=max(time.monotonic() - writer.drained_s, 0.0) if writer.queue else 0.0,
        )

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
