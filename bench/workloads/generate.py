"""Benchmark workloads, made from a seed: the cases of the comparison with yunikorn-core, and bigger ones.

The cases a to t are, byte for byte, those of the generator that the recordings and the peer's figures were made with, so
that figures of both sides are about the same work. That fixes more than the numbers: which random numbers are drawn, in
which order (one pod after the other, application by application), and that node sizes are computed in binary floating
point. The other cases are this project's own: x follows the same rules, ten times as large; churn, constraints, apart,
spread, near, prefer and tree cover what the comparison leaves out (a full cluster in motion, asks with node constraints, pods with
terms about each other, a deep tree of queues).

`demand` is the total of all asks as a multiple of the cluster's capacity. Without it the nodes have 1.3 times the demand of
the asks that are to fit; with 1.5 the cluster is full when two thirds of the demand are placed, and the number of pods then
is not known beforehand (`expect` is 0).

All pods of one shape share one map of resources: a million asks are a million small objects, not two million.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

import msgspec

from bench.workloads.queuetree import Demand, QueueTree
from licorne.config.model import NodePolicy
from licorne.si.constants import ATTRIBUTE_LABEL_PREFIX, TAG_NODE_CONSTRAINTS, TAG_POD, TAG_POD_TERMS
from licorne.workload.lines import GI, App, Ask, Node
from licorne.workload.workload import Mode, OptionError, Workload

NODE_FACTORS = (0.5, 1.0, 2.0)
SHAPES = (
    (250, GI // 2), (500, GI), (1000, 2 * GI), (1000, 4 * GI), (2000, 4 * GI), (2000, 8 * GI), (4000, 8 * GI), (500, 2 * GI),
)  # fmt: skip
FITTING_IN_HARD_CASES = 10_000
CHURN_DEMAND = 1.3
"""With this demand the cluster of case churn is full, and about 50,000 asks are left over."""
# Every pod of case churn that is to end is larger than every pod that waits, so that each end makes room for one.
ENDING_SHAPES = ((3000, 6 * GI), (3500, 7 * GI), (4000, 8 * GI), (3000, 8 * GI))
WAITING_SHAPES = ((2000, 4 * GI), (2500, 5 * GI), (2000, 5 * GI), (2500, 4 * GI))
ENDING_PRIORITY = 10
NODE_CLASSES = 50
CLASSES_IN_A_SET = 3
ASKS_WITH_A_SET = 0.1
NODE_CLASS = "node-class"
ZONES = 50
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


class Size(NamedTuple):
    """The size of a case. In case tree `pods` counts those that fit; more are asked for."""

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
    # Half of the applications have large pods, which are placed first and end; the others have small ones, which wait.
    "churn": Size(10_000, 160_000, 160, 10),
    # Each ask names one of 50 classes of nodes, or one in ten a set of three.
    "constraints": Size(5_000, 100_000, 100, 10),
    # The pods of an application exclude each other by host, spread over 50 zones, or have affinity to each other by zone.
    "apart": Size(5_000, 20_000, 200, 10),
    "spread": Size(5_000, 20_000, 50, 10),
    "near": Size(5_000, 20_000, 50, 10),
    # They had better be apart by host, and spread over zones.
    "prefer": Size(5_000, 20_000, 50, 10),
    # Queues five levels deep.
    "tree": Size(5_000, 100_000, 20_000, 2_000),
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a case; the defaults are the original generator's."""

    shape: str = "app"
    """app: one shape for each application, of eight; same: one for all; unique: each pod its own"""
    appsort: str = "fifo"
    nodesort: str = "fair"
    order: str = "rr"
    """rr: asks in turn, one of each application; app: application after application"""
    seed: int = 1
    demand: float | None = None


def benchmark(case: str, options: Options | None = None, size: Size | None = None) -> Workload:
    """Return one of the benchmark cases as a workload of version 1, in another size if one is given.

    Raises OptionError for an unknown case or option.
    """
    options = options or Options()
    _check(case, options)
    kinds: dict[str, type[_Case]] = {"churn": _Churn, "constraints": _Constraints, "tree": _Tree}
    kinds |= dict.fromkeys((*_TERMS, "prefer"), _Pods)
    return kinds.get(case, _Case)(case, options, size or CASES[case]).workload()


def _check(case: str, options: Options) -> None:
    choices = (
        ("case", case, tuple(CASES)),
        ("shape", options.shape, ("app", "same", "unique")),
        ("appsort", options.appsort, ("fifo", "fair")),
        ("nodesort", options.nodesort, get_args(NodePolicy)),
        ("order", options.order, ("rr", "app")),
    )
    for name, value, allowed in choices:
        if value not in allowed:
            raise OptionError(f"{name}: {value!r} is none of {', '.join(allowed)}")
    if options.demand is not None and not 0.01 <= options.demand <= 100:
        raise OptionError(f"demand: {options.demand:g} is not between 0.01 and 100")


