"""Scenarios in which queues contend for guarantees: small full clusters, and asks that may preempt.

Drawn like the others (`reference.clusters`), with few nodes and few kinds of messages, so that every scenario evicts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, get_args

from licorne.config import ConfigError, Configuration
from licorne.config.model import NodePolicy
from licorne.si.messages import (
    AddApplication,
    Allocation,
    DisruptionBudgetUpdate,
    Input,
    NodeAction,
    NodeUpdate,
    Termination,
)
from reference.atomic import GROUPS_TAG
from reference.cluster import ReferenceCluster
from reference.clusters import START_NS, Manager, Scenario, Step
from reference.model import SECOND_NS, Partition

Tree = dict[str, Any]


class Contest(Scenario):
    """A cluster from a seed, and its steps one by one."""

    def __init__(self, seed: int, load: Callable[[str], Configuration]) -> None:
        self.rng = rng = random.Random(f"contest {seed}")
        self.count = 0
        self.crowding = 0.0
        settings = {"reservation.enabled": "false"} if rng.random() < 0.3 else {"reservation.delay": "100s"}
        trees = [_tree(random.Random(f"contest {seed // 5} {i}"), load) for i in range(2)]
        self.managers = [Manager("one", False, settings, rng.random() < 0.1, trees)]
        self.reference = ReferenceCluster(load)
        self.steps_left = rng.randint(12, 20)
        self.now_ns = START_NS + rng.randrange(SECOND_NS)
        self.gone: list[Allocation] = []
        self.budgets = random.Random(f"budgets {seed}")  # apart, so that the other draws are the same without them
        self.sizes = random.Random(f"sizes {seed}")  # likewise
        self.ranks = random.Random(f"ranks {seed}")  # likewise
        self.ranked = False
        self.gang_draws = random.Random(f"gangs {seed}")  # likewise

    def beginning(self) -> list[Step]:
        """Nodes, an application in each leaf, and what runs already."""
        rng = self.rng
        (partition,) = self.reference.managers["one"].values()
        leaves = [queue.path for queue in partition.root.walk() if queue.leaf]
        self.ranked = any(queue.settings.preempts_within for queue in partition.root.walk())
        messages: list[Input] = []
        sizes: dict[str, dict[str, int]] = {}
        for number in range(rng.randint(1, 4)):
            sizes[f"n{number}"] = {"vcore": rng.randint(4, 10), "memory": rng.randint(4, 10)}
            node = NodeUpdate(node_id=f"n{number}", action=NodeAction.CREATE, capacity=sizes[f"n{number}"])
            messages.append(node)
        for path in leaves:
            app = AddApplication(application_id=f"x {path}", queue=path, user="u", groups=("u",))
            messages.append(app)
        crowded = rng.sample(leaves, min(len(leaves), rng.choice([1, 1, 2, 3])))
        for _ in range(rng.randint(6, 30)):
            node_id = rng.choice(list(sizes))
            amounts = self._amounts()
            free = sizes[node_id]
            if all(free[name] >= amount for name, amount in amounts.items()):
                sizes[node_id] = {name: amount - amounts.get(name, 0) for name, amount in free.items()}
                messages.append(self._pod(f"x {rng.choice(crowded)}", amounts, node_id))
        pods = [one.key for one in messages if isinstance(one, Allocation)]
        if self.budgets.random() < 0.7:
            messages += [self._budget(f"b{number}", pods) for number in range(self.budgets.choice([1, 2]))]
        return [("submit", "one", messages)]

    def _budget(self, name: str, running: list[str], left: tuple[str, ...] = ()) -> DisruptionBudgetUpdate:
        rng = self.budgets
        share = rng.choice([0.4, 0.6])
        joined = tuple(key for key in running if rng.random() < share)
        return DisruptionBudgetUpdate(name=name, allowed=rng.choice([0, 1, 1, 1, 2]), joined=joined, left=left)

    def do_budget(self, partition: Partition) -> list[Input]:
        """A budget is new, has changed, or is gone."""
        rng = self.budgets
        name = rng.choice(["b0", "b1"])
        if rng.random() < 0.2:
            return [DisruptionBudgetUpdate(name=name, allowed=None)]
        running = [alloc.id for alloc in partition.allocations()]
        known = partition.budgets.get(name)
        gone = sorted(known.members - set(running)) if known is not None else []
        return [self._budget(name, running, tuple(key for key in gone if rng.random() < 0.8))]

    def step(self) -> Step:
        """The next one."""
        rng = self.rng
        (partition,) = self.reference.managers["one"].values()
        if self.budgets.random() < 0.05:
            return ("submit", "one", self.do_budget(partition))
        if self.gang_draws.random() < 0.06:
            return ("submit", "one", self.do_gang(partition))
        if partition.nodes and self.sizes.random() < 0.08:
            return ("submit", "one", self.do_size(partition))
        chosen = rng.choices(
            ["asks", "schedule", "advance", "confirm", "again", "release", "daemon", "reload", "deadlines", "node"],
            [5, 4, 4, 4, 2, 1, 0.6, 0.5, 1.5, 0.7],
        )[0]
        match chosen:
            case "schedule":
                return ("schedule", rng.choice([None, None, 1]))
            case "advance":
                seconds = rng.choice([0.5, 1, 2, 5, 15, 31])
                return ("advance", int(seconds * SECOND_NS) + rng.choice([0, 1]))
            case "deadlines":
                return ("deadlines", rng.randint(1, 3))
            case "reload":
                return ("reload", "one", rng.choice(self.managers[0].texts))
            case "node":
                return ("submit", "one", self._node_switch(self.managers[0], partition))
            case _:
                return ("submit", "one", getattr(self, f"do_{chosen}")(partition))

    def _pod(self, app: str, amounts: dict[str, int], node: str = "", **more: Any) -> Allocation:
        rng = self.rng
        priority = rng.choice([0, 0, 0, 0, 1, -1] if node else [0, 0, 2, 5])
        return Allocation(
            key=self._name("pod"),
            application_id=app,
            resource=amounts,
            node_id=node,
            priority=self.ranks.choice([-1, 0, 1, 1]) if node and self.ranked else priority,
            allow_preempt_self=rng.random() < 0.75,
            allow_preempt_other=rng.random() < 0.9,
            originator=rng.random() < 0.12,
            tags={"creationTime": str(self.now_ns // SECOND_NS - rng.choice([0, 0, 3, 100]))} | more,
        )

    def _amounts(self) -> dict[str, int]:
        rng = self.rng
        amounts = {"vcore": rng.choice([1, 1, 2, 2, 3, 4])}
        if rng.random() < 0.5:
            amounts["memory"] = rng.choice([1, 2, 3])
        return amounts if rng.random() < 0.93 else {"memory": rng.choice([1, 2, 4])}

    def do_asks(self, partition: Partition) -> list[Input]:
        rng = self.rng
        apps = list(partition.apps)
        entitled = [app.id for app in partition.apps.values() if any(q.guaranteed for q in app.queue.lineage())]
        idle = [name for name in entitled if not partition.apps[name].allocations]
        apps += entitled * 3 + idle * 6
        within = [app for app in partition.apps.values() if app.queue.settings.preempts_within and app.allocations]
        apps += [app.id for app in within] * 8
        return [self._pod(rng.choice(apps), self._amounts()) for _ in range(rng.randint(1, 4))] if apps else []

    def do_daemon(self, partition: Partition) -> list[Input]:
        rng = self.rng
        apps, nodes = list(partition.apps), list(partition.nodes)
        if not apps or not nodes:
            return []
        required = {"yunikorn.apache.org/requiredNode": rng.choice(nodes)}
        return [self._pod(rng.choice(apps), self._amounts(), **required)]

    def do_gang(self, partition: Partition) -> list[Input]:
        """A gang in a queue with a guarantee: two to four members that start together, or so many placeholders."""
        rng = self.gang_draws
        paths = [q.path for q in partition.root.walk() if q.leaf and any(above.guaranteed for above in q.lineage())]
        if not paths:
            return []
        count, whole, name = rng.randint(2, 4), rng.random() < 0.6, self._name("gang")
        groups = [{"name": "t", "minMember": count, "minResource": {"cpu": "1m"}}]
        tags = {GROUPS_TAG: json.dumps(groups)} | ({"gang.scheduling": "atomic"} if whole else {})
        add = AddApplication(application_id=name, queue=rng.choice(paths), user="u", groups=("u",), tags=tags)
        members = [
            Allocation(
                key=self._name("member"),
                application_id=name,
                resource={"vcore": rng.randint(1, 3)},
                priority=rng.choice([0, 0, 3]),
                allow_preempt_other=rng.random() < 0.97,
                task_group="t",
                placeholder=not whole,
                tags={"creationTime": str(self.now_ns // SECOND_NS - rng.choice([0, 3, 100]))},
            )
            for _ in range(count)
        ]
        return [add, *members]

    def do_size(self, partition: Partition) -> list[Input]:
        """A node has other amounts, often less than what runs there."""
        rng = self.sizes
        size = {"vcore": rng.choice([0, rng.randint(1, 6), rng.randint(4, 10)]), "memory": rng.randint(0, 10)}
        return [NodeUpdate(node_id=rng.choice(list(partition.nodes)), action=NodeAction.UPDATE, capacity=size)]

    def do_confirm(self, partition: Partition) -> list[Input]:
        """Victims have ended."""
        found: list[Input] = []
        for alloc in partition.allocations():
            if alloc.preempted and self.rng.random() < 0.9:
                found.append(self._release(self.managers[0], partition, alloc, Termination.PREEMPTED_BY_SCHEDULER))
                again = self._pod(alloc.app.id, dict(alloc.amounts))
                again.priority = alloc.priority
                self.gone.append(again)
        return found

    def do_again(self, partition: Partition) -> list[Input]:
        """Submit all victims again."""
        gone, self.gone = self.gone, []
        return [pod for pod in gone if pod.application_id in partition.apps]

    def do_release(self, partition: Partition) -> list[Input]:
        """End a running allocation."""
        allocs = list(partition.allocations())
        chosen = self.rng.sample(allocs, min(len(allocs), 1))
        return [self._release(self.managers[0], partition, alloc, Termination.STOPPED_BY_RM) for alloc in chosen]


def _tree(rng: random.Random, load: Callable[[str], Configuration]) -> str:
    while True:
        queues = [_queue(rng, name, 0) for name in "abc"[: rng.randint(2, 3)]]
        root: Tree = {"name": "root", "submitacl": "*", "queues": queues}
        policy = {"type": rng.choice(get_args(NodePolicy))}
        within = random.Random(f"within {queues}")  # apart, so that the other draws are the same without it
        if within.random() < 0.4:
            queues[within.randrange(len(queues))]["properties"]["preemption.within-queue"] = "priority"
        rules = [{"name": "provided", "create": False}]
        text = json.dumps(
            {"partitions": [{"name": "default", "placementrules": rules, "nodesortpolicy": policy, "queues": [root]}]}
        )
        try:
            load(text)
        except ConfigError:
            continue
        return text


def _queue(rng: random.Random, name: str, depth: int) -> Tree:
    queue: Tree = {"name": name}
    properties = {"preemption.delay": rng.choice(["1s", "1s", "5s"])}
    if rng.random() < 0.15:
        properties["preemption.policy"] = rng.choice(["fence", "disabled"])
    if rng.random() < 0.25:
        properties["priority.offset"] = str(rng.randint(-2, 2))
    if rng.random() < 0.15:
        properties["priority.policy"] = "fence"
    queue["properties"] = properties
    resources: Tree = {}
    if rng.random() < 0.6:
        resources["guaranteed"] = _quota(rng, 1, 4 + 3 * (depth == 0))
    if rng.random() < 0.3:
        resources["max"] = _quota(rng, 6, 14)
    if resources:
        queue["resources"] = resources
    if depth < 2 and rng.random() < (0.5 if depth == 0 else 0.2):
        queue["queues"] = [_queue(rng, f"{name}{n}", depth + 1) for n in range(rng.randint(1, 3))]
    return queue


def _quota(rng: random.Random, low: int, high: int) -> Tree:
    amounts: Tree = {"vcore": f"{rng.randint(low, high)}m"}
    if rng.random() < 0.4:
        amounts["memory"] = str(rng.randint(low, high))
    return amounts if rng.random() < 0.9 else {"memory": str(rng.randint(low, high))}
