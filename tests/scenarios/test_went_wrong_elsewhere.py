"""Faults that other schedulers had must not occur here: one scenario for each that the core can meet."""

from __future__ import annotations

import math
from typing import Any

import pytest

from core.bench import Bench, config, limit, partition, partitions
from licorne import ConfigurationError, RegistrationError, RequestError, SchedulerAPI
from licorne.si import first, v19
from licorne.si.messages import Allocation, NodeAction, Release, Termination

HOUR = 3600


def bench(*nodes: int, text: str = "", first_interface: bool = False) -> Bench:
    b = Bench(text or config("a"), first_interface=first_interface)
    for number, vcore in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=vcore)
    b.app("x")
    return b


# Scheduling before recovery was complete, over-committing nodes.


@pytest.mark.parametrize("order", ["asks first", "allocations first"])
def test_a_recovery_overcommits_nothing(order: str) -> None:
    b = Bench(config("a"))
    b.node("n1", NodeAction.CREATE_DRAIN, vcore=10)
    b.app("x")
    asks = [("new", ""), ("old", "n1")]
    for key, node in asks if order == "asks first" else reversed(asks):
        b.ask("x", key, node=node, vcore=8)
        assert b.run(after=1) == ""
    b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert (b.run(after=1), b.free("n1")) == ("", {"vcore": 2})


def test_a_recovery_in_the_first_interface_is_one_request_and_nothing_comes_between() -> None:
    api = SchedulerAPI(policy_groups={"g": (config("a"), {})})
    api.register_resource_manager(first.RegisterResourceManagerRequest(rm_id="rm", policy_group="g"))
    ugi = first.UserGroupInformation(user="u")
    old = first.Allocation(allocation_key="old", application_id="x", uuid="u1", resource_per_alloc={"vcore": 8})
    api.update(
        first.UpdateRequest(
            rm_id="rm",
            asks=[first.AllocationAsk(allocation_key="new", application_id="x", resource_ask={"vcore": 8})],
            new_schedulable_nodes=[
                first.NewNodeInfo(node_id="n1", schedulable_resource={"vcore": 10}, existing_allocations=[old])
            ],
            new_applications=[first.AddApplicationRequest(application_id="x", queue_name="root.a", ugi=ugi)],
        )
    )
    assert api.schedule() == 0
    api.validate()


# The running scheduler refusing what a restarted one accepts (drift).

CONFIGURATIONS = [
    config("a"),
    config("a", "b"),
    config("a resources: {max: {vcore: 5m}, guaranteed: {vcore: 6m}}"),
    config("a maxapplications: 1", root="maxapplications: 2"),
    config("a queues: [{name: leaf}]"),
    config("a", more="placementrules: [{name: user, create: true}]"),
    config("a", root="resources: {max: {vcore: 5m}}"),
    partitions(partition("other", "a")),
    "]",
    "",
]


@pytest.mark.parametrize("number", range(len(CONFIGURATIONS)))
def test_a_running_scheduler_accepts_the_same_configurations_as_a_new_one(number: int) -> None:
    text = CONFIGURATIONS[number]
    b = bench(10)
    b.ask("x", "k", vcore=6)
    b.run()

    def running() -> bool:
        try:
            b.api.update_configuration(v19.UpdateConfigurationRequest(rm_id="rm", config=text))
        except ConfigurationError:
            return False
        return True

    def new() -> bool:
        request = v19.RegisterResourceManagerRequest(rm_id="rm", config=text)
        try:
            SchedulerAPI().register_resource_manager(request)
        except RegistrationError:
            return False
        return True

    assert running() == new()
    b.api.validate()


def test_unusable_placement_rules_are_the_one_difference() -> None:
    """A new scheduler accepts unusable rules, and places no application; a running one keeps its rules.

    Source: docs/spec/config.md, section 5.
    """
    text = config("a", more="placementrules: [{name: nonsense}]")
    new, running = Bench(text), Bench(config("a"))
    assert new.app("x", tags={"application.create.force": "true"})[0].startswith("rejected x: ")
    with pytest.raises(ConfigurationError):
        running.reload(text)
    assert running.app("x") == ["accepted x"]


