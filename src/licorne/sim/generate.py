"""Benchmark workloads, made from a seed: the cases of the comparison with yunikorn-core, and bigger ones.

The cases a to t are those of the generator that the recordings and the peer's figures were made with, byte for byte,
so that a figure here and a figure there speak of the same work. That fixes more than the numbers: which random
numbers are drawn, in which order (one pod after the other, application by application), and that node sizes are
computed in binary floating point. Case x is this project's own, by the same rules, ten times as large.

`demand` says how much the asks want together of what the cluster has. Without it the nodes have 1.3 times the demand
of what is to fit; with 1.5 the cluster is full when two thirds of the demand are placed, and how many pods that
makes is not known beforehand (`expect` is 0).

All pods of one shape share one map of resources: a million asks are a million small objects, not two million.
The sample of the demonstration, a busy week of a small cluster, is in `week.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

import msgspec

from licorne.sim.lines import App, Ask, Config, Line, Meta, Node, encode
from licorne.sim.workload import Mode, Workload, WorkloadError

GI = 1 << 30
NODE_FACTORS = (0.5, 1.0, 2.0)
SHAPES = (
    (250, GI // 2), (500, GI), (1000, 2 * GI), (1000, 4 * GI), (2000, 4 * GI), (2000, 8 * GI), (4000, 8 * GI), (500, 2 * GI),
)  # fmt: skip
FITTING_IN_HARD_CASES = 10_000


class Size(NamedTuple):
    """How big a case is."""

    nodes: int
    pods: int
    applications: int
    queues: int


CASES: dict[str, Size] = {
    "a": Size(100, 10_000, 10, 1),
    "b": Size(1_000, 50_000, 50, 10),
    "c": Size(5_000, 100_000, 100, 10),
    "d": Size(10_000, 100_000, 100, 10),
    # 10 queues with a quota of 1,000 pods each and 6,000 asks each.
    "e1": Size(1_000, 60_000, 60, 10),
    # 50,000 asks of higher priority wait behind a quota; 10,000 fit.
    "e2": Size(1_000, 60_000, 60, 2),
    # 1,000 asks of higher priority fit no node; 10,000 fit.
    "e3": Size(1_000, 11_000, 11, 2),
    "t": Size(10, 200, 4, 2),
    "x": Size(100_000, 1_000_000, 1_000, 100),
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen about a case; the defaults are the original generator's."""

    shape: str = "app"
    """app: one shape for each application, of eight; same: one for all; unique: each pod its own"""
    appsort: str = "fifo"
    nodesort: str = "fair"
    order: str = "rr"
    """rr: asks in turn, one of each application; app: application after application"""
    seed: int = 1
    demand: float | None = None


def benchmark(case: str, options: Options | None = None) -> Workload:
    """One of the benchmark cases as a workload of version 1. Raises WorkloadError for an unknown case or option."""
    options = options or Options()
    _check(case, options)
    return _Case(case, options).workload()


def write(workload: Workload, stream: IO[bytes]) -> None:
    """Write a workload as a file of JSON lines, the head first."""
    version = 1 if workload.mode is Mode.BATCH else 2
    for line in head(workload, version):
        stream.write(encode(line) + b"\n")
    for line in workload.lines:
        stream.write(encode(line) + b"\n")


def head(workload: Workload, version: int) -> Iterator[Line]:
    """The lines that come before all others: the name of the workload, and the configuration if there is one."""
    yield Meta(name=workload.name, expect=workload.expect, version=version)
    if workload.config is not None:
        yield Config(yaml=workload.config, extra=workload.extra)


def _check(case: str, options: Options) -> None:
    choices = (
        ("case", case, tuple(CASES)),
        ("shape", options.shape, ("app", "same", "unique")),
        ("appsort", options.appsort, ("fifo", "fair")),
        ("nodesort", options.nodesort, ("fair", "binpacking")),
        ("order", options.order, ("rr", "app")),
    )
    for name, value, allowed in choices:
        if value not in allowed:
            raise WorkloadError(f"{name}: {value!r} is none of {', '.join(allowed)}")
    if options.demand is not None and not 0.01 <= options.demand <= 100:
        raise WorkloadError(f"demand: {options.demand:g} is not between 0.01 and 100")


