"""What a resource manager hears, in its dialect, and what its plugins may say: spec scheduler-interface.md, 5 and 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core.bench import config
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.si import seed, v19

VCORE = "vcore"


class Listener(ResourceManagerCallback):
    """Keeps all it hears, as (method, message)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self.heard.append(("allocation", response))

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self.heard.append(("application", response))

    def update_node(self, response: v19.NodeResponse) -> None:
        self.heard.append(("node", response))

    def recv_update_response(self, response: seed.UpdateResponse) -> None:
        self.heard.append(("update", response))

    def update_container_scheduling_state(
        self, request: v19.UpdateContainerSchedulingStateRequest | seed.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.heard.append(("state", request))

    def take(self) -> list[tuple[str, Any]]:
        heard, self.heard = self.heard, []
        return heard


def v19_api(callback: ResourceManagerCallback | None, text: str = "") -> SchedulerAPI:
    api = SchedulerAPI()
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=text or config("a")), callback)
    return api


def node(api: SchedulerAPI, id: str = "n1", vcore: int = 10) -> None:
    info = v19.NodeInfo(node_id=id, action=v19.ActionFromRM.CREATE, schedulable_resource={VCORE: vcore})
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[info]))


def apps(api: SchedulerAPI, *ids: str) -> None:
    ugi = v19.UserGroupInformation(user="u")
    new = [v19.AddApplicationRequest(application_id=id, queue_name="root.a", ugi=ugi) for id in ids]
    api.update_application(v19.ApplicationRequest(rm_id="rm", new=new))


def ask(api: SchedulerAPI, key: str, vcore: int = 1, **fields: Any) -> None:
    item = v19.Allocation(allocation_key=key, application_id="x", resource_per_alloc={VCORE: vcore}, **fields)
    api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=[item]))


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
        ("x", "adding application x to partition default, but application already existed"),
    ]
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
    releases = v19.AllocationReleasesRequest(allocations_to_release=[release])
    api.update_allocation(v19.AllocationRequest(rm_id="rm", releases=releases))
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


def seed_api(callback: ResourceManagerCallback | None) -> SchedulerAPI:
    text = config("a", more="placementrules: [{name: provided}, {name: fixed, value: root.a}]")
    api = SchedulerAPI(policy_groups={"group": (text, {"priority.class.high": "100"})})
    api.register_resource_manager(seed.RegisterResourceManagerRequest(rm_id="rm", policy_group="group"), callback)
    return api


def seed_request(**fields: Any) -> seed.UpdateRequest:
    return seed.UpdateRequest(rm_id="rm", **fields)


def test_a_life_in_the_seeds_dialect() -> None:
    rm = Listener()
    api = seed_api(rm)
    existing = seed.Allocation(
        allocation_key="old", application_id="x", uuid="u-1", resource_per_alloc={VCORE: 2}, node_id="n1"
    )
    new_node = seed.NewNodeInfo(node_id="n1", schedulable_resource={VCORE: 10}, existing_allocations=[existing])
    application = seed.AddApplicationRequest(
        application_id="x", queue_name="root.a", ugi=seed.UserGroupInformation(user="u")
    )
    high = seed.Priority(priority_class_name="high")
    wanted = seed.AllocationAsk(
        allocation_key="k", application_id="x", resource_ask={VCORE: 3}, max_allocations=2, priority=high, tags={"t": "v"}
    )
    alone = seed.AllocationAsk(allocation_key="alone", resource_ask={VCORE: 1}, max_allocations=1)
    api.update(
        seed_request(new_schedulable_nodes=[new_node], new_applications=[application], asks=[wanted, alone]), now_ns=7
    )
    ((kind, said),) = rm.take()
    assert kind == "update"
    assert [n.node_id for n in said.accepted_nodes] == ["n1"]
    assert [a.application_id for a in said.accepted_applications] == ["x"]
    assert [(u.state, u.state_transition_timestamp) for u in said.updated_applications] == [
        ("Accepted", 7),
        ("Starting", 7),
    ]
    assert [(a.allocation_key, a.uuid) for a in said.new_allocations] == [("old", "u-1")]
    api.schedule()
    ((_, said),) = rm.take()
    first, second, third = said.new_allocations
    assert (first.allocation_key, first.node_id, first.queue_name, first.partition_name, first.allocation_tags) == (
        "k",
        "n1",
        "root.a",
        "[rm]default",
        {"t": "v"},
    )
    assert first.priority == seed.Priority(priority_value=100)
    assert (second.allocation_key, third.allocation_key, third.application_id) == ("k", "alone", "alone")
    assert len({first.uuid, second.uuid, third.uuid, "", "u-1"}) == 5
    assert [u.application_id for u in said.updated_applications] == ["x"]  # nothing about the one that nobody named
    ends = [
        seed.AllocationRelease(application_id="x", uuid=first.uuid),
        seed.AllocationRelease(uuid=third.uuid),  # the UUID alone tells which one
    ]
    api.update(seed_request(releases=seed.AllocationReleasesRequest(allocations_to_release=ends)))
    ((_, said),) = rm.take()
    assert [(r.uuid, r.partition_name) for r in said.released_allocations] == [
        (first.uuid, "[rm]default"),
        (third.uuid, "[rm]default"),
    ]
    api.update(seed_request(remove_applications=[seed.RemoveApplicationRequest(application_id="x")]))
    ((_, said),) = rm.take()
    assert {r.uuid for r in said.released_allocations} == {"u-1", second.uuid}
    api.validate()


