"""The page of a running yunikorn-core: each view, of the dump that it makes itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from licorne.host.web.page.past import OpenedDump
from licorne.state.source import fetch
from page.test_opened import look
from yunikorn.original import PROGRAM, REASON, ask, beginning, playing

pytestmark = [pytest.mark.gate, pytest.mark.skipif(not PROGRAM.exists(), reason=REASON)]
EXPECTED = {
    "/": ("pods wait", "root.a is at its max"),
    "/queues": ("root.teams", "6 cores"),
    "/queues?queue=root.a": ("leaf queue", "4 cores"),
    "/why": ("pods wait", "By reason"),
    "/why?name=of-ann&prove=false": ("What it has to pass", "root.a"),
    "/applications": ("of-ann", "of-bob"),
    "/application?name=of-ann": ("Pods that wait", "Pods that run"),
    "/nodes": ("n0", "Share"),
    "/node?name=n0": ("What runs on it", "si/hostname"),
    "/people": ("ann", "bob"),
    "/fairness": ("A state dump is one moment",),
    "/decisions": ("A state dump is one moment",),
    "/configuration": ("queues.yaml", "provided"),
}
"""What each view says, among other things."""


def test_each_view(tmp_path: Path) -> None:
    asks = [ask(0.5, f"a{number}", "of-ann", 1_000) for number in range(8)]
    with playing([*beginning(), *asks, ask(0.5, "b0", "of-bob", 1_000)], tmp_path) as original:
        original.played()
        original.settles()
        state = fetch(original.url).state
    pages = look(OpenedDump(lambda: state, original.url, again=False).opened, *EXPECTED)
    for (address, texts), page in zip(EXPECTED.items(), pages, strict=True):
        assert page.status_code == 200, (address, page.text)
        assert [text for text in texts if text not in page.text] == [], address
