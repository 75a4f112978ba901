"""Rules for every request: methods, redirects, headers, errors, escapes, compression.

Source: docs/spec/rest-api.md, section 1.
"""

from __future__ import annotations

import gzip
from typing import Any

import httpx
import pytest

from licorne.core.placement.rules import INVALID_QUEUE_NAME
from licorne.host.web.rest import Access, RequestLimits
from rest.world import CONFIG, World, busy, run

P = "/ws/v1/partition/default"
STATES = "Only following application states are allowed: active, rejected, completed"
STATUSES = "Only following active statuses are allowed: new,accepted,running,completing,failing,resuming"

ERRORS = [
    ("/ws/v1/partition/none/queues", 404, "Partition not found"),
    ("/ws/v1/partition/none/nodes", 404, "Partition not found"),
    ("/ws/v1/partition//queues", 400, "Missing parameters"),
    (f"{P}/queue/root.none", 404, "Queue not found"),
    (f"{P}/queue/root.a%2521", 400, INVALID_QUEUE_NAME),
    ("/ws/v1/partition/none/queue/root.!", 400, INVALID_QUEUE_NAME),
    ("/ws/v1/partition/none/queue/root.a", 404, "Partition not found"),
    (f"{P}/queue/root.none/applications", 404, "Queue not found"),
    (f"{P}/queue/root.a/applications/completed", 400, "Only following application states are allowed: active"),
    (f"{P}/queue/root.a/applications/active?status=x", 400, STATUSES),
    (f"{P}/applications/x", 400, STATES),
    (f"{P}/applications/active?status=x", 400, STATUSES),
    (f"{P}/application/none", 404, "Application not found"),
    (f"{P}/queue/root.a/application/app-2", 404, "Application not found"),
    (f"{P}/node/none", 404, "Node not found"),
    (f"{P}/usage/user/none", 404, "User not found"),
    (f"{P}/usage/user/1none", 400, "Invalid user name"),
    ("/ws/v1/partition/none/usage/user/1none", 400, "Invalid user name"),
    (f"{P}/usage/group/none", 404, "Group not found"),
    (f"{P}/usage/group/no+ne", 400, "Invalid group name"),
    ("/ws/v1/scheduler/healthcheck", 404, "Health check is not available"),
    ("/ws/v1/events/batch?count=0", 400, '0 is not a valid value for "count"'),
    ("/ws/v1/events/batch?count=x", 400, 'strconv.ParseUint: parsing "x": invalid syntax'),
    ("/ws/v1/events/batch?start=-1", 400, 'strconv.ParseUint: parsing "-1": invalid syntax'),
    (
        "/ws/v1/events/batch?start=18446744073709551616",
        400,
        'strconv.ParseUint: parsing "18446744073709551616": value out of range',
    ),
    ("/ws/v1/config?rm=none", 404, "Resource manager none not found"),
]


@pytest.fixture(scope="module")
def world() -> World:
    return busy()


@pytest.mark.parametrize(("path", "status", "message"), ERRORS)
def test_errors(world: World, path: str, status: int, message: str) -> None:
    found = world.get(path, status)
    assert found == {"status_code": status, "message": message, "description": message}
    assert list(found) == ["status_code", "message", "description"]


FOUND = [
    f"{P}/queue/ROOT.A",
    f"{P}/queue/Root.a?subtree=",
    f"{P}/queue/root%2Ea",
    f"{P}/queue/root%252Ea",
    "/ws/v1/partition/%5Bmycluster%5Ddefault/queues",
    "/ws/v1/partition/[mycluster]default/queues",
]


@pytest.mark.parametrize("path", FOUND)
def test_names_in_other_spellings(world: World, path: str) -> None:
    assert world.get(path)["queuename"].startswith("root")


def test_a_slash_in_a_name_may_be_escaped_once_or_twice() -> None:
    text = "partitions: [{name: default, queues: [{name: 'x/y'}, {name: 'p:q'}]}]"
    world = World().register(text=text)
    for path in ("root.x%2Fy", "root.x%252Fy", "root.x%252fy"):
        assert world.get(f"{P}/queue/{path}")["queuename"] == "root.x/y"
    assert world.request("GET", f"{P}/queue/root.x/y").status_code == 404
    assert world.get(f"{P}/queue/root.p:q")["queuename"] == "root.p:q"


