"""An accessibility checker finds nothing on any page: of the documentation site, of the running service, and of reports.

Each page is looked at twice: light on a wide screen, and dark on a narrow one. The checker is axe-core, with all rules that
it has switched on; a page's colours, headings, links and tables are judged as a browser shows them. `make accessibility`
fetches the checker; the browser is Chromium, of the system.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from common.once import made_once
from common.website import ROOT, build_whole
from rest.world import busy, run

if TYPE_CHECKING:
    import httpx
    from playwright.sync_api import Page, Route

AXE = ROOT / "build/axe/node_modules/axe-core/axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "light and wide": ("light", 1280),
    "dark and narrow": ("dark", 375),
}
HOST = "http://licorne.test"
EXAMPLES = ROOT / "examples"
SWEEP = """\
name: seeds, loads, and a setting that fails
workloads: [{scenario}]
configurations: [own, {queues}]
loads: [1, 2]
seeds: 3
policies: [own, "missing.py:Policy"]
until_s: 20000
"""
SERVED = (
    *(
        "/",
        "/queues",
        "/queues?queue=root.b",
        "/why",
        "/why?name=app-1",
        "/applications",
        "/application?name=app-1",
        "/nodes",
    ),
    *(
        "/node?name=n1",
        "/people",
        "/people?kind=groups",
        "/fairness",
        "/decisions",
        "/configuration",
        "/node?name=none",
    ),
)

pytestmark = [
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there; `make accessibility` fetches it with npm"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH; Debian's package is `chromium`"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "site", build_whole) / "html"


@pytest.fixture(scope="module")
def served() -> dict[str, httpx.Response]:
    world = busy()
    world.monitor.tick()
    run(world.monitor.sample())
    pages = {path: world.request("GET", path) for path in SERVED}
    beside = {
        address for page in pages.values() for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    }
    return pages | {address: world.request("GET", address) for address in beside}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The pages of a simulation with devices and gangs, of one of a plain workload, of a comparison, and of a sweep."""
    pytest.importorskip("matplotlib", reason="reports need the extra `report`")
    folder = tmp_path_factory.mktemp("reports")
    holiday = EXAMPLES / "gpu-holiday"
    (folder / "sweep.yaml").write_text(
        SWEEP.format(scenario=EXAMPLES / "scenarios/halved-queue.yaml", queues=holiday / "no-preemption.yaml")
    )
    for command in (
        ("simulate", EXAMPLES / "scenarios/shared-gpus.yaml", "--report", folder / "devices"),
        ("simulate", holiday / "workload.jsonl", "--report", folder / "holiday"),
        ("compare", "own", holiday / "no-preemption.yaml", holiday / "workload.jsonl", "-o", folder / "compared"),
        ("sweep", "-o", folder / "sweep", "--file", folder / "sweep.yaml", "--jobs", "2"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "licorne.cli", *map(str, command)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    pages = [folder / name / "report.html" for name in ("devices", "holiday", "compared")]
    return [*pages, folder / "sweep/sweep.html"]


@pytest.fixture(params=SCREENS)
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  half a second, and most runs skip these tests

    scheme, width = SCREENS[request.param]
    with sync_playwright() as playwright:
        # Nothing but pages of this project is shown, and in a container Chromium's sandbox does not start.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
        browser.close()


def findings(page: Page, address: str) -> list[str]:
    """Show a page, and say what the checker finds on it, one line for each element."""
    page.goto(address)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert found["passes"], "the checker has looked at nothing"
    return [
        f"{address}: {rule['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1].strip()}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.gate
def test_the_checker_finds_faults(page: Page) -> None:
    page.route(f"{HOST}/", lambda route: route.fulfill(body="<html><img src='x.png'><p style='color: #ccc'>pale</p>"))
    found = " ".join(findings(page, f"{HOST}/"))
    assert all(rule in found for rule in ("image-alt", "html-has-lang", "color-contrast")), found


@pytest.mark.nightly
def test_the_documentation_site(site: Path, page: Page) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 70
    found = [line for one in pages for line in findings(page, one.as_uri())]
    assert not found, "\n".join(found)


@pytest.mark.gate
def test_the_pages_of_the_service(served: dict[str, httpx.Response], page: Page) -> None:
    def answer(route: Route) -> None:
        said = served.get(route.request.url.removeprefix(HOST))
        if said is None:  # the stream of changes
            route.abort()
            return
        route.fulfill(status=said.status_code, headers=dict(said.headers), body=said.text)

    page.route(f"{HOST}/**", answer)
    found = [line for path in SERVED for line in findings(page, HOST + path)]
    assert not found, "\n".join(found)


@pytest.mark.nightly
def test_the_pages_of_reports_comparisons_and_sweeps(reports: list[Path], page: Page) -> None:
    found = [line for one in reports for line in findings(page, one.as_uri())]
    assert not found, "\n".join(found)
