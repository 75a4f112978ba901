"""Laws of gangs with placeholders, under random messages, confirmations out of order, time and lost nodes.

After every step all invariants are checked (`Bench`). Asks are conserved, as the messages alone show; a
gang of hard style has nothing after its timeout; a soft one goes on. And faults planted in the product are caught.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.bench import config
from gangs.gang import REPLACED, TIMEOUT, Gangs
from licorne.core import compiled
from licorne.core.base.states import ApplicationState
from licorne.core.gangs import placeholders, replacement, timeout
from licorne.core.inspection.validate import InvariantError
from licorne.si.messages import NewAllocation, NodeAction, Released, Termination, UpdatedApplication

number = st.integers(0, 7)
STEPS = [
    st.tuples(st.just("place"), number, st.sampled_from([1, 1, 2]), st.sampled_from(["g", "g", "h"])),
    st.tuples(st.just("real"), number, st.sampled_from([1, 1, 2, 3]), st.sampled_from(["g", "g", "h", ""])),
    st.tuples(st.just("run"), st.sampled_from([None, None, 1, 2])),
    st.tuples(st.just("confirm"), number, st.booleans()),
    st.tuples(st.just("confirm"), number, st.booleans()),
    st.tuples(st.just("release"), number, st.sampled_from(list(Termination))),
    st.tuples(st.just("drop"), number),
    st.tuples(st.just("resize"), number, st.sampled_from([1, 2, 4])),
    st.tuples(st.just("bound"), number),
    st.tuples(st.just("node"), st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(["lose", "drain", "open", "add"])),
    st.tuples(st.just("time"), st.sampled_from([1, 10, 31, 61])),
    st.tuples(st.just("preempt"), number),
]
steps = st.lists(st.one_of(STEPS), min_size=5, max_size=40)


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
            assert not self.running
            return
        flying = {ask.key for ask in self.app.gang.replacing.values()} if self.app.gang else set()
        pending = {ask.key for ask in self.app.asks.values() if not ask.placeholder}
        assert self.open == pending | flying
        assert self.running == {a.key for a in self.app.allocations.values() if not a.placeholder}

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


worlds = st.tuples(st.sampled_from(["Soft", "Hard"]), st.booleans(), st.booleans())


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(worlds, st.sampled_from(list(STARTS)), steps)
def test_gangs_keep_their_counters_and_come_to_an_end(
    world: tuple[str, bool, bool], start: str, steps: list[Any]
) -> None:
    style, first_interface, picky = world
    w = World(style, first_interface=first_interface, picky=picky)
    for step in [*STARTS[start], *steps]:
        w.step(step)
    w.finish()


def lived(rng: random.Random, *first: tuple[Any, ...], start: str = "") -> None:
    """Draw one gang, its beginning and its first messages, and run it for 30 steps."""
    w = World(rng.choice(["Soft", "Hard"]), first_interface=rng.random() < 0.5, picky=rng.random() < 0.5)
    for step in [*STARTS[start or rng.choice(list(STARTS))], *first, *(_drawn(rng) for _ in range(30))]:
        w.step(step)
    w.finish()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("start", STARTS)
def test_thousands_of_gangs_keep_their_counters_and_end(start: str, new_seed: int) -> None:
    for number in range(new_seed, new_seed + 5_000):
        try:
            lived(random.Random(number), start=start)
        except Exception as error:
            raise AssertionError(f"the gang of seed {number}") from error


# -- faults planted in the product -----------------------------------------------------------------------------


def _twice(sound: Callable[..., Any]) -> Callable[..., Any]:
    def twice(self: Any, *arguments: Any) -> Any:
        sound(self, *arguments)
        return sound(self, *arguments)

    return twice


def _nothing(_sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_, **__: None


def _no(_sound: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: False


def _uncounted(sound: Callable[..., Any]) -> Callable[..., Any]:
    def ended(self: Any, app: Any, alloc: Any, timed_out: bool) -> None:
        app.gang.groups[alloc.task_group].released -= 1
        sound(self, app, alloc, timed_out)

    return ended


def _while_accepted(sound: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: Any, app: Any, gang: Any) -> None:
        if app.state is ApplicationState.ACCEPTED:
            sound(self, app, gang)

    return start


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "an ended placeholder is not counted": (placeholders.Gangs, "ended", _uncounted),
    "real asks are not woken": (placeholders.Gangs, "settle", _nothing),
    "a dropped placeholder is not counted": (placeholders.Gangs, "dropped", _nothing),
    "the clock never runs": (placeholders.Gangs, "_start_clock", _nothing),
    "late placeholders have no clock": (placeholders.Gangs, "_start_clock", _while_accepted),
    "a hard gang is left alone": (timeout, "_fail", _nothing),
    "pending placeholders stay": (timeout, "_drop_pending", _nothing),
    "one in flight stays on a node": (replacement.Replacement, "_off_node", _nothing),
    "one in flight is forgotten": (replacement.Replacement, "_unlink", _nothing),
    "a placeholder is taken for gone": (placeholders.TaskGroup, "has_placeholder", _no),
    "those in flight survive a failure": (replacement.Replacement, "abandon", lambda _: lambda *_: []),
    "a release of one in flight is ignored": (replacement.Replacement, "withdraw", _nothing),
    "one that was resized comes again": (replacement.Replacement, "resize", _no),
}


FIRST: dict[str, list[tuple[Any, ...]]] = {
    "pending placeholders stay": [*[("place", 0, 2, "h")] * 6, ("run", None), ("time", 61)],
    "one that was resized comes again": [("run", None), ("resize", 3, 2)],
}
"""What comes first, so that faults that need a rare situation are met soon."""


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, method, broken = FAULTS[name]
    if compiled:
        pytest.skip("compiled methods cannot be replaced")
    monkeypatch.setattr(where, method, broken(getattr(where, method)))
    rng = random.Random(name)
    for _ in range(400):
        try:
            lived(rng, *FIRST.get(name, []))
        except (InvariantError, AssertionError, KeyError):
            return
    raise AssertionError(f"{name}: not caught")


def _drawn(rng: Any) -> tuple[Any, ...]:
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
