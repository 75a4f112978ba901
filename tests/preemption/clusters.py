"""Random small clusters in which asks evict, and what becomes of each eviction: placed, ended, or given up for a cause.

Victims, the asks that they were evicted for, and later placements are read from the scheduler's messages. `calm`
clusters see nothing after the beginning but time, confirmations, ends of other pods, and asks of lower priority than
anything before: there each eviction must lead to the placement that it was made for. In others everything may happen, and what was not
placed must have given up for a cause that has happened. With `gangs` some asks are members of gangs that start as a whole.
"""

from __future__ import annotations

import random

from core.bench import Bench, config, limit, parent
from gangs_atomic.helpers import tags, task_groups
from licorne.config import ConfigError, load
from licorne.core.preemption.evictions import Outcome
from licorne.si.messages import AddApplication, Allocation, NewAllocation, NodeAction, Release, Released, Termination

PREEMPTED = Termination.PREEMPTED_BY_SCHEDULER
HOUR_S = 3600
CAUSES = {
    "higher": {Outcome.HIGHER_ORDER},
    "daemon": {Outcome.REQUIRED_NODE},
    "node": {Outcome.NODE},
    "foreign": {Outcome.FOREIGN},
    "forced": {Outcome.FORCED},
    "reload": {Outcome.CONFIGURATION},
    "resize": {Outcome.CHANGED, Outcome.FORCED},
    "old": {Outcome.AGE, Outcome.VICTIM},
    "gang": {Outcome.GANG},
}
"""What may be given as a cause when this has happened."""
KINDS = {"calm": (True, False), "wild": (False, False), "gangs": (False, True)}
"""Whether the clusters are calm, and have gangs."""