def test_a_double_node_is_refused_with_the_allocations_that_it_reports() -> None:
    rm = Listener()
    api = seed_api(rm)
    ugi = seed.UserGroupInformation(user="u")
    application = seed.AddApplicationRequest(application_id="x", queue_name="root.a", ugi=ugi)

    def request(key: str) -> seed.UpdateRequest:
        existing = seed.Allocation(allocation_key=key, application_id="x", uuid=key, resource_per_alloc={VCORE: 2})
        info = seed.NewNodeInfo(node_id="n1", schedulable_resource={VCORE: 10}, existing_allocations=[existing])
        return seed_request(new_schedulable_nodes=[info])

    api.update(seed_request(new_applications=[application]))
    api.update(request("first"))
    rm.take()
    api.update(request("second"))
    ((_, said),) = rm.take()
    assert [r.node_id for r in said.rejected_nodes] == ["n1"]
    assert said.new_allocations == []
    assert list(api.cluster.partition("rm").applications["x"].allocations) == ["first"]


@pytest.mark.parametrize("seed_dialect", [False, True])
def test_the_container_scheduling_state_comes_beside_the_responses(seed_dialect: bool) -> None:
    rm = Listener()
    if seed_dialect:
        api = seed_api(rm)
        info = seed.NewNodeInfo(node_id="n1", schedulable_resource={VCORE: 10})
        wanted = seed.AllocationAsk(allocation_key="k", resource_ask={VCORE: 11}, max_allocations=1)
        api.update(seed_request(new_schedulable_nodes=[info], asks=[wanted]))
    else:
        api = v19_api(rm)
        node(api)
        apps(api, "x")
        ask(api, "k", vcore=11)
    rm.take()
    api.schedule(now_ns=10**9)
    ((kind, said),) = rm.take()
    assert kind == "state"
    assert (said.allocation_key, said.state.name, said.reason) == (
        "k",
        "FAILED",
        "request is waiting for cluster resources become available",
    )
    api.schedule(now_ns=10**10)
    assert rm.take() == []


def test_without_a_callback_nobody_is_told() -> None:
    api = v19_api(None)
    node(api)
    apps(api, "x")
    ask(api, "k")
    assert api.schedule() == 1


# -- the predicates plugin -------------------------------------------------------------------------------------


class Judge(Listener):
    """Answers as it is told, and keeps what it was asked as `key node allocate`."""

    def __init__(self, answer: Callable[[v19.PredicatesArgs], str | None]) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[str] = []

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        self.asked.append(f"{args.allocation_key} {args.node_id} {args.allocate}")
        return self.answer(args)


