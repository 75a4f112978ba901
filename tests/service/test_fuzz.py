"""Bytes as no honest peer sends them: each gets an answer, no part of a bad message is accepted, the service goes on.

LICORNE_FUZZ sets the number of messages, LICORNE_FUZZ_SEED the first seed: `LICORNE_FUZZ=50000 pytest
tests/service/test_fuzz.py`. In the end memory must hold about what it held after the first tenth.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections import Counter
from typing import Any

import grpc
import pytest

from common.waiting import WAIT_S
from licorne.grpc.service.intake import READINGS
from licorne.si import WireError, first, v19, wire
from licorne.si._schema import Message
from seeds import first_seed
from service.peers import Peer, service
from service.processes import resident_kb
from si.soup import Soup

COUNT = int(os.environ.get("LICORNE_FUZZ", "300"))
SEED = first_seed("LICORNE_FUZZ_SEED")
REQUESTS: dict[str, type[Message]] = {
    "node": v19.NodeRequest,
    "application": v19.ApplicationRequest,
    "allocation": v19.AllocationRequest,
    "update": first.UpdateRequest,
}
RM_FIELD = {"node": 2, "application": 3, "allocation": 3, "update": 5}
ANSWERS = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
}


GROWTH_MAX = 10_000, 60_000
"""Objects and kB by which this process may grow after the first tenth of the messages."""


class Held:
    """The memory of this process: as soon as it is warm, and in the end."""

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None

    def look(self, number: int) -> None:
        """Remember, once a tenth of the messages has come."""
        if self._first is None and number >= COUNT // 10:
            self._first = self._now()

    def growth(self) -> tuple[int, int]:
        """Objects and kB more than then."""
        assert self._first is not None
        objects, kb = self._now()
        return objects - self._first[0], kb - self._first[1]

    @staticmethod
    def _now() -> tuple[int, int]:
        gc.collect()
        return len(gc.get_objects()), resident_kb(os.getpid())


def report(capsys: pytest.CaptureFixture[str], what: str, answers: Counter[str], held: Held) -> None:
    """Print the number of messages tried, and check the memory."""
    objects, kb = held.growth()
    with capsys.disabled():
        sys.stdout.write(
            f"\n{what}: {sum(answers.values())} from seed {SEED}, answered {dict(sorted(answers.items()))}; "
            f"after the first tenth memory grew by {objects} objects, {kb} kB\n"
        )
    assert sum(answers.values()) == COUNT
    assert objects < GROWTH_MAX[0]
    assert kb < GROWTH_MAX[1]


def named(kind: str, data: bytes, rm_id: str) -> bytes:
    """The message, of this resource manager: of a scalar that comes twice the last counts."""
    return data + bytes([RM_FIELD[kind] << 3 | 2, len(rm_id)]) + rm_id.encode()


def is_readable(kind: str, data: bytes) -> bool:
    try:
        READINGS[kind].at_once(data)  # type: ignore[index]
    except WireError:
        return False
    return True


@pytest.mark.gate
@pytest.mark.timeout(3600)
async def test_hostile_messages(capsys: pytest.CaptureFixture[str]) -> None:
    answers: Counter[str] = Counter()
    held = Held()
    soup, rng = Soup(SEED), random.Random(SEED)
    async with service() as serving:
        address = serving.addresses[0]
        for number in range(COUNT):
            kind = rng.choice(sorted(REQUESTS))
            data = soup.hostile(REQUESTS[kind])
            if rng.random() < 0.7:
                data = named(kind, data, "rm")
            if number % 50 == 0:
                peer = Peer(address)
                await peer.register()
            before = serving.api.state_dump() if number % 10 == 0 and not is_readable(kind, data) else None
            peer.calls.pop(kind, None)
            await peer.send(kind, data)
            await peer.call(kind).done_writing()
            code, text = await peer.ending(kind)
            answers[code.name] += 1
            assert code in ANSWERS, (SEED, number, kind, data, code, text)
            assert "Traceback" not in text
            if not is_readable(kind, data):
                assert code is grpc.StatusCode.INVALID_ARGUMENT, (SEED, number, kind, data)
            if before is not None:
                assert serving.api.state_dump() == before, (SEED, number, kind, data)
            if "rm" not in serving.sessions.by_id:  # its last stream was closed: that was a goodbye
                await peer.register()
            if number % 50 == 49:
                await peer.close()
                serving.api.validate()
                held.look(number)
        await peer.close()
        async with Peer(address, "sane") as sane:
            await sane.running()
            await sane.asks("k")
            assert await sane.allocations(1) == {"k": "n1"}
        report(capsys, "hostile messages", answers, held)


@pytest.mark.timeout(3600)
async def test_hostile_registrations(capsys: pytest.CaptureFixture[str]) -> None:
    answers: Counter[str] = Counter()
    held = Held()
    soup = Soup(SEED + 1)
    async with service(settings={"managers": 5}) as serving, Peer(serving.addresses[0]) as peer:
        method: Any = peer.channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager")
        for number in range(COUNT):
            held.look(number)
            data = soup.hostile(v19.RegisterResourceManagerRequest)
            try:
                await method(data, timeout=WAIT_S)
            except grpc.aio.AioRpcError as error:
                answers[error.code().name] += 1
                assert error.code() in {  # noqa: PT017
                    grpc.StatusCode.INVALID_ARGUMENT,
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                }, (SEED, number, data)
                continue
            answers["OK"] += 1
            wire.decode(v19.RegisterResourceManagerRequest, data)
        assert len(serving.sessions.by_id) <= 5
        report(capsys, "hostile registrations", answers, held)
