"""Gangs in scenarios: every second scenario has some, drawn from a generator of their own."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from licorne.si.constants import TAG_NODE_CONSTRAINTS
from licorne.si.messages import AddApplication, Allocation, Input, Release, Termination
from reference import gangs
from reference.model import App, Ask, Partition

if TYPE_CHECKING:
    from reference.clusters import Manager, Scenario


class GangSteps:
    """The steps of one scenario that have to do with placeholders."""

    def __init__(self, seed: int, scenario: Scenario) -> None:
        self.rng = random.Random(f"gangs {seed}")
        self.scenario = scenario
        self.often = self.rng.choice([0.25, 0.5]) if seed % 2 else 0.0

    def step(self, manager: Manager, partition: Partition) -> list[Input] | None:
        """Messages, or None: this one is as without gangs."""
        if self.rng.random() >= self.often:
            return None
        draws: list[tuple[float, Callable[[Manager, Partition], list[Input]]]] = [
            (2, self._gang),
            (2, self._places),
            (4, self._members),
            (5, self._confirmations),
            (1, self._withdrawals),
            (1, self._resizes),
            (0.7, self._bound),
        ]
        return self.rng.choices([draw for _, draw in draws], [weight for weight, _ in draws])[0](manager, partition)

    def _gang(self, manager: Manager, partition: Partition) -> list[Input]:
        """An application that announces some placeholders, and asks for them at once."""
        rng = self.rng
        number = rng.choice([1, 2, 2, 3, 4, 8])
        amounts = self._amounts()
        add: AddApplication = self.scenario._app_add(manager, partition)
        add.application_id = self.scenario._name("gang")
        fifo = [q.path for q in partition.root.walk() if q.leaf and q.settings.sort_policy != "fair" and not q.maximum]
        if fifo and rng.random() < 0.8:
            add.queue = rng.choice(fifo)
        add.placeholder_ask = {name: amount * number for name, amount in amounts.items()}
        if rng.random() < 0.2:
            add.placeholder_ask = rng.choice([{}, {"vcore": 9}])
        add.gang_style = rng.choice(["Hard", "Soft", ""])
        add.execution_timeout_ms = rng.choice([0, 3000, 5000, 20000])
        add.timeout_is_running_time = manager.first_interface
        return [add, *(self._ask(manager, partition, add.application_id, amounts, place=True) for _ in range(number))]

    def _amounts(self) -> dict[str, int]:
        return self.rng.choice([{"vcore": 1}, {"vcore": 2}, {"vcore": 2, "memory": 2}, {"vcore": 3, "memory": 1}])

    def _ask(
        self, manager: Manager, partition: Partition, app: str, amounts: dict[str, int], *, place: bool
    ) -> Allocation:
        rng = self.rng
        tags: dict[str, str] = {}
        if rng.random() < (0.05 if place else 0.4):
            selector = rng.choice([{"nodeSelector": {"zone": "z1"}}, {"nodeSelector": {"zone": "z2"}}])
            tags[TAG_NODE_CONSTRAINTS] = json.dumps(selector)
        return Allocation(
            key=self.scenario._name("place" if place else "member"),
            application_id=app,
            partition=partition.name,
            resource=dict(amounts),
            priority=0 if place else rng.choice([0, 0, 1]),
            tags=tags or None,
            max_allocations=rng.choice([1, 1, 2]) if manager.first_interface else 1,
            timeout_ms=rng.choice([2000, 15000]) if manager.first_interface and rng.random() < 0.05 else 0,
            task_group=rng.choice(["g", "g", "g", "h"]),
            placeholder=place,
        )

    def _some(self, partition: Partition, count: int) -> list[App]:
        """Rather applications with placeholders."""
        apps = [app for app in partition.apps.values() if app.gang.announced or app.gang.timeout_ns]
        apps = apps or list(partition.apps.values())
        return self.rng.sample(apps, min(count, len(apps)))

    def _places(self, manager: Manager, partition: Partition) -> list[Input]:
        apps = self._some(partition, 1)
        return [self._ask(manager, partition, app.id, self._amounts(), place=True) for app in apps]

    def _members(self, manager: Manager, partition: Partition) -> list[Input]:
        found: list[Input] = []
        for app in self._some(partition, 2):
            for _ in range(self.rng.randint(1, 3)):
                sizes = [a.amounts for a in app.allocations.values() if a.placeholder] or [self._amounts()]
                amounts = self.rng.choice(sizes) if self.rng.random() < 0.7 else self._amounts()
                found.append(self._ask(manager, partition, app.id, amounts, place=False))
        return found

    def _confirmations(self, manager: Manager, partition: Partition) -> list[Input]:
        """Confirm ends that the scheduler asked for, mostly with the type that it asked for."""
        found: list[Input] = []
        for alloc in partition.allocations():
            if not (alloc.released or alloc.preempted) or self.rng.random() < 0.2:
                continue
            wanted = Termination.PREEMPTED_BY_SCHEDULER if alloc.preempted else Termination.TIMEOUT
            if gangs.flying_for(alloc) is not None:
                wanted = Termination.PLACEHOLDER_REPLACED
            if self.rng.random() < 0.1:
                wanted = self.rng.choice([Termination.PLACEHOLDER_REPLACED, Termination.TIMEOUT, Termination.UNKNOWN])
            found += [self.scenario._release(manager, partition, alloc, wanted)] * self.rng.choice([1, 1, 1, 2])
        return found

    def _flying(self, partition: Partition) -> list[Ask]:
        return [real for app in partition.apps.values() for real in app.gang.flying]

    def _withdrawals(self, manager: Manager, partition: Partition) -> list[Input]:
        what = "ask" if manager.first_interface else "both"
        return [
            Release(partition=partition.name, application_id=real.app.id, key=real.key, what=what)
            for real in self._flying(partition)[:2]
        ]

    def _resizes(self, manager: Manager, partition: Partition) -> list[Input]:
        if manager.first_interface:
            return []
        places = [real.place for real in self._flying(partition) if real.place]
        chosen = self.rng.sample([*self._flying(partition), *places], min(1, len(places)))
        return [
            Allocation(
                key=ask.key,
                application_id=ask.app.id,
                partition=partition.name,
                resource=self._amounts(),
                task_group=ask.task_group,
                placeholder=ask.placeholder,
            )
            for ask in chosen
        ]

    def _bound(self, manager: Manager, partition: Partition) -> list[Input]:
        """Placed by the resource manager: one in flight, or after a restart a placeholder."""
        if not partition.nodes:
            return []
        node = self.rng.choice(list(partition.nodes))
        found: list[Any] = []
        for app in self._some(partition, 1):
            message = self._ask(manager, partition, app.id, self._amounts(), place=self.rng.random() < 0.6)
            message.node_id, message.max_allocations = node, 1
            flying = [real.key for real in app.gang.flying]
            if flying and not manager.first_interface:
                message.key, message.placeholder = flying[0], False
            found.append(message)
        return found