def test_odd_ids_can_be_reached() -> None:
    world = World().register().node("a b+c/ü%2F", vcore=1)
    for escaped in ("a%20b%2Bc%2F%C3%BC%252F", "a%2520b%252Bc%252F%25C3%25BC%25252F"):
        assert world.get(f"{P}/node/{escaped}")["nodeID"] == "a b+c/ü%2F"


REDIRECTS = [
    ("/ws/v1/clusters/", "/ws/v1/clusters"),
    ("/WS/v1/Clusters", "/ws/v1/clusters"),
    (f"{P}/queue/Root.A/Applications?status=new", f"{P}/queue/Root.A/applications?status=new"),
    ("/ws/v1/stack", "/debug/stack"),
    ("/ws/v1/fullstatedump", "/debug/fullstatedump"),
]


@pytest.mark.parametrize(("path", "target"), REDIRECTS)
def test_redirects(world: World, path: str, target: str) -> None:
    answer = world.request("GET", path)
    assert (answer.status_code, answer.headers["location"]) == (301, target)


PLAIN = [
    ("GET", "/nothing", 404, "404 page not found\n"),
    ("GET", "/ws/v1/none", 404, "404 page not found\n"),
    ("GET", "/ws/v1/partition/default", 404, "404 page not found\n"),
    ("HEAD", "/ws/v1/clusters", 405, ""),
    ("DELETE", "/ws/v1/clusters", 405, "Method Not Allowed\n"),
    ("POST", "/ws/v1/clusters", 405, "Method Not Allowed\n"),
    ("GET", "/ws/v1/validate-conf", 405, "Method Not Allowed\n"),
]


@pytest.mark.parametrize(("method", "path", "status", "text"), PLAIN)
def test_plain_refusals(world: World, method: str, path: str, status: int, text: str) -> None:
    answer = world.request(method, path)
    assert (answer.status_code, answer.text) == (status, text)
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_options(world: World) -> None:
    answer = world.request("OPTIONS", "/ws/v1/clusters")
    assert (answer.status_code, answer.text, answer.headers["allow"]) == (200, "", "GET, OPTIONS")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert world.request("OPTIONS", "/ws/v1/validate-conf").headers["allow"] == "POST, OPTIONS"
    assert world.request("OPTIONS", "/ws/v1/none").status_code == 404


def test_pages_of_other_servers_may_read(world: World) -> None:
    headers = world.request("GET", "/ws/v1/clusters").headers
    assert headers["access-control-allow-origin"] == "*"
    assert headers["access-control-allow-methods"] == "GET, OPTIONS"
    assert headers["access-control-allow-headers"] == "X-Requested-With,Content-Type,Accept,Origin"
    assert world.request("GET", f"{P}/node/none").headers["access-control-allow-origin"] == "*"
    for path in ("/ws/v1/stack", "/ws/v1/clusters/"):
        moved = world.request("GET", path)
        assert moved.status_code == 301
        assert "access-control-allow-origin" not in moved.headers