class _Case:
    """The making of one case: applications, their pods, nodes to match, queues."""

    def __init__(self, case: str, options: Options) -> None:
        self.case = case
        self.options = options
        self.size = CASES[case]
        self.hard = case in ("e2", "e3")
        self.random = random.Random(options.seed)
        self.used: set[tuple[int, int]] = set()
        self.queues = ["default"] if self.size.queues == 1 else [f"q{i}" for i in range(self.size.queues)]
        self.applications = [
            App(id=f"app-{i:04d}", queue=f"root.{self.queue_of(i)}", user=f"user{i % 5}", groups=("dev",))
            for i in range(self.size.applications)
        ]
        self.asks = [self.asks_of(i, application) for i, application in enumerate(self.applications)]

    def queue_of(self, index: int) -> str:
        """The queue of an application; in the hard cases q0 has what does not fit."""
        if self.hard:
            return "q0" if index < (50 if self.case == "e2" else 1) else "q1"
        return self.queues[index % self.size.queues]

    def asks_of(self, index: int, application: App) -> list[Ask]:
        """The asks of an application: the pods are dealt out evenly, the first ones get one more."""
        each, left = divmod(self.size.pods, self.size.applications)
        priority = 100 if self.hard and application.queue == "root.q0" else 0
        shared: dict[str, int] | None = None
        asks: list[Ask] = []
        for number in range(each + (index < left)):
            if shared is None or self.options.shape == "unique":
                vcore, memory = self.shape(index)
                shared = {"vcore": vcore, "memory": memory, "pods": 1}
            asks.append(Ask(key=f"{application.id}-{number:05d}", app=application.id, res=shared, prio=priority))
        return asks

    def shape(self, index: int) -> tuple[int, int]:
        """What a pod of an application needs: vcore in milli, memory in bytes."""
        if self.options.shape == "same" or (self.case.startswith("e") and self.options.shape == "app"):
            return 1000, 2 * GI
        if self.options.shape == "app":
            return SHAPES[index % len(SHAPES)]
        while True:
            drawn = self.random.randrange(250, 4001), self.random.randrange(512, 8193) << 20
            if drawn in self.used:
                drawn = drawn[0], drawn[1] + self.random.randrange(1, 1 << 20)
            if drawn not in self.used:
                self.used.add(drawn)
                return drawn

    def workload(self) -> Workload:
        """Everything together."""
        nodes = self.nodes()
        if self.case == "e3":
            # Larger than any node, small beside the cluster.
            too_much = max(node.res["vcore"] for node in nodes) + 1
            for ask in self.asks[0]:
                ask.res = {**ask.res, "vcore": too_much}
        options = self.options
        name = f"{self.case}-{options.shape}-{options.appsort}-{options.nodesort}-{options.order}-s{options.seed}"
        if options.demand is not None:
            name += f"-d{options.demand:g}"
        return Workload(
            name=name,
            mode=Mode.BATCH,
            config=self.config(),
            expect=0 if options.demand is not None else self.expected(),
            lines=[*nodes, *self.applications, *self.in_order()],
        )

    def expected(self) -> int:
        return FITTING_IN_HARD_CASES if self.case.startswith("e") else self.size.pods

    def nodes(self) -> list[Node]:
        """Nodes of three sizes, in proportion to the demand of the asks that are to fit."""
        fitting = [ask.res for asks in self.asks for ask in asks if ask.prio == 0]
        vcore = sum(resource["vcore"] for resource in fitting)
        memory = sum(resource["memory"] for resource in fitting)
        total = sum(NODE_FACTORS[i % 3] for i in range(self.size.nodes))
        room = 1.3 if self.options.demand is None else 1 / self.options.demand
        nodes: list[Node] = []
        for i in range(self.size.nodes):
            part = NODE_FACTORS[i % 3] * room / total
            resource = {"vcore": max(8000, int(vcore * part)), "memory": max(16 * GI, int(memory * part)), "pods": 250}
            name = f"node-{i:05d}"
            nodes.append(
                Node(id=name, res=resource, attrs={"si.io/hostname": name, "si.io/rackname": f"rack-{i // 40}"})
            )
        return nodes

    def in_order(self) -> Iterable[Ask]:
        """The asks in order of arrival."""
        if self.options.order == "app":
            return (ask for asks in self.asks for ask in asks)
        longest = max(len(asks) for asks in self.asks)
        return (asks[turn] for turn in range(longest) for asks in self.asks if turn < len(asks))

    def config(self) -> str:
        """The queues: flat, with a guarantee each, or with the quotas that make a case hard."""
        resources: dict[str, tuple[str, dict[str, str]] | None]
        if self.case == "e1":
            # A type that the quota does not name is without limit.
            resources = dict.fromkeys(self.queues, ("max", {"pods": "1000"}))
        elif self.case == "e2":
            resources = {"q0": ("max", {"vcore": "1m"}), "q1": None}
        elif self.case == "e3":
            resources = {"q0": None, "q1": None}
        else:
            resources = dict.fromkeys(self.queues, ("guaranteed", {"vcore": "100", "memory": "200Gi"}))
        text = [
            "partitions:", "  - name: default", "    nodesortpolicy:", f"      type: {self.options.nodesort}",
            "    queues:", "      - name: root", "        submitacl: '*'", "        queues:",
        ]  # fmt: skip
        for queue, limit in resources.items():
            text += [f"          - name: {queue}", "            properties:"]
            text.append(f"              application.sort.policy: {self.options.appsort}")
            if limit is not None:
                text += ["            resources:", f"              {limit[0]}:"]
                text += [f'                {name}: "{amount}"' for name, amount in limit[1].items()]
        return "\n".join(text) + "\n"
