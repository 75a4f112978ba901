"""What a page shows, as text."""

from __future__ import annotations

import re
from html import unescape

from rest.world import World


def shown(world: World, address: str) -> str:
    """The HTML of a page that must be there."""
    answer = world.request("GET", address)
    assert not world.failures, world.failures
    assert answer.status_code == 200, (address, answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return str(answer.text)


def text_of(world: World, address: str) -> str:
    """The text of a page's main part, with single spaces."""
    main = shown(world, address).partition("<main")[2].partition(">")[2]
    return " ".join(unescape(re.sub(r"<title>[^<]*</title>|<[^>]+>", " ", main)).split())


def without_own_scripts(page: str) -> str:
    """The HTML of a page without the scripts of this server, whose tags are empty and have an address and nothing else."""
    return re.sub(r'<script src="/static/[a-z]+([.]min)?[.]js[?]v=[0-9a-f]{12}" defer></script>', "", page)
