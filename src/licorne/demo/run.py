"""Runs the demonstration against a service: one thread, and the client's."""

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
from licorne.client import DisconnectedError, SchedulerClient
from licorne.core.api import RegistrationError
from licorne.demo.configuration import CONFIGURATION, SETTINGS
from licorne.demo.manager import Manager
from licorne.demo.requests import RM_ID
from licorne.demo.scenario import scenario
from licorne.si import ResourceManagerCallback, v19

TICK_S = 0.1
"""The longest time for which it does not look at its clock."""
REGISTRATION_S = 10.0
"""How long the service, which is in the same process, may take to answer."""
SPEED_MIN, SPEED_MAX = 0.01, 100.0
_log = logging.getLogger("licorne.demo")


class _Answers(ResourceManagerCallback):
    """Puts what the scheduler says aside, for the thread that has the books."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self.waiting.put(response)

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self.waiting.put(response)


class _Mute:
    """Hears nothing: what is said to a lost connection."""

    def update_node(self, request: v19.NodeRequest) -> None: ...

    def update_application(self, request: v19.ApplicationRequest) -> None: ...

    def update_allocation(self, request: v19.AllocationRequest) -> None: ...


class Demonstration:
    """A resource manager with a simulated cluster, which works away in real time until it is stopped.

    Parameters:
        address: of the service.
        token: what the service wants to hear; empty: nothing.
        seed: of what happens; see `scenario`.
        speed: how much faster than written everything happens, 0.01 to 100.
        on_end: told, in another thread, if it ends before it is stopped, and why.

    Raises:
        ValueError: a speed that is none.
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
        self._manager = Manager(lambda: _Mute() if self._muted else self._client, speed)
        self._lock = threading.Lock()  # of the manager
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-demo", daemon=True)
        self._began = time.monotonic()

    def start(self) -> None:
        """Begin. Returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Say goodbye, and end. Waits for it; not to be called where the service runs."""
        self._stopping.set()
        self._client.close()
        self._thread.join()

    def _now_ns(self) -> int:
        return int((time.monotonic() - self._began) * self._speed * 1e9)

    def _run(self) -> None:
        request = v19.RegisterResourceManagerRequest(
            rm_id=RM_ID,
            version="1",
            build_info=build_info(),
            config=CONFIGURATION,
            extra_config=dict(SETTINGS),
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
            next_ns = min(int(at_s * 1e9), self._manager.books.next_ns() or now_ns + (1 << 40))
            self._listen(min(TICK_S, max(0.001, (next_ns - now_ns) / 1e9 / self._speed)))

    def _listen(self, wait_s: float) -> None:
        """Take what the scheduler says, for at most so long if it says nothing."""
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
        """The scheduler forgot everything: note what it has said before, then report. In a thread of the client."""
        with self._lock:
            self._muted = True
            self._take_waiting()
            self._muted = False
            self._manager.report(client)


def build_info() -> dict[str, str]:
    """What web pages show of a resource manager: its version, and when it was built, here when its files were written."""
    written = datetime.fromtimestamp(int(Path(licorne.__file__).stat().st_mtime), UTC)
    return {"arch": "simulated", "buildVersion": licorne.__version__, "buildDate": f"{written:%Y-%m-%dT%H:%M:%SZ}"}


def sights(rest: str, grpc: str, *, token: bool = False) -> str:
    """What to look at, as text for a terminal. `rest` and `grpc` are addresses of the service; `token`: REST wants one."""
    base, curl = f"http://{rest}", "curl -s"
    if rest.startswith("unix:"):
        base, curl = "http://localhost", f"curl -s --unix-socket {rest.removeprefix('unix:')}"
    api = f"{curl} {base}/ws/v1"
    partition = f"{api}/partition/default"
    rows = (
        ("queues", f"{partition}/queues"),
        ("applications", f"{partition}/applications/active"),
        ("why one waits (of the first)", f"{partition}/application/odd-00003"),
        ("completed, failed", f"{partition}/applications/completed"),
        ("refused", f"{partition}/applications/rejected"),
        ("nodes", f"{partition}/nodes"),
        ("users, groups", f"{partition}/usage/users"),
        ("", f"{partition}/usage/groups"),
        ("what happens", f"{api.replace('-s', '-sN', 1)}/events/stream"),
        ("metrics", f"{api}/metrics"),
        ("health", f"{api}/scheduler/healthcheck"),
        ("minute by minute", f"{api}/history/apps"),
        ("change the queues", f"{api}/config | sed '/^extra:/,$d' > queues.yaml"),
        ("", f"{api}/config -X PUT --data-binary @queues.yaml"),
        ("all paths", f"{base}/openapi" if curl == "curl -s" else f"{curl} {base}/openapi.json"),
    )
    lines = [f"A simulated cluster works away, over gRPC at {grpc}. To look at it:", ""]
    lines += [f"  {what:30}{command}" for what, command in rows]
    if token:
        lines += ["", 'REST wants a token: add -H "authorization: Bearer TOKEN" to each.']
    return "\n".join([*lines, "", "Ctrl-C ends it.", ""])


__all__ = ["Demonstration", "sights"]
