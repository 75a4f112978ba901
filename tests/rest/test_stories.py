"""REST's fields of gangs, preemption, other schedulers and the past, which only a busy scheduler fills."""

from __future__ import annotations

import json
from typing import Any

from core.bench import config
from licorne.core.inputs.numbering import OWN_MAX
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate, Release, Termination
from rest.world import SECOND_NS, START_NS, World

P = "/ws/v1/partition/default"
PLAIN = config(
    "a",
    "rich properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 8}}",
    "capped resources: {max: {vcore: 1}}",
)
TASK_GROUPS = "yunikorn.apache.org/task-groups"


def plain() -> World:
    return World().register(text=PLAIN)


def ask(world: World, key: str, app: str, vcore: int, **fields: Any) -> None:
    world.submit(Allocation(key=key, application_id=app, resource={"vcore": vcore}, **fields))


def end(world: World, key: str, app: str, termination: Termination = Termination.STOPPED_BY_RM) -> None:
    world.submit(Release(application_id=app, key=key, termination=termination))


def application(world: World, name: str, queue: str = "root.a") -> Any:
    return world.get(f"{P}/queue/{queue}/application/{name}")


def waits(world: World, name: str, key: str, queue: str = "root.a", *, listed: bool = False) -> list[str]:
    """The reasons in the log of an ask, from a single application or from the list of all."""
    apps = world.get(f"{P}/queue/{queue}/applications") if listed else [application(world, name, queue)]
    (app,) = (app for app in apps if app["applicationID"] == name)
    (found,) = (one for one in app["requests"] if one["allocationKey"] == key)
    return [entry["message"] for entry in found.get("allocationLog", [])]


# -- what was used ----------------------------------------------------------------------------------------


def test_maximum_usage_and_its_duration_are_shown() -> None:
    world = plain().node("n1", {"si/instance-type": "m5"}, vcore=10).node("n2", vcore=10).application("x")
    for key in ("k1", "k2", "k3"):
        ask(world, key, "x", 4)
    world.schedule()
    assert application(world, "x")["maxUsedResource"] == {"vcore": 12}
    on = {alloc["allocationKey"]: alloc["nodeId"] for alloc in application(world, "x")["allocations"]}
    on_m5 = [key for key, node in on.items() if node == "n1"]
    elsewhere = [key for key, node in on.items() if node == "n2"]
    world.schedule(10.9)
    end(world, on_m5[0], "x")
    world.schedule(5)
    end(world, elsewhere[0], "x")
    found = application(world, "x")
    assert found["usedResource"] == {"vcore": 4}
    assert found["maxUsedResource"] == {"vcore": 12}
    assert found["resourceHistory"] == {"resourceUsage": {"UNKNOWN": {"vcore": 4 * 15}, "m5": {"vcore": 4 * 10}}}
    ask(world, "k4", "x", 9)
    world.schedule()
    assert application(world, "x")["maxUsedResource"] == {"vcore": 13}


def test_a_resized_allocation_counts_with_each_size() -> None:
    world = plain().node("n1", vcore=10).application("x")
    ask(world, "k", "x", 8)
    world.schedule()
    world.schedule(10)
    ask(world, "k", "x", 2, node_id="n1")
    assert application(world, "x")["usedResource"] == {"vcore": 2}
    world.schedule(5)
    end(world, "k", "x")
    found = application(world, "x")
    assert found["maxUsedResource"] == {"vcore": 8}
    assert found["resourceHistory"] == {"resourceUsage": {"UNKNOWN": {"vcore": 8 * 10 + 2 * 5}}}


def test_an_allocation_that_is_counted_anew_counts_once() -> None:
    """A type beyond those that an application may bring gets a number when a node has it; until then it has none."""
    world = plain().node("n1", vcore=10).application("x")
    resource = {f"type{number}": 1 for number in range(OWN_MAX + 1)}
    world.submit(Allocation(key="k", application_id="x", resource=resource, node_id="n1"))
    world.schedule(10)
    world.submit(NodeUpdate(node_id="n2", action=NodeAction.CREATE, capacity={f"type{OWN_MAX}": 5}))
    world.schedule(5)
    end(world, "k", "x")
    used = application(world, "x")["resourceHistory"]["resourceUsage"]
    assert used == {"UNKNOWN": dict.fromkeys(sorted(resource), 15)}


def test_usage_of_less_than_a_second_is_shown_as_zero() -> None:
    world = plain().node("n1", {"si/instance-type": "m5"}, vcore=10).application("x")
    ask(world, "k", "x", 8)
    world.schedule()
    world.now += SECOND_NS // 2
    end(world, "k", "x")
    assert application(world, "x")["resourceHistory"] == {"resourceUsage": {"m5": {"vcore": 0}}}


