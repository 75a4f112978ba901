"""Refused peers are logged, once a second; a peer that guesses tokens has few attempts in a second."""

from __future__ import annotations

import asyncio
import io
import json
import time
from typing import Any

import grpc
import pytest

from common.virtual import in_virtual_time
from licorne.grpc.service import Security, Web, make_log
from licorne.host import guesses
from licorne.host.guesses import FREE, Guesses
from licorne.host.web.rest import Access
from service.peers import Peer, client_of, service


def told(out: io.StringIO) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    return [line for line in lines if line["event"] == "access refused"]


def test_refusals_are_logged_once_a_second_and_counted() -> None:
    out, now = io.StringIO(), [100.0]
    found = Guesses(make_log(out, form="json"), clock=lambda: now[0])
    for _ in range(10):
        found.refused("a", "no token")
    found.refused("b", "no token")
    now[0] += 1
    found.refused("a", "a wrong token", wrong=True)
    made = [(one["peer"], one["reason"], one["refusals"]) for one in told(out)]
    assert made == [("a", "no token", 1), ("b", "no token", 1), ("a", "a wrong token", 10)]


@in_virtual_time
async def test_a_right_token_waits_too_where_wrong_ones_came_from() -> None:
    loop = asyncio.get_running_loop()
    found = Guesses(clock=loop.time)
    for _ in range(FREE):
        assert await found.pause("a")
        found.refused("a", "a wrong token", wrong=True)
    waiting = [asyncio.create_task(found.pause("a")) for _ in range(guesses.WAITING_MAX + 3)]
    assert await found.pause("b")
    assert loop.time() == 0
    assert sum(await asyncio.gather(*waiting)) == guesses.WAITING_MAX
    assert loop.time() == pytest.approx(guesses.PAUSE_S)
    await asyncio.sleep(guesses.REMEMBERED_S)
    began = loop.time()
    assert await found.pause("a")
    assert loop.time() == began


def test_addresses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "ADDRESSES_MAX", 3)
    found = Guesses()
    for number in range(10):
        found.refused(str(number), "no token")
    assert list(found._addresses) == ["7", "8", "9"]


async def test_grpc_and_rest_log_and_slow_down_wrong_tokens() -> None:
    out = io.StringIO()
    security, access = Security(token="open"), Access(read_tokens=("read",))  # noqa: S106
    web = Web(addresses=("127.0.0.1:0",), access=access)
    async with service(security=security, web=web, log=make_log(out, form="json")) as made:
        made.guesses._pause_s = 0.3
        async with Peer(made.addresses[0], metadata=(("authorization", "Bearer open"),)) as peer:
            await peer.running()
        for metadata in ((), (("authorization", "Bearer wrong"),)):
            async with Peer(made.addresses[0], metadata=metadata) as peer:
                with pytest.raises(
                    grpc.aio.AioRpcError, match="the token is wrong" if metadata else "a token is needed"
                ):
                    await peer.register()
                assert (await peer.ending("node"))[0] is grpc.StatusCode.UNAUTHENTICATED
        async with client_of(made) as client:
            wrong, right = ({"authorization": f"Bearer {one}"} for one in ("wrong", "read"))
            for _ in range(FREE):
                assert (await client.get("/ws/v1/clusters", headers=wrong)).status_code == 401
            began = time.monotonic()
            assert (await client.get("/ws/v1/clusters", headers=right)).status_code == 200
            assert time.monotonic() - began >= 0.3
            assert (await client.put("/ws/v1/config", headers=right)).status_code == 403
    found = {(one["peer"], one["reason"]) for one in told(out)}
    assert ("ipv4:127.0.0.1", "no token") in found
    assert ("127.0.0.1", "a wrong token") in found
    assert all(one["level"] == "warning" for one in told(out))
