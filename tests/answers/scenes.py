"""Random small clusters in which anything may wait, and a second way to make the changes that `licorne why` proposes.

A scene is a list of inputs. Each time it is built anew, a scheduler comes to the same state: with gangs, limits,
constraints, reservations and evictions under way, which no state dump says whole. The changes are made here by messages and
configurations of this file's own, and time passes second by second; nothing of `licorne.answers` is used but the changes and
the copies of a process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from answers.clusters import (
    TAINT,
    USERS,
    ask_size,
    configuration,
    edit_configuration,
    less_of,
    node_size,
    own_taint,
)
from licorne import SchedulerAPI
from licorne.answers import changes
from licorne.core.partition import Partition
from licorne.core.queues.ask import Ask
from licorne.si import v19
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    Released,
    RemoveApplication,
    Termination,
)
from licorne.state.copies import on_a_copy
from licorne.state.restored import Outputs, Restored

SECOND_NS: Final = 10**9
START_NS: Final = 1_800_000_000 * SECOND_NS
LONG_S: Final = 90
"""Longer than anything that was begun in a scene has an effect."""
TIMEOUT_S: Final = 20
QUEUES: Final = ("root.a", "root.b", "root.c.d")
GROUPS_TAG: Final = "yunikorn.apache.org/task-groups"
CONSTRAINTS: Final = "licorne/node-constraints"
CONFIRMED: Final = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)
CONFIGURED: Final = (changes.QueueMax, changes.LimitMax, changes.MaxApplications)
SETTINGS: Final = {"reservation.enabled": "true", "reservation.delay": "2s"}


class Scene(NamedTuple):
    """A cluster as its configuration and what happens to it: inputs, and numbers of seconds that pass before a decision."""

    config: dict[str, Any]
    steps: tuple[tuple[Input, ...] | int, ...]

    def build(self) -> Cluster:
        """Return a scheduler to which all of this has happened."""
        cluster = Cluster(self.config)
        for step in self.steps:
            if isinstance(step, int):
                cluster.passes(step)
            else:
                cluster.api.submit("rm", step, now_ns=cluster.now)
        return cluster

    def restored(self) -> Restored:
        """Return the same as a starting point for answers: what has to end there is still running."""
        cluster = self.build()
        outputs = cluster.outputs
        outputs.handler = None
        return Restored(cluster.api, "rm", cluster.now, json.dumps(self.config), (), outputs)


class Cluster:
    """A scheduler, and a resource manager that ends what it is asked to end, and creates what was evicted once more."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.now = START_NS
        self.outputs = Outputs()
        self.api = SchedulerAPI(other_settings=True, on_incident=lambda _: None, on_output=self.outputs)
        self.api.register_resource_manager(
            v19.RegisterResourceManagerRequest(rm_id="rm", config=json.dumps(config), extra_config=SETTINGS),
            now_ns=self.now,
        )
        self.outputs.handler = self.take
        self.partition: Partition = self.api.cluster.partition("rm", "default")
        self.ending: list[Released] = []
        self.evicted = 0
        self.names: dict[str, str] = {}  # the key of what was evicted, by that of the ask in its place
        self.replaced: set[str] = set()

    def take(self, output: Output) -> None:
        """Note what is to end."""
        if isinstance(output, Released) and output.termination in CONFIRMED:
            self.ending.append(output)
            if output.termination is Termination.PLACEHOLDER_REPLACED:
                self.replaced.add(output.key)

    def passes(self, seconds: int) -> None:
        """Let time pass, second by second; the ends of the last one stay unconfirmed."""
        for number in range(seconds + 1):
            if number:
                self.now += SECOND_NS
            while self.confirm() or self.api.schedule(now_ns=self.now):
                pass

    def confirm(self) -> bool:
        """Confirm all ends."""
        ending, self.ending = self.ending, []
        inputs: list[Input] = []
        for each in ending:
            app = self.partition.applications.get(each.application_id)
            alloc = None if app is None else app.allocations.get(each.key)
            inputs.append(Release(application_id=each.application_id, key=each.key, termination=each.termination))
            if alloc is not None and each.termination is Termination.PREEMPTED_BY_SCHEDULER and not alloc.placeholder:
                self.evicted += 1
                key = f"{each.key}^{self.evicted}"
                self.names[key] = self.first(each.key)
                inputs.append(as_message(alloc, key=key))
        self.api.submit("rm", inputs, now_ns=self.now)
        return bool(ending)

    def runs(self, key: str) -> bool:
        """Return whether an ask runs, or the placeholder that it was has been replaced."""
        return key in self.replaced or self.placed(key) is not None

    def find(self, key: str) -> Ask | None:
        """Return a pending ask, or the one in its place."""
        asks = (ask for app in self.partition.applications.values() for ask in app.asks.values())
        return next((ask for ask in asks if self.first(ask.key) == self.first(key)), None)

    def placed(self, key: str) -> Ask | None:
        """Return the allocation that an ask, or the one in its place, has become."""
        running = (each for app in self.partition.applications.values() for each in app.allocations.values())
        return next((each for each in running if self.first(each.key) == self.first(key)), None)

    def first(self, key: str) -> str:
        """Return the key that an ask had before it was evicted."""
        return self.names.get(key, key)


