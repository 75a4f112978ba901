"""The endpoints about the service's own process."""

from __future__ import annotations

import httpx

from common.waiting import WAIT_S
from licorne.grpc.service import Web
from service.peers import service


async def test_stacks_of_threads_and_tasks() -> None:
    """Among them those of gRPC, which are compiled: their frames know no line."""
    async with service(web=Web(addresses=("127.0.0.1:0",))) as made:
        assert made.web is not None
        async with httpx.AsyncClient(base_url=f"http://{made.web.addresses[0]}", timeout=WAIT_S) as client:
            text = (await client.get("/debug/stack")).text
            assert "thread MainThread:\n" in text
            assert "in test_stacks_of_threads_and_tasks\n" in text
            assert "in _request_call\n" in text
