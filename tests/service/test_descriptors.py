"""Connections to gRPC, of which nobody knows who they are, leave descriptors for all else, and silent ones end."""

from __future__ import annotations

import asyncio
import contextlib
import resource

import pytest

from common.waiting import WAIT_S, eventually
from licorne.grpc.service import server
from licorne.host.descriptors import RESERVED, Shares, shares
from service.peers import Peer, service


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (256, Shares(64, 64)),
        (1_024, Shares(312, 312)),
        (20_000, Shares(1_000, 18_600)),
        (resource.RLIM_INFINITY, Shares(1_000, (1 << 20) - RESERVED - 1_000)),
    ],
)
def test_shares(monkeypatch: pytest.MonkeyPatch, limit: int, expected: Shares) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert shares() == expected


async def closed(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        while await asyncio.wait_for(reader.read(100), WAIT_S):
            pass


async def test_silent_connections_are_bounded_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "shares", lambda: Shares(100, 5))
    monkeypatch.setattr(server, "HANDSHAKE_MS", 3_000)
    async with service() as made, Peer(made.addresses[0]) as peer:
        await peer.running()
        host, _, port = made.addresses[0].rpartition(":")
        assert dict(made._options())["grpc.server_handshake_timeout_ms"] == 3_000
        opened = [await asyncio.open_connection(host, int(port)) for _ in range(12)]
        ended = [asyncio.create_task(closed(reader)) for reader, _ in opened]
        order: list[asyncio.Task[None]] = []
        for task in ended:
            task.add_done_callback(order.append)
        await eventually(lambda: len(order) >= 12 - 4)  # the peer has a connection, too
        assert set(order[:8]) == set(ended[4:]), "others were closed than those beyond the limit"
        await peer.asks("a")
        assert await peer.allocations(1) == {"a": "n1"}
        await asyncio.wait_for(asyncio.gather(*ended), WAIT_S)
        async with Peer(made.addresses[0], "other") as other:
            await other.running()
        for _, writer in opened:
            writer.close()
