"""The laws of gangs with placeholders: a gang beside what the resource manager knows of it, compared after every step.

All invariants are checked after every step too (`Bench`). Asks are conserved, as the messages alone show; a gang of hard
style has nothing after its timeout; a soft one goes on.
"""

from __future__ import annotations

import random
from typing import Any

from core.bench import config
from gangs.gang import REPLACED, TIMEOUT, Gangs
from licorne.si.messages import NewAllocation, NodeAction, Released, Termination, UpdatedApplication

STARTS: dict[str, list[tuple[Any, ...]]] = {
    "placeholders first": [
        *(("place", 0, size, group) for size, group in ((1, "g"), (1, "g"), (2, "h"))),
        ("run", None),
        ("real", 0, 1, "g"),
    ],
    "placeholders late": [("real", 0, 1, ""), ("run", None), ("place", 0, 1, "g"), ("place", 0, 2, "h"), ("run", None)],
}
"""How a gang begins: as most do, or with a pod of no group, so that the application runs before its placeholders come."""


class World:
    """One gang and what the resource manager knows of it."""

    def __init__(self, style: str, *, first_interface: bool, picky: bool) -> None:
        holds = (lambda key, node, _: (int(key[1:]) + int(node[1:])) % 3 > 0 or key[0] == "p") if picky else None
        self.b = Gangs(
            4, 4, first_interface=first_interface, holds=holds, text=config("a resources: {max: {vcore: 12m}}")
        )
        self.b.gang(total=4 if picky else 7, style=style, timeout_ms=60_000)
        self.count = 0
        self.heard = len(self.b.outputs)
        self.asked: list[tuple[str, str, Termination]] = []  # (key, uuid, type): ends to be confirmed
        self.open: set[str] = set()  # real asks that wait
        self.running: set[str] = set()
        self.failed = False

    @property
    def app(self) -> Any:
        return self.b.partition.applications.get("x")

    def listen(self) -> None:
        for output in self.b.outputs[self.heard :]:
            if isinstance(output, NewAllocation) and not output.placeholder:
                assert output.key not in self.running, f"{output.key} is allocated twice"
                assert not self.failed, "a failed gang gets something"
                self.open.discard(output.key)
                self.running.add(output.key)
            elif isinstance(output, Released):
                if output.termination is Termination.STOPPED_BY_RM:
                    self.running.discard(output.key)
                elif output.ask:
                    self.open.discard(output.key)
                else:
                    self.asked.append((output.key, output.uuid, output.termination))
            elif isinstance(output, UpdatedApplication) and output.state == "Failing":
                self.failed = True
        self.heard = len(self.b.outputs)

    def step(self, step: tuple[Any, ...]) -> None:
        getattr(self, "do_" + step[0])(*step[1:])
        self.listen()
        self.conserved()

    def conserved(self) -> None:
        """Every real ask that was not ended is pending or in flight, or runs."""
        if self.app is None:
            assert not self.running, f"running without an application: {self.running}"
            return
        flying = {ask.key for ask in self.app.gang.replacing.values()} if self.app.gang else set()
        pending = {ask.key for ask in self.app.asks.values() if not ask.placeholder}
        assert self.open == pending | flying, f"asked for: {self.open}; pending: {pending}; in flight: {flying}"
        allocated = {a.key for a in self.app.allocations.values() if not a.placeholder}
        assert self.running == allocated, f"running: {self.running}; allocated: {allocated}"

    def do_place(self, which: int, size: int, group: str) -> None:
        self.count += 1
        if self.app is not None:
            self.b.places(f"p{self.count}", size, group=group)

    def do_real(self, which: int, size: int, group: str) -> None:
        self.count += 1
        if self.app is not None:
            said = self.b.member(f"r{self.count}", size, group=group)
            if not said or not said[0].startswith("rejected"):
                self.open.add(f"r{self.count}")

    def do_run(self, limit: int | None) -> None:
        self.b.run(limit=limit)

    def do_confirm(self, which: int, again: bool) -> None:
        if self.asked:
            key, uuid, termination = self.asked[which % len(self.asked)]
            if not again:
                self.asked.remove((key, uuid, termination))
            self.ends(key, uuid or key, termination)

    def ends(self, key: str, id: str, termination: Termination) -> None:
        if self.app is not None and id in self.app.allocations:
            self.running.discard(key)
        if not self.b.first_interface and termination is not TIMEOUT:
            self.open.discard(key)
        self.b.release("x", id, termination=termination)

    def do_release(self, which: int, termination: Termination) -> None:
        allocations = list(self.app.allocations.values()) if self.app else []
        if allocations:
            alloc = allocations[which % len(allocations)]
            self.ends(alloc.key, alloc.id, termination)

    def do_drop(self, which: int) -> None:
        if self.open:
            key = sorted(self.open)[which % len(self.open)]
            self.open.discard(key)
            self.b.release("x", key, what="ask" if self.b.first_interface else "both")

    def do_resize(self, which: int, size: int) -> None:
        if self.app is None or self.b.first_interface:
            return
        keys = [*self.app.asks, *self.app.allocations, *(self.app.gang.arriving if self.app.gang else ())]
        if keys:
            key = keys[which % len(keys)]
            known = {**self.app.asks, **self.app.allocations}.get(key)
            self.b.member(key, size, placeholder=bool(known and known.placeholder))

    def do_bound(self, which: int) -> None:
        """The resource manager binds an ask, or one in flight, itself."""
        if self.app is None or self.b.first_interface or "n1" not in self.b.partition.nodes:
            return
        keys = [*self.app.asks, *(self.app.gang.arriving if self.app.gang else ())]
        if keys:
            key = keys[which % len(keys)]
            ask = self.app.asks.get(key)
            self.b.member(
                key, 1, node="n1", placeholder=bool(ask and ask.placeholder), group=ask.task_group if ask else "g"
            )

    def do_node(self, node: str, what: str) -> None:
        there = node in self.b.partition.nodes
        if what == "add" and not there:
            self.b.node(node, vcore=3)
        elif what != "add" and there:
            actions = {"lose": NodeAction.DECOMISSION, "drain": NodeAction.DRAIN_NODE}
            schedulable = self.b.partition.nodes[node].schedulable
            if what != "open" or not schedulable:
                self.b.node(node, actions.get(what, NodeAction.DRAIN_TO_SCHEDULABLE))

    def do_time(self, seconds: int) -> None:
        self.b.run(after=seconds)

    def do_preempt(self, which: int) -> None:
        allocations = (
            [a for a in self.app.allocations.values() if not a.released and not a.preempted] if self.app else []
        )
        if allocations:
            alloc = allocations[which % len(allocations)]
            self.b.partition.accounting.preempting(self.app, alloc)
            self.b.partition.notify_released(alloc, Termination.PREEMPTED_BY_SCHEDULER, "others need it")
            self.b.run()

    def finish(self) -> None:
        """Time passes, nodes come, and everything is confirmed: then nothing waits, or nothing is left."""
        self.b.node("n9", vcore=100)
        self.b.reload(config("a"))
        for _ in range(4):
            self.step(("time", 61))
            while self.asked:
                self.step(("confirm", 0, False))
        if self.failed:
            assert self.app is None, "invariant 10: hard style, and not all is gone"
        elif self.app is not None and not self.b.partition.predicates:
            assert not self.app.asks, "invariant 10: it does not go on"


