"""Answers that took long to make are given again for a while; what is made quickly is always new."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator

import pytest

from licorne.service.rest import shared
from licorne.service.rest.shared import Shared
from rest.world import busy, run


class Maker:
    """Makes an answer that takes as much processor time as it should, and counts how often it was made."""

    def __init__(self, seconds: float, pieces: int = 20, size: int = 100) -> None:
        self.made = 0
        self._seconds = seconds
        self._pieces = pieces
        self._size = size
        self.letter = b"x"
        self.fails = False

    def __call__(self) -> Iterator[bytes]:
        self.made += 1
        for _ in range(self._pieces):
            until = time.thread_time() + self._seconds / self._pieces
            while time.thread_time() < until:
                pass
            yield self.letter * self._size
        if self.fails:
            raise ZeroDivisionError


async def made(kept: Shared) -> None:
    """Wait until nothing is being made."""
    await asyncio.wait_for(asyncio.gather(*kept._making.values(), return_exceptions=True), 20)
    await asyncio.sleep(0)


def test_many_askers_get_one_answer() -> None:
    async def story() -> None:
        kept, make = Shared(), Maker(0.05)
        answers = await asyncio.gather(*(kept.answer("a", make, compress=False) for _ in range(20)))
        assert make.made == 1
        assert {bytes(answer.body) for answer in answers} == {b"x" * 2000 + b"\n"}
        await kept.answer("a", make, compress=False)
        assert make.made == 1
        await kept.answer("b", make, compress=False)
        assert make.made == 2

    run(story())


def test_an_answer_grows_old() -> None:
    async def story() -> None:
        kept, make = Shared(), Maker(0.015)
        first = await kept.answer("a", make, compress=False)
        make.letter = b"y"
        until = time.monotonic() + 20
        while make.made == 1:  # the old one, until it has grown old, and again while a new one is being made
            assert (await kept.answer("a", make, compress=False)).body == first.body
            assert time.monotonic() < until
            await asyncio.sleep(0.01)
        await made(kept)
        assert make.made == 2
        assert b"x" not in bytes((await kept.answer("a", make, compress=False)).body)

    run(story())


def test_an_answer_that_is_too_old_is_not_given_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "STALE_S", 0.3)
    monkeypatch.setattr(shared, "LONGEST_S", 0.2)

    async def story() -> None:
        kept, make = Shared(), Maker(0.02)
        await kept.answer("a", make, compress=False)
        await asyncio.sleep(0.6)
        make.letter = b"y"
        assert b"x" not in bytes((await kept.answer("a", make, compress=False)).body)
        assert make.made == 2

    run(story())


def test_an_answer_that_fails_fails_for_who_waits_and_is_made_again() -> None:
    async def story() -> None:
        kept, make = Shared(), Maker(0.02)
        await kept.answer("a", make, compress=False)
        make.fails = True
        while make.made == 1:
            await kept.answer("a", make, compress=False)
            await asyncio.sleep(0.01)
        await made(kept)
        with pytest.raises(ZeroDivisionError):
            await kept.answer("b", make, compress=False)
        make.fails = False
        assert (await kept.answer("b", make, compress=False)).body

    run(story())


def test_what_is_made_quickly_is_always_new() -> None:
    async def story() -> None:
        kept, make = Shared(), Maker(0.0)
        for _ in range(3):
            await kept.answer("a", make, compress=False)
        assert make.made == 3

    run(story())


def test_compressed_answers_are_kept_beside_plain_ones() -> None:
    async def story() -> None:
        kept, make = Shared(), Maker(0.05)
        plain = await kept.answer("a", make, compress=False)
        for _ in range(2):
            packed = await kept.answer("a", make, compress=True)
            assert packed.headers["content-encoding"] == "gzip"
            assert gzip.decompress(bytes(packed.body)) == plain.body
        assert make.made == 2

    run(story())


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "KEPT_MAX", 5000)

    async def story() -> None:
        kept, make = Shared(), Maker(0.02)
        for name in "abcde":
            await kept.answer(name, make, compress=False)
        assert kept._size == sum(len(one.body) for one in kept._kept.values()) <= 5000
        assert "e" in kept._kept

    run(story())


def test_a_very_long_answer_is_sent_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "BODY_MAX", 1000)

    async def story() -> None:
        kept, make = Shared(), Maker(0.05)
        answer = await kept.answer("a", make, compress=False)
        assert answer.body == b"x" * 2000 + b"\n"
        assert make.made == 2
        assert not kept._kept

    run(story())


def test_a_small_cluster_is_shown_as_it_is_now() -> None:
    world = busy()
    for number in range(5):
        world.node(f"new{number}", vcore=1)
        assert len(world.get("/ws/v1/partition/default/nodes")) == 3 + number


@pytest.mark.parametrize("compress", [False, True])
def test_what_shows_the_same_is_given_again(compress: bool) -> None:
    async def story() -> None:
        kept, make, state = Shared(), Maker(0.0), [1]
        for wanted in (1, 1, 2, 2, 1):
            state[0] = wanted
            await kept.answer("a", make, compress=compress, state=lambda: state[0])
        assert make.made == 3

    run(story())


def test_what_changes_while_it_is_made_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LONGEST_S", 0.0)

    async def story() -> None:
        kept, make, state = Shared(), Maker(0.05), [1]
        making = asyncio.ensure_future(kept.answer("a", make, compress=False, state=lambda: state[0]))
        await asyncio.sleep(0)
        state[0] = 2
        await making
        for _ in range(2):
            await kept.answer("a", make, compress=False, state=lambda: state[0])
        assert make.made == 2

    run(story())


def test_what_shows_the_same_is_kept_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        kept, make = Shared(), Maker(0.0)
        await kept.answer("a", make, compress=False, state=lambda: 1)
        monkeypatch.setattr(shared, "SAME_S", 0.0)
        await kept.answer("b", make, compress=False, state=lambda: 1)
        assert list(kept._kept) == ["b"]
        assert kept._size == len(kept._kept["b"].body)

    run(story())
