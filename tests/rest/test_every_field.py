"""No field is empty without cause: in a busy cluster each field of each object is filled somewhere."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import pytest

from core.bench import config
from licorne.si import rest_objects as objects
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate, Release, Termination
from rest.world import World

P = "/ws/v1/partition/default"
CROWDED = config(
    "a maxapplications: 9",
    "hasty properties: {application.unschedasks.backoff: '1'}",
    "rich properties: {preemption.delay: 1s, priority.offset: '5'}, resources: {guaranteed: {vcore: 8}}",
    "teams parent: true, childtemplate: {maxapplications: 1, properties: {application.sort.policy: fifo},"
    " resources: {guaranteed: {vcore: 1}, max: {vcore: 50}}}",
    root="limits: [{limit: all, users: [alice], groups: [dev], maxapplications: 9, maxresources: {vcore: 90}}]",
    more="placementrules: [{name: tag, value: team, create: true, filter: {type: allow, users: [alice, bob]},"
    " parent: {name: fixed, value: root.teams}}, {name: provided, filter: {type: deny, groups: ['^x.*']}},"
    " {name: user, filter: {type: deny, users: ['^x.*'], groups: [a, b]}}]",
)
TYPES: tuple[Any, ...] = (
    objects.Cluster, objects.Partition, objects.Capacity, objects.NodeSortingPolicy, objects.Queue,
    objects.Template, objects.Application, objects.Ask, objects.LogEntry, objects.Allocation,
    objects.StateChange, objects.Placeholders, objects.ResourceHistory, objects.Node, objects.ForeignAllocation,
    objects.UserUsage, objects.GroupUsage, objects.Usage, objects.Rule, objects.RuleFilter,
    objects.PartitionNodesUtilization, objects.NodesUtilization, objects.Bucket, objects.AppHistory,
    objects.ContainerHistory,
)  # fmt: skip
Seen = dict[str, set[str]]


def _note(seen: Seen, kind: Any, found: Any) -> None:
    """Walk the JSON of one object along its type, and note which fields are there."""
    if isinstance(found, list):
        for each in found:
            _note(seen, kind, each)
        return
    seen[kind.__name__] |= set(found)
    for field in msgspec.structs.fields(kind):
        below = _object_in(field.type)
        if below is not None and found.get(field.encode_name):
            _note(seen, below, found[field.encode_name])


def _object_in(annotation: Any) -> Any:
    """The type of object that a field holds, one or a list; None for none."""
    for each in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(each, type) and issubclass(each, objects.View):
            return each
    return None


def _look(world: World, seen: Seen) -> None:
    for path, kind in (
        ("/ws/v1/clusters", objects.Cluster),
        ("/ws/v1/partitions", objects.Partition),
        (f"{P}/queues", objects.Queue),
        (f"{P}/queue/root", objects.Queue),
        (f"{P}/applications/active", objects.Application),
        (f"{P}/applications/completed", objects.Application),
        (f"{P}/applications/rejected", objects.Application),
        (f"{P}/nodes", objects.Node),
        (f"{P}/usage/users", objects.UserUsage),
        (f"{P}/usage/groups", objects.GroupUsage),
        (f"{P}/placementrules", objects.Rule),
        ("/ws/v1/scheduler/node-utilizations", objects.PartitionNodesUtilization),
        ("/ws/v1/history/apps", objects.AppHistory),
        ("/ws/v1/history/containers", objects.ContainerHistory),
    ):
        _note(seen, kind, world.get(path))


class Crowd(World):
    """A busy cluster; the fields that are filled after each step are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Seen = defaultdict(set)
        self.register(text=CROWDED)

    def step(self, seconds: float = 1.0) -> None:
        """Let time pass, make decisions, and look at all objects."""
        self.schedule(seconds)
        self.monitor.tick()
        _look(self, self.seen)

    def add(self, name: str, queue: str = "root.a", user: str = "alice", **fields: Any) -> None:
        self.submit(AddApplication(application_id=name, queue=queue, user=user, groups=("dev",), **fields))

    def pod(self, key: str, app: str, vcore: int, **fields: Any) -> None:
        self.submit(Allocation(key=key, application_id=app, resource={"vcore": vcore}, **fields))

    def end(self, key: str, app: str, termination: Termination = Termination.STOPPED_BY_RM) -> None:
        self.submit(Release(application_id=app, key=key, termination=termination))


def _gang(world: Crowd) -> None:
    world.add("gang", placeholder_ask={"vcore": 6}, execution_timeout_ms=20_000)
    for key in ("p1", "p2", "p3"):
        world.pod(key, "gang", 2, task_group="g", placeholder=True, tags={"a": "b"})
    _look(world, world.seen)
    world.step()
    world.pod("r", "gang", 2, task_group="g", originator=True, tags={"a": "b"})
    _look(world, world.seen)
    world.step()
    world.end("p1", "gang", Termination.PLACEHOLDER_REPLACED)
    world.step(21)
    for key in ("p2", "p3"):
        world.end(key, "gang", Termination.TIMEOUT)
    world.step()


def _preemption(world: Crowd) -> None:
    world.add("low")
    for number in range(8):
        world.pod(f"v{number}", "low", 2, allow_preempt_self=True)
    world.step()
    world.add("high", "root.rich", "bob")
    world.pod("k", "high", 4, allow_preempt_other=True, priority=3)
    world.step(2)
    world.step()
    found = [
        alloc.key
        for alloc in world.api.cluster.partition("mycluster").applications["low"].allocations.values()
        if alloc.preempted
    ]
    for key in found:
        world.end(key, "low", Termination.PREEMPTED_BY_SCHEDULER)
    world.step()


@pytest.fixture(scope="module")
def seen() -> Seen:
    world = Crowd()
    world.node("n1", {"si/hostname": "h1", "si/rackname": "r1"}, vcore=20, pods=10)
    world.submit(NodeUpdate(node_id="n2", action=NodeAction.CREATE_DRAIN, capacity={"vcore": 60}))
    world.pod("f1", "", 2, node_id="n1", tags={"foreign": "default"}, priority=7)
    _gang(world)
    _preemption(world)
    world.node("n3", vcore=2)
    world.add("part", placeholder_ask={"vcore": 60})
    world.pod("q1", "part", 2, task_group="g", placeholder=True)
    world.pod("q2", "part", 58, task_group="g", placeholder=True)
    world.step()
    for team in ("one", "two"):
        world.add(team, "", tags={"team": "blue"})
        world.pod(f"{team}-pod", team, 1)
    world.add("only", "root.rich")
    world.pod("daemon", "only", 20, tags={"yunikorn.apache.org/requiredNode": "n1"})
    world.add("vain", "root.hasty", "bob")
    for number in range(3):
        world.pod(f"vain{number}", "vain", 17 + number, originator=True)
    world.add("nowhere", "root.none", "carol")
    world.step()
    world.end(next(iter(world.api.cluster.partition("mycluster").applications["low"].allocations)), "low")
    world.step(62)
    world.api.validate()
    return world.seen


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: str(kind.__name__))
def test_each_field_is_filled_somewhere(seen: Seen, kind: Any) -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert fields == seen[kind.__name__], fields - seen[kind.__name__]
