"""Know whether a client waits for a REST answer, so that the engine yields more turns of the loop.

A request takes several turns of the loop: it is read, answered, written. With a slice of decisions in each of them, an
answer that is made in a millisecond would take 30.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Receive, Scope, Send

TURNS = 3
"""Extra turns of the loop that the engine yields after a slice while a client waits."""
PATIENT = ("/ws/v1/events/stream", "/debug/fullstatedump")
"""Paths whose answers last by design; the engine does not yield for them."""


class Waiting:
    """An ASGI application that wraps another one and counts its answers under way."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, counting it unless its path is in `PATIENT`."""
        if scope["type"] != "http" or scope["path"] in PATIENT:
            await self._app(scope, receive, send)
            return
        self.count += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.count -= 1


def quiet(app: ASGIApp) -> ASGIApp:
    """Wrap an application so that a cancelled request ends without an error: the server is shutting down."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await app(scope, receive, send)

    return answer


__all__ = ["TURNS", "Waiting", "quiet"]