def test_a_completed_application_keeps_its_maximum_alone() -> None:
    world = plain().node("n1", vcore=10).application("x")
    ask(world, "k", "x", 3)
    world.schedule()
    world.schedule(10)
    end(world, "k", "x")
    assert application(world, "x")["resourceHistory"] == {"resourceUsage": {"UNKNOWN": {"vcore": 30}}}
    world.schedule(31)
    (found,) = world.get(f"{P}/applications/completed")
    ended = (found["applicationState"], found["maxUsedResource"], found["resourceHistory"])
    assert ended == ("Completed", {"vcore": 3}, {})


def test_without_a_monitor_no_usage_is_counted() -> None:
    world = World()
    world.api.cluster.usage_watched = False
    world.register(text=PLAIN)
    world.node("n1", vcore=10).application("x")
    ask(world, "k", "x", 3)
    world.schedule()
    end(world, "k", "x")
    assert world.api.cluster.partition("mycluster").applications["x"].past is None
    world.api.cluster.watch_usage()
    ask(world, "k", "x", 2)
    world.schedule()
    end(world, "k", "x")
    assert application(world, "x")["maxUsedResource"] == {"vcore": 2}


# -- placeholders -----------------------------------------------------------------------------------------


def gang(world: World, *, timeout_s: int = 100) -> None:
    """Three placeholders of group g, placed at second 1; a real ask that comes at second 3."""
    world.submit(
        AddApplication(
            application_id="x",
            queue="root.a",
            user="alice",
            placeholder_ask={"vcore": 6},
            execution_timeout_ms=timeout_s * 1000,
        )
    )
    for key in ("p1", "p2", "p3"):
        ask(world, key, "x", 2, task_group="g", placeholder=True)
    world.schedule(1)
    world.schedule(2)
    ask(world, "r1", "x", 2, task_group="g")


def test_placeholders_that_were_replaced_or_timed_out() -> None:
    world = plain().node("n1", {"si/instance-type": "m5"}, vcore=10)
    gang(world)
    text = "The ask waits for a placeholder of task group g, of which 3 live."
    assert waits(world, "x", "r1") == waits(world, "x", "r1", listed=True) == [text]
    world.schedule()
    assert application(world, "x")["maxUsedResource"] == {"vcore": 6}
    world.now += 4 * SECOND_NS
    end(world, "p1", "x", Termination.PLACEHOLDER_REPLACED)
    found = application(world, "x")
    group = {"taskGroupName": "g", "count": 3, "minResource": {"vcore": 2}, "replaced": 1}
    assert found["placeholderData"] == [group]
    assert found["maxUsedResource"] == {"vcore": 6}  # not 8: the real one and the placeholders are not added up
    assert found["resourceHistory"] == {"placeholderResource": {"m5": {"vcore": 2 * 6}}}
    (real,) = (alloc for alloc in found["allocations"] if alloc["allocationKey"] == "r1")
    assert real["placeholderUsed"] is True
    assert real["requestTime"] == START_NS
    assert real["allocationDelay"] == real["allocationTime"] - START_NS == 3 * SECOND_NS
    others = [alloc for alloc in found["allocations"] if alloc["allocationKey"] != "r1"]
    assert [alloc["placeholder"] for alloc in others] == [True, True]
    assert not any("placeholderUsed" in alloc for alloc in others)
    world.schedule(100)
    for key in ("p2", "p3"):
        end(world, key, "x", Termination.TIMEOUT)
    assert application(world, "x")["placeholderData"] == [group | {"timedout": 2}]
    end(world, "r1", "x")
    world.schedule(31)
    (found,) = world.get(f"{P}/applications/completed")
    assert found["placeholderData"] == [group | {"timedout": 2}]
    world.api.validate()


# -- gangs that start as a whole --------------------------------------------------------------------------


def whole(world: World, name: str, *sizes: int, members: int = 0) -> None:
    groups = json.dumps([{"name": "w", "minMember": members or len(sizes), "minResource": {"cpu": "1m"}}])
    tags = {TASK_GROUPS: groups, "gang.scheduling": "atomic"}
    world.submit(AddApplication(application_id=name, queue="root.a", user="alice", tags=tags))
    for number, size in enumerate(sizes):
        ask(world, f"{name}{number}", name, size, task_group="w")


