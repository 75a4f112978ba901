"""The numbers of running applications and of containers, minute by minute, for the charts of the web page.

One record is made each minute, the first one minute after the start, and the last 1,440 are kept (docs/spec/metrics.md,
section 7).
"""

from __future__ import annotations

from collections import deque

import msgspec

INTERVAL_NS = 60 * 1_000_000_000
KEPT = 1440


class Minute(msgspec.Struct, frozen=True):
    """One record; the time is in nanoseconds."""

    timestamp: int
    applications: int
    containers: int


class History:
    """The records, oldest first."""

    def __init__(self, now_ns: int) -> None:
        self.minutes: deque[Minute] = deque(maxlen=KEPT)
        self.due_ns = now_ns + INTERVAL_NS

    def is_due(self, now_ns: int) -> bool:
        """Whether a record is due."""
        return now_ns >= self.due_ns

    def note(self, now_ns: int, applications: int, containers: int) -> None:
        """Append a record, which must be due; minutes that were missed get none."""
        self.minutes.append(Minute(now_ns, applications, containers))
        self.due_ns += ((now_ns - self.due_ns) // INTERVAL_NS + 1) * INTERVAL_NS
