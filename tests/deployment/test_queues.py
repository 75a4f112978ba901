"""The queue configurations that come with licorne take gangs with placeholders, and run them to their real pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployment.places import DEPLOY, ROOT
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.config import check
from licorne.grpc.demo.scenario import CLUSTER
from licorne.si import v19

SIZE = {"vcore": 100, "memory": 1 << 20}
EXAMPLES = ROOT / "examples"


def of_workload(path: Path) -> str:
    """The configuration that a workload brings."""
    for line in path.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if found["t"] == "config":
            return str(found["yaml"])
    raise AssertionError(f"{path}: has no configuration")


CONFIGURATION = CLUSTER.workload().config or ""
DEPLOYED = (DEPLOY / "queues.yaml").read_text(encoding="utf-8")
ALL_PODS = yaml.safe_load((DEPLOY / "default-scheduler" / "configuration.yaml").read_text(encoding="utf-8"))
AS_DEFAULT = ALL_PODS["data"]["queues.yaml"]
GANGS = [
    # configuration, user, groups, queue asked for, namespace, queue it runs in
    (DEPLOYED, "ann", ["dev"], "", "dev", "root.namespaces.dev"),
    (AS_DEFAULT, "ann", ["dev"], "", "dev", "root.default"),
    (CONFIGURATION, "ann", ["dev"], "", "blue", "root.tenants.blue"),
    (CONFIGURATION, "rita", ["research"], "root.research.training", "", "root.research.training"),
    (of_workload(EXAMPLES / "demo" / "week.jsonl"), "finance", [], "root.batch.reports", "", "root.batch.reports"),
    (of_workload(EXAMPLES / "big-gang" / "workload.jsonl"), "o", [], "root.simulation", "", "root.simulation"),
    (of_workload(EXAMPLES / "gpu-holiday" / "workload.jsonl"), "vera", [], "root.vision", "", "root.vision"),
]


class Manager(ResourceManagerCallback):
    """Does what a resource manager does for a gang: ends the placeholders that are to be replaced."""

    def __init__(self, text: str, nodes: int = 1) -> None:
        self.said: list[Any] = []
        self.api = SchedulerAPI()
        self.api.register_resource_manager(v19.RegisterResourceManagerRequest(rm_id="rm", config=text), self)
        room = {"vcore": 16_000, "memory": 1 << 34, "pods": 110}
        new = [
            v19.NodeInfo(node_id=f"n{number}", action=v19.ActionFromRM.CREATE, schedulable_resource=room)
            for number in range(nodes)
        ]
        self.api.update_node(v19.NodeRequest(rm_id="rm", nodes=new))

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self.said.append(response)

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self.said.append(response)

    def submit(self, *requests: v19.Allocation) -> None:
        self.api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=list(requests)))
        self.api.schedule()

    def confirm(self) -> None:
        wanted = [one for response in self.said for one in getattr(response, "released", ())]
        releases = v19.AllocationReleasesRequest(allocations_to_release=wanted)
        self.api.update_allocation(v19.AllocationRequest(rm_id="rm", releases=releases))
        self.api.schedule()


def member(key: str, *, placeholder: bool) -> v19.Allocation:
    return v19.Allocation(
        allocation_key=key,
        application_id="spark",
        resource_per_alloc=SIZE,
        task_group_name="g",
        placeholder=placeholder,
    )


@pytest.mark.parametrize(("text", "user", "groups", "queue", "namespace", "runs_in"), GANGS)
def test_a_gang_runs(text: str, user: str, groups: list[str], queue: str, namespace: str, runs_in: str) -> None:
    manager = Manager(text)
    request = v19.AddApplicationRequest(
        application_id="spark",
        queue_name=queue,
        ugi=v19.UserGroupInformation(user=user, groups=groups),
        tags={"namespace": namespace} if namespace else {},
        placeholder_ask={name: 2 * amount for name, amount in SIZE.items()},
        execution_timeout_milli_seconds=60_000,
        gang_scheduling_style="Hard",
    )
    manager.api.update_application(v19.ApplicationRequest(rm_id="rm", new=[request]))
    assert manager.said[-1].rejected == []
    manager.submit(member("p1", placeholder=True), member("p2", placeholder=True))
    manager.submit(member("r1", placeholder=False), member("r2", placeholder=False))
    manager.confirm()
    app = manager.api.cluster.partition("rm").applications["spark"]
    assert app.queue.path == runs_in
    assert (str(app.state), sorted(app.allocations)) == ("Running", ["r1", "r2"])
    manager.api.validate()


def test_pods_that_request_nothing_are_spread_where_licorne_has_all_pods() -> None:
    manager = Manager(AS_DEFAULT, nodes=4)
    user = v19.UserGroupInformation(user="ann", groups=["dev"])
    request = v19.AddApplicationRequest(application_id="web", ugi=user, tags={"namespace": "dev"})
    manager.api.update_application(v19.ApplicationRequest(rm_id="rm", new=[request]))
    empty = {"pods": 1}
    manager.submit(
        *(v19.Allocation(allocation_key=f"p{n}", application_id="web", resource_per_alloc=empty) for n in range(12))
    )
    nodes = manager.api.cluster.partition("rm").nodes.values()
    assert [len(node.allocations) for node in nodes] == [3] * 4


def test_the_configurations_have_no_faults_and_no_warnings() -> None:
    for text in (DEPLOYED, CONFIGURATION, AS_DEFAULT):
        report = check(text)
        assert not report.faults
        assert not report.warnings
