"""Random clusters in which much waits for a node: from one seed always the same configurations and the same steps.

A scenario first draws what kind of cluster it is (`Kind`), so that each dimension is met alone and with each other. Steps
are drawn with the partitions of one product at hand, read as data, so that most are about something that is there.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from licorne.si.constants import TAG_NODE_CONSTRAINTS, TAG_POD, TAG_POD_TERMS, TAG_REQUIRED_NODE
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NodeAction,
    NodeUpdate,
    Release,
    Released,
    RemoveApplication,
    Termination,
)
from parking.configurations import SHARED_BY, drawn
from parking.situations import Situations
from reference.atomic import GROUPS_TAG
from reference.clusters import ATTRIBUTES, CONSTRAINTS, START_NS, Manager, Step
from reference.model import SECOND_NS
from reference.trees import USERS

RM = "rm"
NODES = [f"n{number}" for number in range(40)]
WANTED_BY_SCHEDULER = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)
PORTS: tuple[dict[str, Any], ...] = (
    {"hostPorts": [{"hostPort": 80}]},
    {"hostPorts": [{"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 81}], "nodeSelector": {"zone": "z1"}},
)
SOFT = '[{"key": "old", "effect": "PreferNoSchedule"}]'
NAMES = ("web", "db", "sql")
KEYS = ("zone", "zone", "host")
Draw = Callable[[Any], list[Input]]


class Kind:
    """The kind of cluster that a scenario is about."""

    def __init__(self, rng: random.Random, situations: Situations) -> None:
        self.reservations = rng.random() < 0.3
        self.delay = rng.choice(["0s", "2s", "2s", "30s"])
        self.apps = rng.choice([2, 3, 4, 12])
        self.nodes = rng.choice([2, 3, 4, 6, 20])
        self.constraints = rng.choice([0.0, 0.0, 0.2, 0.5])
        self.required = rng.choice([0.0, 0.02, 0.15])
        self.gangs = rng.choice(["", "", "placeholders", "whole", "both"])
        self.reloads = rng.choice([0, 0, 1])
        self.predicates = rng.random() < 0.25
        self.first_interface = rng.random() < 0.12
        self.nodes_change = rng.choice([0.0, 0.5, 2.0])
        self.preempting = rng.choice([0.3, 0.9])
        # Amounts: a few sizes, which come again and again, or so many that no set of minima holds them all.
        self.many_sizes = rng.random() < 0.15
        self.sizes = rng.sample(range(1, 8), rng.randint(1, 4))
        self.terms = rng.choice([0.0, 0.0, 0.3, 0.8])
        for name, met in {
            "reservations on" if self.reservations else "reservations off": True,
            "many applications" if self.apps > 4 else "a few applications": True,
            "more nodes than freed nodes are kept": self.nodes > 16,
            "node constraints": bool(self.constraints),
            "terms about pods": bool(self.terms),
            "reloads": bool(self.reloads),
            "predicates": self.predicates,
            "the first interface": self.first_interface,
            "asks of more sizes than minima are kept": self.many_sizes,
        }.items():
            situations.count(name, int(met))

    def settings(self) -> dict[str, str]:
        """The settings of the resource manager."""
        if not self.reservations:
            return {"reservation.enabled": "false", "gang.hold.max.age": "60s"}
        return {"reservation.delay": self.delay, "gang.hold.max.age": "60s"}


class Scenario:
    """A cluster from a seed, and its steps one by one. `partitions` gives those that are read, in order."""

    def __init__(self, seed: int, situations: Situations, partitions: Callable[[], list[Any]]) -> None:
        self.rng = random.Random(f"parking {seed}")
        self.kind = Kind(self.rng, situations)
        self.manager = Manager(
            RM, self.kind.first_interface, self.kind.settings(), self.kind.predicates, drawn(seed // SHARED_BY)
        )
        self.partitions = partitions
        self.ending: list[tuple[str, Released]] = []  # what the scheduler wants ended, with its partition
        self.steps_left = self.rng.choice([10, 30, 60])
        self.refills = self.rng.choice([0, 10, 30])  # in so many turns asks still come while everything ends
        self.now_ns = START_NS + self.rng.randrange(SECOND_NS)
        self.count = 0

    # -- steps -------------------------------------------------------------------------------------------

    def beginning(self) -> Iterator[Step]:
        """The first nodes and applications of every partition."""
        for partition in self.partitions():
            nodes = NODES[: self.rng.randint(1, self.kind.nodes)]
            messages: list[Input] = [self._node_add(partition, name) for name in nodes]
            messages += [add for _ in range(self.kind.apps) for add in self._app(partition)]
            yield ("submit", RM, messages)

    def step(self) -> Step:
        """The next one."""
        rng, kind = self.rng, self.kind
        draws: list[tuple[float, Draw | str]] = [
            (7, self.asks),
            (5, self._ends),
            (1.5, self._withdrawals),
            (2, self._confirmations),
            (0.7, self._app),
            (0.3, self._app_remove),
            (0.7, self._change),
            (0.5, self._existing),
            (kind.nodes_change, self._node),
            (kind.nodes_change / 2, self._foreign),
            (1.5 * (kind.gangs in ("placeholders", "both")), self._gang),
            (1.5 * (kind.gangs in ("placeholders", "both")), self._members),
            (1.0 * (kind.gangs in ("whole", "both")), self._whole),
            (8, "schedule"),
            (2.5, "limited"),
            (3, "advance"),
            (0.8 * kind.reloads, "reload"),
            (0.7 * kind.predicates, "mood"),
            (1.0 * kind.reservations, self._reserved_node),
        ]
        chosen = rng.choices([draw for _, draw in draws], [weight for weight, _ in draws])[0]
        match chosen:
            case "schedule":
                return ("schedule", None)
            case "limited":
                return ("schedule", rng.randint(1, 3))
            case "advance":
                return ("advance", int(rng.choice([0.5, 1, 2.1, 2.1, 5, 31, 301]) * SECOND_NS))
            case "reload":
                return ("reload", RM, rng.choice(self.manager.texts))
            case "mood":
                return ("mood", rng.randint(0, 3))
            case str():
                raise ValueError(chosen)
            case _:
                partitions = self.partitions()
                return ("submit", RM, chosen(rng.choice(partitions)) if partitions else [])

    def hear(self, said: list[tuple[str, Any]]) -> None:
        """Note what the resource manager is asked to end."""
        for _, output in said:
            if isinstance(output, Released) and output.termination in WANTED_BY_SCHEDULER:
                self.ending.append((output.partition, output))

    def name(self, kind: str) -> str:
        """A name that nothing had before."""
        self.count += 1
        return f"{kind}{self.count}"

    # -- what comes --------------------------------------------------------------------------------------

    def _some(self, things: Any, most: int) -> list[Any]:
        known = list(things)
        return self.rng.sample(known, min(len(known), self.rng.randint(1, most)))

    def _amounts(self) -> dict[str, int]:
        rng, kind = self.rng, self.kind
        if kind.many_sizes:  # mostly none of two is the larger one
            vcore = rng.randint(1, 40)
            return {"vcore": vcore, "memory": max(1, 41 - vcore + rng.randint(-2, 2))}
        amounts = {"vcore": rng.choice(kind.sizes)}
        if rng.random() < 0.15:
            amounts["memory"] = rng.choice(kind.sizes)
        return amounts

    def _app(self, partition: Any) -> list[Input]:
        return [self._add(partition, "app")]

    def _add(self, partition: Any, kind: str) -> AddApplication:
        leaves = [queue.path for queue in partition.tree.queues() if queue.is_leaf] or ["root.new"]
        user = self.rng.choice(list(USERS))
        return AddApplication(
            application_id=self.name(kind),
            partition=partition.name,
            queue=self.rng.choice([*leaves, *leaves, *leaves, "root.dyn.team"]),
            user=user,
            groups=USERS[user],
        )

    def _ask(self, partition: Any, app: str, amounts: dict[str, int], **more: Any) -> Allocation:
        rng = self.rng
        tags: dict[str, str] = {}
        if rng.random() < self.kind.constraints:
            tags[TAG_NODE_CONSTRAINTS] = json.dumps(rng.choice((*CONSTRAINTS, *PORTS)))
        if rng.random() < self.kind.terms:
            tags |= self._pod()
        if rng.random() < self.kind.required and partition.nodes:
            tags[TAG_REQUIRED_NODE] = rng.choice([*partition.nodes, *partition.nodes, self._node_id(partition)])
        if rng.random() < 0.06:
            tags["creationTime"] = str(self.now_ns // SECOND_NS - rng.randint(-1, 50))
        said = {
            "key": self.name("k"),
            "priority": rng.choice([0, 0, 0, 0, 1, 5]),
            "tags": tags or None,
            "max_allocations": rng.choice([1, 1, 2, 3]) if self.kind.first_interface else 1,
            "allow_preempt_self": rng.random() < 0.5,
            "allow_preempt_other": rng.random() < self.kind.preempting,
            "timeout_ms": rng.choice([2000, 15000]) if rng.random() < 0.05 else 0,
        }
        return Allocation(
            application_id=app, partition=partition.name, resource=dict(amounts), **{**said, **more}
        )  # fmt: skip

    def _pod(self) -> dict[str, str]:
        """The tags of a pod with a few terms, which are about its own kind or about another."""
        rng = self.rng
        terms: dict[str, Any] = {}
        for kind in rng.sample(["affinity", "antiAffinity", "spread"], rng.choice([0, 0, 1, 1, 2])):
            term = {"topologyKey": rng.choice(KEYS), "labelSelector": {"matchLabels": {"app": rng.choice(NAMES)}}}
            terms[kind] = [{**term, "maxSkew": rng.randint(1, 2)} if kind == "spread" else term]
        if rng.random() < 0.3:
            wish = rng.choice(("affinity", "antiAffinity", "nodes", "spread"))
            term = {"topologyKey": rng.choice(KEYS), "labelSelector": {"matchLabels": {"app": rng.choice(NAMES)}}}
            condition = {"key": "host", "operator": "In", "values": rng.sample(NODES, 9)}
            weighted = {"weight": rng.randint(1, 3), "term": [condition] if wish == "nodes" else term}
            terms["preferred"] = {wish: [term if wish == "spread" else weighted], "images": ["a:1"]}
        pod = {"namespace": "home", "labels": {"app": rng.choice(NAMES)}}
        return {TAG_POD: json.dumps(pod), TAG_POD_TERMS: json.dumps(terms)}

    def _attributes(self, node: str) -> dict[str, str]:
        if not self.kind.terms:
            return self.rng.choice(ATTRIBUTES) if self.kind.constraints else {}
        soft = {"taints": SOFT} if self.rng.random() < 0.1 else {}
        has = {"licorne/images": '{"a:1": 900000000}'} if self.rng.random() < 0.2 else {}
        return {"label/zone": "z1", **soft, **has, **self.rng.choice(ATTRIBUTES), "label/host": node}

    def asks(self, partition: Any) -> list[Input]:
        """Some asks of one or two applications; often several that are alike."""
        rng = self.rng
        found: list[Input] = []
        for app in self._some(partition.applications, 2):
            times = 1 if rng.random() < 0.6 else rng.randint(2, 24 if self.kind.many_sizes else 4)
            like = self._amounts()
            alike = rng.random() < 0.5
            found += [self._ask(partition, app, like if alike else self._amounts()) for _ in range(times)]
        return found

    def _gang(self, partition: Any) -> list[Input]:
        """An application that announces placeholders, and asks for them at once."""
        rng = self.rng
        number, amounts = rng.randint(1, 4), {"vcore": rng.choice(self.kind.sizes)}
        add = self._add(partition, "gang")
        add.placeholder_ask = {"vcore": number * amounts["vcore"]}
        add.gang_style = rng.choice(["Hard", "Soft"])
        add.execution_timeout_ms = rng.choice([0, 3000, 20000])
        fifo = [q.path for q in partition.tree.queues() if q.is_leaf and not q.fair]
        if fifo:
            add.queue = rng.choice(fifo)
        places = (
            self._ask(partition, add.application_id, amounts, task_group="g", placeholder=True) for _ in range(number)
        )
        return [add, *places]

    def _members(self, partition: Any) -> list[Input]:
        """Real asks of task groups."""
        apps = [app for app in partition.applications.values() if app.gang is not None]
        return [
            self._ask(partition, app.id, {"vcore": self.rng.choice(self.kind.sizes)}, task_group="g")
            for app in self._some(apps, 2)
            for _ in range(self.rng.randint(1, 3))
        ]

    def _whole(self, partition: Any) -> list[Input]:
        """A gang that starts as a whole, with all of its members or not."""
        rng = self.rng
        number = rng.randint(1, 4)
        add = self._add(partition, "whole")
        groups = [{"name": "t", "minMember": number, "minResource": {"cpu": "1m"}}]
        add.tags = {GROUPS_TAG: json.dumps(groups), "gang.scheduling": "atomic"}
        amounts = {"vcore": rng.choice(self.kind.sizes)}
        number -= rng.random() < 0.2
        return [add, *(self._ask(partition, add.application_id, amounts, task_group="t") for _ in range(number))]

    def _existing(self, partition: Any) -> list[Input]:
        """Something runs already."""
        return [
            self._ask(partition, app, self._amounts(), node_id=node, max_allocations=1)
            for app in self._some(partition.applications, 1)
            for node in self._some(partition.nodes, 1)
        ]

    def _change(self, partition: Any) -> list[Input]:
        """Another size for an ask or an allocation."""
        found: list[Input] = []
        for app in self._some(partition.applications.values(), 1):
            for ask in self._some([*app.asks.values(), *app.allocations.values()], 2):
                message = self._ask(partition, app.id, self._amounts(), key=ask.key)
                message.node_id = ask.node.id if ask.node is not None else ""
                message.uuid = ask.id if ask.node is not None and self.kind.first_interface else ""
                message.task_group, message.placeholder = ask.task_group, ask.placeholder
                found.append(message)
        return found

    # -- what goes ---------------------------------------------------------------------------------------

    def release(self, partition: str, app: str, subject: Any, termination: Termination) -> Release:
        """The end of an ask or of an allocation, or the confirmation of one."""
        first_interface = self.kind.first_interface
        name = subject.uuid or subject.key if isinstance(subject, Released) else subject.id
        allocated = isinstance(subject, Released) or subject.node is not None
        return Release(
            partition=partition,
            application_id=app,
            key="" if first_interface and allocated else subject.key,
            uuid=name if first_interface and allocated else "",
            termination=termination,
            what=("allocation" if allocated else "ask") if first_interface else "both",
        )

    def running(self, partition: Any) -> list[Any]:
        """All allocations."""
        return [alloc for app in partition.applications.values() for alloc in app.allocations.values()]

    def _ends(self, partition: Any) -> list[Input]:
        allocs = self._some(self.running(partition), 3)
        return [self.release(partition.name, a.app.id, a, Termination.STOPPED_BY_RM) for a in allocs]

    def _withdrawals(self, partition: Any) -> list[Input]:
        asks = self._some((ask for app in partition.applications.values() for ask in app.asks.values()), 4)
        return [self.release(partition.name, ask.app.id, ask, Termination.STOPPED_BY_RM) for ask in asks]

    def _confirmations(self, partition: Any) -> list[Input]:
        self.rng.shuffle(self.ending)
        chosen, self.ending = self.ending[:2], self.ending[2:]
        return [self.release(name, output.application_id, output, output.termination) for name, output in chosen]

    def confirm_all(self) -> list[Input]:
        """Confirm all ends that the scheduler has asked for."""
        chosen, self.ending = self.ending, []
        return [self.release(name, output.application_id, output, output.termination) for name, output in chosen]

    def _app_remove(self, partition: Any) -> list[Input]:
        apps = self._some(partition.applications, 1)
        return [RemoveApplication(partition=partition.name, application_id=app) for app in apps]

    # -- nodes -------------------------------------------------------------------------------------------

    def _capacity(self) -> dict[str, int]:
        large = self.kind.many_sizes
        return {"vcore": self.rng.choice([20, 40] if large else [3, 5, 6, 7, 10]), "memory": 40 if large else 12}

    def _node_id(self, partition: Any) -> str:
        """Of a node that is not there; it may have been, and an ask that requires it may be waiting."""
        return self.rng.choice([name for name in NODES if name not in partition.nodes][:3])

    def _node_add(self, partition: Any, name: str) -> Input:
        return NodeUpdate(
            node_id=name,
            action=NodeAction.CREATE,
            partition=partition.name,
            capacity=self._capacity(),
            attributes=self._attributes(name),
        )

    def _node(self, partition: Any) -> list[Input]:
        rng = self.rng
        if not partition.nodes or (rng.random() < 0.2 and len(partition.nodes) < len(NODES) - 1):
            return [self._node_add(partition, self._node_id(partition))]
        node = rng.choice(list(partition.nodes.values()))
        if not node.schedulable and rng.random() < 0.7:
            action = NodeAction.DRAIN_TO_SCHEDULABLE
        else:
            action = rng.choice(
                [NodeAction.DRAIN_NODE, NodeAction.DRAIN_NODE, NodeAction.UPDATE, NodeAction.DECOMISSION]
            )
        update = NodeUpdate(node_id=node.id, action=action, partition=partition.name, strict=self.kind.first_interface)
        if action is NodeAction.UPDATE and rng.random() < 0.6:
            update.capacity = self._capacity()
        elif action is NodeAction.UPDATE:
            update.attributes = self._attributes(node.id) if self.kind.terms else rng.choice(ATTRIBUTES)
        return [update]

    def _reserved_node(self, partition: Any) -> list[Input]:
        """A node that is reserved goes, or an ask requires it: asks that have reserved it must look elsewhere."""
        reserved = [node for node in partition.nodes.values() if node.reservations]
        found: list[Input] = []
        for node in self._some(reserved, 1):
            if self.rng.random() < 0.5:
                strict = self.kind.first_interface
                found.append(
                    NodeUpdate(node_id=node.id, action=NodeAction.DECOMISSION, partition=partition.name, strict=strict)
                )
            else:
                tags = {TAG_REQUIRED_NODE: node.id}
                found += [
                    self._ask(partition, app, self._amounts(), tags=tags)
                    for app in self._some(partition.applications, 1)
                ]
        return found

    def _foreign(self, partition: Any) -> list[Input]:
        rng = self.rng
        known = list(partition.foreign)
        if known and rng.random() < 0.5:
            return [Release(partition=partition.name, key=rng.choice(known))]
        return [
            Allocation(
                key=self.name("f"),
                partition=partition.name,
                resource={"vcore": rng.randint(1, 4)},
                node_id=node,
                tags={"foreign": "default", **(self._pod() if rng.random() < self.kind.terms else {})},
            )
            for node in self._some(partition.nodes, 1)
        ]