class _Case:
    """Makes one case: applications, their pods, nodes to match, queues."""

    demand: float | None = None
    """The demand that the case itself sets."""
    room = 1.3
    """The capacity of the nodes as a multiple of what is to fit, if no demand is set."""

    def __init__(self, case: str, options: Options, size: Size) -> None:
        self.case = case
        self.options = options
        self.size = size
        self.hard = case in ("e2", "e3")
        self.random = random.Random(options.seed)
        self.used: set[tuple[int, int]] = set()
        self.queues = ["default"] if self.size.queues == 1 else [f"q{i}" for i in range(self.size.queues)]
        self.applications = [self.application(i) for i in range(self.size.applications)]
        self.asks = [self.asks_of(i, application) for i, application in enumerate(self.applications)]

    def application(self, index: int) -> App:
        queue = f"root.{self.queue_of(index)}"
        return App(id=f"app-{index:04d}", queue=queue, user=f"user{index % 5}", groups=("dev",))

    def queue_of(self, index: int) -> str:
        """Return the queue of an application; in the hard cases q0 has the asks that do not fit."""
        if self.hard:
            return "q0" if index < (50 if self.case == "e2" else 1) else "q1"
        return self.queues[index % self.size.queues]

    def asks_of(self, index: int, application: App) -> list[Ask]:
        """Return the asks of an application: the pods are dealt out evenly, the first applications get one more."""
        priority = self.priority(index, application)
        shared: dict[str, int] | None = None
        asks: list[Ask] = []
        for number in range(self.number_of_asks(index)):
            if shared is None or self.options.shape == "unique":
                vcore, memory = self.shape(index)
                shared = {"vcore": vcore, "memory": memory, "pods": 1}
            asks.append(Ask(key=f"{application.id}-{number:05d}", app=application.id, res=shared, prio=priority))
        return asks

    def number_of_asks(self, index: int) -> int:
        each, left = divmod(self.size.pods, self.size.applications)
        return each + (index < left)

    def priority(self, index: int, application: App) -> int:
        """Return the priority of an application's asks."""
        return 100 if self.hard and application.queue == "root.q0" else 0

    def shape(self, index: int) -> tuple[int, int]:
        """Return what a pod of an application needs: vcore in milli, memory in bytes."""
        if self.options.shape == "same" or (self.case.startswith("e") and self.options.shape == "app"):
            return 1000, 2 * GI
        if self.options.shape == "app":
            return SHAPES[index % len(SHAPES)]
        return self.unique_shape((250, 4001), (512, 8193))

    def unique_shape(self, vcore: tuple[int, int], memory: tuple[int, int]) -> tuple[int, int]:
        """Draw a shape that no pod has yet, within these bounds (memory in MiB; upper bounds are exclusive)."""
        while True:
            drawn = self.random.randrange(*vcore), self.random.randrange(*memory) << 20
            if drawn in self.used:
                drawn = drawn[0], drawn[1] + self.random.randrange(1, 1 << 20)
            if drawn not in self.used:
                self.used.add(drawn)
                return drawn

    def workload(self) -> Workload:
        """Return the complete workload."""
        nodes = self.nodes()
        if self.case == "e3":
            # Larger than any node, but small in comparison with the cluster.
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
            expect=0 if (options.demand or self.demand) is not None else self.expected(),
            lines=[*nodes, *self.applications, *self.in_order()],
        )

    def expected(self) -> int:
        return FITTING_IN_HARD_CASES if self.case.startswith("e") else self.size.pods

    def nodes(self) -> list[Node]:
        """Return nodes of three sizes, in proportion to the demand of the asks that are to fit."""
        fitting = [ask.res for asks in self.asks for ask in asks if not (self.hard and ask.prio)]
        vcore = sum(resource["vcore"] for resource in fitting)
        memory = sum(resource["memory"] for resource in fitting)
        total = sum(NODE_FACTORS[i % 3] for i in range(self.size.nodes))
        demand = self.options.demand or self.demand
        room = self.room if demand is None else 1 / demand
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
        """Return the asks in order of arrival."""
        if self.options.order == "app":
            return (ask for asks in self.asks for ask in asks)
        longest = max(len(asks) for asks in self.asks)
        return (asks[turn] for turn in range(longest) for asks in self.asks if turn < len(asks))

    def config(self) -> str:
        """Return the configuration: flat queues, with a guarantee each, or with the quotas that make a case hard."""
        resources: dict[str, tuple[str, dict[str, str]] | None]
        if self.case == "e1":
            # A type that the quota does not name is unlimited.
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


class _Churn(_Case):
    """A full cluster: large pods, which are to end one by one, and small ones that wait for the room."""

    demand = CHURN_DEMAND

    def ends(self, index: int) -> bool:
        return index < self.size.applications // 2

    def priority(self, index: int, application: App) -> int:
        return ENDING_PRIORITY if self.ends(index) else 0

    def shape(self, index: int) -> tuple[int, int]:
        if self.options.shape == "unique":
            return self.unique_shape(
                *(((3000, 4001), (6144, 8193)) if self.ends(index) else ((2000, 3000), (4096, 6144)))
            )
        shapes = ENDING_SHAPES if self.ends(index) else WAITING_SHAPES
        return shapes[0 if self.options.shape == "same" else index % len(shapes)]


