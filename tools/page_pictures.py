"""Makes pictures of each view of the page in build/page, and with fewer colours those of the documents (`make picture`)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
MADE = ROOT / "build/page"
SITE = ROOT / "docs/site"
WEEK = "examples/demo/week.jsonl"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MOMENT = 390_000
"""A moment at which much runs and waits, in seconds since the beginning of the week."""
VIEWS = {
    "now": "/?",
    "queues": "/queues?",
    "why": "/why?name={waiting}&",
    "applications": "/applications?sort=-waiting&",
    "application": "/application?name={waiting}&",
    "nodes": "/nodes?",
    "node": "/node?name={node}&",
    "people": "/people?",
    "fairness": "/fairness?window=21600&",
    "decisions": "/decisions?window=21600&",
    "changes": f"/queues?against={MOMENT - 86_400}&",
    "configuration": "/configuration?",
}
SCREENS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
    "wide": {"color_scheme": "light", "viewport": {"width": 2560, "height": 1300}},
}
SHOWN = ("light", "dark", "narrow")
"""The screens whose pictures the documents have, in `COLOURS` colours, which makes them a third as large."""
COLOURS = 64


def main() -> None:
    """Make the pictures."""
    MADE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        recording = str(Path(folder) / "week")
        licorne = [sys.executable, "-m", "licorne.cli"]
        simulate = [*licorne, "simulate", WEEK, "--record", recording]
        subprocess.run(simulate, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)  # noqa: S603  the command is ours
        command = [*licorne, "page", recording, "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:  # noqa: S603
            assert serving.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:[0-9]+", serving.stdout.readline())
            assert found is not None, "the page is not served"
            try:
                _shoot(found[0])
            finally:
                serving.terminate()
    for name in (f"{view}-{screen}.png" for view in VIEWS for screen in SHOWN):
        with Image.open(MADE / name) as picture:
            picture.convert("RGB").quantize(COLOURS).save(SITE / f"page-{name}", optimize=True)


def _shoot(address: str) -> None:
    with sync_playwright() as playwright:
        # Nothing but pages of this project is shown, and in a container Chromium's sandbox does not start.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for screen, options in SCREENS.items():
            page = browser.new_context(**options).new_page()
            page.set_default_timeout(60_000)
            page.goto(f"{address}/?t={MOMENT}")
            waiting = page.locator("section[aria-labelledby=waits] tbody a").first.inner_text()
            page.goto(f"{address}/nodes?t={MOMENT}")
            node = page.locator("tbody th").first.inner_text()
            for name, path in VIEWS.items():
                page.goto(address + path.format(waiting=waiting, node=node) + f"t={MOMENT}")
                page.screenshot(path=MADE / f"{name}-{screen}.png")
                print(MADE / f"{name}-{screen}.png")
        browser.close()


if __name__ == "__main__":
    main()
