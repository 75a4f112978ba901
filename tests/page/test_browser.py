"""The page in a browser: each view without an error or a sideways scroll, filters, the login, the slider, and all of it without a script."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
import uvicorn

from licorne.answers.timeline import shares_of
from licorne.host.web.page.past import OpenedRecording, pages_app
from licorne.host.web.rest import Access
from licorne.state.recording import Recorder
from rest.world import SECOND_NS, START_NS, World, busy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from starlette.types import ASGIApp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
VIEWS = (
    *(
        "/",
        "/queues",
        "/queues?queue=root.a&resource=memory",
        "/why",
        "/why?name=k2",
        "/applications",
        "/people?kind=groups",
    ),
    *(
        "/application?name=app-1",
        "/nodes",
        "/node?name=n1",
        "/people",
        "/fairness",
        "/decisions",
        "/configuration",
        "/node?name=none",
    ),
)
SCREENS: tuple[tuple[Literal["light", "dark"], int], ...] = (
    ("light", 1440),
    ("dark", 390),
    ("light", 360),
    ("dark", 2560),
)

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH; Debian's package is `chromium`"),
]


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an application in a thread, at the address that is returned."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  half a second, and most runs skip these tests

    with sync_playwright() as playwright:
        # Nothing but pages of this project is shown, and in a container Chromium's sandbox does not start.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Browser, **options: Any) -> Page:
    """A new page, which waits for as long as a busy machine takes."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(300_000)
    return page


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    world = busy()
    world.monitor.tick()
    timeline = world.monitor.timeline
    assert timeline is not None
    for minute in range(3):
        world.now += minute * 60 * SECOND_NS
        timeline.sample(world.now, shares_of(world.backend.partitions()))
    with served(world.app) as found:
        yield found


def listened(page: Page) -> list[str]:
    """What a page writes to the console, and its errors, as they come."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def test_each_view_on_each_screen(browser: Browser, address: str) -> None:
    for scheme, width in SCREENS:
        page = opened(browser, color_scheme=scheme, viewport={"width": width, "height": 800})
        said = listened(page)
        for view in VIEWS:
            answer = page.goto(address + view)
            assert answer is not None
            assert page.locator("h1").is_visible()
            # Chromium itself writes a line about each address that answers with an error.
            assert [line for line in said if "404" not in line] == [], view
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(15, 20, 26)"), view
        page.context.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_table_is_filtered_and_sorted_and_what_is_found_is_asked_why(
    browser: Browser, address: str, *, script: bool
) -> None:
    page = opened(browser, java_script_enabled=script)
    page.goto(f"{address}/applications")
    page.get_by_role("searchbox", name="Filter").fill("bob")
    page.keyboard.press("Enter")
    page.wait_for_url("**/applications?filter=bob")
    assert page.locator("tbody tr").count() == 1
    page.goto(f"{address}/applications")
    page.get_by_role("link", name="Application", exact=True).click()
    assert page.locator("tbody tr").first.inner_text().startswith("app-1")
    page.get_by_placeholder("Application, pod, queue or node").fill("app-2")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Why does it wait?").click()
    page.wait_for_url("**/why?name=app-2")
    assert page.get_by_role("heading", name="What it has to pass").is_visible()
    page.context.close()


def test_what_is_new_is_shown_but_not_while_one_types(browser: Browser) -> None:
    world = busy()
    with served(world.app) as address:
        page = opened(browser)
        said = listened(page)
        page.goto(f"{address}/applications")
        page.get_by_text("Live", exact=True).wait_for()
        page.evaluate("window.same = true")
        world.application("app-new", "root.other", "bob").schedule()
        page.get_by_role("link", name="app-new").wait_for()
        assert page.evaluate("window.same")  # it is not another page
        page.get_by_role("searchbox", name="Filter").fill("app-n")
        page.wait_for_url("**/applications?filter=app-n")
        assert page.locator("tbody tr").count() == 1
        assert page.evaluate("document.activeElement.id") == "filter"
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Paused", exact=True).wait_for()
        assert said == []
        page.context.close()


def test_one_logs_in_and_out(browser: Browser) -> None:
    world = World(Access(read_tokens=("secret",))).register()
    with served(world.app) as address:
        page = opened(browser)
        page.goto(f"{address}/queues?sort=-used")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        assert page.get_by_role("alert").is_visible()
        page.get_by_label("Token").fill("secret")
        page.get_by_role("button", name="Log in").click()
        assert page.url == f"{address}/queues?sort=-used"
        assert page.evaluate("document.cookie") == ""  # no script reads it
        page.get_by_role("button", name="Log out").click()
        assert page.url == f"{address}/login"
        page.goto(address)
        assert "/login" in page.url
        page.context.close()


def test_the_slider_leads_to_another_moment(browser: Browser, tmp_path: Path) -> None:
    world = World()
    world.api.input_log = recorder = Recorder(tmp_path / "night")
    world.register().node("n1", vcore=1_000).application("app-1", "root.other", "bob")
    world.now += 600 * SECOND_NS
    world.ask("k1", "app-1", vcore=800).schedule()
    assert recorder.close()
    failures: list[Exception] = []
    with served(
        pages_app(OpenedRecording(tmp_path / "night").opened, lambda _, error: failures.append(error))
    ) as address:
        page = opened(browser)
        page.goto(f"{address}/")
        assert _running(page) == "1"
        page.get_by_role("slider").press("Home")
        page.get_by_role("button", name="Go").click()
        assert page.url == f"{address}/?t={START_NS // SECOND_NS + 1}"
        assert _running(page) == "0"
        page.get_by_role("link", name="1 min later").click()
        assert page.url == f"{address}/?t={START_NS // SECOND_NS + 61}"
        page.context.close()
    assert failures == []


def _running(page: Page) -> str:
    return page.locator(".tiles b").first.inner_text()
