"""A scheduler that is driven by bytes decides and answers as one that is driven by objects, in both dialects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.bench import config
from licorne import SchedulerAPI
from licorne.core.api import NotRegisteredError
from licorne.si import WireError, adapt_first, adapt_v19, first, v19
from licorne.si._schema import Message
from licorne.si.messages import Output
from licorne.si.wire import encode
from si.oracle import FIRST, V19, theirs

CONFIG = config("a resources: {max: {vcore: 30}}", "b")
Form = Callable[[Message], Any]


def requests_v19() -> list[tuple[str, Message]]:
    """A small workload: method and message."""
    nodes = [
        v19.NodeInfo(
            node_id=f"n{i}", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 8000, "memory": 1 << 34}
        )
        for i in range(6)
    ]
    apps = [
        v19.AddApplicationRequest(
            application_id=f"app{i}",
            queue_name=f"root.{'ab'[i % 2]}",
            ugi=v19.UserGroupInformation(user="u", groups=["g"]),
        )
        for i in range(4)
    ]
    asks = [
        v19.Allocation(
            allocation_key=f"k{i}",
            application_id=f"app{i % 5}",
            resource_per_alloc={"vcore": 500 + i % 7 * 100, "memory": 1 << 28},
            priority=i % 3 - 1,
            partition_name=["", "default", "[rm]default", "gpu"][i % 4 if i > 90 else i % 3],
            allocation_tags={"creationTime": str(i)} if i % 2 else {},
            preemption_policy=v19.PreemptionPolicy(allow_preempt_self=True) if i % 5 == 0 else None,
            task_group_name="tg" if i % 6 == 0 else "",
            placeholder=i % 6 == 0,
        )
        for i in range(100)
    ]
    asks += [v19.Allocation(allocation_key="bad", application_id="app1", resource_per_alloc={"vcore": -1})]
    releases = [
        v19.AllocationRelease(
            application_id=f"app{i % 4}", allocation_key=f"k{i}", termination_type=v19.TerminationType.STOPPED_BY_RM
        )
        for i in range(0, 100, 4)
    ]
    return [
        ("update_node", v19.NodeRequest(rm_id="rm", nodes=nodes)),
        ("update_application", v19.ApplicationRequest(rm_id="rm", new=apps)),
        ("update_allocation", v19.AllocationRequest(rm_id="rm", allocations=asks[:60])),
        ("schedule", v19.AllocationRequest()),
        (
            "update_allocation",
            v19.AllocationRequest(
                rm_id="rm",
                allocations=asks[60:],
                releases=v19.AllocationReleasesRequest(allocations_to_release=releases),
            ),
        ),
        ("schedule", v19.AllocationRequest()),
        (
            "update_application",
            v19.ApplicationRequest(rm_id="rm", remove=[v19.RemoveApplicationRequest(application_id="app2")]),
        ),
        ("schedule", v19.AllocationRequest()),
    ]


def requests_first() -> list[tuple[str, Message]]:
    asks = [
        first.AllocationAsk(
            allocation_key=f"k{i}",
            application_id=f"app{i % 3}" if i % 9 else "",
            resource_ask={"vcore": 300 + i % 5 * 100},
            max_allocations=i % 4 - (i == 7),
            priority=[None, first.Priority(priority_value=i), first.Priority(priority_class_name="urgent")][i % 3],
            tags={"namespace": "dev"} if i % 2 else {},
        )
        for i in range(60)
    ]
    report = first.UpdateRequest(
        rm_id="rm",
        new_schedulable_nodes=[
            first.NewNodeInfo(
                node_id=f"n{i}",
                schedulable_resource={"vcore": 6000},
                existing_allocations=[
                    first.Allocation(
                        allocation_key="old", application_id="app0", uuid="u-0", resource_per_alloc={"vcore": 1}
                    )
                ][: i == 0],
            )
            for i in range(4)
        ],
        new_applications=[
            first.AddApplicationRequest(
                application_id=f"app{i}",
                queue_name="root.a",
                ugi=first.UserGroupInformation(user="u", groups=["g"]),
            )
            for i in range(3)
        ],
        asks=asks[:40],
    )
    more = first.UpdateRequest(
        rm_id="rm",
        asks=asks[40:],
        releases=first.AllocationReleasesRequest(
            allocation_asks_to_release=[first.AllocationAskRelease(application_id="app1", allocation_key="k1")]
        ),
        remove_applications=[first.RemoveApplicationRequest(application_id="app2")],
    )
    empty = first.UpdateRequest()
    return [("update", report), ("schedule", empty), ("update", more), ("schedule", empty)]


def run(dialect: Any, requests: list[tuple[str, Message]], form: Form) -> list[Output]:
    said: list[Output] = []
    settings = {"priority.class.urgent": "7"}
    scheduler = SchedulerAPI(settings=settings, on_output=lambda _, outputs: said.extend(outputs))
    if dialect is v19:
        scheduler.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG))
    else:
        scheduler.policy_groups["g"] = CONFIG, {}
        scheduler.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="g"))
    for second, (method, request) in enumerate(requests):
        if method == "schedule":
            scheduler.schedule(now_ns=second * 10**9)
        else:
            getattr(scheduler, method)(form(request), now_ns=second * 10**9)
        scheduler.validate()
    return said


def by_their_encoder(message: Message) -> bytes:
    """As the official implementation writes it, maps in whatever order it likes."""
    official = V19.get(type(message)) or FIRST[type(message)]
    data: bytes = theirs(message, official).SerializeToString()
    return data


@pytest.mark.parametrize("form", [encode, by_their_encoder])
@pytest.mark.parametrize(
    ("dialect", "requests", "adapter"), [(v19, requests_v19, adapt_v19), (first, requests_first, adapt_first)]
)
def test_bytes_decide_as_objects(
    dialect: Any, requests: Callable[[], list[tuple[str, Message]]], adapter: Any, form: Form
) -> None:
    expected = run(dialect, requests(), lambda message: message)
    found = run(dialect, requests(), form)
    assert found == expected
    assert len(expected) > 50
    assert len({type(output) for output in expected}) > 4
    responses = list(adapter.responses(expected, "rm"))
    assert adapter.responses_as_bytes(found, "rm") == [(kind, encode(response)) for kind, response in responses]
    official = V19 if dialect is v19 else FIRST
    for (_, data), (_, response) in zip(adapter.responses_as_bytes(found, "rm"), responses, strict=True):
        assert official[type(response)].FromString(data) == theirs(response, official[type(response)])


@pytest.mark.parametrize("method", ["update", "update_allocation", "update_application", "update_node"])
def test_refused_bytes_change_nothing(method: str) -> None:
    said: list[Any] = []
    scheduler = SchedulerAPI(on_output=lambda *args: said.append(args))
    scheduler.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"))
    before = scheduler.state_dump()
    for data in (b"\xff", b"\x0c", b"\x0a\x7f", b"\x00"):
        with pytest.raises(WireError):
            getattr(scheduler, method)(data, now_ns=5)
    with pytest.raises(NotRegisteredError):
        getattr(scheduler, method)(b"")
    assert scheduler.state_dump() == before
    assert said == []
    assert scheduler.cluster.now == 0


def test_one_bad_ask_refuses_the_whole_request_in_bytes() -> None:
    """On the wire a fault is one of the sender's encoder, and the bytes after it cannot be trusted either."""
    scheduler = SchedulerAPI()
    scheduler.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm"))
    good = encode(v19.AllocationRequest(rm_id="rm", allocations=[v19.Allocation(allocation_key="k")]))
    with pytest.raises(WireError, match=r"^AllocationRequest.allocations\[1\].allocationKey at byte 13: must be valid"):
        scheduler.update_allocation(good + b"\x22\x03\x0a\x01\xff")
