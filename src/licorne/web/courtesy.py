"""Whether somebody waits for an answer of REST, so that decisions leave the loop a few more turns.

A request goes through several turns of the loop: it is read, answered, written. With a slice of decisions in each of them,
an answer that is made in a millisecond would take 30.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Receive, Scope, Send

TURNS = 3
"""Turns of the loop that are left to others after a slice, beside the one that they always have."""
PATIENT = ("/ws/v1/events/stream", "/debug/fullstatedump")
"""Paths whose answers may take as long as they like: nobody hurries for them."""


class Waiting:
    """An ASGI application that counts the answers of another one which are under way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] in PATIENT:
            await self._app(scope, receive, send)
            return
        self.count += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.count -= 1


def quiet(app: ASGIApp) -> ASGIApp:
    """The application, but that a request which is cancelled ends without an error: the server ends, and that is no fault."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return answer


__all__ = ["TURNS", "Waiting", "quiet"]
