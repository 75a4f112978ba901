"""Runs the points of a sweep on a Ray cluster: each point is a task, and inputs are put into the object store once.

Ray starts a task again that was lost with its node or its worker. The outcomes are those of this machine: a task checks that its
worker has the same version of licorne and the same code of a policy.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Generator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import msgspec

from licorne._extras import require
from licorne._version import __version__
from licorne.lab.sweep.engines import EngineError, Run
from licorne.lab.sweep.inputs import Bundle, Unpacked, pack, pack_policy, run_unpacked
from licorne.lab.sweep.plan import OWN, Keys, Point
from licorne.lab.sweep.point import Outcome

require("ray")

TASKS_MAX = 1000
"""How many tasks Ray knows at a time: enough for each processor of a large cluster."""
TRIES = 4
"""How often a point is begun whose worker or node is lost."""
CONNECT_S = 5.0
"""How long the head node may take to accept a connection."""


class Ray(NamedTuple):
    """Runs points on the Ray cluster at `address`, `at_once` at a time, which Ray spreads over its processors.

    "": the cluster that RAY_ADDRESS names, or the one of this machine; where there is neither, one is started for this run.
    """

    address: str = ""
    at_once: int = TASKS_MAX

    def outcomes(self, points: Sequence[Point], run: Run) -> Generator[tuple[int, Outcome]]:
        """Run points; see `Engine.outcomes`."""
        import ray  # noqa: PLC0415  # it takes a second

        if not points:
            return
        own = not ray.is_initialized()
        if own:
            self._connect(ray)
        task = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_task())
        inputs = _Inputs(ray.put)
        running: dict[Any, int] = {}
        try:
            waiting = iter(enumerate(points))
            while True:
                while len(running) < self.at_once and (following := next(waiting, None)) is not None:
                    number, point = following
                    running[task.remote(__version__, point, run, *inputs.of(point))] = number
                if not running:
                    return
                for ref in ray.wait(list(running))[0]:
                    number = running.pop(ref)
                    yield number, _result(ray, ref)
        finally:
            for ref in running:
                ray.cancel(ref, force=True)
            if own:
                ray.shutdown()

    def _connect(self, ray: ModuleType) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        where = self.address or os.environ.get("RAY_ADDRESS", "")
        try:
            _check_listening(where)
            ray.init(address=self.address or None, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        except Exception as error:  # Ray raises plain ones too
            text = str(error).strip().partition("\n")[0]
            raise EngineError(
                f"the Ray cluster at {where or 'this machine'} cannot be reached: {text}; "
                "`ray status` on its head node prints the address, and Ray and Python must have the same versions here and there"
            ) from error


def _check_listening(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT or ray://HOST:PORT; Ray itself tries for minutes, and then ends the program."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()


class _Inputs:
    """Puts each input into the object store once."""

    def __init__(self, put: Callable[[object], object]) -> None:
        self._put = put
        self._keys = Keys()
        self._known: dict[tuple[str, str], object] = {}

    def of(self, point: Point) -> tuple[object, object, object, str]:
        """Return the packed workload, configuration and policy of a point, and the digest of the policy's code."""
        configuration = point.configuration if point.configuration != OWN else ""
        policy = point.policy if point.policy != OWN else ""
        return (
            self._packed("workload", point.workload, pack),
            self._packed("configuration", configuration, pack),
            self._packed("policy", policy, pack_policy),
            self._keys.digest_of_policy(point) if policy else "",
        )

    def _packed(self, part: str, name: str, packing: Callable[[str], Bundle | None]) -> object:
        if not name:
            return None
        if (part, name) not in self._known:
            self._known[part, name] = self._put(packing(name))
        return self._known[part, name]


def _task() -> Callable[..., tuple[str, bytes]]:
    """Return what runs as a task. As a function within one it is sent as code, so it also runs where licorne is another one."""

    def task(version: str, *given: object) -> tuple[str, bytes]:
        import platform  # noqa: PLC0415

        try:
            from licorne import __version__ as here  # noqa: PLC0415
        except ImportError:
            here = "none"
        if here != version:
            return f"the worker on {platform.node()} has licorne {here}: install licorne[ray]=={version} there", b""
        from licorne.lab.sweep.on_ray import work  # noqa: PLC0415

        return work(*given)  # type: ignore[arg-type]

    return task


_unpacked: list[Unpacked] = []


def work(
    point: Point, run: Run, workload: Bundle, configuration: Bundle | None, policy: Bundle | None, policy_digest: str
) -> tuple[str, bytes]:
    """Run a point in a worker; return why this cannot be done, or the outcome as JSON."""
    if not _unpacked:
        _unpacked.append(Unpacked())
        atexit.register(_unpacked[0].close)
    parts = {"workload": workload, "configuration": configuration, "policy": policy}
    bundles = {part: bundle for part, bundle in parts.items() if bundle is not None}
    try:
        outcome = run_unpacked(point, run, bundles, policy_digest, _unpacked[0].path_of)
    except EngineError as error:
        return str(error), b""
    return "", msgspec.json.encode(outcome)


def _result(ray: ModuleType, ref: object) -> Outcome:
    try:
        why, outcome = ray.get(ref)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError):
        return Outcome(error=f"its worker was lost {TRIES} times; was there too little memory?")
    except ray.exceptions.RayError as error:
        raise EngineError(f"Ray cannot run points: {str(error).strip().splitlines()[-1]}") from error
    if why:
        raise EngineError(why)
    return msgspec.json.decode(outcome, type=Outcome)