def as_message(ask: Ask, **other: Any) -> Allocation:
    """Return the message that submits an ask."""
    fields: dict[str, Any] = {
        "key": ask.key,
        "application_id": ask.app.id,
        "resource": dict(ask.shape.resource),
        "priority": ask.priority,
        "tags": ask.tags,
        "task_group": ask.task_group,
        "placeholder": ask.placeholder,
        "allow_preempt_self": ask.allow_self,
        "allow_preempt_other": ask.allow_other,
    }
    return Allocation(**{**fields, **other})


# -- what is drawn -------------------------------------------------------------------------------------------------


@st.composite
def scenes(draw: st.DrawFn, *, gpus: bool = False) -> Scene:
    """Return a cluster in which something runs, and something may wait. `gpus`: as in `clusters`."""
    config = configuration(draw, preemption=draw(st.booleans()))
    config["partitions"][0]["placementrules"] = [{"name": "provided"}]
    steps: list[tuple[Input, ...] | int] = [tuple(_nodes(draw, gpus=gpus))]
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["plain", "plain", "plain", "whole", "placeholders"]))
        steps += _application(draw, f"app-{number}", kind, gpus=gpus)
        if draw(st.booleans()):
            steps.append(draw(st.integers(0, 4)))
    if draw(st.integers(0, 5)) == 0:
        steps.append((NodeUpdate(node_id="n0", action=NodeAction.DRAIN_NODE),))
    steps.append(draw(st.sampled_from([0, 1, 5])))
    return Scene(config, tuple(steps))


def _nodes(draw: st.DrawFn, *, gpus: bool) -> Iterator[Input]:
    for number in range(draw(st.integers(1, 3))):
        attributes = {"label/disk": draw(st.sampled_from(["ssd", "hdd"]))}
        if draw(st.integers(0, 3)) == 0:
            attributes["taints"] = TAINT
        capacity = node_size(draw, gpus=gpus)
        yield NodeUpdate(node_id=f"n{number}", action=NodeAction.CREATE, attributes=attributes, capacity=capacity)


def _application(draw: st.DrawFn, name: str, kind: str, *, gpus: bool) -> Iterator[tuple[Input, ...] | int]:
    queue, user = draw(st.sampled_from(QUEUES)), draw(st.sampled_from(USERS))
    size = 500 * draw(st.integers(1, 3))
    asks = draw(st.integers(0 if kind == "plain" else 1, 3))
    members = max(1, asks + draw(st.sampled_from([0, 0, 1, -1])))
    group = "" if kind == "plain" else "g"
    new = AddApplication(application_id=name, queue=queue, user=user)
    if kind == "whole":
        cpu = {"cpu": f"{size}m"}
        groups = json.dumps([{"name": "g", "minMember": members, "minResource": cpu}])
        new.tags = {GROUPS_TAG: groups, "gang.scheduling": "atomic"}
    elif kind == "placeholders":
        new.placeholder_ask = {"vcore": members * size}
        new.execution_timeout_ms = TIMEOUT_S * 1000
        new.gang_style = draw(st.sampled_from(["Soft", "Hard"]))
    yield (new,)
    if kind == "placeholders":
        yield tuple(
            _ask(draw, f"{name}-p{number}", name, size=size, task_group=group, placeholder=True, constraints={})
            for number in range(members)
        )
    for number in range(asks):
        fixed: dict[str, Any] = {"gpus": gpus} if kind == "plain" else {"size": size, "task_group": group}
        if kind == "placeholders":
            fixed["constraints"] = {}
        yield (_ask(draw, f"{name}-k{number}", name, **fixed),)
        if draw(st.booleans()):
            yield draw(st.integers(0, 2))


