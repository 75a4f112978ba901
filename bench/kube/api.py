"""What loads the API server in a measurement, and sees when pods are bound: a bare client, without any scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.run import BenchError
from licorne.kube.api import Access

PODS = "/api/v1/namespaces/default/pods"
LABEL = "app=bench"
AT_ONCE = 32
WAIT_S = 180.0


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


def pod(name: str, scheduler: str) -> dict[str, Any]:
    """Return a pod of a tenth of a core. The labels say its application and its queue to those who want to know."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "bench", "applicationId": "bench", "queue": "root.default"},
        },
        "spec": {
            "schedulerName": scheduler,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "none", "resources": resources}],
        },
    }


class Loader:
    """A bare client. All waiting ends with BenchError after `WAIT_S`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.bound: dict[str, float] = {}
        """When each pod was seen with a node, by its name."""
        self._expected: set[str] = set()
        self._all_bound = asyncio.Event()

    async def call(self, method: str, path: str, body: object = None) -> bytes:
        """Call the API server; anything but success is a BenchError."""
        data = None if body is None else msgspec.json.encode(body)
        async with self._session.request(method, path, data=data) as response:
            said = await response.read()
            if response.status >= 300:
                raise BenchError(f"{method} {path}: {response.status} {said[:300]!r}")
            return said

    async def nodes(self) -> list[str]:
        """Return the names of the nodes."""
        return [
            item["metadata"]["name"] for item in msgspec.json.decode(await self.call("GET", "/api/v1/nodes"))["items"]
        ]

    async def create(self, names: list[str], scheduler: str) -> None:
        """Create pods."""
        await _all(lambda name: self.call("POST", PODS, pod(name, scheduler)), names)

    async def bind(self, names: list[str], nodes: list[str]) -> float:
        """Bind pods to nodes in turn, as a scheduler would that has nothing to decide. Returns bindings per second."""
        where = {name: nodes[number % len(nodes)] for number, name in enumerate(names)}

        async def one(name: str) -> None:
            target = {"apiVersion": "v1", "kind": "Node", "name": where[name]}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self.call("POST", f"{PODS}/{name}/binding", body)

        began = time.perf_counter()
        await _all(one, names)
        return len(names) / (time.perf_counter() - began)

    async def clear(self) -> None:
        """Delete all pods of the measurements, and wait until they are gone."""
        await self.call("DELETE", f"{PODS}?labelSelector={LABEL}&gracePeriodSeconds=0")
        async with _limit("the pods are not gone"):
            while msgspec.json.decode(await self.call("GET", f"{PODS}?labelSelector={LABEL}&limit=1"))["items"]:  # noqa: ASYNC110  they end at the API server
                await asyncio.sleep(0.5)

    @contextlib.asynccontextmanager
    async def watching(self, names: list[str]) -> AsyncIterator[None]:
        """Note when each of these pods is bound."""
        self.bound, self._expected = {}, set(names)
        self._all_bound.clear()
        listed = msgspec.json.decode(await self.call("GET", f"{PODS}?limit=1"))
        task = asyncio.create_task(self._watch(listed["metadata"]["resourceVersion"]))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def all_bound(self) -> None:
        """Wait until all expected pods are bound."""
        async with _limit(f"of {len(self._expected)} pods not all are bound"):
            await self._all_bound.wait()

    def rate(self) -> float:
        """Return the pods bound per second, from the first binding to the last."""
        times = sorted(self.bound.values())
        return len(times) / (times[-1] - times[0])

    async def _watch(self, version: str) -> None:
        decoder = msgspec.json.Decoder(_Event)
        while True:  # the API server ends the watch of a client that falls behind
            path = f"{PODS}?watch=1&labelSelector={LABEL}&resourceVersion={version}"
            async with self._session.get(path) as response:
                async for line in response.content:
                    event = decoder.decode(line)
                    version = event.object.metadata.resource_version
                    name = event.object.metadata.name
                    if event.object.spec.node_name and name in self._expected and name not in self.bound:
                        self.bound[name] = time.perf_counter()
                        if len(self.bound) == len(self._expected):
                            self._all_bound.set()


@contextlib.asynccontextmanager
async def _limit(what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAIT_S):
            yield
    except TimeoutError:
        raise BenchError(f"{what} after {WAIT_S:.0f} s") from None


async def _all(call: Callable[[str], Awaitable[object]], names: list[str]) -> None:
    waiting = iter(names)

    async def work() -> None:
        for name in waiting:
            await call(name)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


@contextlib.asynccontextmanager
async def loader(kubeconfig: Path) -> AsyncIterator[Loader]:
    """Connect to the API server of a kubeconfig."""
    access = Access.load(str(kubeconfig))
    own = await access.headers()  # before its TLS context, which this brings up to date
    async with aiohttp.ClientSession(
        access.server,
        connector=aiohttp.TCPConnector(ssl=access.ssl or True, limit=AT_ONCE + 4),
        headers={**own, "Content-Type": "application/json", "Accept": "application/json"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        read_bufsize=1 << 20,
    ) as session:
        yield Loader(session)
