"""Long requests: read and accepted in small parts, and yet as one."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import grpc
import pytest

from common.waiting import WAIT_S, eventually
from licorne.grpc.service import intake
from licorne.grpc.service.intake import READINGS, portions
from licorne.grpc.service.session import Session, State
from licorne.si import WireError, first, v19, wire
from licorne.si.adapt import STEP_ASKS, Translation
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate
from licorne.si.rpc import Kind
from licorne.si.wire_read import STEP_ITEMS
from service.peers import Peer, service
from si.soup import Soup

COUNT = 20_000
HOSTILE = int(os.environ.get("LICORNE_FUZZ", "300")) // 3


def ask(number: int, application_id: str = "app", **fields: Any) -> v19.Allocation:
    resource = {"vcore": 1}
    return v19.Allocation(
        allocation_key=f"k{number}", application_id=application_id, resource_per_alloc=resource, **fields
    )


def asks(count: int = COUNT, rm_id: str = "rm") -> v19.AllocationRequest:
    return v19.AllocationRequest(rm_id=rm_id, allocations=[ask(number) for number in range(count)])


def releases(keys: list[str], rm_id: str = "rm") -> v19.AllocationRequest:
    listed = [v19.AllocationRelease(application_id="app", allocation_key=key, partition_name="default") for key in keys]
    return v19.AllocationRequest(rm_id=rm_id, releases=v19.AllocationReleasesRequest(allocations_to_release=listed))


def application(number: int) -> v19.AddApplicationRequest:
    return v19.AddApplicationRequest(application_id=f"a{number}", ugi=v19.UserGroupInformation(user="ann"))


def first_request(count: int) -> first.UpdateRequest:
    some = range(count)
    existing = [first.Allocation(allocation_key="e", application_id="a0", uuid="u", resource_per_alloc={"vcore": 1})]
    return first.UpdateRequest(
        rm_id="rm",
        asks=[
            first.AllocationAsk(allocation_key=f"k{n}", application_id="a0", resource_ask={"vcore": n}) for n in some
        ],
        new_schedulable_nodes=[
            first.NewNodeInfo(
                node_id=f"n{n}",
                schedulable_resource={"vcore": 9},
                existing_allocations=existing if n == 1 else [],
            )
            for n in some
        ],
        updated_nodes=[first.UpdateNodeInfo(node_id=f"n{n}", action=first.ActionFromRM.DRAIN_NODE) for n in some],
        new_applications=[first.AddApplicationRequest(application_id=f"a{n}", queue_name="root.x") for n in some],
        remove_applications=[first.RemoveApplicationRequest(application_id=f"r{n}") for n in some],
        releases=first.AllocationReleasesRequest(
            allocations_to_release=[first.AllocationRelease(application_id=f"a{n}", uuid="u") for n in some],
            allocation_asks_to_release=[
                first.AllocationAskRelease(application_id=f"a{n}" if n % 400 else "") for n in some
            ],
        ),
    )


def requests() -> dict[str, tuple[Kind, Any]]:
    both = asks(1500)
    both.releases = releases([f"k{n}" for n in range(1500)]).releases
    unreadable = [v19.NodeInfo(node_id=f"n{n}", action=v19.ActionFromRM(n % 2)) for n in range(1000)]
    many = [application(n) for n in range(700)]
    gone = [v19.RemoveApplicationRequest(application_id=f"a{n}") for n in range(700)]
    return {
        "asks": ("allocation", asks(2000)),
        "releases": ("allocation", releases([f"k{n}" for n in range(2000)])),
        "both": ("allocation", both),
        "nodes of which half say not what to do": ("node", v19.NodeRequest(rm_id="rm", nodes=unreadable)),
        "applications": ("application", v19.ApplicationRequest(rm_id="rm", new=many, remove=gone)),
        "nothing": ("allocation", v19.AllocationRequest(rm_id="rm")),
        "first": ("update", first_request(900)),
    }


REQUESTS = requests()


def at_once(kind: Kind, data: bytes) -> tuple[str, Translation]:
    return READINGS[kind].at_once(data)


def in_steps(kind: Kind, data: bytes) -> tuple[str, Translation]:
    *_, last = READINGS[kind].in_steps(data)
    assert last is not None
    return last


def outcome(read: Any, kind: Kind, data: bytes) -> Any:
    """The messages that are read, or the error."""
    try:
        rm_id, found = read(kind, data)
    except WireError as error:
        return str(error)
    return rm_id, plain(found)


def plain(found: Translation) -> Any:
    names = [name for name in dir(Allocation) if not name.startswith("_")]
    inputs = [
        {name: getattr(one, name) for name in names} if isinstance(one, Allocation) else one for one in found.inputs
    ]
    return [repr(one) for one in inputs], found.outputs, found.ignored


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_read_in_steps_equals_one_read_at_once(name: str) -> None:
    kind, request = REQUESTS[name]
    data = wire.encode(request)
    assert outcome(in_steps, kind, data) == outcome(at_once, kind, data)


@pytest.mark.parametrize(
    ("name", "asks", "others"), [("asks", 2000, 0), ("releases", 0, 2000), ("both", 1500, 1500), ("first", 900, 5400)]
)
def test_a_step_reads_few_items(name: str, asks: int, others: int) -> None:
    kind, request = REQUESTS[name]
    found = list(READINGS[kind].in_steps(wire.encode(request)))
    decoded, translated = (asks + others) / STEP_ITEMS, asks / STEP_ASKS + others / STEP_ITEMS
    assert decoded + translated <= len(found) <= decoded + translated + 12
    assert [one is None for one in found] == [True] * (len(found) - 1) + [False]


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "nothing"])
def test_spoilt_bytes_are_refused_with_the_same_reason(name: str) -> None:
    kind, request = REQUESTS[name]
    data = wire.encode(request)
    rng = random.Random(name)
    refused = 0
    for _ in range(25):
        spoilt = bytearray(data)
        if rng.random() < 0.3:
            del spoilt[rng.randrange(len(spoilt)) :]
        else:
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        expected = outcome(at_once, kind, bytes(spoilt))
        assert outcome(in_steps, kind, bytes(spoilt)) == expected
        refused += isinstance(expected, str)
    assert refused > 2


def test_fields_in_any_order_and_twice() -> None:
    chunks = [
        wire.encode(releases(["r1"], rm_id="first")),
        wire.encode(asks(300, rm_id="")),
        b"\xaa\x06\x03abc",  # field 101, which nobody knows
        wire.encode(releases(["r2"], rm_id="last")),
        wire.encode(asks(2, rm_id="")),
        b"\xab\x06\x08\x01\xac\x06",  # a group
    ]
    for count in range(1, len(chunks) + 1):
        data = b"".join(chunks[:count])
        assert outcome(in_steps, "allocation", data) == outcome(at_once, "allocation", data)


def test_any_bytes_are_read_alike() -> None:
    soup = Soup(4)
    for kind, (_, request) in {kind: (kind, request) for kind, request in REQUESTS.values()}.items():
        for _ in range(HOSTILE):
            data = b"".join(soup.message(type(request)) for _ in range(soup.random.choice((0, 0, 0, 50))))
            data += soup.hostile(type(request))
            assert outcome(in_steps, kind, data) == outcome(at_once, kind, data), data


def test_nodes_with_pods_stay_in_one_part_with_the_applications_after_them() -> None:
    pod = Allocation(key="e", application_id="a", resource={"vcore": 1}, node_id="n0")
    nodes = [NodeUpdate(node_id=f"n{n}", action=NodeAction.CREATE) for n in range(intake.INPUTS)]
    nodes[0].existing = (pod,)
    apps = [AddApplication(application_id=f"a{n}", queue="root.x", user="ann") for n in range(intake.INPUTS)]
    more = [Allocation(key=f"k{n}", application_id="a", resource={"vcore": 1}) for n in range(500)]
    sizes = [len(one.inputs) for one in portions(Translation(inputs=[*nodes, *apps, *more]))]
    assert sizes == [400, 200, 200, 100]


# -- with a service --------------------------------------------------------------------------------------


async def under_way(session: Session) -> None:
    """Wait until a long request is being taken in; looks at every turn of the loop, for it does not take long."""
    async with asyncio.timeout(WAIT_S):
        while not session.taking:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_other_tasks_run_while_a_long_request_is_processed() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        turns = 0
        session = serving.sessions.by_id["rm"]
        await peer.send("allocation", asks())
        app = serving.api.cluster.partition("rm").applications["app"]
        await under_way(session)
        while session.taking:  # nothing is decided before all is there
            assert not app.allocations
            turns += 1
            await asyncio.sleep(0)
        assert len(app.asks) + len(app.allocations) == COUNT
        assert turns > 2
        assert len(await peer.allocations(COUNT)) == COUNT
        serving.api.validate()


async def test_a_stream_that_breaks_during_intake_takes_nothing_back() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        session = serving.sessions.by_id["rm"]
        await peer.send("allocation", asks())
        await under_way(session)
        app = serving.api.cluster.partition("rm").applications["app"]
        peer.calls.pop("allocation").cancel()
        await eventually(lambda: len(app.asks) + len(app.allocations) == COUNT, "it was not brought to its end")
        # Messages on another stream of this kind come after it.
        await peer.send("allocation", releases([f"k{n}" for n in range(COUNT)]))
        await eventually(lambda: not app.asks and not app.allocations and not session.taking, "not all was released")
        serving.api.validate()


async def test_a_resource_manager_that_registers_again_during_intake_starts_empty() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer, Peer(serving.addresses[0]) as again:
        await peer.running(vcore=10**9)
        old = serving.sessions.by_id["rm"]
        await peer.send("allocation", asks())
        await under_way(old)
        await again.running()
        await eventually(lambda: not old.taking)
        partition = serving.api.cluster.partition("rm")
        assert set(partition.applications) == {"app"}
        assert not partition.applications["app"].asks
        assert old.state is State.STOPPED
        await again.asks("k1")
        assert await again.allocations(1) == {"k1": "n1"}
        serving.api.validate()


async def test_a_request_that_waits_for_another_one_is_dropped_if_its_session_is_stopped() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        session = serving.sessions.by_id["rm"]
        failures: list[Any] = []
        taking_in = intake.RequestIntake(
            serving.api, lambda _: None, lambda session, kind: failures.append((session, kind))
        )
        ended = asyncio.Event()

        async def earlier() -> None:
            await ended.wait()
            del session.taking["allocation"]

        session.taking["allocation"] = asyncio.create_task(earlier())
        ask = Allocation(key="k", application_id="app", resource={"vcore": 1})
        later = asyncio.create_task(taking_in.take(session, "allocation", Translation(inputs=[ask])))
        await asyncio.sleep(0)
        before = session.messages_in
        serving.sessions.stop(session, "a test")
        ended.set()
        await later
        assert session.messages_in == before
        assert failures == []


async def test_an_error_in_the_last_item_refuses_all() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        data = wire.encode(asks())
        await peer.send("allocation", data[:-1])
        code, text = await peer.ending("allocation")
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert f"AllocationRequest.allocations[{COUNT - 1}]" in text
        app = serving.api.cluster.partition("rm").applications["app"]
        assert not app.asks
        assert not app.allocations


async def test_a_last_item_that_makes_no_sense_is_refused_alone() -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        request = asks()
        request.allocations[-1].resource_per_alloc = {"vcore": -1}
        await peer.send("allocation", request)
        new = refused = 0
        while new + refused < COUNT:
            response = await peer.read("allocation")
            new += len(response.new)
            refused += len(response.rejected_allocations)
        assert (new, refused) == (COUNT - 1, 1)
        nodes = [
            v19.NodeInfo(node_id=f"m{n}", action=v19.ActionFromRM.CREATE, attributes={"a": "b" * 99})
            for n in range(3000)
        ]
        nodes[-1].action = v19.ActionFromRM.UNKNOWN_ACTION_FROM_RM
        await peer.send("node", v19.NodeRequest(rm_id="rm", nodes=nodes))
        said: list[str] = []
        while not said:
            said = [one.reason for one in (await peer.read("node")).rejected]
        assert said[0].startswith("invalid nodes[2999].action 0: ")


async def test_a_bug_in_the_middle_makes_the_resource_manager_register_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with service() as serving, Peer(serving.addresses[0]) as peer:
        await peer.running(vcore=10**9)
        take, calls = serving.api.take, 0

        def failing(*given: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise ZeroDivisionError
            take(*given)

        monkeypatch.setattr(serving.api, "take", failing)
        await peer.send("allocation", asks())
        code, text = await peer.ending("allocation")
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert text == "RESYNC: an internal error"
        assert calls == 3
        assert serving.api.cluster.managers == {}
