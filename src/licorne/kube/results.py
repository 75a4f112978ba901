"""What becomes of requests that write: counted for metrics, told to the log where they fail, and judged for the health check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from licorne.kube.api import ApiError, UnansweredError

LINE_EVERY_S: Final = 10.0
"""The shortest time between two lines of the log about a kind of writes: thousands may fail in a second."""
FAILING_S: Final = 30.0
"""A kind of writes fails when none has succeeded between failures that are so far apart."""
OVERTAKEN: Final = (404, 409)
"""Refusals that are nobody's fault: the object is gone, or somebody else has changed it."""


class Results:
    """The results of writes by kind.

    Parameters:
        write: writes an error to the log.
        clock: returns a time in nanoseconds that never goes back.

    `counts` has the number of requests by kind and result: `done`, `overtaken`, `refused`, `unanswered`, and `left_out` for
    what was not sent, or is not sent again.
    """

    def __init__(self, write: Callable[..., Any] = lambda *_, **__: None, clock: Callable[[], int] = lambda: 0) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._write = write
        self._clock = clock
        self._lines: dict[str, tuple[int, int]] = {}
        """By kind: when the next line is due, and how many failures there were since the last one."""
        self._failed: dict[str, tuple[int, int, str]] = {}
        """By kind: when it first failed since one was done, when last, and why then."""

    def done(self, kind: str) -> None:
        """Count a request that took effect."""
        self.counts[kind, "done"] += 1
        self._failed.pop(kind, None)

    def failed(self, kind: str, object_: str, error: ApiError | UnansweredError) -> None:
        """Count a request that was refused, or not answered."""
        if isinstance(error, ApiError) and error.status in OVERTAKEN:
            self.counts[kind, "overtaken"] += 1
            return
        self.counts[kind, "refused" if isinstance(error, ApiError) else "unanswered"] += 1
        now = self._clock()
        self._failed[kind] = self._failed.get(kind, (now,))[0], now, str(error)
        due, times = self._lines.get(kind, (now, 0))
        if now >= due:
            self._write("a write failed", kind=kind, object=object_, reason=str(error), times=times + 1)
            due, times = now + int(LINE_EVERY_S * 1e9), -1
        self._lines[kind] = due, times + 1

    def failing(self) -> list[str]:
        """Return what fails all the time, with the last reason."""
        lasting = [(kind, why) for kind, (first, last, why) in self._failed.items() if last - first >= FAILING_S * 1e9]
        return [f"every {kind}: {why}" for kind, why in lasting]