class _Constraints(_Case):
    """Nodes of many classes, and asks with constraints on the class."""

    room = 1.5  # the demand for a class is random, so each class needs some spare capacity

    def __init__(self, case: str, options: Options, size: Size) -> None:
        # All asks that name the same class share one map of tags.
        self.single = [_named({"nodeSelector": {NODE_CLASS: _node_class(i)}}) for i in range(NODE_CLASSES)]
        super().__init__(case, options, size)

    def asks_of(self, index: int, application: App) -> list[Ask]:
        """Return the asks of an application. Those that name a set all name the same one, as pods of one template would."""
        asks = super().asks_of(index, application)
        names = [_node_class(i) for i in sorted(self.random.sample(range(NODE_CLASSES), CLASSES_IN_A_SET))]
        several = _named({"nodeAffinity": [[{"key": NODE_CLASS, "operator": "In", "values": names}]]})
        for ask in asks:
            drawn = self.random.random()
            ask.tags = several if drawn < ASKS_WITH_A_SET else self.single[self.random.randrange(NODE_CLASSES)]
        return asks

    def nodes(self) -> list[Node]:
        nodes = super().nodes()
        for i, node in enumerate(nodes):
            node.attrs = {**(node.attrs or {}), ATTRIBUTE_LABEL_PREFIX + NODE_CLASS: _node_class(i % NODE_CLASSES)}
        return nodes


def _node_class(number: int) -> str:
    return f"class-{number:02d}"


def _named(constraints: object) -> dict[str, str]:
    return {TAG_NODE_CONSTRAINTS: msgspec.json.encode(constraints).decode()}


_TERMS = {"apart": ("antiAffinity", HOST), "spread": ("spread", ZONE), "near": ("affinity", ZONE)}


class _Pods(_Case):
    """Nodes in zones, and applications whose pods have a term about each other, or prefer where they are among each other."""

    room = 4.0  # else a zone that fills up leaves no node to pods with affinity to those there

    def asks_of(self, index: int, application: App) -> list[Ask]:
        asks = super().asks_of(index, application)
        labels = {"app": application.id}
        selector = {"labelSelector": {"matchLabels": labels}}
        by_host, by_zone = {"topologyKey": HOST, **selector}, {"topologyKey": ZONE, **selector}
        terms: dict[str, Any] = {"preferred": {"antiAffinity": [{"weight": 100, "term": by_host}], "spread": [by_zone]}}
        if self.case in _TERMS:
            kind, key = _TERMS[self.case]
            terms = {kind: [{"topologyKey": key, **selector}]}
        tags = {
            TAG_POD: msgspec.json.encode({"namespace": "home", "labels": labels, "namespaceLabels": {}}).decode(),
            TAG_POD_TERMS: msgspec.json.encode(terms).decode(),
        }
        for ask in asks:
            ask.tags = tags
        return asks

    def nodes(self) -> list[Node]:
        nodes = super().nodes()
        for i, node in enumerate(nodes):
            labels = {HOST: node.id, ZONE: f"zone-{i % ZONES:02d}"}
            node.attrs = {
                **(node.attrs or {}),
                **{ATTRIBUTE_LABEL_PREFIX + key: value for key, value in labels.items()},
            }
        return nodes


class _Tree(_Case):
    """Applications of several priorities and users in a deep tree of queues, some of which have too small a limit for them."""

    def __init__(self, case: str, options: Options, size: Size) -> None:
        self.tree = QueueTree(size.queues)
        self.priorities = [random.Random(f"priorities {options.seed} {i}").choice((0, 0, 0, 10, 20)) for i in range(97)]
        super().__init__(case, options, size)

    def application(self, index: int) -> App:
        return App(
            id=f"app-{index:05d}", queue=self.tree.path(self.leaf(index)), user=f"user{index % 49}", groups=("dev",)
        )

    def leaf(self, index: int) -> int:
        return index % len(self.tree.leaves)

    def priority(self, index: int, application: App) -> int:
        return self.priorities[index % len(self.priorities)]

    def number_of_asks(self, index: int) -> int:
        """Return the asks that fit, or twice as many where a quota or a limit of users admits only those."""
        fitting = super().number_of_asks(index)
        return fitting * 2 if self.tree.binds(self.leaf(index)) else fitting

    def config(self) -> str:
        demands = [Demand() for _ in self.tree.leaves]
        for index, (application, asks) in enumerate(zip(self.applications, self.asks, strict=True)):
            demand = demands[self.leaf(index)]
            demand.vcore += sum(ask.res["vcore"] for ask in asks)
            demand.memory += sum(ask.res["memory"] for ask in asks)
            demand.applications += 1
            fitting = super().number_of_asks(index)
            demand.fitting[application.user] = demand.fitting.get(application.user, 0) + fitting
        return self.tree.config(demands, self.options.appsort, self.options.nodesort)
