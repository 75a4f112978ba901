"""Limits of the contents of an item, of queues in a configuration, of the duration of a call; levels of the log."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest

from common.waiting import eventually
from licorne.config import ConfigError, load
from licorne.config.counting import count_queues, load_counted
from licorne.core.base.setting_kinds import parse_level
from licorne.grpc.service import ServiceSettings, make_log
from licorne.grpc.service.bounds import enforce
from licorne.grpc.service.checking import checks
from licorne.host.log import Levels, level_of, named, no_log
from licorne.si import adapt_first, adapt_v19, first, v19, wire
from licorne.si._common import AddApplicationRequest, UserGroupInformation
from licorne.si.adapt import Translation
from licorne.si.messages import RejectedAllocation, RejectedApplication, RejectedNode
from licorne.si.reading import within
from service.peers import Peer, service, watched

LIMITS = ServiceSettings(names=8, tags=2)
LONG = "n" * 9
THREE = dict.fromkeys("abc", "x")


def ask(key: str = "k", app: str = "app", **fields: Any) -> v19.Allocation:
    return v19.Allocation(allocation_key=key, application_id=app, **{"resource_per_alloc": {"vcore": 1}, **fields})


ASKS = [
    (ask(key=LONG), "invalid allocationKey 'nnnnnnnnn': must have at most 8 characters"),
    (ask(app=LONG), "invalid applicationID 'nnnnnnnnn': must have at most 8 characters"),
    (ask(task_group_name=LONG), "invalid taskGroupName 'nnnnnnnnn': must have at most 8 characters"),
    (ask(allocation_tags=THREE), "invalid allocationTags 3: must have at most 2 entries"),
    (ask(allocation_tags={LONG: ""}), "invalid allocationTags 'nnnnnnnnn': must have at most 8 characters"),
    (ask(resource_per_alloc={"a": 1, "b": 1, "c": 1}), "invalid resourcePerAlloc 3: must have at most 2 entries"),
    (ask(resource_per_alloc={LONG: 1}), "invalid resourcePerAlloc 'nnnnnnnnn': must have at most 8 characters"),
]


@pytest.mark.parametrize("on_wire", [True, False])
@pytest.mark.parametrize(("bad", "reason"), ASKS)
def test_an_ask_beyond_a_limit_is_refused_and_the_others_go_on(
    bad: v19.Allocation, reason: str, *, on_wire: bool
) -> None:
    tags = {"12345678": "v" * 1000}  # as long as it may be; what a tag says is bounded by the message alone
    fine = [ask(f"k{number}", allocation_tags=tags) for number in range(3)]
    request = v19.AllocationRequest(rm_id="rm", allocations=[*fine[:2], bad, fine[2]])
    if on_wire:
        _, translation = adapt_v19.ALLOCATIONS.at_once(wire.encode(request))
    else:
        translation = adapt_v19.inputs_from_allocation_request(request)
    asyncio.run(enforce(translation, LIMITS))
    assert translation.outputs == [RejectedAllocation(bad.allocation_key, bad.application_id, reason)]
    assert [one.key for one in translation.inputs] == ["k0", "k1", "k2"]  # type: ignore[union-attr]


def application(**fields: Any) -> v19.ApplicationRequest:
    return v19.ApplicationRequest(rm_id="rm", new=[AddApplicationRequest(**{"application_id": "app", **fields})])


APPLICATIONS = [
    ({"application_id": LONG}, "applicationID"),
    ({"queue_name": LONG}, "queueName"),
    ({"ugi": UserGroupInformation(user=LONG)}, "ugi.user"),
    ({"ugi": UserGroupInformation(user="u", groups=[LONG])}, "ugi.groups"),
    ({"ugi": UserGroupInformation(user="u", groups=["a", "b", "c"])}, "ugi.groups"),
    ({"tags": THREE}, "tags"),
    ({"tags": {LONG: "x"}}, "tags"),
    ({"placeholder_ask": {LONG: 1}}, "placeholderAsk"),
]


@pytest.mark.parametrize(("fields", "name"), APPLICATIONS)
def test_an_application_beyond_a_limit(fields: dict[str, Any], name: str) -> None:
    translation = adapt_v19.inputs_from_application_request(application(**fields))
    asyncio.run(enforce(translation, LIMITS))
    assert translation.inputs == []
    (refusal,) = translation.outputs
    assert isinstance(refusal, RejectedApplication)
    assert refusal.reason.startswith(f"invalid {name} ")


NODES = [
    ({"node_id": LONG}, "nodeID"),
    ({"attributes": THREE}, "attributes"),
    ({"attributes": {LONG: ""}}, "attributes"),
    ({"schedulable_resource": {LONG: 1}}, "schedulableResource"),
]


@pytest.mark.parametrize(("fields", "name"), NODES)
def test_a_node_beyond_a_limit(fields: dict[str, Any], name: str) -> None:
    node = v19.NodeInfo(**{"node_id": "n", "action": v19.ActionFromRM.CREATE, **fields})
    translation = adapt_v19.inputs_from_node_request(v19.NodeRequest(rm_id="rm", nodes=[node]))
    asyncio.run(enforce(translation, LIMITS))
    (refusal,) = translation.outputs
    assert isinstance(refusal, RejectedNode)
    assert refusal.reason.startswith(f"invalid {name} ")


def test_the_first_document_s_requests_too() -> None:
    request = first.UpdateRequest(
        rm_id="rm",
        asks=[first.AllocationAsk(allocation_key="k", application_id="a"), first.AllocationAsk(allocation_key=LONG)],
        new_applications=[AddApplicationRequest(application_id="a"), AddApplicationRequest(application_id=LONG)],
    )
    _, translation = adapt_first.UPDATES.at_once(wire.encode(request))
    asyncio.run(enforce(translation, LIMITS))
    assert [type(one) for one in translation.outputs] == [RejectedApplication, RejectedAllocation]
    assert len(translation.inputs) == 2


def test_a_request_within_the_limits_is_left_unchanged() -> None:
    request = v19.AllocationRequest(rm_id="rm", allocations=[ask(f"k{number}") for number in range(5)])
    _, translation = adapt_v19.ALLOCATIONS.at_once(wire.encode(request))
    before = translation.inputs
    asyncio.run(enforce(translation, LIMITS))
    assert translation.inputs is before
    assert within(before, 5, 1)
    assert not within(before, 4, 1)
    assert not within(before, 5, 0)
    empty = Translation()
    asyncio.run(enforce(empty, LIMITS))
    assert empty == Translation()


async def test_refusals_reach_the_resource_manager() -> None:
    async with service(settings={"names": 12}) as made, Peer(made.addresses[0]) as peer:
        await peer.running()
        assert (await peer.application("a-name-too-long")).rejected
        assert (await peer.node("a-name-too-long")).rejected
        await peer.asks("a", "a-name-too-long", "b")
        assert [one.allocation_key for one in (await peer.read("allocation")).rejected_allocations] == [
            "a-name-too-long"
        ]
        assert set(await peer.allocations(2)) == {"a", "b"}


# -- configurations --------------------------------------------------------------------------------------


def queues(count: int) -> str:
    lines = ["partitions:", "  - name: default", "    queues:", "      - name: root", "        submitacl: '*'"]
    return "\n".join([*lines, "        queues:", *(f"          - name: q{number}" for number in range(count))]) + "\n"


ALIASES = """\
partitions:
  - name: default
    queues:
      - {name: a, queues: &some [{name: x}, {name: y}, {name: z}]}
      - {name: b, queues: *some}
