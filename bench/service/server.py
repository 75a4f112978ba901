"""`licorne serve` in a process of its own, which is ended by its process id."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.run import ROOT, BenchError, environment

START_S = 60
START_UNDER_S = 600
END_S = 120


class Server:
    """A running service, with REST or without.

    `module`: the program, `licorne` or one that changes something in it. `under`: the command of valgrind, which runs it.
    """

    def __init__(
        self,
        *,
        rest: bool,
        options: tuple[str, ...] = (),
        under: tuple[str, ...] = (),
        module: str = "licorne.cli",
    ) -> None:
        command = [
            *under,
            sys.executable,
            "-m",
            module,
            "serve",
            "--grpc",
            "127.0.0.1:0",
            "--log-format",
            "json",
        ]
        command += ["--log-level", "info", *(("--rest", "127.0.0.1:0") if rest else ()), *options]
        self._process = subprocess.Popen(  # noqa: S603  all arguments are from this file and its callers
            command,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(interpreted=False),
        )
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._last = "listening for REST" if rest else "listening"
        self.address = self.rest = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(START_UNDER_S if under else START_S) or not self.address:
            self.end()
            raise BenchError(f"the service did not start: {''.join(self._lines)[-2000:]}")

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line)
            if line.startswith("=="):  # a remark of valgrind
                self._lines.pop()
            elif line.startswith("{"):
                event = json.loads(line)
                if event["event"] == "listening":
                    self.address = event["addresses"][0]
                elif event["event"] == "listening for REST":
                    self.rest = event["addresses"][0]
                if event["event"] == self._last:
                    self._ready.set()
        self._ready.set()

    @property
    def pid(self) -> int:
        """The id of the process, or of the program that runs it."""
        return self._process.pid

    def record(self, *, on: bool) -> None:
        """Switch recording on or off; the program is `bench.service.switched`."""
        self._process.send_signal(signal.SIGUSR2 if on else signal.SIGUSR1)

    def cpu_s(self) -> float:
        """Return the seconds of processor time so far; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / 100

    def loop_s(self) -> float:
        """Return the seconds of processor time of the thread that decides; 0 where the system does not tell."""
        process = self._process.pid  # the number of the main thread, too
        try:
            spent = Path(f"/proc/{process}/task/{process}/schedstat").read_text(encoding="ascii")
        except OSError:
            return 0.0
        return int(spent.split()[0]) / 1e9

    def peak_bytes(self) -> int:
        """Return the peak of its memory, in bytes; 0 where the system does not tell."""
        return self._memory("VmHWM")

    def resident_bytes(self) -> int:
        """Return the memory that it has now, in bytes; 0 where the system does not tell."""
        return self._memory("VmRSS")

    def _memory(self, name: str) -> int:
        try:
            for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines():
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) << 10
        except OSError:
            pass
        return 0

    def faults(self) -> list[str]:
        """Return log lines that should not occur: errors, and text that is not JSON."""
        return [line.strip()[:500] for line in self._lines if '"error"' in line or not line.startswith("{")]

    def end(self) -> None:
        """Terminate the service, or kill it if that takes too long."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(END_S)
        self._reader.join(END_S)


@contextmanager
def serving(
    *, rest: bool, options: tuple[str, ...] = (), under: tuple[str, ...] = (), module: str = "licorne.cli"
) -> Iterator[Server]:
    """Run a service, ended on leaving the context. Raises BenchError if it logged an error."""
    server = Server(rest=rest, options=options, under=under, module=module)
    try:
        yield server
    finally:
        server.end()
    if server.faults():
        raise BenchError(f"the service logged: {server.faults()[0]}")
