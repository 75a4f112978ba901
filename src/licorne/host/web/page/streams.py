"""Streams by which a page that is looked at learns that there is something new, and asks for it (server-sent events).

A stream says only that something has changed: what, the page asks for like anybody who opens it, so lists are shared by all
viewers, and the text is made in a thread. The more streams there are, the more seldom each is told: together they look anew at
most `LOOKS_PER_S` times a second, however many viewers there are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from starlette.responses import Response, StreamingResponse

from licorne.host.web.rest.errors import TOO_MANY_STREAMS, refuse

STREAMS_MAX: Final = 64
CLIENT_MAX: Final = 16
"""Streams of one login, or of one address without a login, at most."""
LEAST_S: Final = 2.0
"""Seconds between two looks at one page, at least."""
LOOKS_PER_S: Final = 3.0
CHANGED: Final = b"event: changed\ndata: \n\n"
SAME: Final = b":\n\n"
"""A comment, by which a connection is found out that has gone without a word."""
Version = Callable[[], Awaitable[object]]


class Streams:
    """The open streams, by client. `ending`: set when the server ends, and the streams with it."""

    def __init__(self, ending: asyncio.Event) -> None:
        self.open = Counter[str]()
        self._ending = ending

    def response(self, version: Version, client: str) -> Response:
        """Return a stream that tells a client when what `version` returns is another.

        Raises:
            RestError: 503, there are too many streams.
        """
        if self.open.total() >= STREAMS_MAX or self.open[client] >= CLIENT_MAX:
            refuse(503, TOO_MANY_STREAMS)
        return StreamingResponse(self._said(version, client), 200, {"Cache-Control": "no-store"}, "text/event-stream")

    @property
    def pause_s(self) -> float:
        """Seconds after which each stream looks again."""
        return max(LEAST_S, self.open.total() / LOOKS_PER_S)

    async def _said(self, version: Version, client: str) -> AsyncIterator[bytes]:
        self.open[client] += 1
        ended = asyncio.create_task(self._ending.wait())
        try:
            seen = await version()
            yield SAME
            while not (await asyncio.wait({ended}, timeout=self.pause_s))[0]:
                before, seen = seen, await version()
                yield SAME if seen == before else CHANGED
        finally:
            self.open -= Counter([client])  # which forgets those that have none left
            ended.cancel()