def judged(answer: Callable[[v19.PredicatesArgs], str | None], *nodes: int) -> tuple[SchedulerAPI, Judge]:
    judge = Judge(answer)
    api = v19_api(judge)
    for number, vcore in enumerate(nodes, 1):
        node(api, f"n{number}", vcore)
    apps(api, "x")
    return api, judge


def made(judge: Judge) -> list[str]:
    return [f"{a.allocation_key}@{a.node_id}" for kind, r in judge.take() if kind == "allocation" for a in r.new]


def test_predicates_are_asked_last_of_nodes_with_room_in_order_until_one_will_do() -> None:
    api, judge = judged(lambda args: "no" if args.node_id == "n2" else None, 1, 10, 10)
    tags = {"licorne/node-constraints": '{"nodeAffinity": [[{"key": "x", "operator": "DoesNotExist", "values": []}]]}'}
    ask(api, "k", vcore=2, allocation_tags=tags)
    api.schedule()
    assert judge.asked == ["k n2 True", "k n3 True"]  # n1 is too small, the third one is not needed
    assert made(judge) == ["k@n3"]


def raises(args: v19.PredicatesArgs) -> str | None:
    raise ValueError(args.node_id)


@pytest.mark.parametrize("answer", [lambda _: "no", raises])
def test_a_refused_ask_is_asked_about_again_at_the_next_call(answer: Callable[[Any], str | None]) -> None:
    api, judge = judged(answer, 10)
    ask(api, "k")
    assert (api.schedule(), judge.asked) == (0, ["k n1 True"])
    assert (api.schedule(), judge.asked) == (0, ["k n1 True"] * 2)
    judge.answer = lambda _: None
    assert api.schedule() == 1
    api.validate()


def test_what_a_predicate_raises_is_kept_and_counts_as_no() -> None:
    api, judge = judged(raises, 10, 10)
    ask(api, "k")
    assert api.schedule() == 0
    assert judge.asked == ["k n1 True", "k n2 True"]
    assert api.callback_errors == ["ValueError: n1", "ValueError: n2"]
    for _ in range(100):
        api.schedule()
    assert len(api.callback_errors) == 100


def test_a_reservation_asks_with_allocate_false() -> None:
    api, judge = judged(lambda args: None if args.allocate else "no", 10, 10)
    ask(api, "big-1", vcore=6)
    ask(api, "big-2", vcore=6)
    api.schedule()
    ask(api, "k", vcore=7)
    judge.asked.clear()
    api.schedule(now_ns=3 * 10**9)
    assert judge.asked == ["k n1 False"]
    assert len(api.cluster.partition("rm").reservations) == 0


def test_a_predicate_may_refuse_the_reserved_node() -> None:
    api, judge = judged(lambda _: None, 10, 10)
    ask(api, "big-1", vcore=6)
    ask(api, "big-2", vcore=6)
    api.schedule()
    ask(api, "k", vcore=7)
    api.schedule(now_ns=3 * 10**9)
    assert len(api.cluster.partition("rm").reservations) == 1
    judge.answer = lambda args: "no" if args.node_id == "n1" else None
    release = v19.AllocationRelease(application_id="x", allocation_key="big-1")
    releases = v19.AllocationReleasesRequest(allocations_to_release=[release])
    api.update_allocation(v19.AllocationRequest(rm_id="rm", releases=releases))
    assert api.schedule() == 0
    node(api, "n3")
    assert api.schedule() == 1
    assert made(judge)[-1] == "k@n3"
    api.validate()


# -- callbacks that misbehave ----------------------------------------------------------------------------------


class Broken(Listener):
    def update_allocation(self, response: v19.AllocationResponse) -> None:
        raise RuntimeError("out of order")


def test_a_callback_that_raises_changes_nothing() -> None:
    rm = Broken()
    api = v19_api(rm)
    node(api)
    apps(api, "x")
    ask(api, "k")
    assert api.schedule() == 1
    assert api.callback_errors == ["RuntimeError: out of order"]
    assert [kind for kind, _ in rm.take()] == ["node", "application", "application", "application"]
    api.validate()


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
