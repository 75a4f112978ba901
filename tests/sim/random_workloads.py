"""Random workloads of a few nodes with every kind of line, and with combinations that no program would send on purpose."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec.structs import replace

from licorne.config.simulation import JOB_ORDERS
from licorne.workload.lines import (
    App,
    Ask,
    Foreign,
    Line,
    Node,
    NodeDrain,
    NodeRemove,
    NodeUndrain,
    NodeUpdate,
    Release,
    ReleaseApp,
    Reload,
    Run,
    TaskGroup,
)
from licorne.workload.workload import Mode, Workload

CONFIGURATION = """
partitions:
  - name: default
    preemption: {{enabled: true, quotapreemptionenabled: true}}
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: a
            resources: {{guaranteed: {{vcore: "6"}}}}
          - name: b
            resources: {{guaranteed: {{vcore: "2"}}, max: {{vcore: "{most}"}}}}
            properties: {{quota.preemption.delay: 1s, application.sort.policy: fifo}}
          - name: c
            properties: {{application.sort.policy: fifo, gang.scheduling: atomic, priority.offset: "10"}}
"""
QUEUES = ("root.a", "root.b", "root.c", "root.unknown")
STEPS_S = (0, 0.5, 1, 2, 5, 20, 31)
PODS = 20


class Writer:
    """Writes one workload, line by line. An object that a line names may be unknown, or gone, by then."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.timed = seed % 4 != 0
        self.at_s = 0.0
        self.lines: list[Line] = []
        self.nodes: list[str] = []
        self.apps: list[str] = []
        self.keys: list[tuple[str, str]] = []  # (application, ask)
        self.numbered = 0

    def workload(self) -> Workload:
        """Write it."""
        kinds: list[tuple[int, Callable[[], None]]] = [
            (4, self.application), (6, self.ask), (2, self.release), (1, self.release_application), (1, self.drain),
            (1, self.undrain), (1, self.resize), (1, self.remove_node), (1, self.node), (1, self.foreign),
            (1, self.reload),
        ]  # fmt: skip
        weights, writers = zip(*kinds, strict=True)
        for _ in range(self.rng.randrange(2, 5)):
            self.node()
        for _ in range(self.rng.randrange(20, 80)):
            if self.rng.random() < 0.6:
                self.at_s += self.rng.choice(STEPS_S)
            self.rng.choices(writers, weights)[0]()
            if not self.timed and self.rng.random() < 0.3:
                self.add(Run())
        return Workload(
            name="random",
            mode=Mode.TIMED if self.timed else Mode.SCRIPT,
            config=CONFIGURATION.format(most=8),
            lines=self.lines,
            grace_s=self.rng.choice((0, 1, 3)),
            resubmit=self.likely(0.7),
        )

    def add(self, line: Line) -> None:
        if self.timed:
            line.at = self.at_s
        self.lines.append(line)

    def likely(self, share: float) -> bool:
        return self.rng.random() < share

    def number(self) -> int:
        self.numbered += 1
        return self.numbered

    def vcore(self) -> dict[str, int]:
        return {"vcore": 500 * self.rng.randrange(1, 4)}

    def node_id(self) -> str:
        return self.rng.choice(self.nodes or ["none"])

    # -- applications and asks -------------------------------------------------------------------------

    def application(self) -> None:
        groups = ("x", "y")[: self.rng.randrange(1, 3)] if self.likely(0.4) else ()
        gang = tuple(TaskGroup(name=name, min=self.rng.randrange(1, 3), res=self.vcore()) for name in groups)
        app = f"app{self.rng.randrange(12)}"
        self.apps.append(app)
        self.add(
            App(
                id=app,
                queue=self.rng.choice(QUEUES),
                user="u",
                gang=gang,
                atomic=bool(gang) and self.likely(0.3),
                ph_timeout_ms=self.rng.choice((0, 3000)),
                style=self.rng.choice(("", "Soft", "Hard")),
                timeout_ms=self.rng.choice((0, 0, 9000)),
                ph_ask={"vcore": 1000} if not gang and self.likely(0.1) else None,
            )
        )
        for _ in range(self.rng.randrange(5)):
            self.ask_of(app)

    def ask(self) -> None:
        """A new ask, an existing allocation, or either of them with a key that is known already."""
        if self.apps:
            key = self.rng.choice(self.keys)[1] if self.keys and self.likely(0.15) else ""
            self.ask_of(self.rng.choice(self.apps), key, self.node_id() if self.likely(0.15) else "")

    def ask_of(self, app: str, key: str = "", node: str = "") -> None:
        key = key or f"k{self.number()}"
        self.keys.append((app, key))
        self.add(
            Ask(
                key=key,
                app=app,
                node=node,
                res=self.vcore(),
                prio=self.rng.randrange(3),
                group=self.rng.choice(("x", "y", "")),
                ph=self.likely(0.1),
                pre_self=self.likely(0.7),
                pre_other=self.likely(0.7),
                duration_s=self.rng.choice((None, 1, 2, 5, 40)),
                max=self.rng.choice((1, 1, 1, 3)),
                originator=self.likely(0.1),
                timeout_ms=self.rng.choice((0, 0, 0, 4000)),
                tags={"yunikorn.apache.org/requiredNode": self.node_id()} if self.likely(0.1) else None,
            )
        )

    def release(self) -> None:
        if self.keys:
            app, key = self.rng.choice(self.keys)
            self.add(Release(app=app, key=key if self.likely(0.85) else ""))

    def release_application(self) -> None:
        if self.apps:
            self.add(ReleaseApp(app=self.rng.choice(self.apps)))

    # -- nodes, and what is on them --------------------------------------------------------------------

    def node(self) -> None:
        node = f"n{self.number()}"
        self.nodes.append(node)
        self.add(Node(id=node, res={"vcore": 4000, "pods": PODS}, drain=self.likely(0.1)))

    def drain(self) -> None:
        self.add(NodeDrain(id=self.node_id()))

    def undrain(self) -> None:
        self.add(NodeUndrain(id=self.node_id()))

    def resize(self) -> None:
        self.add(NodeUpdate(id=self.node_id(), res={"vcore": self.rng.choice((2000, 4000, 6000)), "pods": PODS}))

    def remove_node(self) -> None:
        if len(self.nodes) > 1:
            self.add(NodeRemove(id=self.nodes.pop(self.rng.randrange(len(self.nodes)))))

    def foreign(self) -> None:
        self.add(Foreign(key=f"f{self.rng.randrange(4)}", node=self.node_id(), res={"vcore": 500}))

    def reload(self) -> None:
        self.add(Reload(yaml=CONFIGURATION.format(most=self.rng.choice((2, 4, 8)))))


