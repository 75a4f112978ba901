"""The calls that YuniKorn's own web page makes, and every field that it reads.

Source: docs/spec/rest-api.md, section 4; docs/spec/ui.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from rest.world import World, busy, run

BASE = "/ws/v1"
MAPS = (
    "allocatedResource", "pendingResource", "maxResource", "guaranteedResource", "absUsedCapacity", "properties",
)  # fmt: skip
STATES = {
    "New", "Accepted", "Starting", "Running", "Completing", "Completed", "Rejected", "Failing", "Failed",
    "Expired", "Resuming",
}  # fmt: skip


@pytest.fixture(scope="module")
def world() -> World:
    world = busy().node("n3", {"zone": "z"}, vcore=1000)
    world.schedule(61.0)
    world.monitor.tick()
    run(world.monitor.check_health())
    return world


def test_dashboard(world: World) -> None:
    cluster, partition = world.get(f"{BASE}/clusters")[0], world.get(f"{BASE}/partitions")[0]
    assert cluster["clusterName"] == "kubernetes"
    build = cluster["rmBuildInformation"][0]
    assert (build["buildVersion"], build["rmId"]) == ("latest", "mycluster")
    assert partition["name"] == "default"
    assert partition["totalNodes"] == 3
    assert partition["nodeSortingPolicy"]["type"] == "fair"
    assert partition["totalContainers"] == 1
    counts = dict(partition["applications"])
    assert counts.pop("total") == sum(counts.values())
    assert set(counts) <= STATES
    for path, field in (("apps", "totalApplications"), ("containers", "totalContainers")):
        (minute,) = world.get(f"{BASE}/history/{path}")
        assert isinstance(minute["timestamp"], int)
        assert isinstance(minute[field], str)
    for utilization in world.get(f"{BASE}/scheduler/node-utilizations"):
        assert utilization["partition"] == "default"
        for one in utilization["utilizations"]:
            assert len(one["utilization"]) == 10
            for bucket in one["utilization"]:
                assert bucket["bucketName"]
                assert bucket.get("numOfNodes", 0) == len(bucket.get("nodeNames", []))


def _queues(root: Any) -> list[Any]:
    return [root, *(below for child in root.get("children") or () for below in _queues(child))]


def test_queues(world: World) -> None:
    found = _queues(world.get(f"{BASE}/partition/default/queues"))
    assert [queue["queuename"] for queue in found] == ["root", "root.a", "root.b", "root.b.dyn", "root.other"]
    for queue in found:
        assert queue["status"] == "Active"
        assert isinstance(queue["isLeaf"], bool)
        assert all(isinstance(queue.get(name, {}), dict) for name in MAPS)
    leaf = found[1]
    assert set(MAPS) <= set(leaf)
    assert (leaf["maxRunningApps"], leaf["runningApps"]) == (5, 1)


def test_applications(world: World) -> None:
    (app,) = world.get(f"{BASE}/partition/default/queue/root.a/applications")
    assert app["applicationID"] == "app-1"
    assert app["applicationState"] in STATES
    assert max(entry["time"] for entry in app["stateLog"]) >= app["submissionTime"]
    assert app["usedResource"]
    assert app["pendingResource"]
    for alloc in app["allocations"]:
        for field in ("allocationKey", "nodeId", "resource", "priority"):
            assert field in alloc


def test_nodes(world: World) -> None:
    found = {node["nodeID"]: node for node in world.get(f"{BASE}/partition/default/nodes")}
    assert list(found) == ["n1", "n2", "n3"]
    assert found["n3"]["attributes"]["zone"] == "z"
    for field in ("capacity", "allocated", "available", "attributes", "allocations"):
        assert field in found["n1"]
    assert found["n1"]["allocations"][0]["applicationId"] == "app-1"


def test_status(world: World) -> None:
    found = world.get(f"{BASE}/scheduler/healthcheck")
    assert found["Healthy"] is True
    for row in found["HealthChecks"]:
        assert all(isinstance(row[field], str) for field in ("Name", "Description", "DiagnosisMessage"))
        assert row["Succeeded"] is True
