"""`python -m bench.kube.played NODES PODS WAITING`: plays the API server of a large cluster over HTTP, on loopback.

Running pods are spread evenly over the nodes and never change; `POST /play/N` creates N pods that wait. Bindings take
effect and are told to watches. Each pod has some 3 KiB, as pods of a real cluster have. The first line of its output is
its port; `GET /played` tells what has happened.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
from aiohttp import web

BATCH = 200
"""Objects that are written together."""
ZONE = "topology.kubernetes.io/zone"
MANAGED = [
    {
        "manager": f"manager-{number}",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:field{field}": {".": {}, "f:name": {}, "f:value": {}} for field in range(24)},
    }
    for number in range(2)
]
AMOUNTS = {"cpu": "64", "memory": "512Gi", "pods": "250"}


def zone(node_name: str) -> str:
    """Return the zone of a node."""
    return f"z{int(node_name.rpartition('-')[2]) % 3}"


def node(number: int) -> dict[str, Any]:
    """Return a node."""
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, ZONE: zone(name)}
    return {
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": labels, "managedFields": MANAGED},
        "spec": {},
        "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS},
    }


def pod(name: str, version: int, node_name: str = "") -> dict[str, Any]:
    """Return a pod; one with a node runs."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    variables = [{"name": f"VARIABLE_{number}", "value": f"value {number}"} for number in range(8)]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"00000000-0000-0000-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "bench", "applicationId": f"app-{hash(name) % 1000}", "queue": "root.default"},
            "managedFields": MANAGED,
        },
        "spec": {
            "schedulerName": "yunikorn",
            **({"nodeName": node_name} if node_name else {}),
            "containers": [{"name": "c", "image": "none", "env": variables, "resources": resources}],
            "tolerations": [
                {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute"}
                for what in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def event(kind: str, made: dict[str, Any]) -> bytes:
    """Return an event of a watch."""
    return msgspec.json.encode({"type": kind, "object": made}) + b"\n"


class Played:
    """The cluster."""

    def __init__(self, nodes: int, pods: int, waiting: int) -> None:
        self.nodes, self.running = nodes, pods
        self.version = 2
        self.waiting: dict[str, dict[str, Any]] = {}
        self.changes: list[bytes] = []
        self.changed = asyncio.Event()
        self.bindings: dict[str, float] = {}
        self.held: dict[str, Any] | None = None
        for _ in range(waiting):
            self.create()

    def create(self) -> None:
        """Create a pod that waits."""
        self.version += 1
        name = f"w{self.version}"
        self.waiting[name] = pod(name, self.version)
        self._tell("ADDED", self.waiting[name])

    def _tell(self, kind: str, made: dict[str, Any]) -> None:
        self.changes.append(event(kind, made))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def objects(self, plural: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of a kind."""
        if plural == "nodes":
            yield from map(node, range(self.nodes))
        elif plural == "namespaces":
            yield {"metadata": {"name": "default", "uid": "default", "resourceVersion": "1"}}
        elif plural == "pods":
            for number in range(self.running):
                yield pod(f"r{number}", 1, f"node-{number % self.nodes}")
            yield from list(self.waiting.values())

    async def watch(self, plural: str, *, initial: bool) -> AsyncIterator[bytes]:
        """Yield what a watch tells, without end."""
        if not initial:
            raise web.HTTPGone
        seen, version = len(self.changes), self.version
        batch = b""
        for number, made in enumerate(self.objects(plural)):
            batch += event("ADDED", made)
            if number % BATCH == 0:
                yield batch
                batch = b""
        meta = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
        yield batch + event("BOOKMARK", {"metadata": meta})
        if plural != "pods":
            await asyncio.Event().wait()  # nothing changes
        while True:
            changed = self.changed
            if seen == len(self.changes):
                await changed.wait()
            news, seen = self.changes[seen:], len(self.changes)
            yield b"".join(news)

    # -- requests -----------------------------------------------------------------------------------------------

    async def collection(self, request: web.Request) -> web.StreamResponse:
        """Answer a watch; a list is only asked for its version."""
        plural = request.match_info["plural"]
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "items": []})
        response = web.StreamResponse()
        await response.prepare(request)
        async for batch in self.watch(plural, initial="sendInitialEvents" in request.query):
            await response.write(batch)
        return response

    async def bind(self, request: web.Request) -> web.Response:
        """Bind a pod."""
        name = request.match_info["name"]
        target = msgspec.json.decode(await request.read())["target"]["name"]
        made = self.waiting.get(name)
        if made is None or made["spec"].get("nodeName"):
            return web.json_response({"reason": "Conflict", "message": "bound already"}, status=409)
        self.version += 1
        made["spec"]["nodeName"] = target
        made["metadata"]["labels"] |= {ZONE: zone(target)}  # as the admission plugin PodTopologyLabels does
        made["metadata"]["resourceVersion"] = str(self.version)
        self.bindings[name] = time.time()
        self._tell("MODIFIED", made)
        return web.json_response({"status": "Success"}, status=201)

    async def lease(self, request: web.Request) -> web.Response:
        """Keep the Lease as it was written last."""
        if request.method != "GET":
            self.version += 1
            self.held = await request.json()
            self.held["metadata"]["resourceVersion"] = str(self.version)
        if self.held is None:
            return web.json_response({"reason": "NotFound"}, status=404)
        return web.json_response(self.held)

    async def play(self, request: web.Request) -> web.Response:
        """Create pods, some at a time."""
        for number in range(int(request.match_info["count"])):
            self.create()
            if number % 20 == 0:
                await asyncio.sleep(0)
        return web.json_response({})

    async def played(self, _: web.Request) -> web.Response:
        """Tell how many bindings there were, and when the first and the last."""
        times = sorted(self.bindings.values()) or [0.0]
        return web.json_response({"bindings": len(self.bindings), "first": times[0], "last": times[-1]})


async def accept(_: web.Request) -> web.Response:
    """Take any other write."""
    return web.json_response({}, status=201)


def application(played: Played) -> web.Application:
    """Return what answers requests: collections of any kind, most of them empty, and writes."""
    app = web.Application(client_max_size=1 << 20)
    core = "/api/v1"
    app.router.add_post(core + "/namespaces/default/pods/{name}/binding", played.bind)
    app.router.add_get(core + "/{plural}", played.collection)
    app.router.add_get(core + "/namespaces/default/{plural}", played.collection)
    app.router.add_route("*", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases{name:.*}", played.lease)
    app.router.add_get("/apis/{group}/{version}/{plural}", played.collection)
    app.router.add_post("/play/{count}", played.play)
    app.router.add_get("/played", played.played)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        app.router.add_route(method, "/{rest:.*}", accept)
    return app


async def main(nodes: int, pods: int, waiting: int) -> None:
    """Serve until ended."""
    runner = web.AppRunner(application(Played(nodes, pods, waiting)), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)  # noqa: T201  whoever started this reads it
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
