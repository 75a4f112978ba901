"""Random small clusters in which something waits, as dumps, and the same clusters after changes, made by editing the dump.

The changes that `licorne why` proposes are tried there by messages to a copy. Here they are made a second way: in the JSON
of the dump and in the text of the configuration, from which a scheduler is then restored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from hypothesis import strategies as st

from answers.dumps import full_state
from licorne.answers import applied, changes
from licorne.answers.asks import ChangeError, Wanted
from licorne.config import ConfigError, as_data
from licorne.core.base.states import SECOND_NS
from licorne.si.messages import Allocation, Input, Output, Release, Released, Termination
from licorne.state.dump import Dump, read_dump
from licorne.state.restore import restore
from licorne.state.restored import Restored
from rest.world import World

LONG_S = 120
TAINT = json.dumps([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
GPU = "example.com/gpu"
USERS = ("ann", "bob")
QUEUES = ("root.a", "root.b", "root.c.d")


def configuration(draw: st.DrawFn, *, preemption: bool) -> dict[str, Any]:
    """Return a queue configuration with quotas, limits and guarantees."""

    def amounts(low: int, high: int) -> dict[str, str]:
        return {"vcore": f"{500 * draw(st.integers(low, high))}m"}

    def queue(name: str, **more: Any) -> dict[str, Any]:
        made: dict[str, Any] = {"name": name, "properties": {"preemption.delay": "2s"}, **more}
        resources = {}
        if draw(st.booleans()):
            resources["max"] = amounts(2, 12)
        if draw(st.integers(0, 3)) == 0:
            resources["guaranteed"] = amounts(1, 2)
        if resources:
            made["resources"] = resources
        if draw(st.integers(0, 4)) == 0:
            made["maxapplications"] = 1
        if draw(st.integers(0, 3)) == 0:
            limit: dict[str, Any] = {"limit": "one", "users": [draw(st.sampled_from([*USERS, "*"]))]}
            if draw(st.booleans()):
                limit["maxresources"] = amounts(1, 2)
            else:
                limit["maxapplications"] = 1
            made["limits"] = [limit]
        return made

    below = queue("d")
    parent = {"name": "c", "parent": True, "queues": [below]}
    if draw(st.booleans()):
        parent["resources"] = {"max": {"vcore": "12"}}
    root = {"name": "root", "submitacl": "*", "queues": [queue("a"), queue("b"), parent]}
    return {
        "partitions": [
            {
                "name": "default",
                "placementrules": [{"name": "provided"}],
                "preemption": {"enabled": preemption},
                "queues": [root],
            }
        ]
    }


@st.composite
def clusters(draw: st.DrawFn, *, quiet: bool, gpus: bool = False) -> bytes:
    """Return the dump of a cluster in which something runs, and something may wait.

    `quiet`: nothing is reserved or evicted there, so the dump says everything that decisions depend on. `gpus`: some nodes
    have GPUs, or none, and some asks want them.
    """
    reserves = "false" if quiet else "true"
    config = configuration(draw, preemption=not quiet)
    world = World().register(text=json.dumps(config), **{"reservation.enabled": reserves, "reservation.delay": "2s"})
    for number in range(draw(st.integers(1, 3))):
        attributes = {"label/disk": draw(st.sampled_from(["ssd", "hdd"]))}
        if draw(st.integers(0, 3)) == 0:
            attributes["taints"] = TAINT
        world.node(f"n{number}", attributes, **node_size(draw, gpus=gpus))
    keys = 0
    for number in range(draw(st.integers(1, 4))):
        world.application(f"app-{number}", draw(st.sampled_from(QUEUES)), draw(st.sampled_from(USERS)))
        for _ in range(draw(st.integers(0, 3))):
            keys += 1
            world.submit(_ask(draw, f"k{keys}", f"app-{number}", gpus=gpus))
            world.now += draw(st.integers(0, 2)) * SECOND_NS
            if draw(st.booleans()):
                world.schedule()
    world.schedule(1.0)
    return full_state(world.api, world.now)


def node_size(draw: st.DrawFn, *, gpus: bool) -> dict[str, int]:
    """Return what a node has; `gpus`: of three nodes one has GPUs, so a cluster has some, or none."""
    size = {"vcore": 500 * draw(st.integers(2, 6))}
    if gpus and draw(st.integers(0, 2)) == 0:
        size[GPU] = 500 * draw(st.integers(1, 2))
    return size


def ask_size(draw: st.DrawFn, *, gpus: bool) -> dict[str, int]:
    """Return what an ask wants; `gpus`: one in six wants GPUs, too, whether any node has some or not."""
    size = {"vcore": 500 * draw(st.integers(1, 7))}
    if gpus and draw(st.integers(0, 5)) == 0:
        size[GPU] = 500 * draw(st.integers(1, 2))
    return size


def _ask(draw: st.DrawFn, key: str, app: str, *, gpus: bool) -> Allocation:
    constraints: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        constraints["nodeSelector"] = {"disk": "ssd"}
    tags = {"licorne/node-constraints": json.dumps(constraints)} if constraints else {}
    return Allocation(
        key=key,
        application_id=app,
        resource=ask_size(draw, gpus=gpus),
        priority=draw(st.integers(0, 1)),
        tags=tags,
        allow_preempt_self=True,
        allow_preempt_other=True,
    )


# -- the same cluster after changes ------------------------------------------------------------------------------


def edited(dump: bytes, made: Iterable[changes.Change], key: str) -> tuple[bytes, str]:
    """Return the dump and the configuration of the cluster after the changes, for the ask with this key."""
    found = msgspec.json.decode(dump)
    config = as_data(restore(read_dump(dump)).config)
    for change in made:
        _edit(found, config, change, key)
    return msgspec.json.encode(found), json.dumps(config)


def _edit(found: Any, config: Any, change: changes.Change, key: str) -> None:
    nodes = found["nodes"][0]["nodesInfo"]
    by_id = {node["nodeID"]: node for node in nodes}
    match change:
        case changes.MoreNodes():
            like = by_id.get(change.like)
            for number in range(1, change.count + 1):
                attributes = like["attributes"] if like else change.attributes
                capacity = like["capacity"] if like else change.capacity
                name = f"{change.like or 'new-node'}~{len(by_id)}~{number}"  # which no node has
                new = {"nodeID": name, "schedulable": True, "isReserved": False}
                nodes.append({**new, "attributes": dict(attributes), "capacity": dict(capacity)})
        case changes.OwnNode():
            like = by_id.get(change.like)
            attributes = dict(like["attributes"] if like else change.attributes)
            attributes["taints"] = json.dumps([*json.loads(attributes.get("taints", "[]")), own_taint(change)])
            capacity = dict(like["capacity"] if like else change.capacity)
            new = {"nodeID": "own", "schedulable": True, "isReserved": False, "attributes": attributes}
            nodes.append({**new, "capacity": capacity})
            constrain(_request(found, key), tolerations=[{**own_taint(change), "operator": "Equal"}])
        case changes.NoTaint():
            del by_id[change.node]["attributes"]["taints"]
        case changes.Schedulable():
            by_id[change.node]["schedulable"] = True
        case changes.QueueMax() | changes.LimitMax() | changes.MaxApplications():
            edit_configuration(config, change)
        case changes.LessAsked():
            request = _request(found, key)
            request["resource"] = less_of(request["resource"], change.less)
        case changes.Tolerates():
            constrain(_request(found, key), tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes"}])
        case changes.Unconstrained():
            constrain(_request(found, key), nodeSelector={})


def less_of(resource: Mapping[str, int], less: dict[str, int]) -> dict[str, int]:
    """Return amounts without others."""
    return {name: amount - less.get(name, 0) for name, amount in resource.items()}


def own_taint(change: changes.OwnNode) -> dict[str, str]:
    """Return the taint of a node for one ask alone, as the attribute of the node has it."""
    named, _, effect = change.taint.rpartition(":")
    key, _, value = named.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _request(found: Any, key: str) -> Any:
    return next(ask for app in found["applications"] for ask in app.get("requests", ()) if ask["allocationKey"] == key)


def constrain(request: Any, **constraints: Any) -> None:
    """Give an ask of a dump other constraints."""
    tags = request.setdefault("allocationTags", {})
    tags["licorne/node-constraints"] = json.dumps(
        {**json.loads(tags.get("licorne/node-constraints", "{}")), **constraints}
    )


def edit_configuration(config: Any, change: changes.QueueMax | changes.LimitMax | changes.MaxApplications) -> None:
    """Make a change of the configuration."""
    match change:
        case changes.QueueMax():
            queue = _queue(config, change.queue)
            queue["resources"]["max"]["vcore"] = _more(queue["resources"]["max"]["vcore"], change.more["vcore"])
        case changes.LimitMax():
            limits = _limits(config, change.queue)
            limits["maxresources"]["vcore"] = _more(limits["maxresources"]["vcore"], change.more["vcore"])
        case changes.MaxApplications():
            of = _queue(config, change.queue) if change.kind == "queue" else _limits(config, change.queue)
            of["maxapplications"] = int(of["maxapplications"]) + change.more


def _more(said: str, more: int) -> str:
    text = str(said)
    millis = int(text[:-1]) if text.endswith("m") else 1000 * int(text)
    return f"{millis + more}m"


def _queue(config: Any, path: str) -> Any:
    queue = config["partitions"][0]["queues"][0]
    for name in path.split(".")[1:]:
        queue = next(child for child in queue["queues"] if child["name"] == name)
    return queue


def _limits(config: Any, path: str) -> Any:
    return _queue(config, path)["limits"][0]


# -- whether an ask is placed there ------------------------------------------------------------------------------


def is_placed(dump: bytes, made: Iterable[changes.Change], key: str) -> bool:
    """Return whether an ask is placed if the changes were made before anything was decided, by editing the dump.

    Allocations end by a message: what an application is after the end of its last one, a dump does not say. An ask with
    another priority or queue is submitted again.
    """
    try:
        restored = restore(*_as_arguments(*edited(dump, made, key)))
    except ConfigError:
        return False
    for change in made:
        if isinstance(change, changes.End | changes.Priority | changes.OtherQueue):
            applied.apply(restored, _wanted(restored, key), [change], restored.now_ns)
    return _comes_to_run(restored, key)


def _as_arguments(dump: bytes, config: str) -> tuple[Dump, str]:
    return read_dump(dump), config


def is_placed_later(dump: bytes, made: Iterable[changes.Change], key: str) -> bool:
    """Return whether an ask is placed if the changes are made when all has happened that comes of itself."""
    restored = restore(read_dump(dump))
    going = _Going(restored)
    if _comes_to_run(restored, key, going):
        return True
    try:
        applied.apply(restored, _wanted(restored, key), list(made), restored.now_ns + LONG_S * SECOND_NS)
    except ChangeError:
        return False
    return _comes_to_run(restored, key, going, LONG_S)


def _wanted(restored: Restored, key: str) -> Wanted:
    apps = restored.partitions[0].applications.values()
    return Wanted("default", next((app.id for app in apps if key in app.asks), ""), key)


class _Going:
    """A resource manager that ends what is evicted, and creates it again."""

    def __init__(self, restored: Restored) -> None:
        self.restored = restored
        self.partition = restored.partitions[0]
        self.victims: list[Released] = []
        self.again = 0
        restored.outputs.handler = self.take

    def take(self, output: Output) -> None:
        if isinstance(output, Released) and output.termination is Termination.PREEMPTED_BY_SCHEDULER:
            self.victims.append(output)

    def end_them(self, now_ns: int) -> bool:
        victims, self.victims = self.victims, []
        inputs: list[Input] = []
        for victim in victims:
            alloc = self.partition.applications[victim.application_id].allocations[victim.key]
            self.again += 1
            inputs.append(
                Release(
                    application_id=victim.application_id, key=victim.key, termination=Termination.PREEMPTED_BY_SCHEDULER
                )
            )
            inputs.append(
                Allocation(
                    key=f"{victim.key}~{self.again}",
                    application_id=victim.application_id,
                    resource=dict(alloc.shape.resource),
                    priority=alloc.priority,
                    tags=alloc.tags,
                    allow_preempt_self=True,
                    allow_preempt_other=True,
                )
            )
        self.restored.api.submit(self.restored.rm_id, inputs, now_ns=now_ns)
        return bool(victims)


def _comes_to_run(restored: Restored, key: str, going: _Going | None = None, start: int = 0) -> bool:
    """Return whether an ask runs after some time, second by second: not if it was placed, and evicted since."""
    going = going or _Going(restored)
    for second in range(start, start + LONG_S):
        now = restored.now_ns + second * SECOND_NS
        while restored.api.schedule(now_ns=now) or going.end_them(now):
            pass
    running = [each for app in going.partition.applications.values() for each in app.allocations]
    return any(each.partition("~")[0] == key for each in running)