def in_strict_order(workload: Workload, seed: int) -> Workload:
    """Return a workload whose queues have strict orders of jobs, which each reload changes, and no asks that these refuse."""
    rng = random.Random(seed)
    lines: list[Line] = []
    for line in workload.lines:
        if isinstance(line, Reload):
            lines.append(replace(line, yaml=_with_orders(line.yaml, rng)))
        elif isinstance(line, Ask):
            duration_s = 7 if line.duration_s is None else line.duration_s
            lines.append(
                replace(line, max=1, ph=False, duration_s=duration_s, requested_s=rng.choice((None, 1, 3, 50)))
            )
        elif isinstance(line, App):
            lines.append(replace(line, atomic=bool(line.gang), ph_ask=None))
        else:
            lines.append(line)
    return replace(workload, config=_with_orders(workload.config or "", rng), lines=lines)


def _with_orders(text: str, rng: random.Random) -> str:
    """Return the configuration with a strict order in one or both of the queues `a` and `c`, or in none."""
    rules = f"simulation.order: {rng.choice(JOB_ORDERS)}, simulation.backfill: {rng.choice(('enabled', 'disabled'))}"
    orders = rng.randrange(4)
    if orders & 1:
        text = text.replace("          - name: a\n", f"          - name: a\n            properties: {{{rules}}}\n")
    if orders & 2:
        text = text.replace("gang.scheduling: atomic,", f"gang.scheduling: atomic, {rules},")
    return text
