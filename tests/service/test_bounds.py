"""Bounds and those who meet them: slow readers, long messages, many streams, bad addresses, tokens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from common.waiting import eventually
from licorne.grpc.service import Security, SecurityError, Service, ServiceSettings, SettingError
from licorne.grpc.service.session import State
from licorne.grpc.service.sessions import pieces
from licorne.host.security import grpc_address, is_local
from licorne.si import adapt_v19, v19
from licorne.si.messages import AcceptedNode, Output
from service.peers import Peer, service

LONG = "k" * 2000


async def flood(peer: Peer, count: int) -> None:
    """Ask for many pods, with long names."""
    for at in range(0, count, 500):
        asks = [
            v19.Allocation(allocation_key=f"{at + i}{LONG}", application_id="app", resource_per_alloc={"vcore": 1})
            for i in range(500)
        ]
        await peer.send("allocation", v19.AllocationRequest(rm_id=peer.rm_id, allocations=asks))


async def test_a_slow_reader_is_slowed_down_then_paused_and_loses_nothing() -> None:
    count, room = 20_000, 300_000
    settings = {"buffer_bytes": room, "slow_after_s": 0.5, "batch": 50, "names": 5000}
    async with (
        service(settings=settings) as serving,
        Peer(serving.addresses[0], "slow") as peer,
        Peer(serving.addresses[0], "quick") as other,
    ):
        await peer.running(vcore=10**9)
        flooding = asyncio.create_task(flood(peer, count))
        session = serving.sessions.by_id["slow"]
        await eventually(lambda: session.state is State.PAUSED, "it was not paused")
        assert session.buffered < room + 4 * 50 * 2200
        assert not flooding.done()  # its requests are not read
        await other.running()  # meanwhile others are served
        await other.asks("k")
        assert await other.allocations(1) == {"k": "n1"}
        found = await peer.allocations(count)
        await flooding
        assert set(found) == {f"{i}{LONG}" for i in range(count)}
        assert session.state is State.RUNNING
        await eventually(lambda: session.buffered == 0, "bytes are counted that were sent")  # counted after sending
        serving.api.validate()


async def test_a_client_that_never_reads_is_stopped() -> None:
    settings = {"buffer_bytes": 100_000, "slow_after_s": 0.2, "names": 5000}
    async with service(settings=settings) as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        serving.retune(replace(serving.settings, rm_timeout_s=0.3), {})
        flooding = asyncio.create_task(flood(peer, 20_000))
        await eventually(lambda: not serving.sessions.by_id, "it was not stopped")
        assert serving.api.cluster.managers == {}
        assert (await peer.ending("node"))[1].startswith("RESYNC")
        flooding.cancel()
        await asyncio.wait([flooding])


async def test_a_message_that_is_too_long_ends_the_stream_and_nothing_else() -> None:
    async with service(settings={"message_bytes": 10_000}) as serving, Peer(serving.addresses[0]) as peer:
        await peer.running()
        await peer.asks("x" * 20_000)
        code, text = await peer.ending("allocation")
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "10000" in text
        assert serving.sessions.by_id["rm"].state is State.RUNNING
        del peer.calls["allocation"]
        await peer.asks("k")
        assert await peer.allocations(1) == {"k": "n1"}


def test_responses_are_divided_into_messages_of_bounded_length() -> None:
    outputs: list[Output] = [AcceptedNode(f"node-{i}-{'x' * 100}") for i in range(1000)]
    made = list(pieces(adapt_v19, outputs, "rm", 5000))
    assert len(made) > 20
    assert max(len(data) for _, data in made) <= 5000
    assert b"".join(data for _, data in made) == adapt_v19.responses_as_bytes(outputs, "rm")[0][1]
    assert len(list(pieces(adapt_v19, outputs[:1], "rm", 5))) == 1  # there is nothing to cut


async def test_too_many_streams_and_resource_managers() -> None:
    settings = {"streams": 2, "managers": 1, "name_chars": 10}
    async with service(settings=settings) as serving, Peer(serving.addresses[0]) as peer:
        await peer.running()
        code, text = await peer.ending("allocation")
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2 streams" in text
        for rm_id, wanted in (
            ("b", grpc.StatusCode.RESOURCE_EXHAUSTED),
            ("a-long-name", grpc.StatusCode.INVALID_ARGUMENT),
        ):
            async with Peer(serving.addresses[0], rm_id) as other:
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await other.register()
                assert refusal.value.code() is wanted


async def test_a_refused_configuration_changes_nothing() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer, Peer(serving.addresses[0]) as second:
        await peer.running()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await second.register(config="partitions: 7")
        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert str(refusal.value.details()).startswith("registration of RM failed: ")
        async with Peer(serving.addresses[0], "") as nameless:
            with pytest.raises(grpc.aio.AioRpcError, match="rmID: must not be empty"):
                await nameless.register()
        await peer.asks("k")
        assert await peer.allocations(1) == {"k": "n1"}


# -- where it listens ------------------------------------------------------------------------------------


async def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "licorne.sock"
    async with service(f"unix://{path}") as serving, Peer(f"unix:{path}") as peer:
        assert serving.addresses == [f"unix:{path}"]
        await peer.running()


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:3333", True),
        ("tcp://localhost:3333", True),
        ("[::1]:3333", True),
        ("127.8.8.8:1", True),
        ("unix:/a", True),
        ("unix:///a/b", True),
        ("0.0.0.0:3333", False),
        ("[::]:3333", False),
        ("10.0.0.1:3333", False),
        ("scheduler.example:3333", False),
    ],
)
def test_loopback_addresses_are_local(address: str, *, local: bool) -> None:
    assert is_local(address) is local


@pytest.mark.parametrize("address", ["", "3333", "host", "host:", "host:x", "host:65536", "unix:", ":3333"])
def test_a_text_that_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SecurityError):
        grpc_address(address)


@pytest.mark.parametrize(
    ("security", "complaint"),
    [
        ({}, "TLS"),
        ({"token": "t"}, "TLS"),
        ({"certificate": b"c", "key": b"k"}, "token"),
        ({"certificate": b"c"}, "key"),
        ({"client_ca": b"c"}, "certificates of clients"),
    ],
)
def test_listening_beyond_loopback_requires_protection(security: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SecurityError, match=complaint):
        Service(["0.0.0.0:0"], security=Security(**security))


@pytest.mark.parametrize(
    "security",
    [
        {"insecure": True},
        {"certificate": b"c", "key": b"k", "token": "t"},
        {"certificate": b"c", "key": b"k", "client_ca": b"a"},
    ],
)
def test_beyond_loopback_with_protection_or_by_name(security: dict[str, Any]) -> None:
    Security(**security).check(["0.0.0.0:0"])


async def test_an_address_in_use() -> None:
    async with service() as serving:
        with pytest.raises(SecurityError, match="cannot listen"):
            await Service([serving.addresses[0]]).start()


async def test_a_token() -> None:
    async with service(security=Security(token="sesame")) as serving:  # noqa: S106
        for given in ((), (("authorization", "Bearer simsim"),)):
            async with Peer(serving.addresses[0], metadata=given) as stranger:
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await stranger.register()
                assert refusal.value.code() is grpc.StatusCode.UNAUTHENTICATED
                assert (await stranger.ending("node"))[0] is grpc.StatusCode.UNAUTHENTICATED
        async with Peer(serving.addresses[0], metadata=(("authorization", "Bearer sesame"),)) as friend:
            await friend.running()


@pytest.mark.parametrize("given", [{"streams": 0}, {"rm_timeout_s": -1.0}, {"batch": 1 << 40}])
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        ServiceSettings(**given)


# -- gRPC's own services ---------------------------------------------------------------------------------


async def test_health_and_reflection() -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: PLC0415
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc  # noqa: PLC0415

    async with service() as serving, grpc.aio.insecure_channel(serving.addresses[0]) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", "si.v1.Scheduler"):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = stub.ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = (await call.read()).list_services_response.service
        assert "si.v1.Scheduler" in {item.name for item in listed}
        await call.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol="si.v1.Scheduler"))
        described = (await call.read()).file_descriptor_response.file_descriptor_proto
        assert any(b"UpdateAllocation" in file for file in described)
        await call.done_writing()
