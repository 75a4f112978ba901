"""Each object as the original sends it: exact names, units, order of fields, and fields that are left out.

Source: docs/spec/rest-api.md, section 3.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from core.bench import config
from licorne.core.constants import SUM_MAX
from licorne.host.web.rest.amounts import duration, percent
from licorne.si import v19
from rest.world import SECOND_NS, START_NS, World, busy

P = "/ws/v1/partition/default"

CLUSTERS = [
    {
        "startTime": START_NS,
        "rmBuildInformation": [{"buildVersion": "latest", "rmId": "mycluster"}],
        "partition": "default",
        "clusterName": "kubernetes",
    }
]
PARTITIONS = [
    {
        "clusterId": "mycluster",
        "name": "default",
        "capacity": {
            "capacity": {"memory": 2 * 10**12, "pods": 220, "vcore": 24_000},
            "usedCapacity": {"memory": 10**6, "pods": 1, "vcore": 10},
            "utilization": {"memory": 0, "pods": 0, "vcore": 0},
        },
        "nodeSortingPolicy": {"type": "fair", "resourceWeights": {"memory": 1.0, "vcore": 1.0}},
        "preemptionEnabled": True,
        "quotaPreemptionEnabled": False,
        "totalNodes": 2,
        "applications": {"Accepted": 1, "Running": 1, "total": 2},
        "totalContainers": 1,
        "state": "Active",
        "lastStateTransitionTime": START_NS,
    }
]
ROOT_A = {
    "queuename": "root.a",
    "status": "Active",
    "partition": "",
    "pendingResource": {"memory": 10**6, "vcore": 8000},
    "maxResource": {"memory": 10**11, "vcore": 10_000},
    "guaranteedResource": {"memory": 100, "vcore": 1000},
    "allocatedResource": {"memory": 10**6, "pods": 1, "vcore": 10},
    "headroom": {"memory": 10**11 - 10**6, "pods": 219, "vcore": 9990},
    "isLeaf": True,
    "isManaged": True,
    "properties": {"application.sort.policy": "fifo", "preemption.delay": "10s", "priority.offset": "5"},
    "parent": "root",
    "absUsedCapacity": {"memory": 0, "vcore": 0},
    "maxRunningApps": 5,
    "runningApps": 1,
    "currentPriority": 5,
    "sortingPolicy": "fifo",
    "prioritySorting": True,
    "preemptionEnabled": True,
    "isPreemptionFence": False,
    "preemptionDelay": "10s",
    "quotaPreemptionDelay": "0s",
    "isPriorityFence": False,
    "priorityOffset": 5,
}
ROOT_B = {
    "queuename": "root.b",
    "status": "Active",
    "partition": "",
    "pendingResource": {"vcore": 100_000},
    "headroom": {"memory": 2 * 10**12 - 10**6, "pods": 219, "vcore": 23_990},
    "isLeaf": False,
    "isManaged": True,
    "parent": "root",
    "template": {
        "maxApplications": 3,
        "maxResource": {"memory": 10**9},
        "properties": {"application.sort.policy": "fair"},
    },
    "childNames": ["root.b.dyn"],
    "currentPriority": 0,
    "sortingPolicy": "fair",
    "prioritySorting": True,
    "preemptionEnabled": True,
    "isPreemptionFence": False,
    "preemptionDelay": "30s",
    "quotaPreemptionDelay": "0s",
    "isPriorityFence": False,
}
ALLOCATION = {
    "allocationKey": "k1",
    "requestTime": START_NS,
    "allocationTime": START_NS + SECOND_NS,
    "allocationDelay": SECOND_NS,
    "resource": {"memory": 10**6, "pods": 1, "vcore": 10},
    "priority": "0",
    "nodeId": "n1",
    "applicationId": "app-1",
}
APP_1 = {
    "applicationID": "app-1",
    "usedResource": {"memory": 10**6, "pods": 1, "vcore": 10},
    "maxUsedResource": {"memory": 10**6, "pods": 1, "vcore": 10},
    "pendingResource": {"memory": 10**6, "vcore": 8000},
    "partition": "default",
    "queueName": "root.a",
    "submissionTime": START_NS,
    "requests": [
        {
            "allocationKey": "k2",
            "requestTime": START_NS,
            "resource": {"memory": 10**6, "vcore": 8000},
            "priority": "0",
            "applicationId": "app-1",
            "allocationLog": [
                {"message": "Not enough user quota", "lastOccurrence": START_NS + 2 * SECOND_NS, "count": 1}
            ],
        }
    ],
    "allocations": [ALLOCATION],
    "applicationState": "Running",
    "user": "alice",
    "groups": ["dev", "ops"],
    "stateLog": [
        {"time": START_NS, "applicationState": "Accepted"},
        {"time": START_NS + SECOND_NS, "applicationState": "Running"},
    ],
    "startTime": (START_NS + SECOND_NS) // 10**6,
    "resourceHistory": {},
}
NODE_1 = {
    "nodeID": "n1",
    "hostName": "h1",
    "rackName": "r1",
    "attributes": {"si/node-partition": "[mycluster]default", "si/hostname": "h1", "si/rackname": "r1"},
    "capacity": {"memory": 10**12, "pods": 110, "vcore": 20_000},
    "allocated": {"memory": 10**6, "pods": 1, "vcore": 10},
    "available": {"memory": 10**12 - 10**6, "pods": 109, "vcore": 19_990},
    "utilized": {"memory": 0, "pods": 0, "vcore": 0},
    "allocations": [ALLOCATION],
    "schedulable": True,
    "isReserved": False,
}
ALICE = {
    "userName": "alice",
    "groups": {"app-1": "dev"},
    "queues": {
        "queuePath": "root",
        "resourceUsage": {"memory": 10**6, "pods": 1, "vcore": 10},
        "runningApplications": ["app-1"],
        "maxApplications": 100,
        "children": [
            {
                "queuePath": "root.a",
                "resourceUsage": {"memory": 10**6, "pods": 1, "vcore": 10},
                "runningApplications": ["app-1"],
                "maxResources": {"memory": 10**10, "vcore": 5000},
                "maxApplications": 2,
            }
        ],
    },
}
DEV = {
    "groupName": "dev",
    "applications": ["app-1"],
    "queues": {
        "queuePath": "root",
        "resourceUsage": {"memory": 10**6, "pods": 1, "vcore": 10},
        "runningApplications": ["app-1"],
        "maxApplications": 50,
        "children": [
            {
                "queuePath": "root.a",
                "resourceUsage": {"memory": 10**6, "pods": 1, "vcore": 10},
                "runningApplications": ["app-1"],
            }
        ],
    },
}
RULES = [
    {"name": "provided", "parameters": {"create": "true"}, "filter": {"type": "deny", "userList": ["mallory"]}},
    {"name": "fixed", "parameters": {"create": "false", "queue": "root.other", "qualified": "true"}},
    {"name": "recovery", "parameters": {"queue": "root.@recovery@"}},
]
EXACT = [
    ("/ws/v1/clusters", CLUSTERS),
    ("/ws/v1/partitions", PARTITIONS),
    (f"{P}/queue/root.a", ROOT_A),
    (f"{P}/queue/root.b", ROOT_B),
    (f"{P}/queue/root.a/applications", [APP_1]),
    (f"{P}/queue/root.a/applications/active", [APP_1]),
    (f"{P}/queue/root.a/applications/Active?status=running", [APP_1]),
    (f"{P}/queue/root.a/applications/active?status=accepted", []),
    (f"{P}/queue/root.b/applications", []),
    (f"{P}/queue/root.a/application/app-1", APP_1),
    (f"{P}/application/app-1", APP_1),
    (f"{P}/applications/active?status=RUNNING", [APP_1]),
    (f"{P}/applications/completed", []),
    (f"{P}/applications/rejected", []),
    (f"{P}/node/n1", NODE_1),
    (f"{P}/usage/user/alice", ALICE),
    (f"{P}/usage/groups", [DEV]),
    (f"{P}/usage/group/dev", DEV),
    (f"{P}/placementrules", RULES),
    ("/ws/v1/history/apps", []),
    ("/ws/v1/history/containers", []),
]


@pytest.fixture(scope="module")
def world() -> World:
    return busy()


def _with_order(found: Any) -> Any:
    """The same with maps as lists, so that the order of fields counts."""
    if isinstance(found, dict):
        return [(key, _with_order(value)) for key, value in found.items() if key != "waitingReasons"]  # licorne's own
    return [_with_order(item) for item in found] if isinstance(found, list) else found


@pytest.mark.parametrize(("path", "expected"), EXACT)
def test_an_object_is_exactly_as_the_original_sends_it(world: World, path: str, expected: object) -> None:
    assert _with_order(world.get(path)) == _with_order(expected)


def test_the_tree_of_queues(world: World) -> None:
    root = world.get(f"{P}/queues")
    assert (root["partition"], root["queuename"], root["isLeaf"]) == ("default", "root", False)
    assert [child["queuename"] for child in root["children"]] == ["root.a", "root.b", "root.other"]
    assert root["children"][0] == ROOT_A
    assert root["childNames"] == ["root.a", "root.b", "root.other"]
    assert root["children"][1]["childNames"] == ["root.b.dyn"]
    assert world.get("/debug/fullstatedump")["queues"] == [root]
    assert world.get(f"{P}/queue/root?subtree") == root | {"partition": ""}
    alone = world.get(f"{P}/queue/root")
    assert "children" not in alone
    assert alone["childNames"] == ["root.a", "root.b", "root.other"]


def test_a_queue_without_asks_has_the_lowest_priority(world: World) -> None:
    assert world.get(f"{P}/queue/root.other")["currentPriority"] == -2147483648


def test_no_partition_means_empty_lists() -> None:
    world = World()
    for path in ("clusters", "partitions", "scheduler/node-utilizations", "history/apps"):
        assert world.get(f"/ws/v1/{path}") == []


def test_the_ten_buckets(world: World) -> None:
    (found,) = world.get("/ws/v1/scheduler/node-utilizations")
    assert (found["clusterId"], found["partition"]) == ("mycluster", "default")
    memory = found["utilizations"][0]
    assert memory["type"] == "memory"
    assert memory["utilization"][0] == {"bucketName": "0-10%", "numOfNodes": 2, "nodeNames": ["n1", "n2"]}
    assert [bucket["bucketName"] for bucket in memory["utilization"]] == [
        f"{ten}-{ten + 10}%" for ten in range(0, 100, 10)
    ]


WAITING = config(
    "a resources: {max: {vcore: 1, memory: 1}}",
    "b properties: {application.sort.policy: fair}",
    root="properties: {priority.policy: fence, preemption.policy: fence, priority.offset: '7'},"
    " limits: [{limit: of all, users: [poor], maxresources: {vcore: 1}}]",
)


def test_inherited_properties_of_a_queue_are_shown_with_their_values() -> None:
    world = World().register(text=WAITING)
    found = world.get(f"{P}/queue/root.a")["properties"]
    assert found == {"preemption.policy": "default", "priority.offset": "0", "priority.policy": "default"}


def test_only_used_types_are_shown_of_max() -> None:
    world = World().register(text=WAITING).node("n", vcore=10_000, memory=100).application("x")
    assert "absUsedCapacity" not in world.get(f"{P}/queue/root.a")
    world.ask("k", "x", vcore=500)
    world.schedule()
    assert world.get(f"{P}/queue/root.a")["absUsedCapacity"] == {"vcore": 50}


def test_an_ask_that_its_queue_has_no_room_for_was_attempted() -> None:
    world = World().register(text=WAITING).node("n", vcore=10_000).application("x").application("y", user="poor")
    world.ask("much", "x", vcore=5000).ask("poor", "y", vcore=1001)
    world.schedule(1.0)
    (ask,) = world.get(f"{P}/application/x")["requests"]
    assert [entry["message"] for entry in ask["allocationLog"]] == ["Not enough queue quota"]
    assert ask["schedulingAttempted"] is True
    (ask,) = world.get(f"{P}/application/y")["requests"]
    assert "Not enough user quota" in [entry["message"] for entry in ask["allocationLog"]]
    assert "schedulingAttempted" not in ask


def test_weights_are_written_as_numbers_without_a_fraction() -> None:
    policy = "nodesortpolicy: {type: fair, resourceweights: {vcore: 1.5, memory: 1e300}}"
    text = WAITING.replace("queues:", f"{policy}, queues:", 1)
    for written, shown in ((WAITING, b'{"memory":1,"vcore":1}'), (text, b'{"memory":1e300,"vcore":1.5}')):
        assert shown in World().register(text=written).request("GET", "/ws/v1/partitions").content


def test_rejected_applications_are_shown_with_the_queue_and_the_user_that_they_had() -> None:
    text = WAITING.replace("sort.policy: fair", "sort.policy: fair, gang.scheduling: atomic")
    world = World().register(text=text).application("x").application("x")
    world.application("forced", "root.none", "", tags={"application.create.force": "true"}).application("", "root.b")
    broken = {"application.create.force": "true", "yunikorn.apache.org/task-groups": "["}
    world.application("gang", "root.b", "", tags=broken).application("unplaced", "root.none.such")
    found = {app["applicationID"]: app for app in world.get(f"{P}/applications/rejected")}
    assert [(name, app["queueName"], app["user"]) for name, app in found.items()] == [
        ("x", "root.a", "alice"),
        ("", "root.b", "alice"),
        ("gang", "root.b", "nobody"),
        ("unplaced", "", "alice"),
    ]
    assert found["gang"]["groups"] == ["nogroup"]
    assert found["x"]["rejectedMessage"] == (
        "adding application x to partition [mycluster]default, but application already existed"
    )


def test_a_queue_above_a_lowered_max_and_the_delay_of_a_parent_are_shown_as_in_the_original() -> None:
    text = """
partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [
  {name: p, parent: true, properties: {preemption.delay: 20s}, queues: [{name: a, resources: {max: {vcore: MAX}}}]}]}]}]
"""
    world = World().register(text=text.replace("MAX", "2")).node("n1", vcore=2000).application("x", "root.p.a")
    world.ask("k", "x", vcore=2000).schedule()
    lowered = v19.UpdateConfigurationRequest(rm_id="mycluster", config=text.replace("MAX", "1"))
    world.api.update_configuration(lowered, now_ns=world.now)
    parent, leaf = (world.get(f"{P}/queue/{path}") for path in ("root.p", "root.p.a"))
    assert (leaf["headroom"], leaf["preemptionDelay"]) == ({"vcore": -1000}, "20s")
    assert parent["preemptionDelay"] == "30s"


def test_a_rejected_application_can_be_looked_up() -> None:
    world = busy().application("late", user="")
    (found,) = world.get(f"{P}/applications/rejected")
    assert found["applicationID"] == "late"
    assert found["applicationState"] == "Rejected"
    assert found["rejectedMessage"]
    assert found["startTime"] == -62135596800000
    assert world.get("/ws/v1/partitions")[0]["applications"]["total"] == 3


def test_a_completed_application_is_kept() -> None:
    world = busy().release("k2", "app-1").release("k1", "app-1")
    world.schedule(31.0)
    (found,) = world.get(f"{P}/applications/completed")
    assert (found["applicationID"], found["applicationState"]) == ("app-1", "Completed")
    assert found["finishedTime"] > found["submissionTime"]
    assert world.get(f"{P}/application/app-1", 404)["message"] == "Application not found"


def test_asks_show_why_they_wait() -> None:
    world = busy()
    world.ask("k4", "app-1", vcore=4500, pods=200)
    world.schedule(1.0)
    found = world.get(f"{P}/application/app-1")["requests"]
    logs = {ask["allocationKey"]: [entry["message"] for entry in ask["allocationLog"]] for ask in found}
    assert logs["k2"] == ["Not enough user quota"]
    never = "No node can take the ask, even an empty one, so it never runs as things are: too small (2 nodes)."
    assert logs["k4"] == [never]
    reasons = {ask["allocationKey"]: ask["waitingReasons"] for ask in found}
    missing = {"kind": "user", "name": "alice", "queue": "root.a", "missing": {"vcore": 3010}}
    assert reasons["k2"] == [
        {
            "kind": "user-limit",
            "text": "Larger than the limit of user alice at root.a (3010m vcore missing): it never runs as things are.",
            "never": True,
            "details": missing,
        }
    ]
    assert reasons["k4"] == [{"kind": "nodes", "text": never, "never": True, "details": {"failed": {"too small": 2}}}]


def test_history_comes_minute_by_minute() -> None:
    world = busy()
    world.schedule(61.0)
    world.monitor.tick()
    assert world.get("/ws/v1/history/apps") == [{"timestamp": world.now, "totalApplications": "1"}]
    assert world.get("/ws/v1/history/containers") == [{"timestamp": world.now, "totalContainers": "1"}]


def test_large_answers_come_in_pieces_and_are_the_same() -> None:
    world = busy().application("big", "root.other", "carol")
    for number in range(3000):
        world.ask(f"big-{number}", "big", vcore=1)
    world.schedule(1.0)
    found = world.get(f"{P}/application/big")
    assert len(found["allocations"]) == 3000
    assert found["usedResource"] == {"vcore": 3000}
    state = world.get("/debug/fullstatedump")
    assert [app["applicationID"] for app in state["applications"]] == ["app-1", "app-2", "big"]
    assert state["applications"][2] == found
    assert list(state) == [
        "timestamp", "partitions", "applications", "nodes", "clusterInfo", "queues", "rmDiagnostics", "logLevel",
        "config", "placementRules",
    ]  # fmt: skip
    assert state["rmDiagnostics"] == {"empty": "Resource Manager did not register callback"}


def test_an_unregistered_scheduler_dumps_what_there_is() -> None:
    found = World().get("/debug/fullstatedump")
    assert list(found) == ["timestamp", "rmDiagnostics", "logLevel", "config"]


DURATIONS = [
    (0, "0s"),
    (30 * SECOND_NS, "30s"),
    (90 * SECOND_NS, "1m30s"),
    (3600 * SECOND_NS, "1h0m0s"),
    (1_500_000_000, "1.5s"),
    (1_500_000, "1.5ms"),
    (2_000, "2µs"),
    (7, "7ns"),
]


@pytest.mark.parametrize(("length", "text"), DURATIONS)
def test_durations(length: int, text: str) -> None:
    assert duration(length) == text


def test_percentages() -> None:
    assert percent({"a": 3, "b": 0, "c": 0, "d": 10}, {"a": 2, "c": 1, "x": 5}) == {"a": 66, "b": 0, "c": 100, "d": 0}


def test_numbers_are_64_bits_wide() -> None:
    world = World().register().node("n", memory=(1 << 62) - 1)
    body = world.request("GET", f"{P}/node/n").content
    assert msgspec.json.decode(body)["capacity"] == {"memory": (1 << 62) - 1}


def test_of_what_nodes_do_not_limit_it_is_shown_what_is_used_and_no_size() -> None:
    """But for what a node itself says in REST, since the state is restored from that."""
    world = World().register().application("app")
    for name in "nm":
        world.node(name, vcore=10, gpus=SUM_MAX)
    world.ask("p", "app", vcore=1, gpus=2).schedule()
    rest = (f"{P}/queues", "/ws/v1/partitions", "/ws/v1/scheduler/node-utilizations", "/ws/v1/metrics")
    for path in (*rest, "/", "/nodes", "/node?name=n", "/queues"):
        shown = world.request("GET", path).text
        assert "cpu" in shown or "vcore" in shown, path
        assert not re.search(r"4,?611,?686|4\.6\d*e\+18|4\.6 ?E", shown), path
    used = msgspec.json.decode(world.request("GET", f"{P}/queues").content)["allocatedResource"]
    assert used["gpus"] == 2
    assert msgspec.json.decode(world.request("GET", f"{P}/node/n").content)["capacity"]["gpus"] == SUM_MAX
