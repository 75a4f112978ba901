"""The state machine: what a resource manager, an administrator and time may do to a scheduler, in any order.

A rule draws small numbers and applies them to existing objects ("the third application, modulo their number"), so
that a failing run shrinks to few steps with small numbers. The world is small and crowded on purpose: few nodes, asks
about as large as nodes, quotas about as large as asks.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from licorne.si import messages
from licorne.si.messages import NodeAction, Termination
from machine import atomic, bad, configs
from machine.placeholders import Placeholders
from machine.quotas import Quotas
from machine.squeezes import Squeezes
from machine.things import App, Node
from machine.world import ATTRIBUTES, PASSES_NS, SIZES

small = st.integers(0, 7)


class Machine(Quotas, Squeezes, Placeholders):
    """The rules."""

    # -- who is there ----------------------------------------------------------------------------------

    @initialize(
        one=configs.choices,
        other=configs.choices,
        moody=st.booleans(),
        starting=st.booleans(),
        reserving=small,
        crowd=small,
    )
    def begin(self, one: Any, other: Any, moody: bool, starting: bool, reserving: int, crowd: int) -> None:
        self.settings = {"application.state.starting": str(starting).lower()}
        if reserving == 7:
            self.settings["reservation.enabled"] = "false"
        self.register("v", one, moody=moody)
        self.register("s", other, moody=False)
        for rm_id, name in list(self.driver.expected):
            self.send(rm_id, [self.node(name, number, number) for number in range(3 if name == "default" else 1)])
        self.after()
        for at in range(6) if crowd else ():
            self.arrive(at, 7, at, crowd + at, at, crowd, crowd)

    # -- nodes -----------------------------------------------------------------------------------------

    @rule(at=small, size=small, attributes=small, then=small)
    def add_node(self, at: int, size: int, attributes: int, then: int) -> None:
        rm_id, name, expected = self.where(at)
        if len(expected.nodes) < 7:
            self.send(rm_id, [self.node(name, size, attributes)], then)
        self.then(then)

    @rule(at=small, which=small, what=small, size=small, attributes=small, then=small)
    def change_node(self, at: int, which: int, what: int, size: int, attributes: int, then: int) -> None:
        """Another capacity, other attributes, a drain or its end, or it goes, perhaps to come back."""
        rm_id, name, expected = self.where(at)
        node: Node | None = self.one_of(expected.nodes, which)
        if node is None:
            return
        update = messages.NodeUpdate(node_id=node.id, action=NodeAction.UPDATE, partition=name)
        busy = any(expected.used[node.id].values())
        if what in (0, 1):
            update.capacity = dict(SIZES[size % len(SIZES)])
        if what in (1, 2):
            update.attributes = dict(ATTRIBUTES[attributes % len(ATTRIBUTES)])
        if what == 3 and rm_id == "s":
            update.occupied = {"vcore": size}
        if what in (4, 5, 6):
            update.action = NodeAction.DRAIN_NODE if node.schedulable else NodeAction.DRAIN_TO_SCHEDULABLE
            self.situations.met["drained with allocations"] += busy and node.schedulable
        if what == 7:
            update.action = NodeAction.DECOMISSION
            self.situations.met["node removed with allocations"] += busy
        self.send(rm_id, [update], then)
        if what == 7 and (size > 2 or len(expected.nodes) < 2):
            back = self.node(name, size, attributes)
            back.node_id = node.id
            self.send(rm_id, [back])
        self.then(then)

    @rule(at=small, which=small, amount=small, then=small)
    def foreign(self, at: int, which: int, amount: int, then: int) -> None:
        rm_id, name, expected = self.where(at)
        node: Node | None = self.one_of(expected.nodes, which)
        if node is None:
            return
        if node.foreign and amount < 4:
            self.send(
                rm_id, [messages.Release(partition=name, key=next(iter(node.foreign)))], 0 if rm_id == "s" else then
            )
        else:
            key = next(iter(node.foreign), None) or self.key("f")
            other = messages.Allocation(
                key=key,
                partition=name,
                resource={"vcore": amount, "fpga": amount % 2},
                node_id=node.id,
                tags={"foreign": "static"},
            )
            self.send(rm_id, [other], then)
        self.then(then)

    # -- applications ----------------------------------------------------------------------------------

    @rule(at=small, which=small, count=small, size=st.integers(0, 11), flavour=small, more=small, then=small)
    def arrive(self, at: int, which: int, count: int, size: int, flavour: int, more: int, then: int) -> None:
        """Asks of an application that is there or, often enough, of a new one."""
        rm_id, name, expected = self.where(at)
        if sum(len(app.asks) for app in expected.apps.values()) > 24:
            return
        if rm_id == "s" and count >= 6:
            self.independent_ask(size, then)
        elif len(expected.apps) < 2 or (which >= 5 and len(expected.apps) < 9):
            app = self.application(rm_id, name, size if flavour % 2 else 0, count, more)
            before = len(self.driver.partition(rm_id, name).tree.queues())
            self.send(rm_id, [app], then)
            self.driver.check()
            self.situations.met["dynamic queue created"] += (
                len(self.driver.partition(rm_id, name).tree.queues()) > before
            )
            if app.application_id in expected.apps and flavour != 2:
                self.ask(rm_id, name, expected.apps[app.application_id], count % 4, size, flavour, more)
        else:
            self.ask(rm_id, name, self.one_of(expected.apps, which), count % 4, size, flavour, more)
        self.then(then)

    @rule(at=small, queue=small, user=small, count=small, size=small, then=small)
    def gang(self, at: int, queue: int, user: int, count: int, size: int, then: int) -> None:
        atomic.arrive(self, at, queue, user, count, size)
        self.then(then)

    @rule(at=small, user=small, queue=small, size=st.integers(2, 11), flavour=small, more=small, then=small)
    def crowd(self, at: int, user: int, queue: int, size: int, flavour: int, more: int, then: int) -> None:
        """Many asks alike at once, of two applications of one user, in one queue; and more of those that are there."""
        rm_id, name, expected = self.where(at)
        for count in (2, 3):
            if len(expected.apps) < 9:
                app = self.application(rm_id, name, queue, user, more)
                self.send(rm_id, [app])
                self.driver.check()
                if app.application_id in expected.apps:
                    self.ask(rm_id, name, expected.apps[app.application_id], count, size, flavour, more)
        self.arrive(at, more, 3, size, flavour, 5, then)

    def independent_ask(self, size: int, then: int) -> None:
        expected = self.driver.expected["s", "default"]
        if sum(app.independent for app in expected.apps.values()) > 2:
            return
        key = self.key("k")
        ask = messages.Allocation(key=key, application_id=key, resource={"vcore": 1 + size}, independent=True)
        self.send("s", [ask], then)

    # -- asks ------------------------------------------------------------------------------------------

    @rule(at=small, which=small, ask=small, size=st.integers(0, 11), then=small)
    def change_ask(self, at: int, which: int, ask: int, size: int, then: int) -> None:
        rm_id, name, expected = self.where(at)
        app: App | None = self.one_of({a.id: a for a in expected.apps.values() if a.asks or a.allocs}, which)
        if app is None:
            return
        keys = [*app.asks, *([] if expected.first_interface else app.allocs)]
        if not keys:
            return
        key = keys[ask % len(keys)]
        self.situations.count("ask changed")
        changed = messages.Allocation(
            key=key, application_id=app.id, partition=name, resource={"vcore": 1 + size, "memory": size // 3},
            max_allocations=1 + ask % 3 if expected.first_interface else 1, independent=app.independent,
        )  # fmt: skip
        self.send(rm_id, [changed], then)
        self.then(then)

    @rule(at=small, which=small, ask=small, node=small, size=small, then=small)
    def place_outside(self, at: int, which: int, ask: int, node: int, size: int, then: int) -> None:
        """Recovery, or another's decision: an allocation that is simply there."""
        rm_id, name, expected = self.where(at)
        app: App | None = self.one_of(expected.apps, which)
        there: Node | None = self.one_of(expected.nodes, node)
        if app is None or there is None or app.independent:
            return
        keys = list(app.asks)
        key = keys[ask % len(keys)] if keys and ask < 4 else self.key("k")
        self.situations.count("pending ask placed outside" if key in app.asks else "recovered allocation")
        alloc = messages.Allocation(
            key=key, application_id=app.id, partition=name, resource={"vcore": 1 + size}, node_id=there.id,
            uuid=self.key("u") if expected.first_interface and size > 3 else "",
        )  # fmt: skip
        self.send(rm_id, [alloc], then)
        self.then(then)

    # -- releases --------------------------------------------------------------------------------------

    @rule(at=small, which=small, what=small, termination=st.integers(0, 4), then=small)
    def release(self, at: int, which: int, what: int, termination: int, then: int) -> None:
        rm_id, name, expected = self.where(at)
        app: App | None = self.one_of({a.id: a for a in expected.apps.values() if a.asks or a.allocs}, which)
        if app is None:
            return
        ask = self.one_of(app.asks, what)
        alloc = self.one_of(app.allocs, what)
        release = messages.Release(partition=name, application_id=app.id, termination=Termination(termination))
        if expected.first_interface:
            release.termination = Termination(max(1, termination))
            release.what = "ask" if ask is not None and (what % 2 or alloc is None) else "allocation"
            if what != 7 and release.what == "ask":
                release.key = ask.key
            elif what != 7 and alloc is not None:
                release.uuid = alloc.id
            if what == 5 and (release.key or release.uuid):
                release.application_id = ""
        elif what != 7:
            release.key = (alloc or ask).key if what % 2 else (ask or alloc).key
        self.send(rm_id, [release], then)
        self.then(then)

    @rule(at=small, which=small, what=small, then=small)
    def finish(self, at: int, which: int, what: int, then: int) -> None:
        """The scheduler's wishes are confirmed; half of what runs ends, or an application with all that it has."""
        rm_id, name, expected = self.where(at)
        app: App | None = self.one_of(expected.apps, which)
        if what < 3:
            for release in self.driver.confirmations(rm_id, name)[: 1 + which]:
                self.send(rm_id, [release])
        elif what < 6:
            running = [(app, alloc) for app in expected.apps.values() for alloc in app.allocs.values()]
            for owner, alloc in running[which % 2 :: 2]:
                self.send(rm_id, [self.end(expected, name, owner, alloc)])
        elif app is not None:
            self.send(rm_id, [messages.RemoveApplication(application_id=app.id, partition=name)], then)
        self.then(then)

    # -- decisions and time ----------------------------------------------------------------------------

    @rule(limit=st.sampled_from([None, None, None, 1, 3]))
    def schedule(self, limit: int | None) -> None:
        if self.driver.schedule(limit) == limit:
            self.situations.count("limit of the schedule call reached")
        self.after()

    @rule(passed=st.sampled_from(PASSES_NS), then=small)
    def pass_time(self, passed: int, then: int) -> None:
        self.driver.advance(passed)
        self.then(then)

    @rule(early=st.booleans())
    def wait_for_deadline(self, early: bool) -> None:
        """Before the next deadline nothing happens by itself; then it does."""
        driver = self.driver
        if not driver.quiet:
            driver.schedule()
            self.after()
        due = driver.first.api.next_deadline_ns()
        if due is None or due - driver.now > 10**13:
            return
        if early and due - 1 > driver.now and not driver.moody:
            driver.now = due - 1
            result, said = driver.call("schedule", now_ns=driver.now)
            assert (result, said) == (0, []), f"before its deadline {due} the scheduler said {said}"
            self.situations.count("quiet until the deadline")
        driver.advance(max(0, due - driver.now))
        driver.schedule()
        self.after()

    # -- configuration and registration ----------------------------------------------------------------

    @rule(rm=small, chosen=configs.choices, then=small)
    def reload(self, rm: int, chosen: configs.Choices, then: int) -> None:
        rm_id = "s" if rm > 4 else "v"
        driver = self.driver
        self._note_reload(rm_id, chosen)
        apps_of_dropped = [
            (app, alloc) for (r, name), expected in driver.expected.items() if r == rm_id and name not in configs.partitions(chosen)
            for app in expected.apps.values() for alloc in [*app.allocs.values(), None]
        ]  # fmt: skip
        result, said = self.load(rm_id, chosen)
        if isinstance(result, str):
            self.situations.count("reload refused")
            assert not said
        else:
            ends = {alloc.id for _, alloc in apps_of_dropped if alloc is not None}
            told = {o.uuid or o.key for _, outputs in said for o in outputs if isinstance(o, messages.Released)}
            assert ends == told, f"the ends of what ran in a dropped partition: {told}, expected {ends}"
            if apps_of_dropped:
                self.situations.count("partition dropped with applications")
        self.then(then)

    def _note_reload(self, rm_id: str, chosen: configs.Choices) -> None:
        expected = self.driver.expected[rm_id, "default"]
        found = configs.partitions(chosen)["default"]
        for app in expected.apps.values():
            new = found.get(app.queue)
            used = app.used()
            if new is None and app.queue in self.driver.queues[rm_id, "default"]:
                self.situations.count("reload drains a queue with applications")
            if new and new["max"] and any(used.get(name, 0) > most for name, most in new["max"].items()):
                self.situations.count("reload below usage")

    @precondition(lambda self: self.keys > 25)
    @rule(rm=small, chosen=configs.choices, how=small)
    def register_again(self, rm: int, chosen: configs.Choices, how: int) -> None:
        rm_id = "s" if rm > 3 else "v"
        if how > 1:
            return
        mine = [expected for (r, _), expected in self.driver.expected.items() if r == rm_id]
        if any(app.asks for expected in mine for app in expected.apps.values()):
            self.situations.count("re-registered with pending asks")
        if how == 1:
            self.driver.call("stop", rm_id, now_ns=self.driver.now)
        self.register(rm_id, chosen, moody=rm_id == "v" and rm % 2 == 1)
        self.send(rm_id, [self.node("default", how, rm)])
        self.after()

    @precondition(lambda self: self.driver.moody)
    @rule(mood=st.integers(0, 3), then=small)
    def change_mood(self, mood: int, then: int) -> None:
        self.driver.call("mood", mood)
        self.driver.mood = mood
        self.driver.quiet = False
        if mood:
            self.situations.count("predicate refused")
        self.then(then)

    # -- bad input -------------------------------------------------------------------------------------

    @rule(at=small, kind=st.integers(0, bad.KINDS - 1), which=small, then=small)
    def bad_input(self, at: int, kind: int, which: int, then: int) -> None:
        """Send bad input: refused, or ignored where there is no refusal; the next comparison shows that nothing changed."""
        rm_id, name, expected = self.where(at)
        self.driver.submit(rm_id, [bad.message(kind, name, expected, which)])
        self.situations.count("bad input refused")
        self.then(then)
