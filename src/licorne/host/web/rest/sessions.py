"""Logging in by a page: a token is shown once, and a cookie stands for it from then on.

The cookie has a random name of a session that this process knows, not the token: browsers send a cookie to every port of a
host, and what another program there learns must not be the token, which may permit changes. A session permits reading
alone, whatever its token permits, and is forgotten after `LASTS_S`, when its browser ends, or when the process does.

Forms are protected from other sites by what browsers say of where a form comes from (`Origin`), which no page can change, and
by `SameSite=Strict`; so there is no second secret in the form.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

COOKIE: Final = "licorne-session"
LASTS_S: Final = 12 * 3600.0
SESSIONS_MAX: Final = 1_000
"""Sessions at a time; with one more the oldest ends."""


class Sessions:
    """The sessions of the browsers that have logged in. `clock`: seconds, from any start."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}  # oldest first

    def begin(self) -> str:
        """Begin a session, and return its name for the cookie."""
        while len(self._ends) >= SESSIONS_MAX:
            del self._ends[next(iter(self._ends))]
        name = secrets.token_urlsafe(32)
        self._ends[name] = self._clock() + LASTS_S
        return name

    def knows(self, name: str) -> bool:
        """Return whether a session goes on."""
        ends = self._ends.get(name)
        if ends is not None and ends <= self._clock():
            del self._ends[name]
            return False
        return ends is not None

    def end(self, name: str) -> None:
        """End a session."""
        self._ends.pop(name, None)


def from_here(request: Request) -> bool:
    """Return whether a form was sent by a page of this server."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    return bool(host) and urlsplit(origin).netloc == host


def cookie(name: str, *, secure: bool, lasts: bool) -> str:
    """Return the header that sets the cookie, or with `lasts` false takes it away."""
    parts = [f"{COOKIE}={name}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if secure:
        parts.append("Secure")
    if not lasts:
        parts.append("Max-Age=0")
    return "; ".join(parts)
