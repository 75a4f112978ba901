"""Answers are given again while what they show is the same, and for a while if they took long to make.

So no number of askers takes the scheduler's time. Whether nothing has happened to what an answer shows is seen at a glance,
and then the answer that is kept is the one that would be made.

Otherwise an answer is kept for a hundred times the processor time it took to make, but not longer than a limit, two seconds:
whatever is asked, and how often, one path takes a hundredth of the time at most, or what making it once in two seconds
takes. What is made quickly, as all is in a small cluster, is always new, however busy the machine is with other things, and
it is made at once. Who asks for what is being made waits for it, unless there is one that was kept and is not older than four seconds:
so where many ask again and again, nobody waits.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from starlette.responses import Response

from licorne.daemon.lookups import COMMON
from licorne.daemon.pace import SLICE_S

from .answers import JSON, in_pieces

AT_ONCE_S = 2 * SLICE_S
"""How long the loop is held for a new answer; one that is ready by then needs no further turns of it."""
FACTOR = 100.0
SHORTEST_S = 0.25
"""An answer that would be kept for less than this is not kept at all."""
STALE_S = 4.0
"""Seconds after it was begun until which an answer is given while the next one is being made."""
SAME_S = 30.0
"""Seconds after it was begun until which an answer is kept that shows what is still the same."""
PIECES_S = 30.0
"""Seconds after a list was made for which its pieces are kept; they are no older than what they show, however long."""
BODY_MAX = 16 << 20
"""Bytes of an answer that is kept; a longer one is sent as it is made, to each who asks."""
KEPT_MAX = 64 << 20
"""Bytes of all answers that are kept."""
GZIP_MIN = 1400

Make = Callable[[], Iterator[bytes]]
State = Callable[[], object]
"""What an answer is made of, to be compared: as long as it is equal, the answer would be the same. None: nobody knows."""
Item = TypeVar("Item")
Piece = Callable[[Any, object, Callable[[Any], bytes]], bytes]


class Pieces:
    """The pieces of a long answer as they were made last: one is made anew if what it is made of has changed.

    Pieces of more than `BODY_MAX` bytes in all are not kept, and none is kept for longer than `PIECES_S` after the last time.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[object, bytes]] = {}
        self._forget: asyncio.TimerHandle | None = None

    def of(
        self, items: Iterable[Item], state: Callable[[Item], object], make: Callable[[Item], bytes]
    ) -> Iterator[tuple[bytes]]:
        """The pieces of these items. `state` gives what a piece is made of, to be compared; `make` makes it."""
        with self.making() as piece:
            for item in items:
                yield (piece(item, state(item), make),)

    @contextmanager
    def making(self) -> Iterator[Piece]:
        """While an answer is made, what gives each of its pieces: `piece(item, state, make)`.

        The pieces of this answer are kept instead of those of the last one, if it is made to its end.
        """
        kept, made, size = self._kept, {}, 0

        def piece(item: Any, state: object, make: Callable[[Any], bytes]) -> bytes:
            nonlocal size
            found = kept.get(item)
            if found is None or found[0] != state:
                found = state, make(item)  # else the old state stays: a young one would be the collector's work
            size += len(found[1])
            if size <= BODY_MAX:
                made[item] = found
            return found[1]

        yield piece
        self._kept = made if size <= BODY_MAX else {}
        if self._forget is not None:
            self._forget.cancel()
        self._forget = asyncio.get_running_loop().call_later(PIECES_S, self._kept.clear)


def unknown() -> object:
    """Whether an answer would be the same again cannot be told."""
    return None


class _TooLong(Exception):  # noqa: N818  it is no error
    """The answer is longer than what is kept."""


class Shared:
    """The answers that are kept, by what was asked.

    `keep_s` says for how long one may be given though what it shows has changed; it may say otherwise each time.
    """

    def __init__(self, keep_s: Callable[[], float]) -> None:
        self._keep_s = keep_s
        self._kept: dict[str, _Kept] = {}
        self._making: dict[str, asyncio.Future[tuple[bytes, bool]]] = {}
        self._size = 0

    async def answer(self, asked: str, make: Make, *, compress: bool, state: State = unknown) -> Response:
        """The answer to this; made if there is none that would be the same, or is young enough.

        `asked` names what is asked for, and `make` begins to make it. `compress`: the client takes gzip.
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
            if kept is not None and kept.lasts_until and now < kept.begun_at + STALE_S:
                return _response(kept.body, compressed=kept.compressed)
            body, compressed = await asyncio.shield(making)
        except _TooLong:
            return await in_pieces(make())
        return _response(body, compressed=compressed)

    def _made(self, key: str, done: asyncio.Future[tuple[bytes, bool]]) -> None:
        self._making.pop(key, None)
        if not done.cancelled():
            done.exception()  # perhaps nobody waits for it

    async def _make(
        self, key: str, begun: _Begun, compress: bool, state: State, seen: object, *, done: bool
    ) -> tuple[bytes, bool]:
        while not done:
            await asyncio.sleep(0)
            done = begun.slice()
        if seen != state():
            seen = None  # it shows not all at one moment
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
        """Keep it in place of the last one, unless it would never be given; the oldest ones make room."""
        now = time.monotonic()
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
    """An answer that is kept; the times are those of the monotonic clock.

    `lasts_until`: until then it is given whatever happens; 0: it was made so quickly that it is not. `state`: what it was
    made of, and as long as that is the same it is given; None: not known.
    """

    begun_at: float
    lasts_until: float
    body: bytes
    compressed: bool
    state: object


class _Begun:
    """An answer that is being made, and the processor time it took without what others did in between."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.size = 0
        self.busy_s = 0.0
        self.begun_at = time.monotonic()
        self._pieces = pieces
        self._made: list[bytes] = []

    def slice(self, slice_s: float = SLICE_S) -> bool:
        """Make some of it; is it all there?"""
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
        """The answer that is all there."""
        return b"".join(self._made)


def _packed(body: bytes) -> tuple[bytes, float]:
    """The body compressed, and the processor time it took."""
    began = time.thread_time()
    return gzip.compress(body, 1), time.thread_time() - began


def _response(body: bytes, *, compressed: bool) -> Response:
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"} if compressed else None
    return Response(body, headers=headers, media_type=JSON)


__all__ = ["Make", "Piece", "Pieces", "Shared", "State", "unknown"]
