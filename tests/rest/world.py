"""A scheduler behind its REST interface, without a network: requests go straight to the ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import httpx
import msgspec

from licorne import SchedulerAPI
from licorne.host.log import Log
from licorne.host.web.backend import Backend
from licorne.host.web.figures import metrics
from licorne.host.web.monitor import Monitor
from licorne.host.web.page.past import live_pages
from licorne.host.web.rest import Access, RequestLimits, make_app
from licorne.host.web.settings import WebSettings
from licorne.si import v19
from licorne.si.messages import AddApplication, Allocation, Input, NodeAction, NodeUpdate, Output, Release

SECOND_NS = 10**9
START_NS = 1_795_255_521 * SECOND_NS
CONFIG = """
partitions:
  - name: default
    placementrules:
      - name: provided
        create: true
        filter: {type: deny, users: [mallory]}
      - name: fixed
        value: root.other
    queues:
      - name: root
        submitacl: '*'
        limits:
          - limit: everybody
            users: ['*']
            maxapplications: 100
          - limit: developers
            groups: [dev]
            maxapplications: 50
        queues:
          - name: a
            maxapplications: 5
            properties:
              application.sort.policy: fifo
              priority.offset: '5'
              preemption.delay: 10s
            resources:
              guaranteed: {memory: 100, vcore: 1}
              max: {memory: 100G, vcore: 10}
            limits:
              - limit: alice
                users: [alice]
                maxapplications: 2
                maxresources: {memory: 10G, vcore: 5}
          - name: b
            parent: true
            childtemplate:
              maxapplications: 3
              properties: {application.sort.policy: fair}
              resources:
                max: {memory: 1G}
          - name: other
"""


class World:
    """A scheduler with its REST interface, at a time of its own. However slow the machine is, it shows what is now."""

    def __init__(
        self, access: Access | None = None, limits: RequestLimits | None = None, log: Log | None = None, **options: Any
    ) -> None:
        self.now = START_NS
        self.outputs: list[Output] = []
        self.api = SchedulerAPI(clock=lambda: self.now, on_output=self._told)
        self.build = {"mycluster": {"buildVersion": "latest"}}
        self.backend = Backend(self.api, lambda: self.now, build_info=lambda rm_id: self.build.get(rm_id, {}))
        self.monitor = Monitor(self.backend, "u-u-i-d", WebSettings(**options), log)
        self.failures: list[Exception] = []
        limits = msgspec.structs.replace(limits or RequestLimits(), keep_s=0.0)
        self.app = make_app(
            self.monitor, access=access, limits=limits, pages=live_pages, on_error=lambda _, e: self.failures.append(e)
        )

    def _told(self, rm_id: str, outputs: list[Output]) -> None:
        self.outputs += outputs
        self.monitor.on_outputs(rm_id, outputs)

    def register(self, rm_id: str = "mycluster", text: str = CONFIG, **extra: str) -> World:
        self.api.register_resource_manager(
            v19.RegisterResourceManagerRequest(rm_id=rm_id, config=text, extra_config=extra)
        )
        return self

    def submit(self, *inputs: Input, rm_id: str = "mycluster") -> World:
        self.api.submit(rm_id, inputs)
        return self

    def node(self, name: str, attributes: dict[str, str] | None = None, **capacity: int) -> World:
        return self.submit(
            NodeUpdate(node_id=name, action=NodeAction.CREATE, attributes=attributes or {}, capacity=capacity)
        )

    def application(self, name: str, queue: str = "root.a", user: str = "alice", **fields: Any) -> World:
        return self.submit(AddApplication(application_id=name, queue=queue, user=user, **fields))

    def ask(self, key: str, app: str, **resource: int) -> World:
        return self.submit(Allocation(key=key, application_id=app, resource=resource))

    def release(self, key: str, app: str) -> World:
        return self.submit(Release(application_id=app, key=key))

    def schedule(self, seconds: float = 0.0) -> int:
        self.now += int(seconds * SECOND_NS)
        made = self.api.schedule()
        self.monitor.cycle(0.002, made)
        return made

    # -- requests --------------------------------------------------------------------------------------

    def request(
        self, method: str, path: str, body: bytes | str = b"", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, content=body, headers=headers)

        answer: httpx.Response = run(ask())
        return answer

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
        return httpx.AsyncClient(transport=transport, base_url="http://scheduler")

    def get(self, path: str, status: int = 200) -> Any:
        """The JSON of an answer."""
        answer = self.request("GET", path)
        assert not self.failures, self.failures
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json; charset=UTF-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.content.endswith(b"\n")
        return msgspec.json.decode(answer.content)

    def metrics(self, *, old_queue_names: bool) -> str:
        """All metrics."""
        found = metrics.Snapshot()
        for _ in metrics.fill(found, self.monitor, old_queue_names=old_queue_names):
            pass
        return metrics.Metrics().text(found).decode()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def busy() -> World:
    """One of everything: nodes, an application that runs, asks that wait for different reasons."""
    world = World().register()
    world.node("n1", {"si/hostname": "h1", "si/rackname": "r1"}, memory=10**12, vcore=20_000, pods=110)
    world.node("n2", memory=10**12, vcore=4_000, pods=110).application("app-1", groups=("dev", "ops"))
    world.ask("k1", "app-1", memory=10**6, vcore=10, pods=1)
    world.ask("k2", "app-1", memory=10**6, vcore=8_000)
    world.schedule(1.0)
    world.application("app-2", "root.b.dyn", "bob")
    world.ask("k3", "app-2", vcore=100_000)
    world.schedule(1.0)
    return world