def _ask(
    draw: st.DrawFn,
    key: str,
    app: str,
    *,
    size: int = 0,
    gpus: bool = False,
    constraints: dict[str, Any] | None = None,
    **more: Any,
) -> Allocation:
    if constraints is None:
        constraints = {}
        if draw(st.integers(0, 3)) == 0:
            constraints["nodeSelector"] = {"disk": "ssd"}
        if draw(st.integers(0, 6)) == 0:
            constraints["nodeAffinity"] = [[{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]]
        if draw(st.integers(0, 4)) == 0:
            constraints["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    tags = {CONSTRAINTS: json.dumps(constraints)} if constraints else {}
    if not more and draw(st.integers(0, 9)) == 0:
        tags["yunikorn.apache.org/requiredNode"] = draw(st.sampled_from(["n0", "n1", "n9"]))
    return Allocation(
        key=key,
        application_id=app,
        resource={"vcore": size} if size else ask_size(draw, gpus=gpus),
        priority=draw(st.integers(0, 1)),
        tags=tags,
        allow_preempt_self=draw(st.booleans()),
        allow_preempt_other=draw(st.booleans()),
        **more,
    )


# -- the same cluster after changes --------------------------------------------------------------------------------


class Waited:
    """A scene in which all has happened that comes of itself: changes are tried on copies of it, for one ask."""

    def __init__(self, scene: Scene, key: str) -> None:
        self.key = key
        self.cluster = scene.build()
        _wait(self.cluster, key)
        self.runs = self.cluster.runs(key)

    def placed(self, made: Iterable[changes.Change]) -> bool:
        """Return whether the ask runs after the changes."""
        return self.runs or on_a_copy(lambda: self._change(made), bool)

    def _change(self, made: Iterable[changes.Change]) -> bool:
        try:
            make(self.cluster, list(made), self.key)
        except ImpossibleError:
            return False
        _wait(self.cluster, self.key)
        return self.cluster.runs(self.key)


def _wait(cluster: Cluster, key: str) -> None:
    """Let time pass, but not until the ask ends with its gang, unplaced or as a placeholder."""
    for _ in range(LONG_S):
        if _ends_ns(cluster, key) <= cluster.now + SECOND_NS:
            cluster.passes(0)
            return
        cluster.passes(1)


def _ends_ns(cluster: Cluster, key: str) -> float:
    """Return when an ask, or the placeholder that it has become, ends with its gang."""
    ask, placed = cluster.find(key), cluster.placed(key)
    each = ask or placed
    if each is None or each.app.gang is None or each.app.gang.timer is None:
        return inf
    ends = each.placeholder or (ask is not None and each.app.gang.hard)
    return each.app.gang.timer[0] if ends else inf


class ImpossibleError(Exception):
    """The change cannot be made."""


def make(cluster: Cluster, made: list[changes.Change], key: str) -> None:
    """Make changes; those of the configuration together, since one alone may be refused, as a limit above its queue's max is."""
    config = json.loads(json.dumps(cluster.config))
    for change in made:
        if isinstance(change, CONFIGURED):
            edit_configuration(config, change)
    if config != cluster.config:
        request = v19.UpdateConfigurationRequest(rm_id="rm", config=json.dumps(config))
        try:
            cluster.api.update_configuration(request, now_ns=cluster.now)
        except ValueError as error:
            raise ImpossibleError from error
    for change in made:
        if not isinstance(change, CONFIGURED):
            _submit(cluster, change, key)


def _submit(cluster: Cluster, change: changes.Change, key: str) -> None:
    ask = cluster.find(key)
    if ask is None:
        raise ImpossibleError
    cluster.api.submit("rm", list(_inputs(cluster, change, ask)), now_ns=cluster.now)
    if isinstance(change, changes.OtherQueue):
        moved = cluster.partition.applications.get("moved")
        if moved is None or moved.queue.path != change.queue:
            raise ImpossibleError


def _inputs(cluster: Cluster, change: changes.Change, ask: Ask) -> Iterator[Input]:
    nodes = cluster.partition.nodes
    match change:
        case changes.MoreNodes():
            for number in range(1, change.count + 1):
                like = nodes.get(change.like)
                name = change.name or f"{change.like or 'new-node'}~{len(nodes)}~{number}"  # which no node has
                attributes = dict(like.attributes) if like is not None else dict(change.attributes)
                capacity = like.capacity.named(cluster.partition.types) if like is not None else dict(change.capacity)
                yield NodeUpdate(node_id=name, action=NodeAction.CREATE, attributes=attributes, capacity=capacity)
        case changes.OwnNode():
            like = nodes.get(change.like)
            attributes = dict(like.attributes) if like is not None else dict(change.attributes)
            attributes["taints"] = json.dumps([*json.loads(attributes.get("taints", "[]")), own_taint(change)])
            capacity = like.capacity.named(cluster.partition.types) if like is not None else dict(change.capacity)
            yield NodeUpdate(node_id="own", action=NodeAction.CREATE, attributes=attributes, capacity=capacity)
            tags = dict(ask.tags or {})
            constraints = json.loads(tags.get(CONSTRAINTS, "{}"))
            let_in = {**own_taint(change), "operator": "Equal"}
            constraints["tolerations"] = [*constraints.get("tolerations", ()), let_in]
            yield as_message(ask, tags={**tags, CONSTRAINTS: json.dumps(constraints)})
        case changes.BiggerNode():
            capacity = nodes[change.node].capacity.named(cluster.partition.types)
            for name, more in change.more.items():
                capacity[name] = capacity.get(name, 0) + more
            yield NodeUpdate(node_id=change.node, action=NodeAction.UPDATE, capacity=capacity)
        case changes.NoTaint():
            attributes = {name: value for name, value in nodes[change.node].attributes.items() if name != "taints"}
            yield NodeUpdate(node_id=change.node, action=NodeAction.UPDATE, attributes={**attributes, "taints": "[]"})
        case changes.Schedulable():
            yield NodeUpdate(node_id=change.node, action=NodeAction.DRAIN_TO_SCHEDULABLE)
        case changes.End():
            for app in cluster.partition.applications.values():
                for key in app.allocations.keys() & set(change.keys):
                    yield Release(application_id=app.id, key=key)
        case _:
            yield from _asked_otherwise(change, ask)


def _asked_otherwise(change: changes.Change, ask: Ask) -> Iterator[Input]:
    app, tags = ask.app, dict(ask.tags or {})
    constraints = json.loads(tags.get(CONSTRAINTS, "{}"))
    match change:
        case changes.LessAsked():
            if any(ask.shape.resource.get(name, 0) <= less for name, less in change.less.items()):
                raise ImpossibleError
            yield as_message(ask, resource=less_of(ask.shape.resource, change.less))
        case changes.Tolerates():
            assert change.taint == "gpu=yes:NoSchedule"
            constraints["tolerations"] = [{"key": "gpu", "operator": "Equal", "value": "yes"}]
            yield as_message(ask, tags={**tags, CONSTRAINTS: json.dumps(constraints)})
        case changes.Unconstrained():
            del constraints["nodeSelector" if change.label else "nodeAffinity"]
            yield as_message(ask, tags={**tags, CONSTRAINTS: json.dumps(constraints)})
        case changes.Priority():
            yield Release(application_id=app.id, key=ask.key)
            yield as_message(ask, priority=change.priority)
        case changes.OtherQueue():
            yield Release(application_id=app.id, key=ask.key)
            yield AddApplication(application_id="moved", queue=change.queue, user=app.user)
            yield as_message(ask, application_id="moved")
        case changes.MoreMembers():
            like = next((each for each in app.requests.in_order() if each.task_group == "g"), ask)
            for number in range(change.more["g"]):
                yield as_message(like, key=f"new-{number}")
        case changes.FewerMembers():
            (group,) = json.loads(app.tags[GROUPS_TAG])
            group["minMember"] -= change.less["g"]
            if group["minMember"] < 1 or app.allocations:
                raise ImpossibleError
            asks = [as_message(each) for each in app.requests.in_order()]
            yield RemoveApplication(application_id=app.id)
            gang = {**app.tags, GROUPS_TAG: json.dumps([group])}
            yield AddApplication(application_id=app.id, queue=app.queue.path, user=app.user, tags=gang)
            yield from asks
        case _:
            raise AssertionError(change)


def is_placed_alone(scene: Scene, key: str) -> bool:
    """Return whether an ask runs where nothing else runs or waits, but the rest of its gang, and all nodes take asks."""
    cluster = scene.build()
    wanted = cluster.find(key)
    assert wanted is not None
    inputs: list[Input] = [
        RemoveApplication(application_id=app.id)
        for app in cluster.partition.applications.values()
        if app is not wanted.app
    ]
    rest = [*wanted.app.allocations.values(), *(ask for ask in wanted.app.asks.values() if not wanted.task_group)]
    inputs += (Release(application_id=wanted.app.id, key=each.key) for each in rest if each is not wanted)
    inputs += (NodeUpdate(node_id=each, action=NodeAction.DRAIN_TO_SCHEDULABLE) for each in cluster.partition.nodes)
    cluster.api.submit("rm", inputs, now_ns=cluster.now)
    _wait(cluster, key)
    return cluster.runs(key)