"""


def test_queues_are_counted_also_those_of_aliases() -> None:
    assert count_queues(load(queues(7))) == 8
    assert count_queues(load(ALIASES)) == 9
    with pytest.raises(ConfigError, match="has 9 queues, and at most 8 are allowed"):
        load_counted(ALIASES, 8)


async def test_too_many_queues_are_refused_at_registration_and_by_rest() -> None:
    async with watched(settings={"queues": 5}) as (made, client), Peer(made.addresses[0]) as peer:
        await peer.register(config=queues(4))
        with pytest.raises(grpc.aio.AioRpcError, match="has 6 queues, and at most 5 are allowed"):
            await peer.register(config=queues(5))
        answer = await client.put("/ws/v1/config", content=queues(5))
        assert answer.status_code == 409
        assert "at most 5 are allowed" in answer.json()["reason"]
        asked = await client.post("/ws/v1/validate-conf", content=ALIASES)
        assert asked.json()["allowed"] is False
        assert made.api.cluster.partition("rm").tree.find("root.q3") is not None


async def test_a_long_configuration_is_read_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is read, the loop answers."""
    may_read = tmp_path / "may-read"
    waits = f"import os, time\nwhile not os.path.exists({str(may_read)!r}): time.sleep(0.01)\n"
    monkeypatch.setattr(checks, "_COMMAND", waits + checks._COMMAND)
    async with service() as made, Peer(made.addresses[0], "a") as a, Peer(made.addresses[0], "b") as b:
        registering = asyncio.create_task(a.register(config=queues(3_000)))
        await eventually(lambda: made.checks._processes)
        await b.running()
        await b.asks("k")
        assert await b.allocations(1) == {"k": "n1"}
        assert not registering.done()
        may_read.touch()
        await registering
        assert made.api.cluster.partition("a").tree.find("root.q2999") is not None


