"""Lines of a log about what may fail thousands of times a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

EVERY_S: Final = 10.0


class Sparse:
    """Writes one line about each event within `EVERY_S`, with the number of equal events since the last line as `times`.

    Parameters:
        write: a method of a log.
        clock: returns a time in nanoseconds that never goes back.
    """

    def __init__(self, write: Callable[..., Any], clock: Callable[[], int]) -> None:
        self._write = write
        self._clock = clock
        self._lines: dict[str, tuple[int, int]] = {}
        """By event: when it may be written again, and how often it has come to be since the last line."""

    def __call__(self, event: str, **fields: object) -> None:
        """Note an event, of which there must be few different ones; the fields are those of the one that is written."""
        now = self._clock()
        due, times = self._lines.get(event, (now, 0))
        if now < due:
            self._lines[event] = due, times + 1
            return
        self._write(event, **fields, **({"times": times + 1} if times else {}))
        self._lines[event] = now + int(EVERY_S * 1e9), 0
