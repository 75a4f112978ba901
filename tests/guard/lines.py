"""Counts what plain Python does of the scheduler's text: functions called and lines run, of `licorne.core` and `licorne.si`.

Both are the same on every machine, and from run to run. They differ between minor versions of Python (3.12 runs
comprehensions inline, so they are no calls), and see nothing of what happens within one line: a sort is one line,
however long the list. The time of the compiled modules is not this count; but code that looks at more nodes or
more asks than before runs more lines, and is slower when compiled as well. So does code that does the same by one more
function, which is why these counts are advice and fail no test.

A trace function in Python makes it six times as slow. That is what it costs to see loops, in which the work is; calls
alone would be cheaper, and would not see a loop that grew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import licorne

ROOMS = tuple(str(Path(licorne.__file__).parent / room) for room in ("core", "si"))


class Lines:
    """Counts while it is entered."""

    def __init__(self) -> None:
        calls = 0
        lines = 0
        counted: dict[str, bool] = {}  # by file; to ask for a code object would take the hash of all that it holds

        # Closures, because half of the time goes into these lines.
        def line(frame: FrameType, event: str, argument: Any) -> None:
            """None keeps the trace function of the frame."""
            nonlocal lines
            if event == "line":
                lines += 1

        def call(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal calls
            file = frame.f_code.co_filename
            if file not in counted:
                counted[file] = file.startswith(ROOMS)
            if not counted[file]:
                return None
            calls += 1
            return line

        self._trace = call
        self._read: Callable[[], dict[str, int]] = lambda: {"calls of functions": calls, "lines run": lines}

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def read(self) -> dict[str, int]:
        """The counts until now."""
        return self._read()
