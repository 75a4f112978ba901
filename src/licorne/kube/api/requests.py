"""What has been asked of an API server: counted by answer, and whether a write is under way."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator


class Requests:
    """The requests of all clients that share this object.

    `answers` counts them by method and status; those without an answer have the status `error`. `idle` is set while no
    request that writes is under way.
    """

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.idle = asyncio.Event()
        self.idle.set()
        self._writing = 0

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Count a write as under way."""
        self._writing += 1
        self.idle.clear()
        try:
            yield
        finally:
            self._writing -= 1
            if not self._writing:
                self.idle.set()
