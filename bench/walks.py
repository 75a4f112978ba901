"""Count the files of the package whose functions run for one thing that a scheduler does.

These are the files to read for understanding what happens to one ask, or to one request; a return is a call into a file
that was left before. Counted are, without any compiled module: an ask from its bytes to the answer, a GET of the queues, and
a reload of a changed queue configuration, each in `licorne serve`; the first pod of an application from its creation to its binding in `licorne kube`,
whose API server is played; and in process a preemption for a guarantee. Each is done a few times, and a file counts if its
functions ran each time; this excludes what a service does now and then by itself.
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
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec

from bench.kube.playing import playing
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.grpc.client import SchedulerClient
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
found = []
watching = False
def watch(frame, event, argument):
    if watching and event == "call":
        found.append(frame.f_code.co_filename)
def begin(*_):
    global watching
    found.clear()
    watching = True
def end(*_):
    global watching
    watching = False
    files = [name[len(ROOT):] for name in found if name.startswith(ROOT)]
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
"""A program that runs the command and records the file of each call of a function between the two signals."""
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
    """What was done, the files whose functions ran for it, relative to the package's folder, and how often it returned to one."""

    what: str
    files: tuple[str, ...]
    returns: int

    @classmethod
    def of(cls, what: str, times: list[list[str]]) -> Walk:
        """Return what several times have in common; each is the files of all calls, in their order."""
        files = frozenset.intersection(*map(frozenset, times))
        stays = min(sum(1 for _ in groupby(name for name in calls if name in files)) for calls in times)
        return cls(what, tuple(sorted(files)), stays - len(files))


def walks() -> list[Walk]:
    """Return all walks, in the order of the module's docstring."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_of_the_service(Path(folder)), _of_kube(Path(folder)), preemption_walk()]


# -- in a service ------------------------------------------------------------------------------------------


class _Watched:
    """A command that serves, in a process that records the files whose functions run."""

    def __init__(self, folder: Path, *command: str) -> None:
        self._answer = folder / "files.json"
        environment = {**os.environ, "LICORNE_INTERPRETED": "1"}
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", HOOK, str(self._answer), *command, "--log-format", "json"],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def wait_for(self, name: str) -> dict[str, Any]:
        """Wait until the log has an event of this name, and return it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("{") and (event := json.loads(line))["event"] == name:
                return dict(event)
        raise RuntimeError(f"the service ended before it said {name!r}")

    def walk(self, what: str, act: Callable[[], None], before: Callable[[], None]) -> Walk:
        """Return the files whose functions run each time during `act`; those of `before`, which is called first, do not count."""
        return Walk.of(what, [self._calls_of(act, before) for _ in range(TIMES)])

    def _calls_of(self, act: Callable[[], None], before: Callable[[], None]) -> list[str]:
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
        return list(json.loads(self._answer.read_text(encoding="utf-8")))


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
def _watched(folder: Path, *command: str) -> Iterator[_Watched]:
    made = _Watched(folder, *command)
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
    config, mosts = folder / "queues.yaml", iter(range(10, 11 + TIMES))

    def write() -> None:
        config.write_text(CONFIG.format(most=next(mosts)), encoding="utf-8")

    write()
    command = ["serve", "--grpc", "127.0.0.1:0", "--rest", "127.0.0.1:0", "--config", str(config)]
    with _watched(folder, *command) as watched:
        grpc, rest = (watched.wait_for(name)["addresses"][0] for name in ("listening", "listening for REST"))

        def get() -> None:
            with urlopen(f"http://{rest}/ws/v1/partition/default/queues", timeout=WAIT_S) as answer:
                answer.read()

        def reload() -> None:
            write()
            watched.wait_for("queue configuration applied")

        with SchedulerClient(grpc) as client:
            ask = _Manager(client).ask
            yield watched.walk("an ask, from its bytes to the answer", ask, ask)
            yield watched.walk("a GET of the queues, after one more allocation", get, ask)
            yield watched.walk("a reload of the queue configuration", reload, ask)


def _of_kube(folder: Path) -> Walk:
    with playing(nodes=1, pods=0, waiting=0) as (server, kept):
        command = ["kube", "--no-rest", "--kubeconfig", str(kept / "kubeconfig")]
        bound = iter(range(1, 2 * TIMES + 1))

        def play() -> None:
            server.ask("/play/1", b"")
            server.bindings(next(bound))

        with _watched(folder, *command) as watched:
            watched.wait_for("the cluster has been read")
            return watched.walk("the first pod of an application, from its creation to its binding", play, play)


# -- in process --------------------------------------------------------------------------------------------


def preemption_walk() -> Walk:
    """Evict an allocation for an ask of a queue below its guarantee, in a process of its own; return the files."""
    environment = {**os.environ, "LICORNE_INTERPRETED": "1"}
    command = [sys.executable, "-c", "from bench.walks import preempt; preempt()"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    return Walk.of("a preemption, in process", [json.loads(done.stdout)])


def preempt() -> None:
    """Let one queue preempt from another; print the file of each call from the ask on."""
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
    found: list[str] = []

    def watch(frame: Any, event: str, _: object) -> None:
        if event == "call":
            found.append(frame.f_code.co_filename)

    sys.setprofile(watch)
    ask("a", 1, second, may_preempt=True)
    api.schedule(now_ns=120 * second)
    sys.setprofile(None)
    if not evicted:
        raise RuntimeError("nothing was preempted")
    root = str(Path(sys.modules["licorne"].__file__ or "").parent) + os.sep
    sys.stdout.write(json.dumps([name.removeprefix(root) for name in found if name.startswith(root)]))


__all__ = ["Walk", "preempt", "preemption_walk", "walks"]