def test_a_restarted_scheduler_decides_as_the_running_one() -> None:
    text = config("a resources: {guaranteed: {vcore: 10m}}", "b", root=f"limits: [{limit('*', vcore=9)}]")
    old = Bench(text)
    for node in ("n1", "n2", "n3"):
        old.node(node, vcore=7)
    for app, user in (("x", "alice"), ("y", "bob"), ("z", "alice")):
        old.app(app, "root.b" if app == "z" else "root.a", user)
        for i in range(4):
            old.ask(app, f"{app}{i}", vcore=i + 1, priority=i % 2)
    old.run()
    new = Bench(text)
    for node in old.partition.nodes:
        new.node(node, vcore=7)
    for x in old.partition.applications.values():
        new.app(x.id, x.queue.path, x.user)
    for x in old.partition.applications.values():
        for alloc in x.allocations.values():
            assert alloc.node is not None
            new.ask(x.id, alloc.key, node=alloc.node.id, priority=alloc.priority, resource=alloc.shape.resource)
        for ask in x.requests.in_order():
            new.ask(x.id, ask.key, priority=ask.priority, resource=ask.shape.resource)
    assert new.run() == ""  # nothing fits here that did not fit there
    for b in (old, new):
        b.release("x", "x3")
        b.release("y", "y1")
    assert old.run() == new.run() != ""


# A node deleted and added again losing its usage.


def test_a_node_that_comes_again_has_the_usage_that_it_reports() -> None:
    b = bench(10)
    b.ask("x", "k", vcore=6)
    b.foreign("f", "n1", vcore=1)
    b.run()
    b.node("n1", NodeAction.DECOMISSION)
    assert (b.allocated("root"), b.partition.tree.root.max_resource()) == ({}, None)
    b.node("n1", NodeAction.CREATE_DRAIN, vcore=10)
    b.foreign("f", "n1", vcore=1)
    b.ask("x", "k", node="n1", vcore=6)
    b.ask("x", "large", vcore=4)
    b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert (b.run(), b.free("n1"), b.allocated("root")) == ("", {"vcore": 3}, {"vcore": 6})


# A failed bind leaving a pod pending for ever.


def test_an_ask_that_could_not_be_bound_is_placed_again_when_resubmitted() -> None:
    b = bench(10, 9)
    b.ask("x", "k", vcore=9)
    assert b.run() == "k@n1"
    b.release("x", "k")
    b.node("n1", NodeAction.DRAIN_NODE)
    b.ask("x", "k", vcore=9)
    assert b.run() == "k@n2"


# Preemption loops; ten victims where one was needed.


def test_one_victim_is_evicted_once_where_one_is_enough() -> None:
    b = bench(20)
    b.node("elsewhere", NodeAction.CREATE_DRAIN, vcore=50)
    for i in range(10):
        b.ask("x", f"k{i}", node="n1", vcore=2)
    b.ask("x", "daemon", required="n1", vcore=1)
    said = b.hear()
    assert [line.split()[1] for line in said] == ["k9"]
    for _ in range(5):
        assert b.hear(after=HOUR) == []
    b.release("x", "k9", termination=Termination.PREEMPTED_BY_SCHEDULER)
    assert b.run() == "daemon@n1"
    b.ask("x", "k9", vcore=2)  # the victim comes again: it evicts nobody
    assert [line for line in b.hear(after=HOUR) if line.startswith("released")] == []


# Reservations that block nodes for ever.


def test_no_reservation_blocks_a_node_for_ever() -> None:
    b = bench(10)
    b.node("elsewhere", NodeAction.CREATE_DRAIN, vcore=50)
    b.ask("x", "on", node="n1", vcore=8)
    b.ask("x", "large", vcore=9, age_s=10)
    b.run()
    b.ask("x", "small", vcore=1)
    assert (b.run(after=HOUR), b.reserved()) == ("", "large@n1")
    assert b.run(after=HOUR + 1) == "small@n1"


# Negative, NaN or overflowing quantities slipping past a quota.

QUANTITIES: list[Any] = [-1, -(1 << 63), 1 << 62, 1 << 63, 1 << 64, 1 << 200, math.nan, math.inf, 1.5, "1", None, True]


@pytest.mark.parametrize("quantity", QUANTITIES, ids=str)
@pytest.mark.parametrize("known", ["new", "pending", "allocated"])
def test_no_odd_quantity_slips_past_a_quota(quantity: Any, known: str) -> None:
    heard: list[Any] = []
    api = SchedulerAPI(on_output=lambda _, outputs: heard.extend(outputs))
    text = config("a resources: {max: {vcore: 5m}}")
    api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=text))
    info = v19.NodeInfo(node_id="n1", action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": 10})
    api.update_node(v19.NodeRequest(rm_id="rm", nodes=[info]))
    add = v19.AddApplicationRequest(
        application_id="x", queue_name="root.a", ugi=v19.UserGroupInformation(user="u"), partition_name="default"
    )
    api.update_application(v19.ApplicationRequest(rm_id="rm", new=[add]))

    def send(vcore: Any) -> None:
        item = v19.Allocation(allocation_key="k", application_id="x", resource_per_alloc={"vcore": vcore})
        api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=[item]))

    if known != "new":
        send(4)
    if known == "allocated":
        assert api.schedule() == 1
    before = api.cluster.partition("rm").tree.root.pending_resource()
    heard.clear()
    if type(quantity) is int and -(1 << 63) <= quantity < 1 << 63:
        send(quantity)
        assert [type(output).__name__ for output in heard] == ["RejectedAllocation"]
    else:  # a message that no peer could send is a mistake of the program
        with pytest.raises(RequestError, match="resourcePerAlloc"):
            send(quantity)
        assert heard == []
    assert api.cluster.partition("rm").tree.root.pending_resource() == before
    api.schedule()
    api.validate()


