"""Rules that fill the cluster, and then ask for the amounts that a queue is guaranteed (docs/spec/preemption.md, section 2)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from licorne.si import messages
from machine import configs
from machine.driver import SECOND_NS
from machine.world import World

small = st.integers(0, 7)
FILLERS = (8, 6, 4, 4, 2, 2, 1, 1)
VICTIMS = ([3, 3], [5], [2, 3], [4, 4], [3, 3, 3], [1, 2, 2], [2, 2, 2, 2], [7, 1])
"""What the other queue runs in a contest: it is guaranteed 4, so that one or none of them may go."""


class Squeezes(World):
    """The rules."""

    @rule(at=small, full=small, user=small, size=small, then=small)
    def squeeze(self, at: int, full: int, user: int, size: int, then: int) -> None:
        """One queue takes what there is; an ask in another one with a guarantee is old enough to preempt."""
        driver = self.driver
        expected = driver.expected["v", "default"]
        queues = driver.queues["v", "default"]
        wants, fills = ("root.b.b1", "root.c") if at % 2 else ("root.c", "root.b.b1")
        if not (queues.get(wants) or {}).get("guaranteed"):
            wants, fills = fills, wants
        least = (queues.get(wants) or {}).get("guaranteed")
        if not least:
            return
        if len(expected.apps) > 9 or sum(len(app.asks) for app in expected.apps.values()) > 24:
            return
        for app in [app for app in expected.apps.values() if app.queue == wants]:
            self.send("v", [messages.RemoveApplication(application_id=app.id)])
            self.after()
        if full > 3:  # little of it may be taken, and the rest not at all
            self._ask_in(fills, user, [5 + full], old=False)
            driver.schedule()
            self._ask_in("root.dyn.team", user, list(FILLERS), old=False, priority=9)
        else:
            fills = (fills, "root.b.b2", fills, "root.a")[full % 4]
            self._ask_in(fills, user, [amount * (1 + full // 4) for amount in FILLERS], old=False)
        driver.schedule()
        self.after()
        self._ask_in(wants, user + 1 + size % 2, [1 + size % least.get("vcore", 1), *([1] if at > 5 else [])], old=True)
        driver.schedule()
        self.then(then)

    @rule(at=small, user=small, victim=small, size=small, then=small)
    def contest(self, at: int, user: int, victim: int, size: int, then: int) -> None:
        """Two queues have a guarantee of 4: one uses somewhat more, the other lacks it, and other queues use the rest."""
        driver = self.driver
        expected = driver.expected["v", "default"]
        guaranteed = {"b1": (0, "fifo", 0, 0, 2), "c": (0, 2)}
        if at > 1 or not self.configure("v", {**configs.PLAIN, "binpacking": size > 3, **guaranteed}):
            return
        for app in list(expected.apps.values()):
            self.send("v", [messages.RemoveApplication(application_id=app.id)])
            self.after()
        wants, fills = ("root.b.b1", "root.c") if at else ("root.c", "root.b.b1")
        self._ask_in(fills, user, VICTIMS[victim], old=False)
        driver.schedule()
        self.after()
        free = [
            node.capacity.get("vcore", 0) - expected.used[node.id].get("vcore", 0) for node in expected.nodes.values()
        ]
        self._ask_in("root.dyn.team", user, sorted([a for a in free if a > 0], reverse=True), old=False, priority=9)
        driver.schedule()
        self.after()
        self._ask_in(wants, user + 1, [1 + size % 4], old=True)
        driver.schedule()
        self.then(then)

    def _ask_in(self, queue: str, user: int, amounts: list[int], *, old: bool, priority: int = 0) -> None:
        driver = self.driver
        add = self.application("v", "default", 0, user, 0)
        add.queue = queue
        self.send("v", [add])
        self.after()
        tags = {"creationTime": str(driver.now // SECOND_NS - 100)} if old else None
        if add.application_id in driver.expected["v", "default"].apps:
            asks = [
                messages.Allocation(
                    key=self.key("k"), application_id=add.application_id, resource={"vcore": amount}, tags=tags,
                    priority=priority, allow_preempt_other=old, allow_preempt_self=amount != 6,
                )
                for amount in amounts
            ]  # fmt: skip
            self.send("v", asks)
            self.after()
