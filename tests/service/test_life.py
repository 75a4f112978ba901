"""The life of a resource manager: registered, running, paused, stopped; resync, takeover, dialects."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from common.waiting import eventually
from licorne.grpc.service.engine import Engine
from licorne.grpc.service.session import State
from licorne.si import first, v19
from service.peers import Peer, service


def state(serving: Any, rm_id: str = "rm") -> State | None:
    session = serving.sessions.by_id.get(rm_id)
    return None if session is None else session.state


async def test_a_resource_manager_registers_reports_and_receives_decisions() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.register(version="1")
        assert state(serving) is State.REGISTERED
        assert [node.node_id for node in (await peer.node()).accepted] == ["n1"]
        assert state(serving) is State.RUNNING
        assert [app.application_id for app in (await peer.application()).accepted] == ["app"]
        await peer.asks("a", "b", "c", "d", "e")
        assert await peer.allocations(4) == {"a": "n1", "b": "n1", "c": "n1", "d": "n1"}
        release = v19.AllocationRelease(
            application_id="app",
            partition_name="default",
            allocation_key="a",
            termination_type=v19.TerminationType.STOPPED_BY_RM,
        )
        releases = v19.AllocationReleasesRequest(allocations_to_release=[release])
        await peer.send("allocation", v19.AllocationRequest(rm_id="rm", releases=releases))
        assert [gone.allocation_key for gone in (await peer.read("allocation")).released] == ["a"]
        assert await peer.allocations(1) == {"e": "n1"}
        serving.api.validate()


def first_report() -> first.UpdateRequest:
    node = first.NewNodeInfo(node_id="n1", schedulable_resource={"vcore": 2000})
    app = first.AddApplicationRequest(
        application_id="app", ugi=first.UserGroupInformation(user="ann"), tags={"namespace": "dev"}
    )
    ask = first.AllocationAsk(allocation_key="k", application_id="app", resource_ask={"vcore": 1000}, max_allocations=2)
    return first.UpdateRequest(rm_id="rm", new_schedulable_nodes=[node], new_applications=[app], asks=[ask])


async def test_the_first_dialect_on_the_same_server() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.register()
        await peer.send("update", first_report())
        accepted = 0
        found: list[first.Allocation] = []
        while len(found) < 2:
            response = await peer.read("update")
            accepted += len(response.accepted_nodes) + len(response.accepted_applications)
            found += response.new_allocations
        assert accepted == 2
        assert {(new.allocation_key, new.node_id) for new in found} == {("k", "n1")}
        assert len({new.uuid for new in found}) == 2


async def test_mixing_dialects_is_refused_both_ways() -> None:
    async with service() as serving, Peer(serving.addresses[0], "new") as peer:
        await peer.register()
        await peer.node()
        await peer.send("update", first.UpdateRequest(rm_id="new"))
        assert (await peer.read("update")).action is first.ActionFromScheduler.RESYNC
        code, text = await peer.ending("update")
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert text.startswith("RESYNC")
        assert state(serving, "new") is State.RUNNING
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.register()
        await peer.send("update", first_report())
        await peer.read("update")
        await peer.send("node", v19.NodeRequest(rm_id="rm"))
        code, text = await peer.ending("node")
        assert (code, text[:6]) == (grpc.StatusCode.FAILED_PRECONDITION, "RESYNC")


@pytest.mark.parametrize("kind", ["node", "application", "allocation", "update"])
async def test_an_unregistered_resource_manager_is_asked_to_resync(kind: str) -> None:
    requests: dict[str, Any] = {
        "node": v19.NodeRequest(rm_id="who"),
        "application": v19.ApplicationRequest(rm_id="who"),
        "allocation": v19.AllocationRequest(rm_id="who"),
        "update": first.UpdateRequest(rm_id="who"),
    }
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.send(kind, requests[kind])
        if kind == "update":
            assert (await peer.read(kind)).action is first.ActionFromScheduler.RESYNC
        code, text = await peer.ending(kind)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert text == 'RESYNC: RmID="who" not registered'


async def test_a_broken_stream_pauses_and_a_new_one_goes_on() -> None:
    async with service() as serving:
        async with Peer(serving.addresses[0]) as peer:
            await peer.running()
            await peer.asks("a")
            await peer.allocations(1)
        await eventually(lambda: state(serving) is State.PAUSED)
        await asyncio.sleep(0.1)
        partition = serving.api.cluster.partition("rm")
        assert len(partition.nodes) == 1
        async with Peer(serving.addresses[0]) as again:
            await again.asks("b")
            assert await again.allocations(1) == {"b": "n1"}
            assert state(serving) is State.RUNNING


async def test_nothing_is_decided_while_paused() -> None:
    async with service() as serving:
        async with Peer(serving.addresses[0]) as peer:
            await peer.running()
        await eventually(lambda: state(serving) is State.PAUSED)
        ask = v19.Allocation(allocation_key="k", application_id="app", resource_per_alloc={"vcore": 1})
        serving.api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=[ask]))
        assert serving.api.schedule() == 0
        async with Peer(serving.addresses[0]) as again:
            await again.send("allocation", v19.AllocationRequest(rm_id="rm"))
            assert await again.allocations(1) == {"k": "n1"}


async def test_after_the_timeout_a_resource_manager_is_stopped_and_must_resync() -> None:
    async with service() as serving:
        async with Peer(serving.addresses[0]) as peer:
            await peer.running()
            serving.retune(replace(serving.settings, rm_timeout_s=0.2), {})
        await eventually(lambda: state(serving) is None)
        assert serving.api.cluster.managers == {}
        async with Peer(serving.addresses[0]) as late:
            await late.asks("b")
            assert (await late.ending("allocation"))[1].startswith("RESYNC")
        async with Peer(serving.addresses[0], "idle") as idle:
            await idle.register()
            await eventually(lambda: state(serving, "idle") is None)


async def test_goodbye_is_closing_the_last_stream() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running()
        await peer.call("node").done_writing()
        assert await peer.ending("node") == (grpc.StatusCode.OK, "")
        assert state(serving) is State.RUNNING
        await peer.call("application").done_writing()
        assert await peer.ending("application") == (grpc.StatusCode.OK, "")
        await eventually(lambda: state(serving) is None)
        assert serving.api.cluster.managers == {}


async def test_a_stream_that_closes_gets_what_waits_for_it_first() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.register()
        nodes = [v19.NodeInfo(node_id=f"n{i}", action=v19.ActionFromRM.CREATE) for i in range(2500)]
        await peer.send("node", v19.NodeRequest(rm_id="rm", nodes=nodes))
        await peer.call("node").done_writing()
        accepted = 0
        while (response := await peer.read("node")) is not None:
            accepted += len(response.accepted)
        assert accepted == 2500


async def test_a_second_instance_takes_over() -> None:
    async with service() as serving:
        async with Peer(serving.addresses[0]) as older, Peer(serving.addresses[0]) as newer:
            await older.running()
            await newer.register()
            for kind in ("node", "application"):
                code, text = await older.ending(kind)
                assert code is grpc.StatusCode.ABORTED
                assert "registered again" in text
            assert len(serving.api.cluster.partition("rm").nodes) == 0
            await newer.node("n2")
            await newer.application()
            await newer.asks("k")
            assert await newer.allocations(1) == {"k": "n2"}
        await eventually(lambda: state(serving) is State.PAUSED)


async def test_a_stream_of_the_first_instance_cannot_join_the_second() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as older, Peer(serving.addresses[0]) as newer:
        await older.running()
        older.call("allocation")  # open, but nothing said yet
        await eventually(lambda: len(serving._streams) == 3)
        await newer.register()
        await older.asks("k")
        assert (await older.ending("allocation"))[1].startswith("RESYNC")


async def test_a_newer_stream_of_a_kind_replaces_the_older() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running()
        old = peer.calls.pop("node")
        await peer.node("n2")
        peer.calls["old"], peer.calls["node"] = peer.calls["node"], old
        assert (await peer.ending("node"))[0] is grpc.StatusCode.ABORTED
        assert state(serving) is State.RUNNING


async def test_metadata_bind_a_stream_before_its_first_message() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.register()
        peer.metadata = (("licorne-rm-id", "rm"), ("licorne-registration", peer.registration))
        await peer.call("node").initial_metadata()
        assert state(serving) is State.RUNNING
        peer.metadata = (("licorne-rm-id", "rm"), ("licorne-registration", "of-another-life"))
        assert (await peer.ending("allocation"))[1].startswith("RESYNC")


async def test_a_stream_belongs_to_one_resource_manager() -> None:
    async with (
        service() as serving,
        Peer(serving.addresses[0], "one") as one,
        Peer(serving.addresses[0], "two") as two,
    ):
        await one.running()
        await two.running()
        removal = v19.RemoveApplicationRequest(application_id="app")
        await one.send("application", v19.ApplicationRequest(rm_id="two", remove=[removal]))
        code, text = await one.ending("application")
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "rmID" in text
        assert "app" in serving.api.cluster.partition("two").applications


async def test_an_error_within_the_scheduler_is_a_resync(monkeypatch: pytest.MonkeyPatch) -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer, Peer(serving.addresses[0], "b") as other:
        await peer.running()
        await other.running()

        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(serving.api, "take", broken)
        await peer.send("node", v19.NodeRequest(rm_id="rm"))
        assert (await peer.ending("node"))[1] == "RESYNC: an internal error"
        monkeypatch.undo()
        assert state(serving) is None
        assert state(serving, "b") is State.RUNNING
        monkeypatch.setattr(serving.api, "schedule", broken)
        await other.send("node", v19.NodeRequest(rm_id="b"))
        assert (await other.ending("node"))[1] == "RESYNC: an internal error of the scheduler"
        monkeypatch.undo()
        await other.close()
        async with Peer(serving.addresses[0], "b") as fresh:
            await fresh.running()


async def test_node_constraints_travel_as_tags_and_attributes() -> None:
    """The example of docs/use/service.md."""
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    wanted = {
        "nodeSelector": {"disk": "ssd"},
        "nodeAffinity": [[{"key": "si/zone", "operator": "In", "values": ["a", "b"]}]],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running()
        attributes = {"label/disk": "ssd", "si/zone": "a", "taints": json.dumps(taints)}
        node = v19.NodeInfo(
            node_id="gpu",
            action=v19.ActionFromRM.CREATE,
            schedulable_resource={"vcore": 4000},
            attributes=attributes,
        )
        await peer.send("node", v19.NodeRequest(rm_id="rm", nodes=[node]))
        assert (await peer.read("node")).accepted
        asks = [
            v19.Allocation(
                allocation_key=key, application_id="app", resource_per_alloc={"vcore": 3000}, allocation_tags=tags
            )
            for key, tags in (("plain", {}), ("picky", {"licorne/node-constraints": json.dumps(wanted)}))
        ]
        await peer.send("allocation", v19.AllocationRequest(rm_id="rm", allocations=asks))
        assert await peer.allocations(2) == {"plain": "n1", "picky": "gpu"}


async def test_many_resource_managers_at_once() -> None:
    async def live(address: str, number: int) -> None:
        async with Peer(address, f"rm{number}") as peer:
            await peer.running()
            await peer.asks("a", "b")
            assert len(await peer.allocations(2)) == 2

    async with service() as serving:
        await asyncio.gather(*(live(serving.addresses[0], number) for number in range(50)))
        await eventually(lambda: all(one.state is State.PAUSED for one in serving.sessions.by_id.values()))
        assert len(serving.sessions.by_id) == 50


async def test_a_resource_manager_with_many_asks_does_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first slice is the greedy one's and full, so the second one is the other's, however fast requests arrive."""
    waiting: list[tuple[int, int]] = []  # asks of both before each slice, once all have arrived
    original = Engine.slice
    async with (
        service(settings={"batch": 20}) as serving,
        Peer(serving.addresses[0], "a") as greedy,
        Peer(serving.addresses[0], "b") as modest,
    ):

        def count(rm_id: str) -> int:
            return sum(1 for _ in serving.api.cluster.partition(rm_id).waiting())

        def once_all_have_arrived(engine: Engine) -> bool:
            if not waiting and (count("a"), count("b")) != (1000, 1):
                return False
            waiting.append((count("a"), count("b")))
            return original(engine)

        for peer in (greedy, modest):
            await peer.running(vcore=10**6)
        monkeypatch.setattr(Engine, "slice", once_all_have_arrived)
        await greedy.asks(*(f"p{i}" for i in range(1000)), vcore=1)
        await modest.asks("k")
        await modest.allocations(1)
        await greedy.allocations(1000)
    assert [of_both for of_both in waiting if of_both[1]] == [(1000, 1), (980, 1)]


async def test_the_end_of_the_service_ends_streams_with_a_reason() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running()
        await serving.stop()
        assert (await peer.ending("node"))[0] is grpc.StatusCode.UNAVAILABLE
