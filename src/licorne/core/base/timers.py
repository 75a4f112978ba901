"""Deadlines: what happens because time passes. A deadline is an event like any other.

Source: docs/spec/design.md, "Speed is designed in", point 1.

The core reads no clock: `due` is called with the time that an input carries. A deadline that is cancelled stays in the
heap, marked, and cancelled ones are removed together once they are the majority: so cancelling costs no search, and the
size of the heap stays bounded by the number of live deadlines.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

Timer = list[Any]
"""[due in ns, number, kind, subject]; the subject is None once the deadline is cancelled or has passed."""


class Timers:
    """A heap of deadlines; equal ones come in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._count: int = 0
        self._cancelled: int = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def add(self, due_ns: int, kind: str, subject: object) -> Timer:
        """Set a deadline, and return the timer by which it can be cancelled."""
        self._count += 1
        timer: Timer = [due_ns, self._count, kind, subject]
        heappush(self._heap, timer)
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Cancel a deadline; nothing happens for None, or if it has passed."""
        if timer is None or timer[3] is None:
            return
        timer[3] = None
        self._cancelled += 1
        if self._cancelled > 64 and self._cancelled * 2 > len(self._heap):
            self._heap = [t for t in self._heap if t[3] is not None]
            heapify(self._heap)
            self._cancelled = 0

    def next_ns(self) -> int | None:
        """Return when the next deadline is due, None if there is none."""
        while self._heap and self._heap[0][3] is None:
            heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def due(self, now_ns: int) -> tuple[str, object] | None:
        """Remove and return the next deadline that is due by now: (kind, subject); None if there is none."""
        first = self.next_ns()
        if first is None or first > now_ns:
            return None
        timer = heappop(self._heap)
        # Marked as a cancelled one, so that cancelling it later does nothing.
        subject = timer[3]
        timer[3] = None
        return timer[2], subject
