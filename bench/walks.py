"""Count the files of the package whose functions run for one thing that a scheduler does.

These are the files to read for understanding what happens to one ask, or to one request. Counted are, without any compiled
module: an ask from its bytes to the answer, a GET of the queues, and a reload of a changed queue configuration, each in
`licorne serve`; and in process a preemption for a guarantee. Each is done a few times, and a file counts if its functions
ran each time; this excludes what the service does now and then by itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec

from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.client import SchedulerClient
from licorne.si import v19
from licorne.si.messages import Released

WAIT_S = 30.0
TIMES = 3
"""How often each thing is done; a file counts if its functions ran each time."""
LIMIT_S = 300.0
"""Seconds that the service may take for everything."""
APART_S = 4.5
"""Seconds between two of these: longer than an answer of REST may be cached, which is four."""
HOOK = """
import json, os, signal, sys, threading
import licorne
ROOT = os.path.dirname(licorne.__file__) + os.sep
found = set()
watching = False
def watch(frame, event, argument):
    if watching and event == "call":
        found.add(frame.f_code.co_filename)
def begin(*_):
    global watching
    found.clear()
    watching = True
def end(*_):
    global watching
    watching = False
    files = sorted(name[len(ROOT):] for name in found if name.startswith(ROOT))
    with open(sys.argv[1] + ".new", "w") as file:
        json.dump(files, file)
    os.replace(sys.argv[1] + ".new", sys.argv[1])
signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGUSR2, end)
threading.setprofile(watch)
sys.setprofile(watch)
from licorne.cli import main
main(sys.argv[2:])
"""
"""A program that runs the command and records the files whose functions are called between the two signals."""
CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {{guaranteed: {{vcore: 5}}}}
          - name: b
            resources: {{max: {{vcore: {most}}}}}
"""


class Walk(msgspec.Struct, frozen=True):
    """What was done, and the files whose functions ran for it, relative to the package's folder."""

    what: str
    files: tuple[str, ...]


def walks() -> list[Walk]:
    """Return all walks, in the order of the module's docstring."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_of_the_service(Path(folder)), preemption_walk()]


# -- in the service ----------------------------------------------------------------------------------------


class _Watched:
    """`licorne serve` in a process that records the files whose functions run."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "queues.yaml"
        self._answer = folder / "files.json"
        self.reload(10)
        command = [sys.executable, "-c", HOOK, str(self._answer), "serve", "--grpc", "127.0.0.1:0"]
        command += ["--rest", "127.0.0.1:0", "--config", str(self.config), "--log-format", "json"]
        environment = {**os.environ, "LICORNE_INTERPRETED": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)  # noqa: S603
        self.addresses = {name: self._wait_for(name)["addresses"][0] for name in ("listening", "listening for REST")}

    def _wait_for(self, name: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("{") and (event := json.loads(line))["event"] == name:
                return dict(event)
        raise RuntimeError(f"the service ended before it said {name!r}")

    def files_of(self, act: Callable[[], None], before: Callable[[], None]) -> frozenset[str]:
        """Return the files whose functions run during `act`; those of `before`, which is called first, do not count."""
        self._answer.unlink(missing_ok=True)
        before()
        time.sleep(APART_S)
        self.process.send_signal(signal.SIGUSR1)
        time.sleep(0.05)
        act()
        self.process.send_signal(signal.SIGUSR2)
        end = time.monotonic() + WAIT_S
        while not self._answer.exists():
            if time.monotonic() > end:
                raise TimeoutError("the service does not say what ran")
            time.sleep(0.01)
        return frozenset(json.loads(self._answer.read_text(encoding="utf-8")))

    def reload(self, most: int) -> None:
        """Write another queue configuration."""
        self.config.write_text(CONFIG.format(most=most), encoding="utf-8")

    def wait_for_reload(self) -> None:
        """Wait until the service has applied the configuration."""
        self._wait_for("queue configuration applied")

    def get(self, path: str) -> None:
        """Send a request to REST."""
        with urlopen(f"http://{self.addresses['listening for REST']}{path}", timeout=WAIT_S) as answer:
            answer.read()


class _Manager(ResourceManagerCallback):
    """A resource manager with one node and one application."""

    def __init__(self, client: SchedulerClient) -> None:
        self._client = client
        self._accepted = threading.Semaphore(0)
        self._allocated = threading.Semaphore(0)
        self._count = 0
        client.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"), self)
        client.update_node(v19.NodeRequest(rm_id="rm", nodes=[_node(10**6)]))
        client.update_application(v19.ApplicationRequest(rm_id="rm", new=[_application("a")]))
        for _ in ("node", "application"):
            _await(self._accepted, "accepted")

    def update_node(self, response: v19.NodeResponse) -> None:
        """Count each accepted node."""
        for _ in response.accepted:
            self._accepted.release()

    def update_application(self, response: v19.ApplicationResponse) -> None:
        """Count each accepted application."""
        for _ in response.accepted:
            self._accepted.release()

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        """Count each allocation."""
        for _ in response.new:
            self._allocated.release()

    def ask(self) -> None:
        """Submit one ask and wait for its allocation."""
        self._count += 1
        ask = v19.Allocation(f"k{self._count}", application_id="a", resource_per_alloc={"vcore": 1})
        self._client.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=[ask]))
        _await(self._allocated, "allocated")


