"""Running the demonstration against a service, in a thread of its own beside those of the client.

The manager is used under a lock: by this thread, and by the client's thread during a resync. Callbacks only queue
answers.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import licorne
from licorne.core.api import RegistrationError
from licorne.grpc.client import DisconnectedError, SchedulerClient
from licorne.grpc.demo.manager import RM_ID, Manager
from licorne.grpc.demo.scenario import CLUSTER, scenario
from licorne.si import ResourceManagerCallback, v19

TICK_S = 0.1
"""The longest sleep of the thread, in seconds."""
REGISTRATION_S = 10.0
"""Timeout of the registration, in seconds; the service is in the same process."""
SPEED_MIN, SPEED_MAX = 0.01, 100.0
_log = logging.getLogger("licorne.grpc.demo")


class _Answers(ResourceManagerCallback):
    """Queues the scheduler's messages for the thread that runs the manager."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self.waiting.put(response)

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self.waiting.put(response)


class Demonstration:
    """A resource manager with a simulated cluster, which runs in real time until it is stopped.

    Parameters:
        address: the address of the service.
        token: the token of the service; empty: none.
        seed: the seed of the scenario; see `scenario`.
        speed: how many times as fast as written everything happens, 0.01 to 100.
        on_end: called, in another thread, with the reason if the demonstration ends before it is stopped.

    Raises:
        ValueError: `speed` is out of range.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        seed: int = 1,
        speed: float = 1.0,
        on_end: Callable[[str], None] = _log.error,
    ) -> None:
        if not SPEED_MIN <= speed <= SPEED_MAX:
            raise ValueError(f"speed: {speed:g} is not between {SPEED_MIN:g} and {SPEED_MAX:g}")
        self._client = SchedulerClient(address, token=token)
        self._speed = speed
        self._stream = scenario(seed)
        self._on_end = on_end
        self._answers = _Answers()
        self._muted = False
        self._manager = Manager(lambda: None if self._muted else self._client, speed)
        self._lock = threading.Lock()  # of the manager
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-demo", daemon=True)
        self._began = time.monotonic()

    def start(self) -> None:
        """Start the thread, and return at once."""
        self._thread.start()

    def stop(self) -> None:
        """Disconnect with a goodbye, and wait for the thread. Must not be called in the thread of the loop."""
        self._stopping.set()
        self._client.close()
        self._thread.join()

    def _now_ns(self) -> int:
        return int((time.monotonic() - self._began) * self._speed * 1e9)

    def _run(self) -> None:
        given = CLUSTER.workload()
        request = v19.RegisterResourceManagerRequest(
            rm_id=RM_ID, version="1", build_info=build_info(), config=given.config or "", extra_config=given.extra
        )
        try:
            self._client.register_resource_manager(
                request, self._answers, resync=self._resync, timeout_s=REGISTRATION_S
            )
            self._began = time.monotonic()
            self._work()
        except (DisconnectedError, RegistrationError, ConnectionError) as error:
            if not self._stopping.is_set():
                self._on_end(str(error))

    def _work(self) -> None:
        stream: Iterator[tuple[float, Sequence[Any]]] = self._stream
        at_s, given = next(stream)
        while not self._stopping.is_set():
            with self._lock:
                now_ns = self._now_ns()
                while at_s * 1e9 <= now_ns:
                    self._manager.hand_in(list(given), now_ns)
                    at_s, given = next(stream)
                self._manager.pass_time(now_ns)
            next_ns = min(int(at_s * 1e9), self._manager.next_ns() or now_ns + (1 << 40))
            self._listen(min(TICK_S, max(0.001, (next_ns - now_ns) / 1e9 / self._speed)))

    def _listen(self, wait_s: float) -> None:
        """Handle the messages of the scheduler; if there are none, wait for one, at most `wait_s` seconds."""
        try:
            response = self._answers.waiting.get(timeout=wait_s)
        except queue.Empty:
            return
        with self._lock:
            self._manager.take(response, self._now_ns())
            self._take_waiting()

    def _take_waiting(self) -> None:
        while not self._answers.waiting.empty():
            self._manager.take(self._answers.waiting.get(), self._now_ns())

    def _resync(self, client: SchedulerClient) -> None:
        """Report everything to a scheduler without state. Runs in a thread of the client.

        The messages of the lost connection are handled first. The requests that follow from them are dropped, for the
        report contains their effects.
        """
        with self._lock:
            self._muted = True
            self._take_waiting()
            self._muted = False
            self._manager.report(client)


def build_info() -> dict[str, str]:
    """Return what web pages show of a resource manager: version and build date, here the time of the package's file."""
    written = datetime.fromtimestamp(int(Path(licorne.__file__).stat().st_mtime), UTC)
    return {"arch": "simulated", "buildVersion": licorne.__version__, "buildDate": f"{written:%Y-%m-%dT%H:%M:%SZ}"}


def sights(rest: str, grpc: str, *, token: bool = False) -> str:
    """Return a text for a terminal, with commands that show the cluster.

    `rest` and `grpc` are addresses of the service; `token`: REST needs one.
    """
    base, curl = f"http://{rest}", "curl -s"
    if rest.startswith("unix:"):
        base, curl = "http://localhost", f"curl -s --unix-socket {rest.removeprefix('unix:')}"
    api = f"{curl} {base}/ws/v1"
    partition = f"{api}/partition/default"
    rows = (
        ("the page, in a browser", f"{base}/" if curl == "curl -s" else f"{curl} {base}/"),
        ("queues", f"{partition}/queues"),
        ("applications", f"{partition}/applications/active"),
        ("what waits, and why", f"licorne why --from {base}" if curl == "curl -s" else f"{curl} {base}/api/v1/why"),
        ("completed, failed", f"{partition}/applications/completed"),
        ("refused", f"{partition}/applications/rejected"),
        ("nodes", f"{partition}/nodes"),
        ("users, groups", f"{partition}/usage/users"),
        ("", f"{partition}/usage/groups"),
        ("what happens", f"{api.replace('-s', '-sN', 1)}/events/stream"),
        ("metrics", f"{api}/metrics"),
        ("health", f"{api}/scheduler/healthcheck"),
        ("minute by minute", f"{api}/history/apps"),
        ("change the queues", f"{api}/config > queues.yaml"),
        ("", f"{api}/config -X PUT --data-binary @queues.yaml"),
        ("all paths", f"{curl} {base}/openapi.json"),
    )
    lines = [f"A simulated cluster is running, over gRPC at {grpc}. To look at it:", ""]
    lines += [f"  {what:30}{command}" for what, command in rows]
    if token:
        lines += ["", 'REST wants a token: add -H "authorization: Bearer TOKEN" to each, --token-file FILE to licorne.']
    return "\n".join([*lines, "", "Ctrl-C ends it.", ""])
