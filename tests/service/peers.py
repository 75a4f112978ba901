"""Resource managers written without this project's client: plain gRPC over bytes, in either dialect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import grpc
import httpx

from common.waiting import WAIT_S
from licorne.grpc.service import Service, ServiceSettings, Web
from licorne.si import first, v19, wire

METHODS = {
    "node": "UpdateNode",
    "application": "UpdateApplication",
    "allocation": "UpdateAllocation",
    "update": "Update",
}
RESPONSES: dict[str, Any] = {
    "node": v19.NodeResponse,
    "application": v19.ApplicationResponse,
    "allocation": v19.AllocationResponse,
    "update": first.UpdateResponse,
}
OPTIONS = (("grpc.use_local_subchannel_pool", 1),)  # a connection of its own, as another process would have


@asynccontextmanager
async def service(*addresses: str, **given: Any) -> AsyncIterator[Service]:
    """Run a service on a free port, with settings by name."""
    settings = ServiceSettings(**{"grace_s": 0.5, **given.pop("settings", {})})
    async with Service(addresses or ("127.0.0.1:0",), settings=settings, **given) as made:
        yield made


def client_of(made: Service) -> httpx.AsyncClient:
    """A client of the service's REST interface."""
    assert made.web is not None
    return httpx.AsyncClient(base_url=f"http://{made.web.addresses[0]}", timeout=WAIT_S)


@asynccontextmanager
async def watched(**given: Any) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """Run a service with REST, and a client of that."""
    async with service(**{"web": Web(addresses=("127.0.0.1:0",)), **given}) as made, client_of(made) as client:
        yield made, client


class Peer:
    """A resource manager that sends the messages that a test gives."""

    def __init__(self, address: str, rm_id: str = "rm", *, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        self.rm_id = rm_id
        self.channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self.metadata = metadata
        self.calls: dict[str, Any] = {}
        self.registration = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for call in self.calls.values():
            call.cancel()
        await self.channel.close()

    async def register(self, **fields: Any) -> None:
        request = v19.RegisterResourceManagerRequest(rm_id=self.rm_id, **fields)
        method: Any = self.channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager")
        call = method(wire.encode(request), metadata=self.metadata, timeout=WAIT_S)
        assert await call == b""
        self.registration = str(dict([*await call.trailing_metadata()])["licorne-registration"])

    def call(self, kind: str) -> Any:
        if kind not in self.calls:
            method: Any = self.channel.stream_stream(f"/si.v1.Scheduler/{METHODS[kind]}")
            self.calls[kind] = method(metadata=self.metadata)
        return self.calls[kind]

    async def send(self, kind: str, request: Any) -> None:
        data = request if isinstance(request, bytes) else wire.encode(request)
        await asyncio.wait_for(self.call(kind).write(data), WAIT_S)

    async def read(self, kind: str) -> Any:
        """The next response; None at the end of the stream."""
        data = await asyncio.wait_for(self.call(kind).read(), WAIT_S)
        return None if data is grpc.aio.EOF else wire.decode(RESPONSES[kind], data)

    async def ending(self, kind: str) -> tuple[grpc.StatusCode, str]:
        """How a stream ends, whatever comes before."""
        call = self.call(kind)
        try:
            while await asyncio.wait_for(call.read(), WAIT_S) is not grpc.aio.EOF:
                pass
        except grpc.aio.AioRpcError:
            pass
        return await call.code(), await call.details()

    # -- 1.9

    async def node(self, node_id: str = "n1", **amounts: int) -> Any:
        info = v19.NodeInfo(
            node_id=node_id, action=v19.ActionFromRM.CREATE, schedulable_resource=amounts or {"vcore": 4000}
        )
        await self.send("node", v19.NodeRequest(rm_id=self.rm_id, nodes=[info]))
        return await self.read("node")

    async def application(self, application_id: str = "app") -> Any:
        app = v19.AddApplicationRequest(
            application_id=application_id, ugi=v19.UserGroupInformation(user="ann"), tags={"namespace": "dev"}
        )
        await self.send("application", v19.ApplicationRequest(rm_id=self.rm_id, new=[app]))
        return await self.read("application")

    async def asks(self, *keys: str, application_id: str = "app", **amounts: int) -> None:
        asks = [
            v19.Allocation(
                allocation_key=key, application_id=application_id, resource_per_alloc=amounts or {"vcore": 1000}
            )
            for key in keys
        ]
        await self.send("allocation", v19.AllocationRequest(rm_id=self.rm_id, allocations=asks))

    async def allocations(self, count: int) -> dict[str, str]:
        """The next allocations: key to node."""
        found: dict[str, str] = {}
        while len(found) < count:
            response = await self.read("allocation")
            assert not response.rejected_allocations, response
            for new in response.new:
                assert new.allocation_key not in found
                found[new.allocation_key] = new.node_id
        return found

    async def running(self, vcore: int = 4000) -> None:
        """Register, with a node of this size and an application."""
        await self.register()
        assert (await self.node(vcore=vcore)).accepted
        assert (await self.application()).accepted