def _await(event: threading.Semaphore, what: str) -> None:
    if not event.acquire(timeout=WAIT_S):
        raise TimeoutError(f"nothing was {what} within {WAIT_S:g} s")


def _node(vcore: int) -> v19.NodeInfo:
    """Return the only node, with so much of vcore, in milli."""
    return v19.NodeInfo("n", v19.ActionFromRM.CREATE, schedulable_resource={"vcore": vcore})


def _application(leaf: str) -> v19.AddApplicationRequest:
    """Return the application of a leaf queue; it has the name of the queue."""
    return v19.AddApplicationRequest(leaf, f"root.{leaf}", ugi=v19.UserGroupInformation(user="u"))


@contextmanager
def _watched(folder: Path) -> Iterator[_Watched]:
    made = _Watched(folder)
    limit = threading.Timer(LIMIT_S, made.process.kill)  # a service that hangs ends, and so does the reading of its log
    limit.start()
    try:
        yield made
    finally:
        limit.cancel()
        made.process.kill()
        made.process.wait(WAIT_S)
        assert made.process.stderr is not None
        made.process.stderr.close()


def _of_the_service(folder: Path) -> Iterator[Walk]:
    with _watched(folder) as watched, SchedulerClient(watched.addresses["listening"]) as client:
        manager = _Manager(client)
        queues = "/ws/v1/partition/default/queues"
        mosts = iter(range(11, 11 + TIMES))

        def reload() -> None:
            watched.reload(next(mosts))
            watched.wait_for_reload()

        acts: dict[str, Callable[[], None]] = {
            "an ask, from its bytes to the answer": manager.ask,
            "a GET of the queues, after one more allocation": lambda: watched.get(queues),
            "a reload of the queue configuration": reload,
        }
        for what, act in acts.items():
            always = frozenset.intersection(*(watched.files_of(act, manager.ask) for _ in range(TIMES)))
            yield Walk(what, tuple(sorted(always)))


# -- in process --------------------------------------------------------------------------------------------


def preemption_walk() -> Walk:
    """Evict an allocation for an ask of a queue below its guarantee, in a process of its own; return the files."""
    environment = {**os.environ, "LICORNE_INTERPRETED": "1"}
    command = [sys.executable, "-c", "from bench.walks import preempt; preempt()"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    return Walk("a preemption, in process", tuple(json.loads(done.stdout)))


def preempt() -> None:
    """Let one queue preempt from another; print the files whose functions ran from the ask on."""
    second = 10**9
    evicted: list[Any] = []
    api = SchedulerAPI(on_output=lambda _, outputs: evicted.extend(o for o in outputs if isinstance(o, Released)))
    text = CONFIG.format(most=10)
    api.register_resource_manager(
        v19.RegisterResourceManagerRequest(rm_id="rm", config=text), ResourceManagerCallback(), now_ns=0
    )
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[_node(10_000)]), now_ns=0)
    api.update_application(v19.ApplicationRequest(rm_id="rm", new=[*map(_application, "ab")]), now_ns=0)

    def ask(app: str, count: int, now_ns: int, *, may_preempt: bool) -> None:
        policy = v19.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=may_preempt)
        asks = [
            v19.Allocation(
                f"{app}{i}", application_id=app, resource_per_alloc={"vcore": 1_000}, preemption_policy=policy
            )
            for i in range(count)
        ]
        api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=asks), now_ns=now_ns)
        api.schedule(now_ns=now_ns)

    ask("b", 10, 0, may_preempt=False)
    found: set[str] = set()

    def watch(frame: Any, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    ask("a", 1, second, may_preempt=True)
    api.schedule(now_ns=120 * second)
    sys.setprofile(None)
    if not evicted:
        raise RuntimeError("nothing was preempted")
    root = str(Path(sys.modules["licorne"].__file__ or "").parent) + os.sep
    sys.stdout.write(json.dumps(sorted(name.removeprefix(root) for name in found if name.startswith(root))))


__all__ = ["Walk", "preempt", "preemption_walk", "walks"]
