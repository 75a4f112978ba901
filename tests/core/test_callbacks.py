"""The messages to a resource manager, in its dialect; calls and time: docs/spec/scheduler-interface.md, sections 5 and 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.bench import config
from core.listener import VCORE, Judge, Listener, apps, ask, node, releases, v19_api
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.si import first, v19

# -- both dialects' responses ----------------------------------------------------------------------------------


def test_a_life_in_the_dialect_of_1_9() -> None:
    rm = Listener()
    api = v19_api(rm)
    node(api)
    assert rm.take() == [("node", v19.NodeResponse(accepted=[v19.AcceptedNode(node_id="n1")]))]
    apps(api, "x", "", "x")
    ((kind, response),) = rm.take()  # one response to one request
    assert kind == "application"
    assert [a.application_id for a in response.accepted] == ["x"]
    assert [(r.application_id, r.reason) for r in response.rejected] == [
        ("", "application without an applicationID"),
        ("x", "adding application x to partition [rm]default, but application already existed"),
    ]
    capacity: dict[str, Any] = {"schedulable_resource": {VCORE: 1}}
    again = v19.NodeInfo(node_id="n1", action=v19.ActionFromRM.CREATE, **capacity)
    nowhere = v19.NodeInfo(
        node_id="n2", action=v19.ActionFromRM.CREATE, attributes={"si/node-partition": "no"}, **capacity
    )
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[again, nowhere, again]))
    ((_, response),) = rm.take()
    assert [r.node_id for r in response.rejected] == ["n1", "n2", "n1"]  # in their order
    policy = v19.PreemptionPolicy(allow_preempt_self=True, allow_preempt_other=False)
    ask(api, "k", allocation_tags={"t": "v"}, priority=3, preemption_policy=policy, originator=True)
    ((_, response),) = rm.take()
    assert [(u.application_id, u.state, u.message) for u in response.updated] == [("x", "Accepted", "runApplication")]
    api.schedule(now_ns=5)
    (kind, state), (_, made) = rm.take()
    assert (kind, state.updated[0].state, state.updated[0].state_transition_timestamp) == ("application", "Running", 5)
    assert made.new == [
        v19.Allocation(
            allocation_key="k",
            application_id="x",
            node_id="n1",
            resource_per_alloc={VCORE: 1},
            originator=True,
            preemption_policy=policy,
        )
    ]  # no partition, no tags, no priority
    release = v19.AllocationRelease(application_id="x", allocation_key="k")
    api.update_allocation(releases(release))
    (_, ended), (_, state) = rm.take()
    assert ended.released == [
        v19.AllocationRelease(
            partition_name="[rm]default",
            application_id="x",
            allocation_key="k",
            termination_type=v19.TerminationType.STOPPED_BY_RM,
            message="allocation remove as per RM request",
        )
    ]
    assert state.updated[0].state == "Completing"
    ask(api, "bad", vcore=0)
    ((_, response),) = rm.take()
    assert [(r.allocation_key, r.reason) for r in response.rejected_allocations] == [
        ("bad", "allocation contains no resources")
    ]


def first_api(callback: ResourceManagerCallback | None) -> SchedulerAPI:
    text = config("a", more="placementrules: [{name: provided}, {name: fixed, value: root.a}]")
    api = SchedulerAPI(policy_groups={"group": (text, {"priority.class.high": "100"})})
    api.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"), callback)
    return api


def first_request(**fields: Any) -> first.UpdateRequest:
    return first.UpdateRequest(rm_id="rm", **fields)


def test_a_life_in_the_first_interface() -> None:
    rm = Listener()
    api = first_api(rm)
    existing = first.Allocation(
        allocation_key="old", application_id="x", uuid="u-1", resource_per_alloc={VCORE: 2}, node_id="n1"
    )
    new_node = first.NewNodeInfo(node_id="n1", schedulable_resource={VCORE: 10}, existing_allocations=[existing])
    application = first.AddApplicationRequest(
        application_id="x", queue_name="root.a", ugi=first.UserGroupInformation(user="u")
    )
    high = first.Priority(priority_class_name="high")
    wanted = first.AllocationAsk(
        allocation_key="k",
        application_id="x",
        resource_ask={VCORE: 3},
        max_allocations=2,
        priority=high,
        tags={"t": "v"},
    )
    alone = first.AllocationAsk(allocation_key="alone", resource_ask={VCORE: 1}, max_allocations=1)
    api.update(
        first_request(new_schedulable_nodes=[new_node], new_applications=[application], asks=[wanted, alone]), now_ns=7
    )
    ((kind, said),) = rm.take()
    assert kind == "update"
    assert [n.node_id for n in said.accepted_nodes] == ["n1"]
    assert [a.application_id for a in said.accepted_applications] == ["x"]
    states = [(u.state, u.state_transition_timestamp) for u in said.updated_applications]
    assert states == [("Accepted", 7), ("Starting", 7)]
    assert [(a.allocation_key, a.uuid) for a in said.new_allocations] == [("old", "u-1")]
    api.schedule()
    ((_, said),) = rm.take()
    one, another, third = said.new_allocations
    allocated = (one.allocation_key, one.node_id, one.queue_name, one.partition_name, one.allocation_tags)
    assert allocated == ("k", "n1", "root.a", "[rm]default", {"t": "v"})
    assert one.priority == first.Priority(priority_value=100)
    assert (another.allocation_key, third.allocation_key, third.application_id) == ("k", "alone", "alone")
    assert len({one.uuid, another.uuid, third.uuid, "", "u-1"}) == 5
    assert [u.application_id for u in said.updated_applications] == ["x"]  # nothing about the one that nobody named
    ends = [
        first.AllocationRelease(application_id="x", uuid=one.uuid),
        first.AllocationRelease(uuid=third.uuid),  # the UUID alone tells which one
    ]
    api.update(first_request(releases=first.AllocationReleasesRequest(allocations_to_release=ends)))
    ((_, said),) = rm.take()
    ended = [(r.uuid, r.partition_name) for r in said.released_allocations]
    assert ended == [(one.uuid, "[rm]default"), (third.uuid, "[rm]default")]
    api.update(first_request(remove_applications=[first.RemoveApplicationRequest(application_id="x")]))
    ((_, said),) = rm.take()
    assert {r.uuid for r in said.released_allocations} == {"u-1", another.uuid}
    api.validate()


def test_a_double_node_is_refused_with_the_allocations_that_it_reports() -> None:
    rm = Listener()
    api = first_api(rm)
    ugi = first.UserGroupInformation(user="u")
    application = first.AddApplicationRequest(application_id="x", queue_name="root.a", ugi=ugi)

    def request(key: str) -> first.UpdateRequest:
        existing = first.Allocation(allocation_key=key, application_id="x", uuid=key, resource_per_alloc={VCORE: 2})
        info = first.NewNodeInfo(node_id="n1", schedulable_resource={VCORE: 10}, existing_allocations=[existing])
        return first_request(new_schedulable_nodes=[info])

    api.update(first_request(new_applications=[application]))
    api.update(request("first"))
    rm.take()
    api.update(request("second"))
    ((_, said),) = rm.take()
    assert [r.node_id for r in said.rejected_nodes] == ["n1"]
    assert said.new_allocations == []
    assert list(api.cluster.partition("rm").applications["x"].allocations) == ["first"]


@pytest.mark.parametrize("first_interface", [False, True])
def test_the_container_scheduling_state_comes_beside_the_responses(first_interface: bool) -> None:
    rm = Listener()
    if first_interface:
        api = first_api(rm)
        info = first.NewNodeInfo(node_id="n1", schedulable_resource={VCORE: 10})
        wanted = first.AllocationAsk(allocation_key="k", resource_ask={VCORE: 11}, max_allocations=1)
        api.update(first_request(new_schedulable_nodes=[info], asks=[wanted]))
    else:
        api = v19_api(rm)
        node(api)
        apps(api, "x")
        ask(api, "k", vcore=11)
    rm.take()
    api.schedule(now_ns=10**9)
    ((kind, said),) = rm.take()
    assert kind == "state"
    found = (said.allocation_key, said.state.name, said.reason)
    assert found == ("k", "FAILED", "request is waiting for cluster resources become available")
    api.schedule(now_ns=10**10)
    assert rm.take() == []


def test_asks_wait_for_resources_also_where_there_are_no_nodes() -> None:
    """Differences, row 54: a cluster that grows on demand begins with nothing."""
    rm = Listener()
    api = v19_api(rm)
    apps(api, "x")
    ask(api, "k")
    rm.take()
    api.schedule(now_ns=10**9)
    assert [(kind, said.allocation_key) for kind, said in rm.take()] == [("state", "k")]


@pytest.mark.parametrize(
    ("rm", "limit", "told"),
    [
        (Listener(), None, [1000, 1000, 500]),
        (Listener(), 1500, [1000, 500]),
        (Listener(), 1000, [1000]),
        (Judge(lambda _args: None), None, [2500]),
    ],
)
def test_allocations_are_reported_a_thousand_at_a_time(rm: Listener, limit: int | None, told: list[int]) -> None:
    api = v19_api(rm)
    node(api, vcore=2500)
    apps(api, "x")
    asks = [
        v19.Allocation(allocation_key=f"k{n}", application_id="x", resource_per_alloc={VCORE: 1}) for n in range(2501)
    ]
    api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=asks))
    rm.take()
    assert api.schedule(limit=limit) == sum(told)
    assert [len(said.new) for kind, said in rm.take() if kind == "allocation"] == told


# -- callbacks that misbehave ----------------------------------------------------------------------------------


CALLS: list[Callable[[SchedulerAPI], object]] = [
    lambda api: api.schedule(),
    lambda api: api.update_node(v19.NodeRequest(rm_id="rm")),
    lambda api: api.update_allocation(v19.AllocationRequest(rm_id="rm")),
    lambda api: api.update_application(v19.ApplicationRequest(rm_id="rm")),
    lambda api: api.submit("rm", []),
    lambda api: api.stop("rm"),
    lambda api: api.reload_configuration("rm"),
    lambda api: api.update_configuration(v19.UpdateConfigurationRequest(rm_id="rm")),
    lambda api: api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm")),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_from_within_a_callback_is_refused(call: Callable[[SchedulerAPI], object]) -> None:
    class Caller(Judge):
        def update_node(self, response: v19.NodeResponse) -> None:
            call(api)

        def predicates(self, args: v19.PredicatesArgs) -> str | None:
            call(api)
            return None

    rm = Caller(lambda _: None)
    api = v19_api(rm)
    node(api)
    apps(api, "x")
    ask(api, "k")
    assert api.schedule() == 0
    text = "RuntimeError: SchedulerAPI was called from within a callback; call it when the callback has returned"
    assert api.callback_errors == [text, text]
    api.validate()


# -- time ------------------------------------------------------------------------------------------------------


def test_time_never_goes_back() -> None:
    api = v19_api(None)
    api.schedule(now_ns=100)
    api.schedule(now_ns=50)
    assert api.cluster.now == 100


def test_a_clock_is_asked_when_a_call_does_not_give_the_time() -> None:
    times = iter([10, 20])
    api = SchedulerAPI(clock=lambda: next(times))
    api.schedule()
    api.schedule(now_ns=15)
    api.schedule()
    assert api.cluster.now == 20
