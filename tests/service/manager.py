"""A resource manager that keeps its own records, and reports contradictions to them.

Beside its records it has a twin: a scheduler in this process that has never stopped, and gets the same messages, and each
allocation as it becomes known. After any fault the scheduler must have the state of a new one to which the records are
reported, and that must be the state of the twin. The product is compared with these records, so they share no code with
`licorne.sim.model`.
"""

from __future__ import annotations

import random
import threading
import zlib
from typing import Any

from core.bench import config
from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.grpc.client import SchedulerClient
from licorne.si import v19

CREATE = v19.ActionFromRM.CREATE
STOPPED = v19.TerminationType.STOPPED_BY_RM
PEOPLE: tuple[tuple[str, list[str]], ...] = (("ann", ["dev"]), ("bob", ["dev", "ops"]), ("eve", []))
CONFIG = config(
    root="limits: [{limit: all, users: ['*'], maxresources: {vcore: 1000}},"
    " {limit: some, groups: [dev, ops], maxresources: {vcore: 1000}}]",
    more="placementrules: [{name: tag, value: namespace, create: true}]",
)
# A reservation, after two seconds of real time, would keep a pod off a node with room for it.
SETTINGS = {"reservation.enabled": "false"}
REQUEST = v19.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG, extra_config=SETTINGS)


class Manager(ResourceManagerCallback):
    """Nodes, applications and pods as they really are."""

    def __init__(self, rm_id: str = "rm") -> None:
        self.rm_id = rm_id
        self.lock = threading.RLock()
        self.capacity: dict[str, int] = {}
        self.used: dict[str, int] = {}
        self.applications: dict[str, None] = {}
        self.waiting: dict[str, tuple[str, int]] = {}
        self.running: dict[str, tuple[str, int, str]] = {}
        self.faults: list[str] = []
        self.twin = SchedulerAPI()
        self.twin.register_resource_manager(self._registration())

    def _registration(self) -> v19.RegisterResourceManagerRequest:
        return v19.RegisterResourceManagerRequest(rm_id=self.rm_id, config=CONFIG, extra_config=SETTINGS)

    # -- what the scheduler says

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        with self.lock:
            for new in response.new:
                self._new(new)
            for gone in response.released:
                if gone.termination_type is not STOPPED:
                    self.faults.append(f"{gone.allocation_key} was taken away")
            self.faults += [f"rejected: {item}" for item in response.rejected_allocations]

    def _new(self, new: v19.Allocation) -> None:
        key = new.allocation_key
        if key in self.running:
            if self.running[key][2] != new.node_id:
                self.faults.append(f"{key} was allocated twice")
            return
        if key not in self.waiting:
            return  # it was given up while the decision was on its way; the release follows
        application, amount = self.waiting.pop(key)
        self.running[key] = application, amount, new.node_id
        self.used[new.node_id] += amount
        placed = [_allocation(key, application, amount, new.node_id)]
        self.twin.update_allocation(v19.AllocationRequest(rm_id=self.rm_id, allocations=placed))
        if self.used[new.node_id] > self.capacity[new.node_id]:
            self.faults.append(f"{new.node_id} is over its capacity")

    def update_application(self, response: v19.ApplicationResponse) -> None:
        with self.lock:
            self.faults += [f"rejected: {item}" for item in response.rejected]

    def update_node(self, response: v19.NodeResponse) -> None:
        with self.lock:
            self.faults += [f"rejected: {item}" for item in response.rejected]

    # -- messages: first the record, then the call

    def add_node(self, client: SchedulerClient, node_id: str, amount: int) -> None:
        with self.lock:
            self.capacity[node_id], self.used[node_id] = amount, 0
            request = v19.NodeRequest(rm_id=self.rm_id, nodes=[self._node(node_id)])
            self.twin.update_node(request)
        client.update_node(request)

    def add_application(self, client: SchedulerClient, application_id: str) -> None:
        with self.lock:
            self.applications[application_id] = None
            request = v19.ApplicationRequest(rm_id=self.rm_id, new=[_application(application_id)])
            self.twin.update_application(request)
        client.update_application(request)

    def ask(self, client: SchedulerClient, application_id: str, pods: dict[str, int]) -> None:
        with self.lock:
            self.waiting |= {key: (application_id, amount) for key, amount in pods.items()}
            asks = [_allocation(key, application_id, amount) for key, amount in pods.items()]
            request = v19.AllocationRequest(rm_id=self.rm_id, allocations=asks)
            self.twin.update_allocation(request)
        client.update_allocation(request)

    def release(self, client: SchedulerClient, keys: list[str]) -> None:
        releases = []
        with self.lock:
            for key in keys:
                if key in self.running:
                    application, amount, node = self.running.pop(key)
                    self.used[node] -= amount
                else:
                    application, _ = self.waiting.pop(key)
                releases.append(
                    v19.AllocationRelease(
                        partition_name="default",
                        application_id=application,
                        allocation_key=key,
                        termination_type=STOPPED,
                    )
                )
            gone = v19.AllocationReleasesRequest(allocations_to_release=releases)
            request = v19.AllocationRequest(rm_id=self.rm_id, releases=gone)
            self.twin.update_allocation(request)
        client.update_allocation(request)

    def report(self, client: SchedulerClient | SchedulerAPI) -> None:
        """Report everything, from the records."""
        with self.lock:
            nodes = [self._node(node_id) for node_id in self.capacity]
            applications = [_application(application_id) for application_id in self.applications]
            allocations = [_allocation(key, app, amount, node) for key, (app, amount, node) in self.running.items()]
            allocations += [_allocation(key, app, amount) for key, (app, amount) in self.waiting.items()]
        client.update_node(v19.NodeRequest(rm_id=self.rm_id, nodes=nodes))
        client.update_application(v19.ApplicationRequest(rm_id=self.rm_id, new=applications))
        client.update_allocation(v19.AllocationRequest(rm_id=self.rm_id, allocations=allocations))

    def _node(self, node_id: str) -> v19.NodeInfo:
        return v19.NodeInfo(
            node_id=node_id, action=CREATE, schedulable_resource={"vcore": self.capacity[node_id], "pods": 10_000}
        )

    # -- comparing

    def nothing_fits(self) -> bool:
        """Tell whether no pod waits although a node has room."""
        with self.lock:
            room = max((self.capacity[node] - self.used[node] for node in self.capacity), default=0)
            return all(amount > room for _, amount in self.waiting.values())

    def expected(self) -> dict[str, Any]:
        """The state that the scheduler should have: that of one in this process to which everything is reported at once."""
        fresh = SchedulerAPI()
        fresh.register_resource_manager(self._registration())
        with self.lock:
            self.report(fresh)
            known = facts(fresh, self.rm_id)
            assert facts(self.twin, self.rm_id) == known, "who never stopped knows something else"
        return known


