"""Who may see the page, how one logs in with a token, and that a session permits nothing but reading."""

from __future__ import annotations

from asyncio import gather
from types import ModuleType
from typing import Any

import pytest

from licorne.host.guesses import FREE
from licorne.host.web.rest import Access, allocations, views
from licorne.host.web.rest.sessions import LASTS_S, SESSIONS_MAX, Sessions
from page.clients import shown
from rest.world import CONFIG, World, busy, run

HERE = {"origin": "http://scheduler", "content-type": "application/x-www-form-urlencoded"}
VIEWS = (
    "/",
    "/queues",
    "/applications",
    "/application?name=a",
    "/nodes",
    "/people",
    "/configuration",
    "/why",
    "/find?name=x",
)


def closed() -> World:
    return World(Access(read_tokens=("reader",), admin_tokens=("admin",))).register()


def log_in(world: World, token: str, after: str = "") -> tuple[int, str, str]:
    """The status, where the browser is sent, and the cookie."""
    answer = world.request("POST", "/login", f"token={token}&next={after}", HERE)
    return answer.status_code, answer.headers.get("location", ""), answer.headers.get("set-cookie", "")


def test_a_page_leads_to_the_login_and_back() -> None:
    world = closed()
    for address in VIEWS:
        answer = world.request("GET", address)
        assert (answer.status_code, answer.headers["location"].partition("=")[0]) == (303, "/login?next"), address
    assert world.request("GET", "/queues?sort=used").headers["location"] == "/login?next=%2Fqueues%3Fsort%3Dused"
    assert 'name="token"' in shown(world, "/login?next=/queues")
    assert world.request("GET", "/static/page.css").status_code == 200
    status, after, cookie = log_in(world, "reader", "%2Fqueues%3Fsort%3Dused")
    assert (status, after) == (303, "/queues?sort=used")
    assert all(part in cookie for part in ("; HttpOnly", "; SameSite=Strict", "; Path=/"))
    assert "reader" not in cookie
    name = cookie.partition(";")[0]
    for address in VIEWS[:-3]:
        assert world.request("GET", address, headers={"cookie": name}).status_code in (200, 404)
    assert "Log out" in world.request("GET", "/", headers={"cookie": name}).text
    assert world.request("GET", "/", headers={"authorization": "Bearer reader"}).status_code == 200


def test_a_session_ends_with_the_logout() -> None:
    world = closed()
    name = log_in(world, "admin")[2].partition(";")[0]
    assert world.request("POST", "/logout", headers={"cookie": name}).status_code == 403
    answer = world.request("POST", "/logout", headers=HERE | {"cookie": name})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert world.request("GET", "/", headers={"cookie": name}).status_code == 303


def test_a_session_reads_and_changes_nothing_even_with_the_token_of_an_administrator() -> None:
    world = closed()
    cookie = {"cookie": log_in(world, "admin")[2].partition(";")[0]}
    assert world.request("GET", "/ws/v1/partitions", headers=cookie).status_code == 200
    for method, path in (("PUT", "/ws/v1/config"), ("POST", "/ws/v1/config"), ("POST", "/ws/v1/validate-conf")):
        assert world.request(method, path, CONFIG, cookie).status_code == 401


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://scheduler.evil.example"])
def test_a_form_of_another_site_is_refused(origin: str) -> None:
    headers = {"origin": origin} if origin else {}
    answer = closed().request("POST", "/login", "token=reader", headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_wrong_token_is_refused_on_the_page_and_guessing_is_slowed_down() -> None:
    world = closed()
    for token in ("wrong", "", "%FF", "x" * 9000):
        answer = world.request("POST", "/login", f"token={token}", HERE)
        assert answer.status_code == 401
        assert 'role="alert"' in answer.text and "set-cookie" not in answer.headers
    for _ in range(FREE):
        assert log_in(world, "guess")[0] == 401
    assert log_in(world, "reader")[0] == 303  # after a pause


@pytest.mark.parametrize(
    "after",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a%0d%0aX: y", "%2F%2Fevil"],
)
def test_a_login_leads_to_no_other_site(after: str) -> None:
    status, location, _ = log_in(closed(), "reader", after)
    assert (status, location) == (303, "/")


def test_where_no_token_is_asked_for_there_is_nothing_to_log_in_to() -> None:
    world = busy()
    assert world.request("GET", "/login").headers["location"] == "/"
    assert "Log out" not in shown(world, "/")


def test_sessions_end_and_are_bounded() -> None:
    now = 0.0
    sessions = Sessions(lambda: now)
    first = sessions.begin()
    assert sessions.knows(first) and not sessions.knows("") and not sessions.knows("x")
    now = LASTS_S
    assert not sessions.knows(first)
    names = [sessions.begin() for _ in range(SESSIONS_MAX + 1)]
    assert not sessions.knows(names[0]) and sessions.knows(names[1])


def test_pages_are_kept_to_themselves() -> None:
    answer = busy().request("GET", "/")
    assert "access-control-allow-origin" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "immutable" in busy().request("GET", "/static/page.css").headers["cache-control"]
    assert busy().request("GET", "/static/../frame.py").status_code == 404


def test_a_failure_of_a_page_is_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy()
    monkeypatch.setattr("licorne.host.web.page.live.LiveSource.nodes", None)
    answer = world.request("GET", "/nodes")
    assert answer.status_code == 500 and "Traceback" not in answer.text and "<h1>" in answer.text
    assert len(world.failures) == 1


@pytest.mark.parametrize(
    ("address", "module", "name"),
    [("/nodes", views, "node"), ("/application?name=app-1", allocations, "ask")],
)
def test_lists_are_made_once_for_all_viewers(
    monkeypatch: pytest.MonkeyPatch, address: str, module: ModuleType, name: str
) -> None:
    """Fifty viewers at once make one list of nodes, and find once why the pods of an application wait."""
    world, made = busy(), list[str]()
    view = getattr(module, name)

    def counted(found: Any, *more: Any, **others: Any) -> Any:
        made.append(found.id)
        return view(found, *more, **others)

    monkeypatch.setattr(module, name, counted)

    async def look() -> None:
        async with world.client() as client:
            answers = await gather(*(client.get(address) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}

    run(look())
    assert 0 < len(made) <= 4
