"""Answers that took long to make are given again for a while, so that no number of askers takes the scheduler's time.

An answer is kept for ten times the processor time it took to make, but not longer than two seconds: whatever is asked,
and how often, one path takes a tenth of the time at most. What is made quickly, as all is in a small cluster, is always
new, however busy the machine is with other things. Who asks for what is being made waits for it.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable, Iterator

from starlette.responses import Response

from licorne.service.pace import SLICE_S

from .answers import JSON, in_pieces

FACTOR = 10.0
SHORTEST_S, LONGEST_S = 0.1, 2.0
"""An answer that would be kept for less than this is not kept at all; none is kept for longer than that."""
BODY_MAX = 16 << 20
"""Bytes of an answer that is kept; a longer one is sent as it is made, to each who asks."""
KEPT_MAX = 64 << 20
"""Bytes of all answers that are kept."""
GZIP_MIN = 1400

Make = Callable[[], Iterator[bytes]]


class _TooLong(Exception):  # noqa: N818  it is no error
    """The answer is longer than what is kept."""


class Shared:
    """The answers that are kept, by what was asked."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, bytes, bool]] = {}
        self._making: dict[str, asyncio.Future[tuple[bytes, bool]]] = {}
        self._size = 0

    async def answer(self, asked: str, make: Make, *, compress: bool) -> Response:
        """The answer to this; made if there is none that is young enough.

        `asked` names what is asked for, and `make` begins to make it. `compress`: the client takes gzip.
        """
        key = f"{asked} gzip" if compress else asked
        kept = self._kept.get(key)
        if kept is not None and time.monotonic() < kept[0]:
            return _response(kept[1], compressed=kept[2])
        try:
            making = self._making.get(key)
            if making is None:
                making = self._making[key] = asyncio.ensure_future(self._make(key, make, compress))
                making.add_done_callback(lambda _: self._making.pop(key, None))
            body, compressed = await asyncio.shield(making)
        except _TooLong:
            return await in_pieces(make())
        return _response(body, compressed=compressed)

    async def _make(self, key: str, make: Make, compress: bool) -> tuple[bytes, bool]:
        body, busy_s = await _made(make())
        compressed = compress and len(body) >= GZIP_MIN
        if compressed:
            body, packing_s = await asyncio.to_thread(_packed, body)
            busy_s += packing_s
        self._keep(key, body, compressed, busy_s)
        return body, compressed

    def _keep(self, key: str, body: bytes, compressed: bool, busy_s: float) -> None:
        lasts = min(busy_s * FACTOR, LONGEST_S)
        if lasts < SHORTEST_S:
            return
        now = time.monotonic()
        for old in [one for one, kept in self._kept.items() if kept[0] <= now or one == key]:
            self._size -= len(self._kept.pop(old)[1])
        while self._kept and self._size + len(body) > KEPT_MAX:
            self._size -= len(self._kept.pop(next(iter(self._kept)))[1])
        self._kept[key] = now + lasts, body, compressed
        self._size += len(body)


async def _made(pieces: Iterator[bytes]) -> tuple[bytes, float]:
    """The whole answer, and the processor time it took without what others did in between."""
    body = bytearray()
    busy_s = 0.0
    began = time.thread_time()
    for piece in pieces:
        body += piece
        passed = time.thread_time() - began
        if passed >= SLICE_S:
            busy_s += passed
            if len(body) > BODY_MAX:
                raise _TooLong
            await asyncio.sleep(0)
            began = time.thread_time()
    return bytes(body) + b"\n", busy_s + time.thread_time() - began


def _packed(body: bytes) -> tuple[bytes, float]:
    """The body compressed, and the processor time it took."""
    began = time.thread_time()
    return gzip.compress(body, 1), time.thread_time() - began


def _response(body: bytes, *, compressed: bool) -> Response:
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if compressed else None
    return Response(body, headers=headers, media_type=JSON)


__all__ = ["Shared"]