def facts(api: SchedulerAPI, rm_id: str = "rm") -> dict[str, Any]:
    """Nodes, queues, applications, asks and allocations of a scheduler, without what depends on when they came."""
    api.validate()
    for manager in api.state_dump()["resourceManagers"]:
        if manager["rmID"] == rm_id:
            (partition,) = manager["partitions"]
            queues = ("queuename", "allocatedResource", "pendingResource", "maxResource")
            nodes = ("nodeID", "schedulable", "capacity", "occupied", "allocated", "available")
            apps = ("applicationID", "queueName", "user", "usedResource", "pendingResource")
            return {
                "queues": [{name: queue[name] for name in queues} for queue in partition["queues"]],
                "nodes": [
                    {name: node[name] for name in nodes} | {"allocations": sorted(node["allocations"])}
                    for node in partition["nodes"]
                ],
                "applications": {
                    app["applicationID"]: {name: app[name] for name in apps}
                    | {
                        "requests": sorted((ask["allocationKey"], str(ask["resource"])) for ask in app["requests"]),
                        "allocations": sorted((a["allocationKey"], a["nodeID"]) for a in app["allocations"]),
                    }
                    for app in partition["applications"]
                },
                "users": _usage(api.cluster.partition(rm_id).limits.users()),
                "groups": _usage(api.cluster.partition(rm_id).limits.groups()),
            }
    return {}


def _usage(found: dict[str, list[Any]]) -> dict[tuple[str, str], tuple[dict[int, int], list[str]]]:
    """The usage of users, or of groups, by name and path of the queue.

    It is forgotten that an application has run before, and so counts as running though it has nothing now.
    """
    return {
        (name, tracker.path): (used, sorted(app.id for app in tracker.apps if app.allocations))
        for name, trackers in found.items()
        for tracker in trackers
        if (used := {d: amount for d, amount in enumerate(tracker.used.values()) if amount})
    }


def _application(application_id: str) -> v19.AddApplicationRequest:
    number = zlib.crc32(application_id.encode())
    user, groups = PEOPLE[number % len(PEOPLE)]
    return v19.AddApplicationRequest(
        application_id=application_id,
        ugi=v19.UserGroupInformation(user=user, groups=groups),
        tags={"namespace": ("dev", "test")[number % 2]},
    )


def _allocation(key: str, application_id: str, amount: int, node_id: str = "") -> v19.Allocation:
    resource = {"vcore": amount, "pods": 1}
    return v19.Allocation(
        allocation_key=key, application_id=application_id, resource_per_alloc=resource, node_id=node_id
    )


class Work:
    """Random work from a seed."""

    def __init__(self, manager: Manager, seed: int) -> None:
        self.manager = manager
        self.random = random.Random(seed)
        self.made = 0

    def begin(self, client: SchedulerClient) -> None:
        for number in range(4):
            self.manager.add_node(client, f"n{number}", 10_000)
        for number in range(3):
            self.manager.add_application(client, f"app{number}")

    def step(self, client: SchedulerClient) -> None:
        manager, rng = self.manager, self.random
        match rng.randrange(10):
            case 0 if len(manager.applications) < 20:
                manager.add_application(client, f"app{len(manager.applications)}")
            case 1 if len(manager.capacity) < 12:
                manager.add_node(client, f"n{len(manager.capacity)}", 10_000)
            case 2 | 3 | 4:
                with manager.lock:
                    known = [*manager.running, *manager.waiting]
                if known:
                    manager.release(client, rng.sample(known, min(len(known), rng.randrange(1, 12))))
            case _:
                application = rng.choice(list(manager.applications))
                pods = {f"p{self.made + i}": rng.choice((500, 1000, 2500)) for i in range(rng.randrange(1, 15))}
                self.made += len(pods)
                manager.ask(client, application, pods)
