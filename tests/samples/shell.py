"""A shell in which the samples of one document run, in order, in a copy of the repository's files."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from common.waiting import WAIT_S
from samples.documents import ROOT, Sample, difference
from samples.masks import masked

ASKS = re.compile(r"curl\b")
"""Commands that are repeated until they print what is shown, or until `WAIT_S` seconds are over: what they ask runs."""
SERVES = re.compile(r"\blicorne serve\b(?!.*--print-config)|\bexamples/resource_manager\.py\b")
"""Commands that run until they are stopped: they stay, beside those that follow, to the end of the document, or to the next
service, for which the ports are wanted."""
COPIED = ("examples", "deploy")
PORTS = ("3333", "9080")
"""The default ports; free ones are used in their place, in commands and in their output."""


class Shell:
    """Runs samples. What a document starts is stopped when the context is left."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "licorne"
        self.root.mkdir()
        for path in ROOT.iterdir():
            if path.name in COPIED:
                shutil.copytree(path, self.root / path.name)
            elif not path.name.startswith("."):
                (self.root / path.name).symlink_to(path)
        (self.root / ".venv").mkdir()
        (self.root / ".venv" / "bin").symlink_to(Path(sys.executable).parent)  # README names the command by it
        self.folder = self.root
        self.running: list[subprocess.Popen[bytes]] = []
        self.ports = {port: _free_port() for port in PORTS}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        while self.running:
            process = self.running.pop()
            process.send_signal(signal.SIGINT)
            try:
                process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def check(self, sample: Sample) -> None:
        """Run a sample; fail if it does not print what is shown."""
        if sample.command.startswith("cd "):
            self.folder = self.folder / sample.command.removeprefix("cd ")
            assert self.folder.is_dir(), sample.command
            return
        shown = [masked(line) for line in sample.shown]
        if SERVES.search(sample.command):
            self._serve(sample.command, shown)
            return
        end = time.monotonic() + WAIT_S
        output = self._output(sample.command)
        while ASKS.match(sample.command) and time.monotonic() < end:
            if difference(shown, self._lines(output)) is None:
                return
            time.sleep(0.5)
            output = self._output(sample.command)
        self._compare(shown, output, sample.command)

    def _output(self, command: str) -> bytes:
        """Run a command to its end."""
        return subprocess.run(  # noqa: S602  the documents are trusted
            self._with_ports(command),
            shell=True,
            executable="/bin/bash",
            cwd=self.folder,
            env=self._environment(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=WAIT_S,
            check=False,
        ).stdout

    def _serve(self, command: str, shown: list[str]) -> None:
        if "licorne serve" in command:
            self._stop()
        output = self.root / f"output-{len(self.running)}"
        with output.open("wb") as file:
            self.running.append(
                subprocess.Popen(
                    ["/bin/bash", "-c", f"exec {self._with_ports(command)}"],
                    cwd=self.folder,
                    env=self._environment(command),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
            )
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and self.running[-1].poll() is None:
            if difference([*shown, "..."], self._lines(output.read_bytes())) is None:
                return
            time.sleep(0.1)
        self._compare([*shown, "..."], output.read_bytes(), command)

    def _compare(self, shown: list[str], output: bytes, command: str) -> None:
        printed = self._lines(output)
        missing = difference(shown, printed)
        assert missing is None, f"$ {command}\nexpected: {missing}\nin:\n" + "\n".join(printed)

    @staticmethod
    def _lines(output: bytes) -> list[str]:
        return [masked(line) for line in output.decode().rstrip().splitlines()]

    def _with_ports(self, command: str) -> str:
        for port, free in self.ports.items():
            command = re.sub(rf"\b(127\.0\.0\.1|localhost):{port}\b", rf"\1:{free}", command)
        return command

    def _environment(self, command: str) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
        if "--print-config" not in command:  # which names the variables that are set
            grpc, rest = (f"127.0.0.1:{self.ports[port]}" for port in PORTS)
            environment.update(LICORNE_GRPC=grpc, LICORNE_REST=rest)
        return environment


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
