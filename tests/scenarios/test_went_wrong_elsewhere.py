"""Faults that other schedulers had must not occur here: one scenario for each that the core can meet and that no other
test has."""

from __future__ import annotations

import math
from typing import Any

import pytest

from core.bench import Bench, config, limit, partition, partitions
from licorne import ConfigurationError, RegistrationError, RequestError, SchedulerAPI
from licorne.si import first, v19
from licorne.si.messages import NodeAction


def bench(*nodes: int, text: str = "", first_interface: bool = False) -> Bench:
    b = Bench(text or config("a"), first_interface=first_interface)
    for number, vcore in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=vcore)
    b.app("x")
    return b


# Scheduling before recovery was complete, over-committing nodes.


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


# A failed bind leaving a pod pending for ever.


def test_an_ask_that_could_not_be_bound_is_placed_again_when_resubmitted() -> None:
    b = bench(10, 9)
    b.ask("x", "k", vcore=9)
    assert b.run() == "k@n1"
    b.release("x", "k")
    b.node("n1", NodeAction.DRAIN_NODE)
    b.ask("x", "k", vcore=9)
    assert b.run() == "k@n2"


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


# A quota bypassed by naming another's group.


def test_naming_another_group_does_not_lift_a_users_limit() -> None:
    b = bench(100, text=config("a", root=f"limits: [{limit('*', vcore=3)}, {limit(groups='dev', vcore=50)}]"))
    for app, groups in (("x1", ["dev"]), ("x2", []), ("x3", ["other", "dev"])):
        b.app(app, "root.a", "mallory", *groups)
        for i in range(3):
            b.ask(app, f"{app}-{i}", vcore=1)
    assert len(b.run().split()) == 3
