"""The endpoints about the service's own process."""

from __future__ import annotations

from service.peers import watched


async def test_stacks_of_threads_and_tasks() -> None:
    """Among them those of gRPC, which are compiled: their frames know no line."""
    async with watched() as (_, client):
        text = (await client.get("/debug/stack")).text
        assert "thread MainThread:\n" in text
        assert "in test_stacks_of_threads_and_tasks\n" in text
        assert "in _request_call\n" in text
