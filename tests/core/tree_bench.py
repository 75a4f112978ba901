"""Shared by tests of the queue tree: short configurations, and a tree with the accounting of a running scheduler."""

from __future__ import annotations

from typing import Any

from licorne.config.model import QueueConfig
from licorne.core.amounts.types import Types
from licorne.core.base.timers import Timers
from licorne.core.constants import UNLIMITED
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.needs import Needs
from licorne.core.nodes.node import ScorePolicy, first_need
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.queue import Queue
from licorne.core.queues.tree import Tree
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking

PROPERTIES = {
    "application.sort.policy": "fair",
    "application.sort.priority": "disabled",
    "priority.policy": "fence",
    "priority.offset": "7",
    "preemption.policy": "fence",
    "preemption.delay": "1m",
}


def queue(name: str, *children: QueueConfig, **fields: Any) -> QueueConfig:
    fields.setdefault("parent", bool(children))
    return QueueConfig(name, children=children, **fields)


def root(*children: QueueConfig, **fields: Any) -> QueueConfig:
    return queue("root", *children, parent=True, **fields)


class Bench:
    """A tree with accounting, so that sums, priorities and orders are those of the running scheduler."""

    def __init__(self, config: QueueConfig) -> None:
        self.types = Types()
        self.types.slot("vcore")
        self.tree = Tree(config, self.types)
        self.parking = Parking(Timers(), UNLIMITED)
        index = NodeIndex(ScorePolicy("fair", []))
        self.accounting = Accounting(self.parking, index, self.types, Needs(index))
        self.wakeups = self.accounting.wakeups
        self.need = first_need()
        self.apps: dict[str, Application] = {}

    def __getitem__(self, path: str) -> Queue:
        found = self.tree.find(path)
        assert found is not None
        return found

    def app(self, id: str, path: str, submitted: int = 0) -> Application:
        app = Application(id, len(self.apps), submitted, self[path], "user")
        self.apps[id] = self[path].apps[id] = app
        return app

    def ask(self, app: Application, key: str, priority: int = 0, vcore: int = 1) -> Ask:
        amounts = {"vcore": vcore}
        shape = Shape(self.types.vector(amounts), amounts, self.need)
        ask = Ask(key, app, shape, priority, 0, 0)
        self.accounting.pend(app, ask)
        return ask

    def resize(self, **amounts: int) -> None:
        self.tree.set_total(self.types.vector(amounts))
        self.tree.reweigh()

    def order(self, path: str) -> list[str]:
        """The items of the queue's order, first to last: taken out one by one."""
        items = list(self[path].order.items)
        rest, found = list(items), []
        while rest:
            self[path].order.refill(rest)
            first = self[path].order.items[0]
            found.append(getattr(first, "name", "") or getattr(first, "id", ""))
            rest.remove(first)
        self[path].order.refill(items)
        return found


def facts(queue: Queue) -> tuple[Any, ...]:
    """All that a configuration decides about a queue."""
    return (
        queue.path,
        queue.is_leaf,
        queue.reachable,
        str(queue.state),
        queue.limit.named(queue.types),
        queue.guaranteed.named(queue.types),
        queue.weights.named(queue.types),
        queue.max_resource(),
        queue.guaranteed_resource(),
        queue.max_apps,
        queue.settings,
        queue.properties,
        (queue.offset, queue.fence, queue.by_priority, queue.fair, queue.stateaware, queue.backoff_after),
        (queue.submit_acl, queue.admin_acl, queue.template, queue.inherited_template),
        queue.priority,
        queue.share,
    )
