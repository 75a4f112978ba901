"""Answers that took long to make are reused for a while; those that are made quickly are always new."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator

import pytest

from licorne.host.web.rest import shared
from licorne.host.web.rest.shared import Shared
from rest.world import busy


class Clock:
    """Stands for the module `time`: time passes when a test says so, whatever else the machine does."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.busy_s = 0.0

    def work(self, seconds: float) -> None:
        self.busy_s += seconds
        self.now_s += seconds

    def monotonic(self) -> float:
        return self.now_s

    perf_counter = monotonic

    def thread_time(self) -> float:
        return self.busy_s


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(shared, "time", found)
    return found


class Maker:
    """Makes an answer that takes as much processor time as it should, and counts how often it was made."""

    def __init__(self, clock: Clock, seconds: float, pieces: int = 20, size: int = 100) -> None:
        self.made = 0
        self._clock = clock
        self._seconds = seconds
        self._pieces = pieces
        self._size = size
        self.letter = b"x"
        self.fails = False

    def __call__(self) -> Iterator[bytes]:
        self.made += 1
        for _ in range(self._pieces):
            self._clock.work(self._seconds / self._pieces)
            yield self.letter * self._size
        if self.fails:
            raise ZeroDivisionError


async def made(kept: Shared) -> None:
    """Wait until nothing is being made."""
    await asyncio.gather(*kept._making.values(), return_exceptions=True)
    await asyncio.sleep(0)


async def test_many_clients_share_one_answer(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.05)
    answers = await asyncio.gather(*(kept.answer("a", make, compress=False) for _ in range(20)))
    assert make.made == 1
    assert {bytes(answer.body) for answer in answers} == {b"x" * 2000 + b"\n"}
    await kept.answer("a", make, compress=False)
    assert make.made == 1
    await kept.answer("b", make, compress=False)
    assert make.made == 2


async def test_an_answer_grows_old(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.015)
    first = await kept.answer("a", make, compress=False)
    make.letter = b"y"
    for after_s, wanted in ((1.4, 1), (0.2, 2)):  # until it has grown old, and again while a new one is being made
        clock.now_s += after_s
        assert (await kept.answer("a", make, compress=False)).body == first.body
        assert make.made == wanted
    await made(kept)
    assert make.made == 2
    assert b"x" not in bytes((await kept.answer("a", make, compress=False)).body)


async def test_an_answer_that_is_too_old_is_not_given_any_more(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.02)
    await kept.answer("a", make, compress=False)
    clock.now_s += shared.STALE_S
    make.letter = b"y"
    assert b"x" not in bytes((await kept.answer("a", make, compress=False)).body)
    assert make.made == 2


async def test_a_failed_answer_fails_for_all_waiting_clients_and_is_made_again(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.02)
    await kept.answer("a", make, compress=False)
    make.fails = True
    clock.now_s += 2.1
    await kept.answer("a", make, compress=False)
    await made(kept)
    assert make.made == 2
    with pytest.raises(ZeroDivisionError):
        await kept.answer("b", make, compress=False)
    make.fails = False
    assert (await kept.answer("b", make, compress=False)).body


async def test_an_answer_that_is_made_quickly_is_always_new(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.0)
    for _ in range(3):
        await kept.answer("a", make, compress=False)
    assert make.made == 3


async def test_compressed_answers_are_kept_beside_plain_ones(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.05)
    plain = await kept.answer("a", make, compress=False)
    for _ in range(2):
        packed = await kept.answer("a", make, compress=True)
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(bytes(packed.body)) == plain.body
    assert make.made == 2


async def test_kept_answers_are_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "KEPT_MAX", 5000)
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.02)
    for name in "abcde":
        await kept.answer(name, make, compress=False)
    assert kept._size == sum(len(one.body) for one in kept._kept.values()) <= 5000
    assert "e" in kept._kept


async def test_a_very_long_answer_is_sent_as_it_is_made(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "BODY_MAX", 1000)
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.05)
    answer = await kept.answer("a", make, compress=False)
    assert answer.body == b"x" * 2000 + b"\n"
    assert make.made == 2
    assert not kept._kept


def test_a_small_cluster_is_shown_as_it_is_now() -> None:
    world = busy()
    for number in range(5):
        world.node(f"new{number}", vcore=1)
        assert len(world.get("/ws/v1/partition/default/nodes")) == 3 + number


@pytest.mark.parametrize("compress", [False, True])
async def test_an_answer_for_an_unchanged_state_is_reused(clock: Clock, compress: bool) -> None:
    kept, make, state = Shared(lambda: 2.0), Maker(clock, 0.0), [1]
    for wanted in (1, 1, 2, 2, 1):
        state[0] = wanted
        await kept.answer("a", make, compress=compress, state=lambda: state[0])
    assert make.made == 3


async def test_an_answer_whose_state_changed_meanwhile_is_not_reused(clock: Clock) -> None:
    kept, make, state = Shared(lambda: 0.0), Maker(clock, 0.05), [1]
    making = asyncio.ensure_future(kept.answer("a", make, compress=False, state=lambda: state[0]))
    await asyncio.sleep(0)
    state[0] = 2
    await making
    for _ in range(2):
        await kept.answer("a", make, compress=False, state=lambda: state[0])
    assert make.made == 2


async def test_an_answer_for_an_unchanged_state_is_kept_for_a_limited_time(clock: Clock) -> None:
    kept, make = Shared(lambda: 2.0), Maker(clock, 0.0)
    await kept.answer("a", make, compress=False, state=lambda: 1)
    clock.now_s += shared.SAME_S
    await kept.answer("b", make, compress=False, state=lambda: 1)
    assert list(kept._kept) == ["b"]
    assert kept._size == len(kept._kept["b"].body)