def _raw(world: World, path: str, accept: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        async with (
            world.client() as client,
            client.stream("GET", path, headers={"accept-encoding": accept}) as answer,
        ):
            answer._content = b"".join([piece async for piece in answer.aiter_raw()])
            return answer

    found: httpx.Response = run(ask())
    return found


COMPRESSED = [
    (f"{P}/queues", "gzip", True),
    (f"{P}/queues", "deflate, gzip;q=0.5", True),
    (f"{P}/queues", "gzip;q=0", False),
    (f"{P}/queues", "identity", False),
    ("/ws/v1/clusters", "gzip", False),
    ("/ws/v1/metrics", "gzip", True),
]


@pytest.mark.parametrize(("path", "accept", "compressed"), COMPRESSED)
def test_compression(world: World, path: str, accept: str, compressed: bool) -> None:
    answer = _raw(world, path, accept)
    plain = world.request("GET", path, headers={"accept-encoding": "identity"}).content
    assert answer.headers.get("content-encoding") == ("gzip" if compressed else None)
    found = gzip.decompress(answer._content) if compressed else answer._content
    if path != "/ws/v1/metrics":  # whose process figures change
        assert found == plain
    assert found[:1] != b"\x1f"  # once only


# -- several resource managers ---------------------------------------------------------------------------


def test_two_partitions_of_one_name() -> None:
    world = World().register("one").register("two")
    message = "Partition not found: default may be any of [one]default, [two]default"
    assert world.get(f"{P}/queues", 404)["message"] == message
    shown = ["[one]default", "[two]default"]
    assert [cluster["partition"] for cluster in world.get("/ws/v1/clusters")] == shown
    assert [partition["name"] for partition in world.get("/ws/v1/partitions")] == shown
    for name in shown:
        assert world.get(f"/ws/v1/partition/{name}/queues")["partition"] == name
    world.api.stop("one")
    assert world.get(f"{P}/queues")["partition"] == "default"
    assert world.get("/ws/v1/partition/[two]default/queues")["partition"] == "default"


# -- access and limits -----------------------------------------------------------------------------------

ACCESS = Access(read_tokens=("reader",), admin_tokens=("boss", "chief"))
WHO = [
    ("", "GET", "/ws/v1/clusters", 401),
    ("Bearer wrong", "GET", "/ws/v1/clusters", 401),
    ("Basic reader", "GET", "/ws/v1/clusters", 401),
    ("Bearer reader", "GET", "/ws/v1/clusters", 200),
    ("bearer chief", "GET", "/ws/v1/clusters", 200),
    ("", "GET", "/ws/v1/metrics", 401),
    ("", "GET", "/debug/stack", 401),
    ("", "POST", "/ws/v1/validate-conf", 401),
    ("Bearer reader", "POST", "/ws/v1/validate-conf", 200),
    ("", "PUT", "/ws/v1/config", 401),
    ("Bearer reader", "PUT", "/ws/v1/config", 403),
    ("Bearer reader", "POST", "/ws/v1/config", 403),
    ("Bearer boss", "PUT", "/ws/v1/config", 409),
]


@pytest.mark.parametrize(("header", "method", "path", "status"), WHO)
def test_roles(header: str, method: str, path: str, status: int) -> None:
    world = World(ACCESS).register()
    answer = world.request(method, path, b"", {"authorization": header} if header else None)
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) == (status == 401)
    if status in (401, 403):
        assert answer.json()["status_code"] == status


@pytest.mark.parametrize("path", ["/debug/stack", "/debug/fullstatedump"])
def test_pages_of_other_servers_may_not_read_process_internals(path: str) -> None:
    for method in ("GET", "OPTIONS"):
        headers = World().register().request(method, path).headers
        assert not any(name.startswith("access-control") for name in headers)
    with_token = World(ACCESS).register().request("GET", path, headers={"authorization": "Bearer reader"})
    assert with_token.headers["access-control-allow-origin"] == "*"


def test_a_page_of_another_server_changes_nothing() -> None:
    headers = {"origin": "http://elsewhere", "content-type": "text/plain"}
    for method in ("PUT", "POST"):
        answer = World().register().request(method, "/ws/v1/config", CONFIG, headers)
        assert (answer.status_code, answer.json()["message"]) == (403, "A page may only read where no token is needed")
        headers_with_token = headers | {"authorization": "Bearer boss"}
        assert World(ACCESS).register().request(method, "/ws/v1/config", CONFIG, headers_with_token).status_code == 200


def test_a_long_body_is_refused() -> None:
    world = World(limits=RequestLimits(body_bytes=100)).register()
    assert world.request("POST", "/ws/v1/validate-conf", b"#" * 101).status_code == 413
    assert world.request("POST", "/ws/v1/validate-conf", b"#" * 100).status_code == 200

    async def pieces() -> Any:
        for _ in range(11):
            yield b"#" * 10

    async def ask() -> int:
        async with world.client() as client:
            return (await client.post("/ws/v1/validate-conf", content=pieces())).status_code

    assert run(ask()) == 413


def test_a_long_path_is_refused(world: World) -> None:
    assert world.request("GET", "/ws/v1/" + "x" * 20_000).status_code == 414


def test_a_slow_body_is_given_up() -> None:
    world = World(limits=RequestLimits(request_s=0.05)).register()

    async def slow() -> Any:
        import asyncio  # noqa: PLC0415

        await asyncio.sleep(3600)
        yield b""

    async def ask() -> httpx.Response:
        async with world.client() as client:
            return await client.post("/ws/v1/validate-conf", content=slow())

    answer: httpx.Response = run(ask())
    assert (answer.status_code, answer.json()["message"]) == (503, "The request took longer than 0.05 s")


def test_no_traceback_reaches_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy()

    def fail(*_: object) -> None:
        secret = "secret"  # noqa: S105
        raise ValueError(secret)

    monkeypatch.setattr("licorne.host.web.rest.views.cluster", fail)
    answer = world.request("GET", "/ws/v1/clusters")
    assert answer.json() == {"status_code": 500, "message": "Internal error", "description": "Internal error"}
    assert [str(error) for error in world.failures] == ["secret"]
