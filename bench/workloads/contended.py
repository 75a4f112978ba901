"""Benchmark workloads in which pods are placed together, or by evicting others; made from a seed.

| case | |
|---|---|
| gangs | applications of 50 pods, a driver and its workers, for which placeholders reserve room |
| gangs-atomic | applications of 50 pods, each placed as a whole in one step, without placeholders |
| preempt | every node is full to the last core and byte with pods of low priority, whose queues use twice their guarantees; another queue, which uses nothing yet, asks for all of its guarantee |

They are timed workloads (version 2) in which everything arrives at the moment 0 and stays. In case preempt the pods of
low priority run from the start, so that all nodes are equally full and no time is spent on placing them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from bench.workloads.generate import NODE_FACTORS, SHAPES, Options, Size
from licorne.workload.lines import GI, App, Ask, Line, Node, Resources, TaskGroup
from licorne.workload.workload import Mode, OptionError, Workload

CONTENDED: dict[str, Size] = {
    "gangs": Size(5_000, 50_000, 1_000, 10),
    "gangs-atomic": Size(5_000, 50_000, 1_000, 10),
    # `pods` counts the asks; ten times as many pods run.
    "preempt": Size(5_000, 5_000, 50, 4),
}
ROOM = 1.3
"""In the cases of gangs, the capacity of the nodes as a multiple of the needs of all pods."""
RUNNING_ON_A_NODE = 10
HIGH_PRIORITY = 100
MEBI = 1 << 20


def contended(case: str, options: Options | None = None, size: Size | None = None) -> Workload:
    """Return one of these cases as a timed workload, in another size if one is given.

    Raises OptionError for an unknown case, and for an option that does not apply to it.
    """
    options = options or Options()
    if case not in CONTENDED:
        raise OptionError(f"case: {case!r} is none of {', '.join(CONTENDED)}")
    if options.shape not in ("app", "same", "unique"):
        raise OptionError(f"shape: {options.shape!r} is none of app, same, unique")
    if msgspec.structs.replace(options, shape="app", seed=1) != Options():
        raise OptionError(f"the case {case} has no options but shape and seed")
    size = size or CONTENDED[case]
    made = _Preempt(options, size) if case == "preempt" else _Gangs(options, size, atomic=case == "gangs-atomic")
    return Workload(
        name=f"{case}-{options.shape}-s{options.seed}", mode=Mode.TIMED, config=made.config(), lines=list(made.lines())
    )


def _at_once(lines: list[Line]) -> Iterator[Line]:
    """Return the lines with a time at the first one: lines without a time follow at the same moment."""
    lines[0].at = 0
    return iter(lines)


class _Gangs:
    def __init__(self, options: Options, size: Size, *, atomic: bool) -> None:
        self.options = options
        self.size = size
        self.atomic = atomic
        self.random = random.Random(options.seed)
        self.members = size.pods // size.applications

    def announced(self, index: int) -> Resources:
        """Return the announced resources of each member of a gang, which are also those of a placeholder."""
        if self.options.shape == "same":
            return {"vcore": 1000, "memory": 2 * GI, "pods": 1}
        if self.options.shape == "app":
            vcore, memory = SHAPES[index % len(SHAPES)]
            return {"vcore": vcore, "memory": memory, "pods": 1}
        vcore, mebibytes = self.random.randrange(500, 4001), self.random.randrange(1024, 8193)
        return {"vcore": vcore, "memory": mebibytes * MEBI, "pods": 1}

    def member(self, announced: Resources) -> Resources:
        """Return the actual resources of a member: as announced, or, with a shape for each pod, up to a tenth less."""
        if self.options.shape != "unique":
            return announced
        vcore, memory = announced["vcore"], announced["memory"]
        less = self.random.randrange(memory // 10)
        return {"vcore": vcore - self.random.randrange(vcore // 10), "memory": memory - less, "pods": 1}

    def lines(self) -> Iterator[Line]:
        applications: list[App] = []
        asks: list[Ask] = []
        for index in range(self.size.applications):
            announced = self.announced(index)
            groups = (
                TaskGroup(name="driver", min=1, res=announced),
                TaskGroup(name="worker", min=self.members - 1, res=announced),
            )
            name, queue = f"gang-{index:04d}", f"root.q{index % self.size.queues}"
            applications.append(
                App(id=name, queue=queue, user=f"user{index % 5}", groups=("dev",), gang=groups, atomic=self.atomic)
            )
            for number in range(self.members):
                group = "worker" if number else "driver"
                asks.append(Ask(key=f"{name}-{number:02d}", app=name, res=self.member(announced), group=group))
        return _at_once([*self.nodes(applications), *applications, *asks])

    def nodes(self, applications: list[App]) -> list[Node]:
        announced = [application.gang[0].res for application in applications]
        total = sum(NODE_FACTORS[i % 3] for i in range(self.size.nodes))
        wanted = {name: self.members * sum(each[name] for each in announced) for name in ("vcore", "memory")}
        nodes: list[Node] = []
        for i in range(self.size.nodes):
            part = NODE_FACTORS[i % 3] * ROOM / total
            resource = {
                "vcore": max(8000, int(wanted["vcore"] * part)),
                "memory": max(16 * GI, int(wanted["memory"] * part)),
                "pods": 250,
            }
            nodes.append(Node(id=f"node-{i:05d}", res=resource))
        return nodes

    def config(self) -> str:
        """Return the configuration: flat queues, fifo because gangs with placeholders need applications in order of arrival."""
        text = ["partitions:", "  - name: default", "    queues:", "      - name: root", "        submitacl: '*'",
                "        queues:"]  # fmt: skip
        for number in range(self.size.queues):
            text += [
                f"          - name: q{number}",
                "            properties:",
                "              application.sort.policy: fifo",
            ]
        return "\n".join(text) + "\n"


class _Preempt:
    def __init__(self, options: Options, size: Size) -> None:
        self.options = options
        self.size = size
        self.random = random.Random(options.seed)
        self.asks = self.wanted()
        self.running = self.filling()

    def shape(self, index: int) -> Resources:
        if self.options.shape == "same":
            return {"vcore": 1000, "memory": 2 * GI, "pods": 1}
        if self.options.shape == "app":
            vcore, memory = SHAPES[index % len(SHAPES)]
            return {"vcore": vcore, "memory": memory, "pods": 1}
        vcore, mebibytes = self.random.randrange(500, 2001), self.random.randrange(1024, 4097)
        return {"vcore": vcore, "memory": mebibytes * MEBI, "pods": 1}

    def pods(self, number: int, prefix: str) -> Iterator[Ask]:
        """Yield `number` pods, dealt out in turn to the applications with this prefix."""
        applications = self.size.applications
        shared = [self.shape(index) for index in range(applications)]
        for i in range(number):
            index = i % applications
            resource = self.shape(index) if self.options.shape == "unique" else shared[index]
            app = f"{prefix}-{index:03d}"
            yield Ask(key=f"{app}-{i // applications:05d}", app=app, res=resource)

    def wanted(self) -> list[Ask]:
        asks = list(self.pods(self.size.pods, "high"))
        for ask in asks:
            ask.prio = HIGH_PRIORITY
            ask.pre_other = True
        return asks

    def filling(self) -> list[Ask]:
        asks = list(self.pods(self.size.nodes * RUNNING_ON_A_NODE, "low"))
        for i, ask in enumerate(asks):
            ask.node = self.node(i % self.size.nodes)
            ask.pre_self = True
        return asks

    @staticmethod
    def node(index: int) -> str:
        return f"node-{index:05d}"

    def lines(self) -> Iterator[Line]:
        capacity = [{"vcore": 0, "memory": 0, "pods": 250} for _ in range(self.size.nodes)]
        for i, ask in enumerate(self.running):
            for name in ("vcore", "memory"):
                capacity[i % self.size.nodes][name] += ask.res[name]
        nodes = [Node(id=self.node(i), res=resource) for i, resource in enumerate(capacity)]
        low = [
            App(id=f"low-{i:03d}", queue=f"root.low.q{i % self.size.queues}", user=f"user{i % 5}", groups=("dev",))
            for i in range(self.size.applications)
        ]
        high = [
            App(id=f"high-{i:03d}", queue="root.high", user=f"user{i % 5}", groups=("dev",))
            for i in range(self.size.applications)
        ]
        return _at_once([*nodes, *low, *high, *self.running, *self.asks])

    def config(self) -> str:
        """Return the configuration: one queue that is guaranteed all it asks for, others that use twice their guarantee."""
        asked = _sum(self.asks)
        used = _sum(self.running)
        each = {name: amount // (2 * self.size.queues) for name, amount in used.items()}
        text = ["partitions:", "  - name: default", "    queues:", "      - name: root", "        submitacl: '*'",
                "        queues:", "          - name: high", *_guarantee(asked, 12),
                "          - name: low", "            queues:"]  # fmt: skip
        for number in range(self.size.queues):
            text += [f"              - name: q{number}", *_guarantee(each, 16)]
        return "\n".join(text) + "\n"


def _sum(asks: list[Ask]) -> Resources:
    return {name: sum(ask.res[name] for ask in asks) for name in ("vcore", "memory")}


def _guarantee(amounts: Resources, indent: int) -> list[str]:
    blank = " " * indent
    return [
        f"{blank}resources:",
        f"{blank}  guaranteed: {{vcore: {amounts['vcore']}m, memory: {amounts['memory']}}}",
    ]