def test_the_sum_of_large_quantities_does_not_overflow() -> None:
    b = bench(10)
    half = 1 << 61
    assert b.ask("x", "k1", vcore=half) == ["x Accepted: runApplication"]
    assert b.ask("x", "k2", vcore=half) == []
    assert b.ask("x", "k3", vcore=half) == []
    assert b.pending() == {"vcore": 2 * half - 1}, "the sum shows no more"
    b.release("x", "k1")
    b.release("x", "k3")
    assert b.pending() == {"vcore": half}


# Metrics and caches of removed queues never freed.


def test_nothing_is_left_of_removed_objects() -> None:
    rules = "placementrules: [{name: user, create: true, parent: {name: fixed, value: root.p}}]"
    b = Bench(config("p parent: true", more=rules))
    b.node("n1", vcore=10)
    for i in range(50):
        b.app(f"x{i}", "", f"user{i}")
        b.ask(f"x{i}", "k", vcore=1)
        b.ask(f"x{i}", "waits", vcore=9 + i, tags={"licorne/node-constraints": f'{{"nodeSelector": {{"a": "{i}"}}}}'})
        b.run()
        b.remove(f"x{i}")
        b.run(after=11)
    partition_ = b.partition
    assert b.queues() == ["root", "root.p"]
    assert partition_.limits.users() == {} and partition_.limits.groups() == {}
    assert (len(partition_.timers) < 70, partition_.applications, partition_.foreign) == (True, {}, {})
    assert (partition_.parking.failed, partition_.wakeups.newly_freed, partition_.parking.awaiting_node) == ({}, {}, {})
    assert partition_.tree.root.blocked == {}


# A quota bypassed by naming another's group.


def test_naming_another_group_does_not_lift_a_users_limit() -> None:
    b = bench(100, text=config("a", root=f"limits: [{limit('*', vcore=3)}, {limit(groups='dev', vcore=50)}]"))
    for app, groups in (("x1", ["dev"]), ("x2", []), ("x3", ["other", "dev"])):
        b.app(app, "root.a", "mallory", *groups)
        for i in range(3):
            b.ask(app, f"{app}-{i}", vcore=1)
    assert len(b.run().split()) == 3


# The same resource manager registering twice; a configuration that drops a partition: neither may hang.


def test_registering_twice_and_dropping_a_partition_end() -> None:
    both = partitions(partition("default", "a"), partition("gpu", "a"))
    b = bench(10, text=both)
    b.ask("x", "k", vcore=1)
    b.run()
    for _ in range(3):
        b.register()
        b.reload(config("a"))
        b.reload(both)
        b.node("n1", vcore=10)
        b.node("g1", partition="gpu", vcore=10)
        b.app("x")
        b.app("x", partition="gpu")
        b.ask("x", "k", partition="gpu", vcore=1)
        assert b.run() == "k@g1"


# A confirmation for something never asked crashing the scheduler.


@pytest.mark.parametrize("termination", list(Termination))
@pytest.mark.parametrize(("app", "key"), [("x", "k"), ("x", "none"), ("none", "k"), ("x", "waits"), ("", "k")])
def test_a_confirmation_of_an_unknown_release_does_no_harm(termination: Termination, app: str, key: str) -> None:
    b = bench(10)
    b.ask("x", "k", vcore=6)
    b.run()
    b.ask("x", "waits", vcore=6)
    for _ in range(2):
        b.release(app, key, termination=termination)
    b.run()


def test_releases_and_asks_of_unknown_partitions_do_no_harm() -> None:
    b = bench(10)
    assert b.send(Release(partition="[other]default", application_id="x", key="k")) == []
    (said,) = b.send(Allocation(key="k", partition="[rm]", application_id="x", resource={"vcore": 1}))
    assert said.startswith("rejected k of x: Failed to find partition ")
