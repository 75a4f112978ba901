"""Random clusters and their histories: from one seed always the same configurations and the same steps.

Steps are drawn with the reference at hand, so that most of them are about something that exists: an allocation to be
released, a node to be drained. Amounts are small, clocks irregular.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from licorne.config import Configuration
from licorne.si.constants import TAG_NODE_CONSTRAINTS, TAG_REQUIRED_NODE
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NodeAction,
    NodeUpdate,
    Release,
    RemoveApplication,
    Termination,
)
from reference import gangdraws, preempting
from reference.cluster import ReferenceCluster
from reference.gangclusters import GangSteps
from reference.model import SECOND_NS, App, Ask, Partition
from reference.squeezes import squeeze, squeezes
from reference.trees import USERS, Trees

SHARED_BY = 20
"""So many scenarios share their configurations."""
START_NS = 1_700_000_000 * SECOND_NS
CLASSES = {"priority.class.high": "7", "priority.class.low": "-3"}
CONSTRAINTS = (
    {"nodeSelector": {"zone": "z1"}},
    {"nodeAffinity": [[{"key": "zone", "operator": "NotIn", "values": ["z1"]}]]},
    {"nodeAffinity": [[{"key": "zone", "operator": "In", "values": ["z2"]}], [{"key": "fast", "operator": "Exists"}]]},
    {"tolerations": [{"key": "own", "operator": "Exists"}]},
)
ATTRIBUTES: tuple[dict[str, str], ...] = (
    {},
    {},
    {"label/zone": "z1"},
    {"label/zone": "z2"},
    {"label/fast": "yes", "label/zone": "z1"},
    {"taints": json.dumps([{"key": "own", "effect": "NoSchedule"}])},
)

Step = tuple[Any, ...]
"""("submit", rm, messages), ("schedule", limit), ("advance", ns), ("reload", rm, text), ("deadlines", n), ("mood", n)."""


@dataclass
class Manager:
    """A resource manager of a scenario."""

    rm_id: str
    first_interface: bool
    settings: dict[str, str]
    predicate: bool
    texts: list[str]


class Scenario:
    """A cluster from a seed, and its steps one by one."""

    def __init__(self, seed: int, load: Callable[[str], Configuration]) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.crowding = self.rng.choice([0.0, 0.2, 0.6])  # the part of all applications that come to one queue
        self.atomic = self.rng.choice([0, 1, 7])  # how often gangs come
        names = ["one", "two"] if self.rng.random() < 0.15 else ["one"]
        self.managers = [self._manager(name, Trees.drawn(f"{name} {seed // SHARED_BY}", load)) for name in names]
        self.reference = ReferenceCluster(load)
        self.squeezes = squeezes(seed)
        self.planned: list[Step] = []
        self.texts = {manager.rm_id: manager.texts[0] for manager in self.managers}
        self.load = load
        self.gangs = GangSteps(seed, self)
        self.steps_left = self.rng.randint(30, 50)
        self.now_ns = START_NS + self.rng.randrange(SECOND_NS)

    def _manager(self, name: str, texts: list[str]) -> Manager:
        rng = self.rng
        settings = dict(CLASSES)
        if rng.random() < 0.1:
            settings["reservation.enabled"] = "false"
        elif rng.random() < 0.4:
            settings["reservation.delay"] = "0s"
        if rng.random() < 0.35:
            settings["application.state.starting"] = rng.choice(["true", "false"])
        return Manager(name, rng.random() < 0.4, settings, rng.random() < 0.15, rng.sample(texts, len(texts)))

    # -- drawing -----------------------------------------------------------------------------------------

    def beginning(self) -> list[Step]:
        """The first nodes, applications and asks of every partition."""
        found: list[Step] = []
        for manager in self.managers:
            for partition in self.reference.managers[manager.rm_id].values():
                messages: list[Input] = [self._node_add(partition) for _ in range(self.rng.randint(2, 6))]
                messages += [self._app_add(manager, partition) for _ in range(self.rng.randint(2, 6))]
                found.append(("submit", manager.rm_id, messages))
        return found

    def step(self) -> Step:
        """The next one."""
        if self.planned:
            return self.planned.pop(0)
        rng = self.rng
        manager = rng.choice(self.managers)
        partition = rng.choice(list(self.reference.managers[manager.rm_id].values()))
        gang = self.gangs.step(manager, partition)
        if gang is not None:
            return ("submit", manager.rm_id, gang)
        draws: list[tuple[float, Callable[[Manager, Partition], list[Input]]]] = [
            (8, self._asks),
            (2, lambda m, p: [self._app_add(m, p)]),
            (1, self._rivals),
            (3, self._press),
            (1, self._daemons),
            (5, self._releases),
            (2.5, self._confirmations),
            (0.7, self._release_all),
            (1.2, self._app_remove),
            (1.5, self._nodes),
            (1.5, self._node_switch),
            (1, self._foreign),
            (1.2, self._change),
            (0.8, self._existing),
            (self.atomic, lambda m, p: gangdraws.gang(self, m, p)),
            (self.atomic, lambda m, p: gangdraws.busy(self, m, p)),
            (self.atomic, lambda m, p: gangdraws.latecomers(self, m, p)),
        ]
        others = [(7.0, "schedule"), (3, "limited"), (4, "advance"), (2, "deadlines"), (1.5, "reload"), (0.3, "mood")]
        others.append((self.squeezes, "squeeze"))
        names: list[Any] = [draw for _, draw in draws] + [name for _, name in others]
        chosen = rng.choices(names, [weight for weight, _ in draws] + [weight for weight, _ in others])[0]
        match chosen:
            case "schedule":
                return ("schedule", None)
            case "limited":
                return ("schedule", rng.randint(1, 4))
            case "advance":
                return ("advance", self._passing())
            case "deadlines":
                return ("deadlines", rng.randint(1, 5))
            case "mood":
                return ("mood", rng.randint(0, 3))
            case "reload":
                self.texts[manager.rm_id] = rng.choice(manager.texts)
                return ("reload", manager.rm_id, self.texts[manager.rm_id])
            case "squeeze":
                return squeeze(self, manager, partition)
            case _:
                return ("submit", manager.rm_id, chosen(manager, partition))

    def _passing(self) -> int:
        """How long: within a second, over a delay, a back-off, a state, a timeout, the age of a reservation."""
        seconds = self.rng.choice([0.3, 1, 1, 2, 2.5, 5, 5, 10, 21, 31, 31, 61, 301, 7300])
        return int(seconds * SECOND_NS) + self.rng.choice([0, 0, 1, 1, self.rng.randrange(SECOND_NS)])

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def _app_add(self, manager: Manager, partition: Partition) -> AddApplication:
        rng = self.rng
        leaves = [queue.path for queue in partition.root.walk() if queue.leaf]
        queue = rng.choice([*leaves, *leaves, "root.dyn.team", "root.dyn.deep.team", "root.a"])
        if leaves and rng.random() < self.crowding:
            queue = leaves[0]
        tags = {}
        if rng.random() < 0.1:
            tags["yunikorn.apache.org/creationTime"] = str(self.now_ns // SECOND_NS - rng.randint(0, 40))
        if rng.random() < 0.3 and queue.startswith("root.dyn"):
            limit = {"resources": {"vcore": {"value": rng.randint(3, 9)}}}
            name = rng.choice(["namespace.resourcequota", "namespace.resourceguaranteed"])
            tags |= rng.choice([{name: json.dumps(limit)}, {"namespace.resourcemaxapps": str(rng.randint(0, 2))}])
        user = rng.choice(list(USERS))
        timed = manager.first_interface and rng.random() < 0.15
        return AddApplication(
            application_id=rng.choice(list(partition.apps))
            if partition.apps and rng.random() < 0.03
            else self._name("app"),
            partition=partition.name if rng.random() < 0.99 else "nowhere",
            queue=queue,
            user=user,
            groups=USERS[user],
            tags=tags,
            execution_timeout_ms=rng.choice([4000, 60000]) if timed else 0,
            timeout_is_running_time=timed,
        )

    def _rivals(self, manager: Manager, partition: Partition) -> list[Input]:
        """New applications below one parent, rather one that runs a few only; old asks as large as a node come first."""
        parents = [queue for queue in partition.root.walk() if sum(below.leaf for below in queue.walk()) > 1]
        limited = [queue for queue in parents if queue.max_apps]
        found: list[Input] = []
        for parent in self.rng.sample(limited or parents, min(1, len(parents))):
            leaves = [queue for queue in parent.walk() if queue.leaf]
            for number, leaf in enumerate(self.rng.sample(leaves, 2)):
                add = self._app_add(manager, partition)
                add.queue, add.application_id = leaf.path, self._name("rival")
                found.append(add)
                ask = Allocation(key=self._name("ask"), application_id=add.application_id, partition=partition.name)
                ask.resource = self._amounts() if number else {"vcore": self.rng.randint(5, 10)}
                ask.tags = {"creationTime": str(self.now_ns // SECOND_NS - 10)}
                found.append(ask)
        return found

    def _press(self, manager: Manager, partition: Partition) -> list[Input]:
        """Where as many run as may, or more, one ends, and one that is new waits for its place."""
        found: list[Input] = []
        for queue in partition.root.walk():
            running = [app for app in partition.apps_of(queue) if app.state == "Running"]
            full = any(0 < level.max_apps <= level.running for level in queue.lineage())
            if queue.leaf and running and full and self.rng.random() < 0.7:
                add = self._app_add(manager, partition)
                add.queue, add.application_id = queue.path, self._name("next")
                ask = Allocation(key=self._name("ask"), application_id=add.application_id, partition=partition.name)
                ask.resource = {"vcore": 1}
                found += [RemoveApplication(partition=partition.name, application_id=running[0].id), add, ask]
        return found

    def _daemons(self, manager: Manager, partition: Partition) -> list[Input]:
        """A small ask that requires a node, rather one that others have reserved."""
        reserved = [node.id for node in partition.nodes.values() if node.reserved_by] or list(partition.nodes)
        found: list[Input] = []
        for app in self.rng.sample(list(partition.apps), min(1, len(partition.apps), len(reserved))):
            ask = Allocation(key=self._name("daemon"), application_id=app, partition=partition.name, priority=9)
            ask.resource = {"vcore": self.rng.choice([1, 1, 3])}
            ask.tags = {TAG_REQUIRED_NODE: self.rng.choice(reserved)}
            found.append(ask)
        return found

    def _amounts(self) -> dict[str, int]:
        rng = self.rng
        amounts = {"vcore": rng.choice([1, 1, 1, 2, 2, 3, 3, 4, 6, 9])}
        if rng.random() < 0.7:
            amounts["memory"] = rng.choice([0, 1, 1, 2, 3, 4, 8])
        if rng.random() < 0.1:
            amounts["gpu"] = 1
        return amounts

    def _asks(self, manager: Manager, partition: Partition) -> list[Input]:
        """Some asks of one or two applications; often several that are alike."""
        messages: list[Input] = []
        apps = list(partition.apps.values())
        for app in self.rng.sample(apps, min(len(apps), self.rng.randint(1, 3))):
            for _ in range(self.rng.randint(1, 3)):
                amounts = self._amounts()
                like = self._ask(manager, partition, app, amounts)
                messages.append(like)
                messages += [
                    self._ask(manager, partition, app, amounts, priority=like.priority)
                    for _ in range(self.rng.choice([0, 0, 1, 3]))
                ]
        return messages

    def _ask(
        self, manager: Manager, partition: Partition, app: App, amounts: dict[str, int], priority: int | None = None
    ) -> Allocation:
        rng = self.rng
        tags = {}
        if rng.random() < 0.15:
            tags[TAG_NODE_CONSTRAINTS] = json.dumps(rng.choice(CONSTRAINTS))
        if rng.random() < 0.05:
            reserved = [node.id for node in partition.nodes.values() if node.reserved_by]
            tags[TAG_REQUIRED_NODE] = rng.choice([*partition.nodes, *reserved * 3, "nowhere"])
        if rng.random() < 0.1:
            tags["creationTime"] = str(self.now_ns // SECOND_NS - rng.randint(-1, 50))
        key = self._name("ask")
        return Allocation(
            key=key,
            application_id=app.id if rng.random() < 0.99 else "nobody",
            partition=partition.name,
            resource=dict(amounts) if rng.random() < 0.99 else {"vcore": 0},
            priority=rng.choice([0, 0, 0, 1, 2, 5, -1]) if priority is None else priority,
            priority_class=rng.choice([""] * 8 + ["high"] * 3 + ["low"] * 3 + ["none"])
            if manager.first_interface
            else "",
            tags=tags or None,
            max_allocations=rng.choice([1, 1, 2, 3]) if manager.first_interface else 1,
            timeout_ms=rng.choice([2000, 15000]) if manager.first_interface and rng.random() < 0.15 else 0,
            originator=rng.random() < 0.1,
            allow_preempt_self=rng.random() < 0.6,
            allow_preempt_other=not manager.first_interface and preempting.may_preempt(key),
        )

    # -- what ends ---------------------------------------------------------------------------------------

    def _release(self, manager: Manager, partition: Partition, subject: Ask, termination: Termination) -> Input:
        first_interface = manager.first_interface
        allocated = subject.node is not None
        return Release(
            partition=partition.name,
            application_id=subject.app.id,
            key="" if first_interface and allocated else subject.key,
            uuid=subject.id if first_interface and allocated else "",
            termination=termination,
            what=("allocation" if allocated else "ask") if first_interface else "both",
        )

    def _releases(self, manager: Manager, partition: Partition) -> list[Input]:
        allocs = list(partition.allocations())
        asks = [ask for app in partition.apps.values() for ask in app.asks.values()]
        chosen = self.rng.sample(allocs, min(len(allocs), self.rng.randint(0, 5)))
        chosen += self.rng.sample(asks, min(len(asks), self.rng.choice([0, 0, 1, 2])))
        return [self._release(manager, partition, subject, Termination.STOPPED_BY_RM) for subject in chosen]

    def _confirmations(self, manager: Manager, partition: Partition) -> list[Input]:
        """Confirm ends that the scheduler has asked for."""
        found: list[Input] = []
        for alloc in partition.allocations():
            if alloc.preempted:
                found.append(self._release(manager, partition, alloc, Termination.PREEMPTED_BY_SCHEDULER))
            elif alloc.released:
                found.append(self._release(manager, partition, alloc, Termination.TIMEOUT))
        return found if self.rng.random() < 0.8 else found[:1]

    def _release_all(self, manager: Manager, partition: Partition) -> list[Input]:
        apps = self.rng.sample(list(partition.apps), min(1, len(partition.apps)))
        whats = ["allocation", "ask"] if manager.first_interface else ["both"]
        return [Release(partition=partition.name, application_id=app, what=what) for app in apps for what in whats]

    def _app_remove(self, manager: Manager, partition: Partition) -> list[Input]:
        apps = self.rng.sample(list(partition.apps), min(1, len(partition.apps)))
        return [RemoveApplication(partition=partition.name, application_id=app) for app in apps]

    # -- nodes -------------------------------------------------------------------------------------------

    def _capacity(self) -> dict[str, int]:
        rng = self.rng
        capacity = {"vcore": rng.choice([6, 10, 12, 16]), "memory": rng.choice([8, 12, 16, 24])}
        if rng.random() < 0.3:
            capacity["gpu"] = rng.randint(0, 2)
        return capacity

    def _node_add(self, partition: Partition) -> Input:
        rng = self.rng
        known = partition.nodes and rng.random() < 0.05
        return NodeUpdate(
            node_id=rng.choice(list(partition.nodes)) if known else rng.choice("nm") + self._name(""),
            action=NodeAction.CREATE if rng.random() < 0.9 else NodeAction.CREATE_DRAIN,
            partition=partition.name,
            capacity=self._capacity(),
            attributes=rng.choice(ATTRIBUTES),
            occupied={"vcore": 1} if rng.random() < 0.1 else None,
        )

    def _nodes(self, manager: Manager, partition: Partition) -> list[Input]:
        rng = self.rng
        if len(partition.nodes) < 3 or rng.random() < 0.3:
            return [self._node_add(partition)]
        reserved = [node.id for node in partition.nodes.values() if node.reserved_by]
        node = rng.choice(reserved if reserved and rng.random() < 0.4 else list(partition.nodes))
        action = rng.choice([NodeAction.DECOMISSION, NodeAction.UPDATE, NodeAction.UPDATE])
        update = NodeUpdate(node_id=node, action=action, partition=partition.name, strict=manager.first_interface)
        match rng.randint(0, 3):
            case 0 | 1:
                update.capacity = self._capacity()
            case 2:
                update.attributes = rng.choice(ATTRIBUTES)
            case _:
                update.occupied = {"vcore": rng.randint(0, 3)}
        return [update]

    def _node_switch(self, manager: Manager, partition: Partition) -> list[Input]:
        """Drain a node, or let it serve again."""
        if not partition.nodes:
            return []
        draining = [node.id for node in partition.nodes.values() if not node.schedulable]
        action, node = NodeAction.DRAIN_NODE, self.rng.choice(list(partition.nodes))
        if draining and self.rng.random() < 0.7:
            action, node = NodeAction.DRAIN_TO_SCHEDULABLE, self.rng.choice(draining)
        return [NodeUpdate(node_id=node, action=action, partition=partition.name, strict=manager.first_interface)]

    def _foreign(self, manager: Manager, partition: Partition) -> list[Input]:
        rng = self.rng
        known = [key for node in partition.nodes.values() for key in node.foreign]
        if known and rng.random() < 0.4:
            return [Release(partition=partition.name, key=rng.choice(known))]
        key = rng.choice(known) if known and rng.random() < 0.4 else self._name("foreign")
        node = rng.choice([*partition.nodes, *partition.nodes, "nowhere"])
        tags = {"foreign": "default"}
        return [Allocation(key=key, partition=partition.name, resource=self._amounts(), node_id=node, tags=tags)]

    # -- what changes ------------------------------------------------------------------------------------

    def _change(self, manager: Manager, partition: Partition) -> list[Input]:
        """Change the size of an ask or an allocation."""
        rng = self.rng
        subjects = list(partition.allocations()) + [a for app in partition.apps.values() for a in app.asks.values()]
        return [
            Allocation(
                key=subject.key,
                application_id=subject.app.id,
                partition=partition.name,
                resource=self._amounts(),
                node_id=subject.node.id if subject.node else "",
                uuid=subject.id if subject.node and manager.first_interface else "",
                max_allocations=rng.randint(1, 3) if manager.first_interface else 1,
            )
            for subject in rng.sample(subjects, min(2, len(subjects)))
        ]

    def _existing(self, manager: Manager, partition: Partition) -> list[Input]:
        """Report a running allocation: new to the scheduler, or an ask of its own that was placed from outside."""
        rng = self.rng
        if not partition.apps or not partition.nodes:
            return []
        app = rng.choice(list(partition.apps.values()))
        message = self._ask(manager, partition, app, self._amounts())
        message.node_id = rng.choice(list(partition.nodes))
        message.max_allocations = 1
        if manager.first_interface and rng.random() < 0.5:
            message.uuid = self._name("given")
        if app.asks and rng.random() < 0.5:
            message.key = rng.choice(list(app.asks))
        return [message]
