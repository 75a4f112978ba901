"""Calls to the API server over HTTP: what is sent, and what is made of answers that come in pieces or are of no use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube.test_access import kubeconfig
from licorne.kube.api import Access, ApiError, Client, ExpiredError, UnansweredError, WatchEvent
from licorne.kube.api import client as client_module
from licorne.kube.api.kinds import PODS
from licorne.kube.objects import Pod

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def stored(name: str, version: int = 1, **spec: Any) -> dict[str, Any]:
    """Return a pod as the API server writes it."""
    return {"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)}, "spec": spec}


def line(kind: str, content: Any) -> bytes:
    """Return an event of a watch."""
    return json.dumps({"type": kind, "object": content}).encode() + b"\n"


@asynccontextmanager
async def served(answer: Answer, folder: Path, user: Any = None, *, below: str = "") -> AsyncIterator[Client]:
    """Serve HTTP on loopback, and connect a client. `below`: the path of the server's address."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        access = Access.load(kubeconfig(folder, user, server=site_address(runner) + below))
        async with Client(access) as client:
            yield client
    finally:
        await runner.cleanup()


def site_address(runner: web.AppRunner) -> str:
    """Return the address on which a server listens."""
    host, port = runner.addresses[0]
    return f"http://{host}:{port}"


async def watched(client: Client) -> list[list[WatchEvent[Pod]]]:
    """Return what a watch yields until it ends."""
    return [events async for events in client.watch(PODS, initial=True)]