def test_a_gang_shows_missing_members_and_held_nodes() -> None:
    world = plain().node("n1", vcore=4).node("n2", vcore=4)
    whole(world, "half", 1, members=2)
    world.application("x")
    ask(world, "k", "x", 3)
    world.schedule(1)
    whole(world, "g", 4, 4)
    world.schedule(1)
    assert waits(world, "half", "half0") == ["The gang is not complete: w 1 of 2."]
    texts = {
        *waits(world, "g", "g0"),
        *waits(world, "g", "g1"),
        *waits(world, "g", "g0", listed=True),
    }
    assert texts == {"Not enough queue quota", "The gang fits the nodes not as a whole; it holds n1, n2."}
    dump = world.get("/debug/fullstatedump")
    holds = [hold for one in world.api.state_dump()["resourceManagers"][0]["partitions"] for hold in one["gangHolds"]]
    assert dump["gangHolds"] == [{"partition": "default", "holds": holds}]
    (hold,) = holds
    assert (hold["applicationID"], sorted(hold["nodes"]), hold["startTime"]) == ("g", ["n1", "n2"], None)
    assert {member["allocationKey"] for member in hold["members"]} == {"g0", "g1"}
    end(world, "k", "x")
    world.schedule(1)
    assert "gangHolds" not in world.get("/debug/fullstatedump")
    assert len(application(world, "g")["allocations"]) == 2


# -- preemption and quotas --------------------------------------------------------------------------------


def test_reasons_and_events_of_preemption_are_shown() -> None:
    world = plain().node("n1", vcore=8).application("low")
    for number in range(4):
        ask(world, f"v{number}", "low", 2, allow_preempt_self=True)
    world.schedule(1)
    world.application("high", "root.rich")
    ask(world, "k", "high", 4, allow_preempt_other=True)
    world.schedule()
    assert "Preemption preconditions failed" in waits(world, "high", "k", "root.rich")
    world.schedule(2)
    found = application(world, "high", "root.rich")
    (waiting,) = found["requests"]
    assert waiting["triggeredPreemption"] is True
    assert found["hasReserved"] is True
    assert found["reservations"] == ["k"]
    assert "Preemption makes room on node n1" in waits(world, "high", "k", "root.rich")
    node = world.get(f"{P}/node/n1")
    assert (node["isReserved"], node["reservations"]) == (True, ["k"])
    victims = [alloc["allocationKey"] for alloc in node["allocations"] if alloc.get("preempted")]
    assert len(victims) == 2
    assert world.get(f"{P}/queue/root.a")["preemptingResource"] == {"vcore": 4}
    world.now += 7 * SECOND_NS
    for key in victims:
        end(world, key, "low", Termination.PREEMPTED_BY_SCHEDULER)
    history = application(world, "low")["resourceHistory"]
    assert history == {"preemptedResource": {"UNKNOWN": {"vcore": 2 * 2 * 9}}}
    world.schedule()
    assert application(world, "high", "root.rich")["usedResource"] == {"vcore": 4}


def test_victims_that_do_not_help() -> None:
    world = plain().node("n1", vcore=8).application("low")
    ask(world, "v", "low", 8, priority=10)  # nobody may preempt what is worth more
    world.schedule(1)
    world.application("high", "root.rich")
    ask(world, "k", "high", 4, allow_preempt_other=True)
    world.schedule(2)
    world.schedule(20)
    assert "Preemption does not help" in waits(world, "high", "k", "root.rich")


def test_a_queue_that_is_full() -> None:
    world = plain().node("n1", vcore=8).application("x", "root.capped")
    ask(world, "k", "x", 1000)
    world.schedule(1)
    assert "Not enough queue quota" in waits(world, "x", "k", "root.capped", listed=True)


# -- other schedulers -------------------------------------------------------------------------------------


def test_foreign_allocations_are_shown_with_their_names() -> None:
    world = plain().node("n1", vcore=8)
    tags = {"kubernetes.io/meta/namespace": "kube-system", "kubernetes.io/meta/podName": "proxy"}
    static = tags | {"foreign": "static", "creationTime": "1700000000"}
    ask(world, "f1", "", 2, node_id="n1", tags=static, priority=2_000_001_000)
    world.schedule(5)
    ask(world, "f2", "", 1, node_id="n1", tags={"foreign": "default"})
    ask(world, "f1", "", 3, node_id="n1", tags={"foreign": "default"})
    node = world.get(f"{P}/node/n1")
    assert node["occupied"] == {"vcore": 4}
    assert node["foreignAllocations"] == [
        {
            "allocationKey": "f1",
            "allocationTags": dict(sorted(static.items())),
            "allocationTime": 1_700_000_000 * SECOND_NS,
            "resource": {"vcore": 3},
            "priority": "2000001000",
            "nodeId": "n1",
        },
        {
            "allocationKey": "f2",
            "allocationTags": {"foreign": "default"},
            "allocationTime": START_NS + 5 * SECOND_NS,
            "resource": {"vcore": 1},
            "priority": "0",
            "nodeId": "n1",
            "preemptable": True,
        },
    ]
    world.api.validate()
    world.submit(Release(key="f1"))
    world.submit(NodeUpdate(node_id="n1", action=NodeAction.DECOMISSION))
    world.api.validate()
    assert not world.api.cluster.partition("mycluster").foreign
