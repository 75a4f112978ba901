"""However often an API server is away, a reflector sees again soon after it is back: the outages before do not count."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from common.planting import LOOKED_AT, Counted, a_law_breaks
from common.virtual import run
from kube.test_reflector import CUT, EXPIRED, Silent, added, bookmark
from licorne.kube.api import ApiError, Client, Kind, Page, WatchEvent
from licorne.kube.api.kinds import NAMESPACES
from licorne.kube.reflector import Reflector

UNREADY = ApiError(403, "Forbidden", "the roles are not known yet")


class Outage(NamedTuple):
    """After `up_s` the server is away for `away_s`; when it is back it knows no roles for a while, perhaps no history."""

    up_s: float
    away_s: float
    unready_s: float
    forgets: bool


class Server(Client):
    """A server of one object, which never changes; not even a bookmark is sent. At times it is away."""

    def __init__(self, outages: list[Outage]) -> None:
        self.answered: dict[int, float] = {}
        self.seen: dict[int, float] = {}
        """How long after the end of each outage, by its number, the server answered first, and showed what it has."""
        self._times: list[tuple[float, float, float]] = []  # when each begins, ends, and roles are known again
        self._forgets = [one.forgets for one in outages]
        ready = 0.0
        for one in outages:
            begins = ready + one.up_s
            ready = begins + one.away_s + one.unready_s
            self._times.append((begins, begins + one.away_s, ready))

    async def list_page(self, *_: Any, **__: Any) -> Page[Any]:
        """Not called: lists are streamed."""
        raise AssertionError

    async def watch(
        self, _kind: Kind[Any], version: str = "", *, initial: bool = False, timeout_s: float = 0.0
    ) -> AsyncGenerator[list[WatchEvent[Any]]]:
        """Answer as the server does now, until it is away."""
        del timeout_s
        now = asyncio.get_running_loop().time()
        number = sum(begins <= now for begins, _, _ in self._times)
        _, ends, ready = self._times[number - 1] if number else (0.0, 0.0, 0.0)
        if now < ends:
            raise CUT
        self.answered.setdefault(number, now - ends)
        if now < ready:
            raise UNREADY
        yield []
        forgotten = max((at for at, forgets in enumerate(self._forgets[:number], 1) if forgets), default=0)
        if not initial and int(version) <= forgotten:
            raise EXPIRED
        if initial:
            yield [added("a", 1), bookmark(number + 1, end=True)]
        self.seen.setdefault(number, now - ends)
        following = self._times[number][0] if number < len(self._times) else 1e9
        await asyncio.sleep(following - now)
        raise CUT


def check(outages: list[Outage]) -> None:
    """Check that each outage is noticed to be over soon: a wait is at most twice as long as all before it since the last answer."""

    async def main() -> Server:
        server = Server(outages)
        task = asyncio.create_task(Reflector(server, NAMESPACES, Silent(), rng=random.Random(1)).run())
        await asyncio.sleep(sum(one.up_s + one.away_s + one.unready_s for one in outages) + 100.0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return server

    server = run(main())
    for number, one in enumerate(outages, 1):
        answered, seen = (times.get(number, float("inf")) for times in (server.answered, server.seen))
        assert answered <= 2 * one.away_s + 1.0, f"outage {number}: not asked for {answered} s after {one}"
        assert seen - answered <= 3 * one.unready_s + 1.0, f"outage {number}: not read for {seen} s after {one}"


UP_S, AWAY_S = 26.0, 5.0
"""How long the server is up at least, so that a watch lasts that long that it counts, and away at most."""
OUTAGES = st.lists(
    st.builds(Outage, st.floats(UP_S, 60), st.floats(0, AWAY_S), st.sampled_from([0.0, 0.0, 0.5, 1.0]), st.booleans()),
    min_size=1,
    max_size=5,
)


@examples(60)
@given(OUTAGES)
def test_a_server_that_is_back_is_seen_soon_however_often_it_was_away(outages: list[Outage]) -> None:
    check(outages)


@pytest.mark.parametrize("name", ["_answers", "_worked"])
def test_a_planted_fault_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Answers of a server that is up, or a watch that has lasted, end no row of failures."""
    law = Counted(check)
    monkeypatch.setattr(Reflector, name, lambda _self: None)
    with a_law_breaks(sys.modules[__name__]):
        law.search(OUTAGES, 60)
    record_property(LOOKED_AT, law.looked_at)
