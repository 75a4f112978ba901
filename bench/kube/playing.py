"""licorne in a large cluster whose API server is played: how long until the first decision, and how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.kube.plane import Licorne
from bench.run import ROOT, BenchError, environment

WAITING = 1000
STREAM = 3000
WAIT_S = 180.0
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: played
clusters: [{{name: played, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: played, user: {{}}}}]
contexts: [{{name: played, context: {{cluster: played, user: played}}}}]
"""


class Server:
    """The played API server, in a process of its own."""

    def __init__(self, nodes: int, pods: int, waiting: int) -> None:
        command = [sys.executable, "-m", "bench.kube.played", str(nodes), str(pods), str(waiting)]
        self._process = subprocess.Popen(  # noqa: S603  all arguments are from this package
            command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(interpreted=False)
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline() or 0)
        if not self.port:
            raise BenchError("the played API server did not start")

    def ask(self, path: str, data: bytes | None = None) -> dict[str, Any]:
        """Call it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data=data, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def bindings(self, count: int) -> dict[str, Any]:
        """Wait until there were so many bindings; return what has happened."""
        limit = time.monotonic() + WAIT_S
        while time.monotonic() < limit:
            said = self.ask("/played")
            if said["bindings"] >= count:
                return said
            time.sleep(0.2)
        raise BenchError(f"of {count} pods {said['bindings']} are bound after {WAIT_S:.0f} s")

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()  # closes its output


@contextmanager
def playing(nodes: int, pods: int, waiting: int) -> Iterator[tuple[Server, Path]]:
    """Run a played API server; yields it, and a folder with a kubeconfig for it."""
    with tempfile.TemporaryDirectory(prefix="licorne-bench-") as folder:
        server = Server(nodes, pods, waiting)
        try:
            (Path(folder) / "kubeconfig").write_text(KUBECONFIG.format(port=server.port))
            yield server, Path(folder)
        finally:
            server.end()


def measure_large(nodes: int, pods: int, say: Callable[[str], None]) -> dict[str, float]:
    """Start licorne in a large cluster, and then give it a stream of pods.

    The time to the first decision runs from the start of the process to the first binding that arrives.
    """
    say(f"{nodes:,} nodes with {pods:,} running pods")
    with playing(nodes, pods, WAITING) as (server, folder):
        began = time.time()
        licorne = Licorne(folder / "kubeconfig", folder / "log")
        try:
            first = server.bindings(1)
            server.bindings(WAITING)
            start_s = licorne.cpu_s()
            server.ask(f"/play/{STREAM}", b"")
            server.bindings(WAITING + STREAM)
            figures = {
                "nodes": nodes,
                "running_pods": pods,
                "first_decision_s": round(first["first"] - began, 2),
                "start_cpu_s": round(start_s, 2),
                "stream_cpu_ms_a_pod": round(1000 * (licorne.cpu_s() - start_s) / STREAM, 3),
                "peak_mb": round(licorne.peak_bytes() / 1e6),
            }
        finally:
            licorne.end()
    for name, value in figures.items():
        say(f"  {name}: {value:,.3g}")
    return figures
