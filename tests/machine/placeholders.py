"""Gangs with placeholders in the machine: how they come, and what may happen to them. Their records: `machine.flights`."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from licorne.si import messages
from licorne.si.messages import Termination
from machine.amounts import CONSTRAINTS
from machine.driver import SECOND_NS
from machine.expected import ExpectedState
from machine.things import App, Node
from machine.world import World

small = st.integers(0, 7)
ENDS = (Termination.TIMEOUT, Termination.STOPPED_BY_RM, Termination.PREEMPTED_BY_SCHEDULER)


class Placeholders(World):
    """The rules."""

    @rule(at=small, queue=small, user=small, count=small, size=small, more=small, then=small)
    def placeholder_gang(self, at: int, queue: int, user: int, count: int, size: int, more: int, then: int) -> None:
        """An application with one or two task groups, all placeholders or all but one, and often real asks too."""
        rm_id, name, expected = self.where(at)
        if len(expected.apps) >= 9:
            return
        groups = {"g": 1 + count % 3, "h": count // 4}
        amount = 1 + size % 4
        leaves = [q.path for q in self.driver.partition(rm_id, name).tree.queues() if q.is_leaf and not q.fair]
        add = self.application(rm_id, name, 0, user, 0)
        add.queue = leaves[queue % len(leaves)] if leaves else "root.c"
        add.placeholder_ask = {"vcore": amount * sum(groups.values())}
        add.gang_style = "Hard" if more % 2 else "Soft"
        add.execution_timeout_ms = (0, 9_000, 25_000, 60_000)[more // 2]
        add.timeout_is_running_time = rm_id == "s" and user > 5
        self.send(rm_id, [add])
        self.driver.check()
        app = expected.apps.get(add.application_id)
        if app is None:
            return
        for group, number in groups.items():
            self._ask_of(rm_id, name, app, group, number - (count in (1, 4, 5)), amount, 0, placeholder=True)
        if size > 1:
            if size > 3:
                self.driver.schedule()
                self.after()
            larger = size == 7
            self._ask_of(
                rm_id, name, app, "g", 1 + more % 4, max(1, amount - size % 2 + larger), more, placeholder=False
            )
        self.then(then)
        if then < 2:  # its time is over
            self.driver.advance(61 * SECOND_NS)
            self.then(7)
        elif then > 4:
            self.confirm(at, queue, count, size, then)

    @rule(at=small, which=small, count=small, size=small, more=small, then=small)
    def member(self, at: int, which: int, count: int, size: int, more: int, then: int) -> None:
        """Real asks of a task group, now and then placeholders, or ones of a task group that there is not."""
        rm_id, name, expected = self._where(at)
        app = self._gang(expected, which)
        if app is not None:
            group = ("g", "g", "g", "h", "h", "other")[more % 6]
            self._ask_of(rm_id, name, app, group, 1 + count % 3, 1 + size % 5, more, placeholder=count == 7)
        self.then(then)

    @rule(at=small, which=small, what=small, termination=small, then=small)
    def end_placeholder(self, at: int, which: int, what: int, termination: int, then: int) -> None:
        """See `confirm`."""
        self.confirm(at, which, what, termination, then)

    def confirm(self, at: int, which: int, what: int, termination: int, then: int) -> None:
        """Confirm ends that the scheduler asked for: the last first, twice, with another type; or ends that were not asked for."""
        rm_id, name, expected = self._where(at)
        ending = [(a, alloc) for a in expected.apps.values() for alloc in a.allocs.values() if alloc.ending]
        flying = [(a, alloc) for a, alloc in ending if alloc.id in a.flights]
        chosen = (flying or ending)[:: -1 if which % 2 else 1][: 1 + which // 2]
        for app, alloc in chosen:
            kind = Termination.PLACEHOLDER_REPLACED if termination < 5 else ENDS[termination - 5]
            self.situations.met["placeholder replaced"] += alloc.id in app.flights and termination < 5
            release = self._end(expected, name, app, alloc.key, alloc.id, kind)
            self.send(rm_id, [release])
            self.driver.check()
            if what == 0:
                self.send(rm_id, [release])
                self.driver.check()
        if what == 1:
            running = [(a, alloc) for a in expected.apps.values() for alloc in a.allocs.values() if not alloc.ending]
            for app, alloc in running[which : which + 1]:
                kind = Termination.PLACEHOLDER_REPLACED
                self.send(rm_id, [self._end(expected, name, app, alloc.key, alloc.id, kind)])
        app_or_none: App | None = self.one_of(expected.apps, which)
        if what == 2 and app_or_none is not None:
            nobody = self._end(expected, name, app_or_none, "nobody", "nobody", Termination.PLACEHOLDER_REPLACED)
            self.send(rm_id, [nobody])
        self.then(then)

    @rule(at=small, which=small, what=small, size=small, then=small)
    def meanwhile(self, at: int, which: int, what: int, size: int, then: int) -> None:
        """A real one is in flight: it, its placeholder or a node changes or goes before the confirmation."""
        rm_id, name, expected = self._where(at)
        flying = [(app, place) for app in expected.apps.values() for place in app.flights]
        if not flying:
            return
        app, place = flying[which % len(flying)]
        flight, alloc = app.flights[place], app.allocs[place]
        self.situations.count("changed in flight")
        message: Any = messages.Allocation(
            key=flight.ask.key, application_id=app.id, partition=name, resource={"vcore": 1 + size}
        )
        if what == 1 and not expected.first_interface:
            message.key = alloc.key
        elif what == 2:
            there: Node = self.one_of(expected.nodes, size)
            message.node_id = there.id
        elif what in (3, 4):
            message = messages.Release(partition=name, application_id=app.id, key=flight.ask.key if what == 3 else "")
            message.what = "ask" if expected.first_interface else "both"
        elif what in (5, 6):
            node_id = alloc.node if what == 5 else flight.node
            message = messages.NodeUpdate(node_id=node_id, action=messages.NodeAction.DECOMISSION, partition=name)
        self.send(rm_id, [message])
        self.then(then)

    def _where(self, number: int) -> tuple[str, str, ExpectedState]:
        """A partition: one in which something is in flight or, if there is none, one with a gang."""
        known = [(*key, expected) for key, expected in self.driver.expected.items()]
        flying = [each for each in known if any(app.flights for app in each[2].apps.values())]
        gangs = [each for each in known if any(app.gang for app in each[2].apps.values())]
        found = flying or gangs
        return found[number % len(found)] if found else self.where(number)

    @staticmethod
    def _gang(expected: ExpectedState, which: int) -> App | None:
        gangs = [app for app in expected.apps.values() if app.gang is not None]
        return gangs[which % len(gangs)] if gangs else None

    @staticmethod
    def _end(
        expected: ExpectedState, name: str, app: App, key: str, id_: str, termination: Termination
    ) -> messages.Release:
        release = messages.Release(partition=name, application_id=app.id, termination=termination)
        if expected.first_interface:
            release.uuid, release.what = id_, "allocation"
        else:
            release.key = key
        return release

    def _ask_of(
        self, rm_id: str, name: str, app: App, group: str, count: int, amount: int, more: int, *, placeholder: bool
    ) -> None:
        """Asks of a task group; `more` is what is special about real ones."""
        tags: dict[str, str] = {}
        constraint = 0 if placeholder else (0, 0, 0, 0, 1, 2, 3, 0)[more]
        if constraint:
            tags = {"licorne/node-constraints": CONSTRAINTS[constraint], "constraint": str(constraint)}
        asks = [
            messages.Allocation(
                key=self.key("p" if placeholder else "m"),
                application_id=app.id,
                partition=name,
                resource={"vcore": amount},
                task_group=group,
                placeholder=placeholder,
                priority=3 if more == 7 else 0,
                tags=tags or None,
                max_allocations=2 if rm_id == "s" and more % 2 else 1,
            )
            for _ in range(count)
        ]
        if len(app.asks) < 8:
            self.send(rm_id, asks)
            self.driver.check()
