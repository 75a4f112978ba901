"""The measured delays of the event loop and of decisions."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from unittest.mock import Mock

import pytest

from common.waiting import eventually
from licorne.grpc.service import Web
from licorne.host.web.figures.lag import LAG_BUCKETS_S, TICK_S, LoopLag, Waits
from licorne.host.web.http import Connections, Protocol
from service.peers import Peer, service


def test_waits_are_counted_in_buckets_and_the_longest_is_returned_once() -> None:
    waits = Waits()
    for seconds in (0.0005, 0.001, 0.03, 7.0):
        waits.add(seconds)
    assert sum(waits.buckets) == 4
    assert waits.buckets[0] == 2
    assert waits.buckets[LAG_BUCKETS_S.index(0.05)] == 1
    assert waits.buckets[-1] == 1
    assert waits.sum == pytest.approx(7.0315)
    assert waits.take_longest() == 7.0
    assert waits.take_longest() == 0.0
    waits.add(0.2)
    assert waits.take_longest() == 0.2


async def test_a_task_that_blocks_the_loop_is_seen() -> None:
    lag = LoopLag()
    with lag.running():
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251
        await eventually(lambda: sum(lag.waits.buckets) > 3)
    assert lag.waits.take_longest() > 0.2 - 2 * TICK_S
    counted = sum(lag.waits.buckets)
    await asyncio.sleep(5 * TICK_S)
    assert sum(lag.waits.buckets) == counted  # it ticks no more


async def test_gaps_between_decisions_are_counted_while_there_is_more_to_decide() -> None:
    web = Web(addresses=("127.0.0.1:0",))
    async with service(web=web, settings={"batch": 100}) as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        monitor = serving.monitor
        assert monitor is not None
        assert sum(monitor.gaps.buckets) == 0
        await peer.asks(*(f"k{n}" for n in range(2000)), vcore=1)
        await peer.allocations(2000)
        assert 10 <= sum(monitor.gaps.buckets) <= serving.engine.slices
        counted = sum(monitor.gaps.buckets)
        await asyncio.sleep(0.05)
        await peer.asks("k")
        await peer.allocations(1)
        assert sum(monitor.gaps.buckets) == counted  # to have nothing to do is no gap
        assert sum(monitor.lag.waits.buckets) > 0


async def test_decisions_leave_more_turns_to_requests_that_wait() -> None:
    turns: list[int] = []

    async def answer(_scope: Any, _receive: Any, _send: Any) -> None:
        """Takes ten turns, and sees how many slices are decided meanwhile."""
        before = serving.engine.slices
        for _ in range(10):
            await asyncio.sleep(0)
        turns.append(serving.engine.slices - before)

    async def lasting(_scope: Any, _receive: Any, _send: Any) -> None:
        assert connections.waiting == 0

    async with service(settings={"batch": 10}) as serving, Peer(serving.addresses[0]) as peer:
        connections = Connections(10)
        connection = Protocol(Mock(), connections)
        connection.connection_made(Mock(is_closing=lambda: False, get_write_buffer_size=lambda: 0))
        await peer.running(vcore=10**9)
        for waiting in (lambda: False, lambda: connections.waiting > 0):
            serving.engine.waiting = waiting
            keys = [f"{len(turns)}-{n}" for n in range(2000)]
            await peer.asks(*keys, vcore=1)
            decided = serving.engine.decided  # all asks are taken in when the first one is decided
            while serving.engine.decided < decided + 30:  # noqa: ASYNC110  at each turn
                await asyncio.sleep(0)
            await connection.answer(answer, {"path": "/", "headers": []}, Mock(), Mock())
            await peer.allocations(2000)
        assert turns[0] >= 9
        assert turns[1] <= 4
        assert connections.waiting == 0
        await connection.answer(lasting, {"path": "/ws/v1/events/stream", "headers": []}, Mock(), Mock())
        connection.connection_lost(None)