def of_pieces(*pieces: bytes) -> Answer:
    """Return an answer that comes in pieces, with a moment between any two."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0.01)
        return response

    return answer


def test_no_answer_is_asked_for_compressed(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append((request.method, request.headers.get("Accept-Encoding", "anything")))
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async def run() -> None:
        async with served(answer, tmp_path) as client:
            await client.list_page(PODS)
            await client.bind("n", "p", "u", "n1")
            await watched(client)

    asyncio.run(run())
    assert asked == [("GET", "identity"), ("POST", "identity"), ("GET", "identity")]


@pytest.mark.parametrize("below", ["", "/", "/k8s/clusters/c-1", "/k8s/clusters/c-1/"])
def test_the_address_of_a_server_may_have_a_path(tmp_path: Path, below: str) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path_qs)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    async def run() -> None:
        async with served(answer, tmp_path, below=below) as client:
            await client.list_page(PODS, limit=5, newest=True)
            await client.bind("n", "p", "u", "n1")

    asyncio.run(run())
    pods, binding = asked
    assert pods.partition("?")[0] == f"{below.rstrip('/')}/api/v1/pods"
    assert binding == f"{below.rstrip('/')}/api/v1/namespaces/n/pods/p/binding"


def test_a_watch_reads_lines_wherever_they_are_cut(tmp_path: Path) -> None:
    lines = [line("ADDED", stored(f"p{number}", number)) for number in range(1, 4)]
    lines.append(line("BOOKMARK", {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}))  # fmt: skip
    whole = b"".join(lines)

    async def run(cut: int) -> list[WatchEvent[Pod]]:
        async with served(of_pieces(whole[:cut], whole[cut:]), tmp_path) as client:
            return [event for events in await watched(client) for event in events]

    for cut in (1, len(lines[0]) - 1, len(lines[0]), len(lines[0]) + 1, len(whole) - 1):
        events = asyncio.run(run(cut))
        assert [(event.type, event.version, event.end_of_list) for event in events] == [
            ("ADDED", "1", False),
            ("ADDED", "2", False),
            ("ADDED", "3", False),
            ("BOOKMARK", "9", True),
        ]


def test_an_object_that_cannot_be_read_is_a_fault_and_the_others_count(tmp_path: Path) -> None:
    bad = stored("bad", 2, containers="none")
    strange = {"metadata": bad["metadata"] | {"labels": 7}}
    pieces = of_pieces(
        line("ADDED", stored("a")),
        line("ADDED", bad),
        b"no JSON\n",
        line("MODIFIED", stored("b", 3)),
        line("MODIFIED", strange),
        line("DELETED", bad),
        line("ADDED", stored("c")).replace(b'"c"', b'"\xff"'),
    )

    async def run() -> list[WatchEvent[Pod]]:
        async with served(pieces, tmp_path) as client:
            return [event for events in await watched(client) for event in events]

    events = asyncio.run(run())
    assert [event.type for event in events] == ["ADDED", "FAULT", "FAULT", "MODIFIED", "FAULT", "DELETED", "FAULT"]
    faults = [event.fault for event in events if event.fault is not None]
    assert [fault.text.partition(":")[0] for fault in faults] == [
        "Pod n/bad cannot be read",
        "Pod cannot be read",
        "Pod n/bad cannot be read",
        "Pod n/bad cannot be read",
        "Pod cannot be read",
    ]
    unnamed, named = ("", "", ""), ("n", "bad", "bad")
    assert [(fault.namespace, fault.name, fault.uid) for fault in faults[1:]] == [unnamed, named, named, unnamed]


def test_the_same_in_a_list(tmp_path: Path) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        items = [stored("a"), stored("bad", 2, containers="none"), stored("b", 3)]
        return web.json_response({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": items})

    async def run() -> None:
        async with served(answer, tmp_path) as client:
            page = await client.list_page(PODS)
            assert [pod.metadata.name for pod in page.items] == ["a", "b"]
            assert (page.version, page.next) == ("7", "more")
            [fault] = page.faults
            assert fault.text.startswith("Pod n/bad cannot be read: ")
            assert (fault.namespace, fault.name, fault.uid) == ("n", "bad", "bad")

    asyncio.run(run())


def test_a_watch_that_is_too_old_has_expired_also_in_the_middle(tmp_path: Path) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}

    async def run() -> None:
        async with served(of_pieces(line("ADDED", stored("a")), line("ERROR", gone)), tmp_path) as client:
            with pytest.raises(ExpiredError, match="410 Expired: too old"):
                await watched(client)

    asyncio.run(run())


def test_an_event_beyond_the_bound_ends_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "EVENT_BYTES_MAX", 1000)

    async def run() -> None:
        async with served(of_pieces(b"x" * 1001), tmp_path) as client:
            with pytest.raises(UnansweredError, match="longer than 1000 bytes"):
                await watched(client)

    asyncio.run(run())


def test_a_connection_that_breaks_off_is_no_answer(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(line("ADDED", stored("a"))[:50])
        assert request.transport is not None
        request.transport.close()
        return response

    async def run() -> None:
        async with served(answer, tmp_path) as client:
            with pytest.raises(UnansweredError):
                await watched(client)
            with pytest.raises(UnansweredError):
                await client.get(PODS, "n", "a")

    asyncio.run(run())


def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers["Authorization"])
        if seen[-1] != "Bearer new":
            token.write_text("new")
            return web.json_response({"reason": "Unauthorized", "message": "who are you"}, status=401)
        return web.json_response(stored("a"))

    async def run() -> None:
        async with served(answer, tmp_path, {"tokenFile": str(token)}) as client:
            assert (await client.get(PODS, "n", "a")).metadata.name == "a"

    asyncio.run(run())
    assert seen == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    ("status", "body", "after", "said"),
    [
        (409, '{"reason": "Conflict", "message": "it has a node"}', None, "409 Conflict: it has a node"),
        (429, '{"reason": "TooManyRequests", "message": "later"}', "7", "429 TooManyRequests: later"),
        (502, "<html>a proxy</html>", None, "502: <html>a proxy</html>"),
        (500, '{"reason": 5}', "soon", '500: {"reason": 5}'),
    ],
)
def test_refusals_say_what_the_server_said(
    status: int, body: str, after: str | None, said: str, tmp_path: Path
) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body, headers={"Retry-After": after} if after else None)

    async def run() -> None:
        async with served(answer, tmp_path) as client:
            with pytest.raises(ApiError) as caught:
                await client.bind("n", "p", "u", "n1")
        assert str(caught.value) == said
        assert caught.value.status == status
        assert caught.value.retry_after_s == (7.0 if after == "7" else None)

    asyncio.run(run())


async def test_nobody_there_is_no_answer(tmp_path: Path) -> None:
    async with served(of_pieces(), tmp_path) as client:
        address = client.access.server
    async with Client(Access.load(kubeconfig(tmp_path, server=address))) as client:
        with pytest.raises(UnansweredError, match="POST /api/v1/namespaces/n/pods/p/binding") as caught:
            await client.bind("n", "p", "u", "n1")
    host = address.removeprefix("http://")
    assert f"cannot connect to {host}: [Errno" in str(caught.value), "and nothing of Python's TLS context"


def test_a_body_that_cannot_be_encoded_is_refused_without_a_request(tmp_path: Path) -> None:
    asked = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response({})

    async def scenario() -> None:
        async with served(answer, tmp_path) as client:
            for value in ("\ud800", {"\ud800": 1}, object()):
                with pytest.raises(ApiError, match="cannot be encoded") as caught:
                    await client.create("/api/v1/namespaces/n/pods", {"kind": value})
                assert caught.value.status == 400
            await client.create("/api/v1/namespaces/n/pods", {})

    asyncio.run(scenario())
    assert asked == ["/api/v1/namespaces/n/pods"]