async def test_a_call_that_takes_too_long() -> None:
    async with service(settings={"request_s": 0.2}) as made, Peer(made.addresses[0]) as peer:
        with pytest.raises(grpc.aio.AioRpcError, match=r"took longer than 0\.2 s") as refusal:
            await peer.register(config=queues(3_000))
        assert refusal.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert made.sessions.by_id == {}
        await eventually(lambda: not made.checks._processes)  # its process has been ended


async def test_too_many_calls_at_once() -> None:
    """A connection has a bound of its own, which keeps further calls waiting; so there are two."""
    from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: PLC0415

    async def first(call: Any) -> object:
        try:
            return (await call.read()).status
        except grpc.aio.AioRpcError as error:
            return error.code()

    async with service(settings={"streams": 1}) as made, Peer(made.addresses[0]) as a, Peer(made.addresses[0]) as b:
        stubs = [health_pb2_grpc.HealthStub(peer.channel) for peer in (a, b)]
        calls = [stubs[number % 2].Watch(health_pb2.HealthCheckRequest()) for number in range(110)]
        found = await asyncio.gather(*(first(call) for call in calls))
        assert found.count(health_pb2.HealthCheckResponse.SERVING) == 101
        assert found.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 9
        for call in calls:
            call.cancel()


# -- levels of the log -----------------------------------------------------------------------------------


def test_a_logger_has_the_level_of_the_longest_name_above_it() -> None:
    out = io.StringIO()
    levels = Levels()
    log = make_log(out, form="json", levels=levels)
    loggers = [named(log, name) for name in ("core", "core.scheduler", "core.scheduler.health", "core.schedulers")]

    def heard() -> list[str]:
        out.seek(0)
        out.truncate()
        for logger in (log, *loggers):
            logger.info("said")
        return [msgspec.json.decode(line).get("logger", "") for line in out.getvalue().splitlines()]

    assert heard() == ["", "core", "core.scheduler", "core.scheduler.health", "core.schedulers"]
    levels.set(40, {"core.scheduler": 20, "core.scheduler.health": 30})
    assert heard() == ["core.scheduler"]
    levels.set(20, {"core": 50, "core.scheduler.health": 10})
    assert heard() == ["core.scheduler.health"]
    levels.set(10)
    assert len(heard()) == 5


@pytest.mark.parametrize(
    ("text", "level"),
    [("-1", 10), ("0", 20), ("1", 30), ("2", 40), ("5", 50), ("DEBUG", 10), ("warn", 30), ("6", None), ("", None)],
)
def test_levels_of_the_original(text: str, level: int | None) -> None:
    assert parse_level(text) == level


def test_text_leaves_the_name_of_the_logger_out() -> None:
    out = io.StringIO()
    named(make_log(out), "core.rest").info("said", what=1)
    assert "core.rest" not in out.getvalue()
    assert "what=1" in out.getvalue()


def test_a_log_has_the_level_that_was_set_for_it() -> None:
    levels = Levels()
    log = named(make_log(io.StringIO(), levels=levels), "core.rest")
    assert level_of(log) == "INFO"
    levels.set(40, {"core.rest": 10})
    assert level_of(log) == "DEBUG"
    assert level_of(no_log()) == "CRITICAL"
