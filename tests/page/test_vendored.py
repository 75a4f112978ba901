"""The files of others beside the page are those of the packages that are named, with their licences."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from licorne.host.web.page import frame

STATIC = Path(frame.__file__).parent / "static"
OWN = {"page.css", "page.js", "icon.svg", "VENDORED.md"}


def test_each_file_of_others_is_pinned_and_has_its_licence() -> None:
    table = (STATIC / "VENDORED.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\S+) \| \S+ [0-9.]+ \| \S+ \| \S+, \[text\]\((\S+)\) \| ([0-9a-f]{64}) \|$", table, re.MULTILINE
    )
    assert {name for name, _, _ in rows} | {licence for _, licence, _ in rows} | OWN == {
        each.name for each in STATIC.iterdir()
    }
    for name, _, checksum in rows:
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == checksum, name
