"""Share answers between concurrent requests, and cache them.

The purpose: no number of clients can take much of the scheduler's time.

An answer whose inputs are unchanged (compared by a cheap `State`) is given again. Otherwise an answer is cached for a
hundred times the processor time that it took to make, at most a limit of two seconds. So repeated requests for one path
take a hundredth of the time at most, or what making one answer in two seconds takes. An answer that is quick to make, as
all are in a small cluster, is always made anew and at once, however busy the machine is with other work, because
processor time is measured and not elapsed time.

Concurrent requests share one computation (single flight). While it runs, they are given the cached answer if that is at
most four seconds old; only otherwise do they wait.

What is measured (1,000 nodes, 100 queues, 10,000 allocations; 50 requests a second for lists): with nothing changing,
the comparison of states saves 5 % of the loop's time, so it is needed; with 20 pods a second coming and going, a
further cache of single nodes, queues and users would save 1.9 % (standard error 0.3 %), so there is none. With 50,000
allocations, whose list of nodes is made in a tenth of a second or more, it would save 8 % while that list is polled.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from starlette.responses import Response

from licorne.host.pace import SLICE_S
from licorne.host.threads import COMMON

from .answers import JSON, in_pieces

AT_ONCE_S = 2 * SLICE_S
"""Seconds for which a new answer may hold the loop at first; an answer ready by then needs no further turns of the loop."""
FACTOR = 100.0
"""How many times as long as it took to make it an answer is given again."""
SHORTEST_S = 0.25
"""An answer that would be cached for less than this is not cached at all."""
STALE_S = 4.0
"""Seconds after its beginning for which an answer is given while the next one is being made."""
SAME_S = 30.0
"""Seconds after its beginning for which an answer is kept because its state may be unchanged."""
BODY_MAX = 16 << 20
"""Bytes up to which an answer is cached; a longer one is made for each request, and sent as it is made."""
KEPT_MAX = 64 << 20
"""Bytes of all cached answers together."""
GZIP_MIN = 1400

Make = Callable[[], Iterator[bytes]]
State = Callable[[], object]
"""Returns what an answer depends on, to be compared: while it is equal, so is the answer. None: not known."""


def unknown() -> object:
    """Return None: the default `State`, of an answer whose inputs cannot be compared."""
    return None


class _TooLong(Exception):  # noqa: N818  not an error, but control flow
    """The answer is longer than `BODY_MAX`."""


class Shared:
    """The cached answers, by request.

    `keep_s` returns the most seconds for which an answer may be given although its state has changed; it is asked each time.
    """

    def __init__(self, keep_s: Callable[[], float]) -> None:
        self._keep_s = keep_s
        self._kept: dict[str, _Kept] = {}
        self._making: dict[str, asyncio.Future[tuple[bytes, bool]]] = {}
        self._size = 0

    async def answer(self, asked: str, make: Make, *, compress: bool, state: State = unknown) -> Response:
        """Return the answer to a request: a cached one if it is unchanged or recent enough, else a new one.

        `asked` identifies the request, and `make` begins the answer. `compress`: the client accepts gzip.
        """
        key = f"{asked} gzip" if compress else asked
        now, seen = time.monotonic(), state()
        kept = self._kept.get(key)
        if kept is not None and (now < kept.lasts_until or (seen is not None and seen == kept.state)):
            return _response(kept.body, compressed=kept.compressed)
        try:
            making = self._making.get(key)
            if making is None:
                begun = _Begun(make())
                done = begun.slice(AT_ONCE_S)
                if done and not (compress and begun.size >= GZIP_MIN):
                    body = begun.body()
                    if seen is not None:
                        self._keep(key, _Kept(begun.begun_at, 0.0, body, False, seen))
                    return _response(body, compressed=False)
                making = self._making[key] = asyncio.ensure_future(
                    self._make(key, begun, compress, state, seen, done=done)
                )
                making.add_done_callback(lambda made: self._made(key, made))
            # While the next answer is made, a recent one that was slow to make is given; a quick one is worth the wait.
            if kept is not None and kept.lasts_until and now < kept.begun_at + STALE_S:
                return _response(kept.body, compressed=kept.compressed)
            # Shielded, because other requests may wait for it even if this client disconnects.
            body, compressed = await asyncio.shield(making)
        except _TooLong:
            return await in_pieces(make())
        return _response(body, compressed=compressed)

    def _made(self, key: str, done: asyncio.Future[tuple[bytes, bool]]) -> None:
        self._making.pop(key, None)
        if not done.cancelled():
            done.exception()  # mark it as retrieved: perhaps no request waits any more

    async def _make(
        self, key: str, begun: _Begun, compress: bool, state: State, seen: object, *, done: bool
    ) -> tuple[bytes, bool]:
        while not done:
            await asyncio.sleep(0)
            done = begun.slice()
        if seen != state():
            seen = None  # the state changed meanwhile, so the answer does not show a single moment
        body, busy_s = begun.body(), begun.busy_s
        compressed = compress and len(body) >= GZIP_MIN
        if compressed:
            body, packing_s = await COMMON.run(partial(_packed, body))
            busy_s += packing_s
        lasts = min(busy_s * FACTOR, self._keep_s())
        lasts_until = time.monotonic() + lasts if lasts >= SHORTEST_S else 0.0
        self._keep(key, _Kept(begun.begun_at, lasts_until, body, compressed, seen))
        return body, compressed

    def _keep(self, key: str, new: _Kept) -> None:
        """Cache an answer in place of the last one, unless it would never be given; the oldest answers are dropped for it."""
        now = time.monotonic()
        # Dropped first, so that the new one goes to the end: the dict is ordered by age.
        if key in self._kept:
            self._drop(key)
        while self._kept and self._kept[oldest := next(iter(self._kept))].begun_at + SAME_S <= now:
            self._drop(oldest)
        if (new.lasts_until <= now and new.state is None) or len(new.body) > KEPT_MAX:
            return
        while self._kept and self._size + len(new.body) > KEPT_MAX:
            self._drop(next(iter(self._kept)))
        self._kept[key] = new
        self._size += len(new.body)

    def _drop(self, key: str) -> None:
        self._size -= len(self._kept.pop(key).body)


class _Kept(NamedTuple):
    """A cached answer; times are those of the monotonic clock.

    `lasts_until`: until then it is given whatever has changed; 0: it was quick to make, so never for that reason. `state`:
    what it was made from; while that is equal the answer is given. None: not known.
    """

    begun_at: float
    lasts_until: float
    body: bytes
    compressed: bool
    state: object


class _Begun:
    """An answer that is being made, with the processor time spent on it alone."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.size = 0
        self.busy_s = 0.0
        self.begun_at = time.monotonic()
        self._pieces = pieces
        self._made: list[bytes] = []

    def slice(self, slice_s: float = SLICE_S) -> bool:
        """Make a part of the answer, for about `slice_s` seconds; return whether it is complete.

        Raises:
            _TooLong: the answer is not complete and already longer than `BODY_MAX`.
        """
        began, ends = time.thread_time(), time.perf_counter() + slice_s
        keep = self._made.append
        for piece in self._pieces:
            keep(piece)
            self.size += len(piece)
            if time.perf_counter() >= ends:
                self.busy_s += time.thread_time() - began
                if self.size > BODY_MAX:
                    raise _TooLong
                return False
        keep(b"\n")
        self.size += 1
        self.busy_s += time.thread_time() - began
        return True

    def body(self) -> bytes:
        """Return the complete answer."""
        return b"".join(self._made)


def _packed(body: bytes) -> tuple[bytes, float]:
    """Return the compressed body, and the seconds of processor time that compressing took."""
    began = time.thread_time()
    return gzip.compress(body, 1), time.thread_time() - began


def _response(body: bytes, *, compressed: bool) -> Response:
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if compressed else None
    return Response(body, headers=headers, media_type=JSON)