def lived(rng: random.Random, *first: tuple[Any, ...], start: str = "") -> None:
    """Draw one gang, its beginning and its first messages, and run it for 30 steps."""
    w = World(rng.choice(["Soft", "Hard"]), first_interface=rng.random() < 0.5, picky=rng.random() < 0.5)
    for step in [*STARTS[start or rng.choice(list(STARTS))], *first, *(drawn(rng) for _ in range(30))]:
        w.step(step)
    w.finish()


def drawn(rng: random.Random) -> tuple[Any, ...]:
    """Draw a step."""
    n = rng.randrange(8)
    found: tuple[Any, ...] = rng.choice(
        [
            ("place", n, rng.choice([1, 1, 2]), rng.choice("ggh")),
            ("real", n, rng.choice([1, 1, 2, 3]), rng.choice(["g", "g", "h", ""])),
            ("run", rng.choice([None, None, 1])),
            ("confirm", n, rng.random() < 0.2),
            ("confirm", n, False),
            ("release", n, rng.choice([TIMEOUT, REPLACED, Termination.STOPPED_BY_RM])),
            ("drop", n),
            ("resize", n, rng.choice([1, 2, 4])),
            ("bound", n),
            ("node", rng.choice(["n1", "n2", "n3"]), rng.choice(["lose", "drain", "open", "add"])),
            ("time", rng.choice([1, 10, 31, 61])),
        ]
    )
    return found
