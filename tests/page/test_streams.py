"""Streams tell a page when something has changed; there is a bounded number of them, and together they look seldom enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from licorne.host.web.page import live as streams
from licorne.host.web.page.live import CHANGED, SAME, Streams
from licorne.host.web.rest.errors import RestError
from rest.world import World, busy, run


async def listening(world: World, work: Callable[[asyncio.Queue[Any], asyncio.Event], Any]) -> None:
    """Open a stream; `work` gets the messages, and the end of the client."""
    said: asyncio.Queue[Any] = asyncio.Queue()
    gone = asyncio.Event()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/live",
        "query_string": b"",
        "headers": [(b"accept-encoding", b"gzip")],
    }

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    serving = asyncio.create_task(world.app(scope, receive, said.put))
    await work(said, gone)
    await serving


async def next_of(said: asyncio.Queue[Any], *, unlike: bytes = b"") -> bytes:
    while (message := await said.get())["body"] == unlike:
        pass
    return bytes(message["body"])


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LEAST_S", 0.0)
    monkeypatch.setattr(streams, "LOOKS_PER_S", 1e6)


def test_a_change_is_told_and_nothing_else() -> None:
    world = busy()

    async def work(said: asyncio.Queue[Any], gone: asyncio.Event) -> None:
        start = await said.get()
        assert start["status"] == 200
        headers = dict(start["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream") and b"content-encoding" not in headers
        assert [await next_of(said) for _ in range(5)] == [SAME] * 5
        world.ask("more", "app-1", vcore=1)
        assert await next_of(said, unlike=SAME) == CHANGED
        gone.set()

    run(listening(world, work))


def test_a_change_is_told_again_when_no_list_of_before_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEPT_S", 0.05)
    world = busy()

    async def work(said: asyncio.Queue[Any], gone: asyncio.Event) -> None:
        await said.get()
        assert await next_of(said) == SAME
        world.ask("more", "app-1", vcore=1)
        assert await next_of(said, unlike=SAME) == CHANGED
        assert await next_of(said, unlike=SAME) == CHANGED
        gone.set()

    run(listening(world, work))


def test_streams_end_with_the_server() -> None:
    world = busy()

    async def work(said: asyncio.Queue[Any], _gone: asyncio.Event) -> None:
        await said.get()
        world.app.handlers.ending.set()
        while (await said.get())["more_body"]:
            pass

    run(listening(world, work))


def test_one_stream_too_many_is_refused_and_many_look_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LEAST_S", 2.0)
    monkeypatch.setattr(streams, "LOOKS_PER_S", 5.0)

    async def version() -> object:
        return 0

    found = Streams(asyncio.Event())
    assert found.pause_s == 2.0
    for number in range(3):
        found.open[f"client {number}"] = streams.CLIENT_MAX
    assert found.pause_s == 48 / 5.0
    assert found.response(version, "client 3").status_code == 200
    found.open["client 3"] = streams.CLIENT_MAX - 1
    assert found.response(version, "client 3").status_code == 200
    found.open["client 3"] += 1
    found.open["client 0"] -= 1
    for client in ("client 3", "client 1"):  # though there is room for others
        with pytest.raises(RestError) as refused:
            found.response(version, client)
        assert refused.value.status == 503
    found.open["client 0"] += 1
    with pytest.raises(RestError):
        found.response(version, "client 4")
