"""A service in a process of its own, that can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WAIT_S = 30


class Serving:
    """A running `licorne serve`; its log is kept."""

    def __init__(self, *arguments: str, address: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "licorne.cli", "serve", "--grpc", address, "--log-format", "json", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._told = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._told.wait(WAIT_S), self.lines
        self.address = str(self.events("listening")[0]["addresses"][0])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if '"listening"' in line or line.startswith("licorne: "):
                self._told.set()
        self._told.set()

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was logged under this name."""
        return [
            event for line in list(self.lines) if line.startswith("{") and (event := json.loads(line))["event"] == name
        ]

    def end(self) -> int:
        """End it in good order; its exit status."""
        self.process.terminate()
        status = self.process.wait(WAIT_S)
        self._close()
        return status

    def kill(self) -> None:
        """End it as a power failure does."""
        self.process.kill()
        self.process.wait(WAIT_S)
        self._close()

    def _close(self) -> None:
        self._reader.join(WAIT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()
        assert [line for line in self.lines if not line.startswith("{")] == []  # nobody else writes there
        assert not any(self.events(name) for name in ("a request failed", "the scheduler failed", "the engine failed"))


@contextmanager
def serving(*arguments: str, address: str = "127.0.0.1:0") -> Iterator[Serving]:
    """Run one; it is killed at the end if it still runs."""
    made = Serving(*arguments, address=address)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()
