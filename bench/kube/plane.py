"""The programs of a measurement: the control plane, kube-scheduler, licorne, each in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from bench.run import ROOT, BenchError, environment

SCRIPTS = ROOT / "controlplane"
PROGRAMS = ROOT / "build" / "controlplane" / "bin"
START_S, END_S = 180, 30
TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Return a port on loopback that is free, and that the programs' other ports can follow."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port: int = one.getsockname()[1]
        if port < 60000:
            return port


class Process:
    """A running program, known by its process id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def cpu_s(self) -> float:
        """Return the seconds of processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_bytes(self) -> int:
        """Return the peak of its memory."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
        return 0


class Licorne(Process):
    """`licorne kube`, with the default queue configuration."""

    def __init__(self, kubeconfig: Path, log: Path, *options: str) -> None:
        command = [sys.executable, "-m", "licorne.cli", "kube", "--kubeconfig", str(kubeconfig)]
        command += ["--rest", f"127.0.0.1:{free_port()}", *options]
        with log.open("a") as file:
            self._process = subprocess.Popen(  # noqa: S603  all arguments are from this package
                command, stdout=file, stderr=file, cwd=ROOT, env=environment(interpreted=False)
            )
        super().__init__(self._process.pid)

    def end(self) -> None:
        """End it, and wait until it has ended. Raises BenchError if it had ended before."""
        ended = self._process.poll()
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if ended is not None:
            raise BenchError(f"licorne ended by itself, with {ended}")


class Plane:
    """A control plane in a folder of its own.

    Parameters:
        folder: where it writes everything.
        programs: the folder of its programs, as `make controlplane` builds them.
        nodes: how many nodes kwok plays.

    Raises:
        BenchError: it is not built, or does not start.
    """

    def __init__(self, folder: Path, programs: Path, nodes: int) -> None:
        if not (programs / "kubebox").exists():
            raise BenchError(f"{programs}: no control plane there: make controlplane")
        self.run = folder / "run"
        self.kubeconfig = self.run / "admin.kubeconfig"
        self._environment = {
            **os.environ,
            "RUN": str(self.run),
            "BIN": str(programs),
            "PORT": str(free_port()),
            "NODES": str(nodes),
            "PYTHON": sys.executable,
        }
        self._script("up.sh")

    def _script(self, name: str, **more: str) -> None:
        done = subprocess.run(  # noqa: S603  the scripts of this repository
            [str(SCRIPTS / name)],
            env={**self._environment, **more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=START_S,
            check=False,
        )
        if done.returncode:
            raise BenchError(f"controlplane/{name}: {done.stderr[-2000:]}")

    def kube_scheduler(self) -> Process:
        """Start kube-scheduler."""
        self._script("kube-scheduler.sh")
        return self.process("kube-scheduler")

    def process(self, name: str) -> Process:
        """Return one of the programs."""
        return Process(int((self.run / f"{name}.pid").read_text(encoding="ascii")))

    def end_program(self, name: str) -> None:
        """End one of the programs, and wait until it has ended."""
        pid = self.process(name).pid
        os.kill(pid, signal.SIGTERM)
        subprocess.run(["tail", "-s", "0.1", "--pid", str(pid), "-f", os.devnull], timeout=END_S, check=False)  # noqa: S603, S607
        (self.run / f"{name}.pid").unlink()

    def down(self) -> None:
        """End everything, and remove what it wrote."""
        self._script("down.sh", WIPE="1")
