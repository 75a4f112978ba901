"""A service in a process of its own, that can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.waiting import WAIT_S

BUGS = (
    "a request failed",
    "a REST request failed",
    "the engine failed",
    "the scheduler failed; all resource managers must register again",
)
"""What is logged, with a traceback, where the service itself is at fault."""


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
        """The log entries of this name."""
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
        others = [line for line in self.lines if not line.startswith("{")]
        assert others == [], f"only the log may write there: {others[:20]}"
        assert not any(self.events(name) for name in BUGS)


def resident_kb(pid: int) -> int:
    """The resident memory of a process; 0 where the system does not show it."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(text.partition("VmRSS:")[2].split()[0])


@contextmanager
def serving(*arguments: str, address: str = "127.0.0.1:0") -> Iterator[Serving]:
    """Run one; it is killed at the end if it still runs."""
    made = Serving(*arguments, address=address)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.kill()
