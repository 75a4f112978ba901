"""The state machine: what a resource manager, an administrator and time may do to a scheduler, in any order.

A rule draws small numbers and applies them to what is there ("the third application, modulo how many there are"), so
that a failing run shrinks to few steps with small numbers. The world is small and crowded on purpose: few nodes, asks
about as large as nodes, quotas about as large as asks.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from licorne.si import messages, seed, v19
from licorne.si.messages import NodeAction, Termination

from machine import bad, configs, wire
from machine.amounts import CONSTRAINTS, TAINT
from machine.books import App, Books, Node
from machine.driver import CLASSES, SECOND_NS, Driver
from machine.situations import Situations

USERS = [("alice", ("dev",)), ("bob", ("ops", "dev")), ("carol", ()), ("alice", ("ops",))]
QUEUES = ["root.a", "root.b.b1", "root.b.b2", "root.c", "", "root.a", "root.b.b1", "nowhere", "root.dyn.team"]
QUOTA_TAGS: list[dict[str, str]] = [
    {},
    {"namespace": "web"},
    {"namespace": "web", "namespace.resourcequota": '{"resources":{"vcore":{"value":6}}}'},
    {"namespace": "web", "namespace.resourcequota": '{"resources":{"vcore":{"value":20}}}', "namespace.resourcemaxapps": "1"},
    {"namespace": "web", "namespace.resourcemaxapps": "3"},
]
SIZES = [{"vcore": 8, "memory": 8}, {"vcore": 12, "memory": 6}, {"vcore": 16, "memory": 16, "gpu": 2}, {"vcore": 5}]
ATTRIBUTES = [{"label/zone": "a"}, {"label/zone": "b"}, {"label/zone": "c", "label/ssd": "1"}, {"taints": TAINT}, {"label/zone": "a", "label/ssd": "1"}]
PASSES_NS = [n * SECOND_NS // 10 for n in (1, 5, 11, 21, 30, 101, 205, 310, 3010, 36000, 72010)]
AGES_S = [0, 0, 0, 1, 3, 100, -5]
PRIORITIES = [0, 0, 0, 1, 5, -2]

small = st.integers(0, 7)


class Machine(RuleBasedStateMachine):
    """The rules. `situations` is shared by all runs of a test."""

    situations = Situations()

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(self.situations)
        self.keys = 0
        self.chosen: dict[str, configs.Choices] = {}
        self.seeds: set[str] = set()

    # -- who is there ----------------------------------------------------------------------------------

    @initialize(
        one=configs.choices, other=configs.choices, moody=st.booleans(), starting=st.booleans(), reserving=small, crowd=small
    )
    def begin(self, one: Any, other: Any, moody: bool, starting: bool, reserving: int, crowd: int) -> None:
        self.settings = {"application.state.starting": str(starting).lower()}
        if reserving == 7:
            self.settings["reservation.enabled"] = "false"
        self.register("v", one, moody=moody)
        self.register("s", other, moody=False)
        for rm_id, name in list(self.driver.books):
            self.send(rm_id, [self.node(name, number, number) for number in range(3 if name == "default" else 1)])
        self.after()
        for at in (0, 0, 4) if crowd else ():
            self.arrive(at, crowd, at, crowd, 0, crowd, crowd)

    def register(self, rm_id: str, chosen: configs.Choices, *, moody: bool) -> None:
        """Register, with a plain configuration if this one is refused."""
        for choices in (chosen, configs.PLAIN):
            text = configs.text(choices)
            request: Any
            if rm_id == "s":
                self.driver.call("group", "g", text)
                request = seed.RegisterResourceManagerRequest(rm_id=rm_id, policy_group="g")
            else:
                extra = {**self.settings, **{f"priority.class.{name}": str(n) for name, n in CLASSES.items()}}
                request = v19.RegisterResourceManagerRequest(rm_id=rm_id, config=text, extra_config=extra)
            if not isinstance(self.driver.register(request, moody=moody), str):
                break
        self.chosen[rm_id] = choices
        self.open(rm_id)

    def open(self, rm_id: str) -> None:
        """Open books for the partitions that are new, close those of partitions that have gone."""
        driver = self.driver
        starting = rm_id == "s" or self.settings["application.state.starting"] == "true"
        found = configs.partitions(self.chosen[rm_id])
        for name in found:
            key = (rm_id, name)
            if key not in driver.books:
                driver.books[key] = Books(seed=rm_id == "s", starting=starting, classes={} if rm_id == "s" else CLASSES)
            driver.queues[key] = found[name]
        for key in [key for key in driver.books if key[0] == rm_id and key[1] not in found]:
            del driver.books[key], driver.queues[key]

    def after(self) -> None:
        """What every step ends with."""
        self.driver.check()

    def teardown(self) -> None:
        """A run is over."""
        self.driver.replay()

    # -- choosing --------------------------------------------------------------------------------------

    def where(self, number: int) -> tuple[str, str, Books]:
        """A partition: the first ones more often."""
        rm_id, name = "s" if number in (4, 5, 6) else "v", "gpu" if number >= 6 else "default"
        if (rm_id, name) not in self.driver.books:
            name = "default"
        return rm_id, name, self.driver.books[rm_id, name]

    @staticmethod
    def one_of(found: dict[str, Any], number: int) -> Any:
        """One of what is there, None if there is nothing."""
        return list(found.values())[number % len(found)] if found else None

    def key(self, kind: str) -> str:
        """A new name."""
        self.keys += 1
        return f"{kind}{self.keys}"

    def send(self, rm_id: str, inputs: list[Any], how: int = 0) -> None:
        """As internal messages, or now and then in the words of the dialect."""
        wordy = how >= 6 and not any(getattr(m, "existing", ()) or getattr(m, "node_id", "") and rm_id == "s" and isinstance(m, messages.Allocation) for m in inputs)
        if wordy and any(getattr(m, "action", None) is NodeAction.CREATE_DRAIN for m in inputs):
            wordy = False
        sender = (wire.send_seed if rm_id == "s" else wire.send_v19) if wordy else None
        self.driver.submit(rm_id, inputs, sender)

    def then(self, number: int) -> None:
        """Most changes are followed by decisions, some only after others, some a little later."""
        self.after()
        if number == 7:
            self.driver.advance(11 * SECOND_NS // 10)
            self.after()
        if number >= 2:
            self.driver.schedule(1 if number == 2 else None)
            if number == 2:
                self.situations.count("limit of the schedule call reached")
            self.after()

    # -- nodes -----------------------------------------------------------------------------------------

    def node(self, name: str, size: int, attributes: int) -> messages.NodeUpdate:
        return messages.NodeUpdate(
            node_id=self.key("n"),
            action=NodeAction.CREATE_DRAIN if size == 7 else NodeAction.CREATE,
            partition=name,
            capacity=dict(SIZES[size % len(SIZES)]),
            attributes=dict(ATTRIBUTES[attributes % len(ATTRIBUTES)]),
        )

    @rule(at=small, size=small, attributes=small, then=small)
    def add_node(self, at: int, size: int, attributes: int, then: int) -> None:
        rm_id, name, books = self.where(at)
        if len(books.nodes) < 7:
            self.send(rm_id, [self.node(name, size, attributes)], then)
        self.then(then)

    @rule(at=small, which=small, what=small, size=small, attributes=small, then=small)
    def change_node(self, at: int, which: int, what: int, size: int, attributes: int, then: int) -> None:
        """Another capacity, other attributes, a drain or its end, or it goes, perhaps to come back."""
        rm_id, name, books = self.where(at)
        node: Node | None = self.one_of(books.nodes, which)
        if node is None:
            return
        update = messages.NodeUpdate(node_id=node.id, action=NodeAction.UPDATE, partition=name)
        busy = any(books.used[node.id].values())
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
        if what == 7 and (size > 2 or len(books.nodes) < 2):
            back = self.node(name, size, attributes)
            back.node_id = node.id
            self.send(rm_id, [back])
        self.then(then)

    @rule(at=small, which=small, amount=small, then=small)
    def foreign(self, at: int, which: int, amount: int, then: int) -> None:
        rm_id, name, books = self.where(at)
        node: Node | None = self.one_of(books.nodes, which)
        if node is None:
            return
        if node.foreign and amount < 4:
            self.send(rm_id, [messages.Release(partition=name, key=next(iter(node.foreign)))], 0 if rm_id == "s" else then)
        else:
            key = next(iter(node.foreign), None) or self.key("f")
            other = messages.Allocation(
                key=key, partition=name, resource={"vcore": amount, "fpga": amount % 2}, node_id=node.id, tags={"foreign": "static"}
            )
            self.send(rm_id, [other], then)
        self.then(then)

    # -- applications ----------------------------------------------------------------------------------

    @rule(at=small, which=small, count=small, size=st.integers(0, 11), flavour=small, more=small, then=small)
    def arrive(self, at: int, which: int, count: int, size: int, flavour: int, more: int, then: int) -> None:
        """Asks of an application that is there or, often enough, of a new one."""
        rm_id, name, books = self.where(at)
        if sum(len(app.asks) for app in books.apps.values()) > 40:
            return
        if at == 5 and which == 5:
            self.independent_ask(size, then)
        elif len(books.apps) < 2 or (which >= 5 and len(books.apps) < 9):
            app = self.application(rm_id, name, size, count, more)
            self.send(rm_id, [app], then)
            self.driver.check()
            if app.application_id in books.apps and flavour != 2:
                self.ask(rm_id, name, books.apps[app.application_id], count % 4, size, flavour, more)
        else:
            self.ask(rm_id, name, self.one_of(books.apps, which), count % 4, size, flavour, more)
        self.then(then)

    def application(self, rm_id: str, name: str, queue: int, user: int, tags: int) -> messages.AddApplication:
        queue %= len(QUEUES)
        who, groups = USERS[user % len(USERS)]
        return messages.AddApplication(
            application_id=self.key("app"),
            partition=name,
            queue=QUEUES[queue],
            user=who,
            groups=groups,
            tags=dict(QUOTA_TAGS[tags % len(QUOTA_TAGS)]) if not QUEUES[queue] else {},
            execution_timeout_ms=40_000 if tags > 4 else 0,
            timeout_is_running_time=rm_id == "s",
        )

    def independent_ask(self, size: int, then: int) -> None:
        books = self.driver.books["s", "default"]
        if sum(app.independent for app in books.apps.values()) > 2:
            return
        key = self.key("k")
        ask = messages.Allocation(key=key, application_id=key, resource={"vcore": 1 + size}, independent=True)
        self.send("s", [ask], then)

    # -- asks ------------------------------------------------------------------------------------------

    def ask(self, rm_id: str, name: str, app: App, count: int, size: int, flavour: int, more: int) -> None:
        """Some asks alike: `size` is how large, `flavour` what is special, `more` its constraint, age and priority."""
        books = self.driver.books[rm_id, name]
        tags = {}
        constraint = more if flavour in (1, 2) else 0
        constraint %= len(CONSTRAINTS)
        if constraint:
            tags |= {"licorne/node-constraints": CONSTRAINTS[constraint], "constraint": str(constraint)}
        if flavour == 3:
            tags["creationTime"] = str(self.driver.now // SECOND_NS - AGES_S[more % len(AGES_S)])
        node: Node | None = self.one_of(books.nodes, more)
        if flavour == 4 and node is not None:
            tags["yunikorn.apache.org/requiredNode"] = node.id if more < 6 else "n999"
        resource = {"vcore": 1 + size, "memory": size // 2}
        if more == 7:
            resource["gpu"] = 1
        asks = [
            messages.Allocation(
                key=self.key("k"),
                application_id=app.id,
                partition=name,
                resource=dict(resource),
                priority=PRIORITIES[more % len(PRIORITIES)] if flavour >= 4 else 0,
                priority_class="high" if flavour == 6 and rm_id == "v" else "",
                tags=dict(tags) or None,
                max_allocations=2 + more % 3 if rm_id == "s" and flavour == 5 else 1,
                timeout_ms=9_000 if rm_id == "s" and flavour == 7 else 0,
            )
            for _ in range(1 + count)
        ]
        if app.independent:
            asks = []
        self.send(rm_id, asks, 6 if size == 5 and flavour != 6 else 0)

    @rule(at=small, which=small, ask=small, size=st.integers(0, 11), then=small)
    def change_ask(self, at: int, which: int, ask: int, size: int, then: int) -> None:
        rm_id, name, books = self.where(at)
        app: App | None = self.one_of({a.id: a for a in books.apps.values() if a.asks or a.allocs}, which)
        if app is None:
            return
        keys = [*app.asks, *([] if books.seed else app.allocs)]
        if not keys:
            return
        key = keys[ask % len(keys)]
        self.situations.count("ask changed")
        changed = messages.Allocation(
            key=key, application_id=app.id, partition=name, resource={"vcore": 1 + size, "memory": size // 3},
            max_allocations=1 + ask % 3 if books.seed else 1, independent=app.independent,
        )  # fmt: skip
        self.send(rm_id, [changed], then)
        self.then(then)

    @rule(at=small, which=small, ask=small, node=small, size=small, then=small)
    def place_outside(self, at: int, which: int, ask: int, node: int, size: int, then: int) -> None:
        """Recovery, or another's decision: an allocation that is simply there."""
        rm_id, name, books = self.where(at)
        app: App | None = self.one_of(books.apps, which)
        there: Node | None = self.one_of(books.nodes, node)
        if app is None or there is None or app.independent:
            return
        keys = list(app.asks)
        key = keys[ask % len(keys)] if keys and ask < 4 else self.key("k")
        self.situations.count("pending ask placed outside" if key in app.asks else "recovered allocation")
        alloc = messages.Allocation(
            key=key, application_id=app.id, partition=name, resource={"vcore": 1 + size}, node_id=there.id,
            uuid=self.key("u") if books.seed and size > 3 else "",
        )  # fmt: skip
        self.send(rm_id, [alloc], then)
        self.then(then)

    # -- releases --------------------------------------------------------------------------------------

    @rule(at=small, which=small, what=small, termination=st.integers(0, 4), then=small)
    def release(self, at: int, which: int, what: int, termination: int, then: int) -> None:
        rm_id, name, books = self.where(at)
        app: App | None = self.one_of({a.id: a for a in books.apps.values() if a.asks or a.allocs}, which)
        if app is None:
            return
        ask = self.one_of(app.asks, what)
        alloc = self.one_of(app.allocs, what)
        release = messages.Release(partition=name, application_id=app.id, termination=Termination(termination))
        if books.seed:
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
        rm_id, name, books = self.where(at)
        app: App | None = self.one_of(books.apps, which)
        if what < 3:
            for release in self.driver.confirmations(rm_id, name)[: 1 + which]:
                self.send(rm_id, [release])
        elif what < 6:
            running = [(app, alloc) for app in books.apps.values() for alloc in app.allocs.values()]
            for owner, alloc in running[which % 2 :: 2]:
                self.send(rm_id, [self._end(books, name, owner, alloc)])
        elif app is not None:
            self.send(rm_id, [messages.RemoveApplication(application_id=app.id, partition=name)], then)
        self.then(then)

    @staticmethod
    def _end(books: Books, name: str, app: App, alloc: Any) -> messages.Release:
        if books.seed:
            return messages.Release(partition=name, application_id=app.id, uuid=alloc.id, what="allocation")
        return messages.Release(partition=name, application_id=app.id, key=alloc.key)

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
            (app, alloc) for (r, name), books in driver.books.items() if r == rm_id and name not in configs.partitions(chosen)
            for app in books.apps.values() for alloc in [*app.allocs.values(), None]
        ]  # fmt: skip
        text = configs.text(chosen)
        if rm_id == "s":
            driver.call("group", "g", text)
            result, said = driver.call("reload_configuration", rm_id, now_ns=driver.now)
        else:
            request = v19.UpdateConfigurationRequest(rm_id=rm_id, config=text)
            result, said = driver.call("update_configuration", request, now_ns=driver.now)
        driver.quiet = False
        if isinstance(result, str):
            self.situations.count("reload refused")
            assert not said
        else:
            ends = {alloc.id for _, alloc in apps_of_dropped if alloc is not None}
            told = {o.uuid or o.key for _, outputs in said for o in outputs if isinstance(o, messages.Released)}
            assert ends == told, f"the ends of what ran in a dropped partition: {told}, expected {ends}"
            if apps_of_dropped:
                self.situations.count("partition dropped with applications")
            self.chosen[rm_id] = chosen
            self.open(rm_id)
        self.then(then)

    def _note_reload(self, rm_id: str, chosen: configs.Choices) -> None:
        books = self.driver.books[rm_id, "default"]
        found = configs.partitions(chosen)["default"]
        for app in books.apps.values():
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
        if how > 2:
            return
        mine = [books for (r, _), books in self.driver.books.items() if r == rm_id]
        if any(app.asks for books in mine for app in books.apps.values()):
            self.situations.count("re-registered with pending asks")
        if how == 2:
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
        """It is refused, or ignored where there is no refusal; the comparison that follows shows that nothing changed."""
        rm_id, name, books = self.where(at)
        self.driver.submit(rm_id, [bad.message(kind, name, books, which)])
        self.situations.count("bad input refused")
        self.then(then)