class Cluster:
    """A cluster from a seed. `happened`: the kinds of inputs that may make an ask give up; `evictions`: (moment, victim, ask)."""

    def __init__(self, seed: int, *, calm: bool, parking: bool = True, gangs: bool = False) -> None:
        self.rng = rng = random.Random(f"claims {seed} {calm}")
        self.calm = calm
        self.gangs = gangs
        self.kind = rng.choice(["guarantee", "guarantee", "required", "both"])
        self.texts = [self._config() for _ in range(2)]
        settings = {} if rng.random() < 0.5 else {"reservation.enabled": "false"}
        settings["scheduler.parking"] = str(parking).lower()
        self.b = Bench(self.texts[0], settings=settings)
        self.happened: set[str] = set()
        self.evictions: list[tuple[int, str, str]] = []
        self.placed: dict[str, int] = {}
        self.gone: dict[str, int] = {}  # asks that were taken back, and when
        self.heard = 0
        self.number = 0
        self._begin()

    def _quota(self, low: int, high: int) -> str:
        rng = self.rng
        amounts = [f"vcore: {rng.randint(low, high)}m"]
        amounts += [f"memory: {rng.randint(low, high)}"] if rng.random() < 0.25 else []
        return f"{{{', '.join(amounts)}}}"

    def _leaf(self, name: str) -> str:
        rng = self.rng
        parts = [f"guaranteed: {self._quota(2, 6)}"] if name != "a" and rng.random() < 0.8 else []
        parts += [f"max: {self._quota(2, 6)}"] if name != "a" and rng.random() < 0.75 else []
        keys = [f"resources: {{{', '.join(parts)}}}"] if parts else []
        keys.append(f"properties: {{preemption.delay: {rng.choice(['1s', '5s'])}}}")
        if rng.random() < 0.4:
            who = rng.choice(["u", "*"])
            limits = limit(who, vcore=rng.randint(2, 5)) if rng.random() < 0.7 else limit(who, apps=1)
            keys.append(f"limits: [{limits}]")
        return f"{name} {', '.join(keys)}"

    def _config(self) -> str:
        rng = self.rng
        while True:
            leaves = [self._leaf(name) for name in "abc"]
            top = f"p resources: {{max: {self._quota(6, 14)}}}" if rng.random() < 0.5 else "p"
            text = config(parent(top, *leaves))
            try:
                load(text)
            except ConfigError:
                continue
            return text

    def _begin(self) -> None:
        rng, b = self.rng, self.b
        sizes = {f"n{i}": rng.randint(3, 8) for i in range(rng.randint(1, 3))}
        for name, size in sizes.items():
            b.node(name, vcore=size, memory=size)
        for name in "abc":
            for user in "uv":
                b.app(f"{name}{user}", f"root.p.{name}", user)
        for name, capacity in sizes.items():
            free = capacity
            while free > rng.choice([0, 0, 1, 2]):
                size = min(free, rng.randint(1, 4))
                free -= size
                b.ask(rng.choice(["au", "au", "av", "bu", "cv"]), self._name("run"), node=name, vcore=size, age_s=100)
        if self.gangs:
            self.gang()
        for _ in range(rng.randint(0, 1) if self.gangs else rng.randint(2, 5)):
            self._asks(rng.choice([0, 0, 5]))

    def _name(self, of: str) -> str:
        self.number += 1
        return f"{of}{self.number}"

    def _asks(self, priority: int) -> None:
        """An ask of a queue that may be below its guarantee, or one that requires a node."""
        rng = self.rng
        daemon = self.kind == "required" or (self.kind == "both" and rng.random() < 0.4)
        if daemon:
            self.happened.add("daemon")
        self.b.ask(
            rng.choice(["bu", "bu", "bv", "cu", "cv"]),
            self._name("ask"),
            priority=priority,
            required=rng.choice(list(self.b.partition.nodes) or ["n0"]) if daemon else "",
            preempt_other=rng.random() < 0.9,
            resource={"vcore": rng.randint(1, 4)} | ({"memory": rng.randint(1, 2)} if rng.random() < 0.3 else {}),
        )

    # -- what happens ----------------------------------------------------------------------------------

    def live(self) -> None:
        """From the beginning to an end at which nothing is on its way any more."""
        rng = self.rng
        calm = ["decide"] * 4 + ["confirm", "confirm", "time", "end", "late", "late", "room"]
        wild = [
            "higher",
            "higher",
            "higher",
            "node",
            "foreign",
            "forced",
            "reload",
            "resize",
            "old",
            "take_back",
            "daemon",
            *(["gang"] if self.gangs else []),
        ]
        for _ in range(rng.randint(8, 16)):
            getattr(self, rng.choice(calm if self.calm or rng.random() < 0.6 else wild))()
        for _ in range(60):
            self.confirm(all_=True)
            before = len(self.evictions)
            self.decide(after=16)
            if len(self.evictions) == before and not self.b.partition.accounting.victims:
                return
        raise AssertionError("it does not end")

    def decide(self, after: float = 0) -> None:
        limit = None if after or self.rng.random() < 0.7 else 1
        self.b.run(after=after, limit=limit)
        for output in self.b.outputs[self.heard :]:
            self.heard += 1
            if isinstance(output, NewAllocation):
                self.placed.setdefault(output.key, self.heard)
            if isinstance(output, Released) and output.termination is PREEMPTED:
                self.evictions.append((self.heard, output.key, output.message.rsplit(" ", 1)[1]))

    def time(self) -> None:
        self.decide(self.rng.choice([1, 6, 16]))

    def confirm(self, *, all_: bool = False) -> None:
        for alloc in list(self.b.partition.accounting.victims):
            if all_ or self.rng.random() < 0.6:
                self.b.release(alloc.app.id, alloc.key, termination=PREEMPTED)

    def _running(self) -> list[tuple[str, str]]:
        apps = self.b.partition.applications.values()
        return [(app.id, a.key) for app in apps for a in app.allocations.values() if not a.preempted]

    def room(self) -> None:
        """Add a node that any ask may use, within quotas and claims."""
        if self.rng.random() < 0.5:
            self._new_node()

    def end(self) -> None:
        if found := self._running():
            self.b.release(*self.rng.choice(found))

    def late(self) -> None:
        """An ask of no order: it must not take what is claimed."""
        rng = self.rng
        app = rng.choice(list(self.b.partition.applications))
        self.b.ask(app, self._name("low"), priority=-5, vcore=rng.randint(1, 3), preempt_other=rng.random() < 0.3)

    # -- what may make an ask give up --------------------------------------------------------------------

    def higher(self) -> None:
        self.happened |= {"higher", "node"}
        claiming = [ask.app.id for ask in self.b.partition.claims.by_ask]
        app = self.rng.choice(claiming or ["bu", "bv", "cu"])
        self.b.ask(app, self._name("high"), priority=9 + self.number, vcore=self.rng.randint(1, 3))
        if self.rng.random() < 0.6:
            self._new_node()

    def daemon(self) -> None:
        self.happened |= {"higher", "daemon"}
        app = self.rng.choice(["bu", "cv", "av"])
        node = self.rng.choice(list(self.b.partition.nodes) or ["n0"])
        if app in self.b.partition.applications:
            self.b.ask(app, self._name("daemon"), priority=9, required=node, vcore=self.rng.randint(1, 4))

    def gang(self) -> None:
        self.happened.add("gang")
        name, members = self._name("gang"), self.rng.randint(2, 3)
        queue = f"root.p.{self.rng.choice('bc')}"
        self.b.send(AddApplication(application_id=name, queue=queue, user="u", tags=tags(task_groups(w=members))))
        for _ in range(members):
            self.b.send(
                Allocation(
                    key=self._name("ask"),
                    application_id=name,
                    resource={"vcore": self.rng.randint(1, 2)},
                    task_group="w",
                    allow_preempt_other=True,
                )
            )

    def node(self) -> None:
        rng = self.rng
        self.happened.add("node")
        nodes = self.b.partition.nodes
        action = rng.choice(
            [NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE, NodeAction.UPDATE, NodeAction.DECOMISSION]
        )
        if nodes and action is NodeAction.UPDATE:
            self.b.node(rng.choice(list(nodes)), action, vcore=rng.randint(2, 9), memory=rng.randint(2, 9))
        elif nodes and (action is not NodeAction.DECOMISSION or rng.random() < 0.5):
            self.b.node(rng.choice(list(nodes)), action)
        else:
            self._new_node()

    def _new_node(self) -> None:
        self.b.node(self._name("new"), vcore=self.rng.randint(2, 5), memory=5)

    def foreign(self) -> None:
        self.happened.add("foreign")
        if self.b.partition.nodes:
            self.b.foreign(
                f"f{self.rng.randint(1, 2)}",
                self.rng.choice(list(self.b.partition.nodes)),
                vcore=self.rng.randint(1, 4),
            )

    def forced(self) -> None:
        self.happened.add("forced")
        if self.b.partition.nodes:
            app = self.rng.choice(list(self.b.partition.applications))
            self.b.ask(
                app, self._name("run"), node=self.rng.choice(list(self.b.partition.nodes)), vcore=self.rng.randint(1, 4)
            )

    def resize(self) -> None:
        """Of an ask, or of what runs."""
        self.happened.add("resize")
        apps = self.b.partition.applications.values()
        found = [(app.id, key) for app in apps for key in app.asks if key.startswith("ask")] + self._running()
        if found:
            self.b.ask(*self.rng.choice(found), vcore=self.rng.randint(1, 5))

    def reload(self) -> None:
        self.happened.add("reload")
        self.texts.reverse()
        self.b.reload(self.texts[0])

    def old(self) -> None:
        self.happened.add("old")
        self.decide(2 * HOUR_S + 1)

    def take_back(self) -> None:
        asks = [(app.id, key) for app in self.b.partition.applications.values() for key in app.asks]
        if asks:
            app, key = self.rng.choice(asks)
            self.gone[key] = self.heard
            self.b.send(Release(application_id=app, key=key, what="ask"))

    # -- the law -----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Each eviction was followed by what it was made for, or its ask has ended, or gave up for a cause that there was."""
        excuses = {cause for what in self.happened for cause in CAUSES[what]}
        if self.calm:
            excuses = {Outcome.REQUIRED_NODE} if self.kind == "both" else set()
        records = {(e.victim, e.ask): e.outcome for e in self.b.partition.evictions}
        for at, victim, ask in self.evictions:
            outcome = records[victim, ask]
            placed = self.placed.get(ask, -1) > at
            ended = self.gone.get(ask, -1) >= at
            assert outcome is not Outcome.WAITING, f"{ask}, for which {victim} went, waits"
            assert outcome is not Outcome.PLACED or placed, f"{ask}, for which {victim} went, was not placed"
            assert outcome is not Outcome.ENDED or ended, f"{ask}, for which {victim} went, did not end"
            excused = outcome in (Outcome.PLACED, Outcome.ENDED) or outcome in excuses
            assert excused, f"{ask}, for which {victim} went: {outcome!r}, after {sorted(self.happened)}"
        assert not self.b.partition.claims.by_ask, "somebody claims, and no victim is left"


def lived(seed: int, kind: str, *, parking: bool = True) -> Cluster:
    """A cluster of one of `KINDS` that has come to its end, and kept the law."""
    calm, gangs = KINDS[kind]
    cluster = Cluster(seed, calm=calm, parking=parking, gangs=gangs)
    cluster.live()
    cluster.check()
    return cluster
