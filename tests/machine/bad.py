"""Bad input, by number: each message is one that must be refused, or ignored, and must change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate, Release, RemoveApplication

from machine.books import Books

HUGE = 2**63 - 1
Maker = Callable[[str, str, str, str], Any]

_MAKERS: list[Maker] = [
    lambda p, app, node, key: Allocation(key="x", application_id="nobody-knows", partition=p, resource={"vcore": 1}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition="elsewhere", resource={"vcore": 1}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition=p, resource={"vcore": -1}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition=p, resource={"vcore": HUGE}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition=p, resource={"vcore": 2 * HUGE}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition=p, resource={"vcore": 0}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition=p, resource=None),
    lambda p, app, node, key: Allocation(key="", application_id=app, partition=p, resource={"vcore": 1}),
    lambda p, app, node, key: Allocation(key="x", application_id=app, partition=p, resource={"vcore": 1}, priority=2**40),
    lambda p, app, node, key: Allocation(
        key="x", application_id=app, partition=p, resource={"vcore": 1}, priority_class="royal"
    ),
    lambda p, app, node, key: Allocation(
        key="x", application_id=app, partition=p, resource={"vcore": 1}, max_allocations=0
    ),
    lambda p, app, node, key: Allocation(
        key="x", application_id=app, partition=p, resource={"vcore": 1}, max_allocations=2**31
    ),
    lambda p, app, node, key: Allocation(
        key="x", application_id=app, partition=p, resource={"vcore": 1}, node_id="no-such-node"
    ),
    lambda p, app, node, key: Allocation(
        key="x", application_id=app, partition=p, resource={"vcore": 1}, tags={"licorne/node-constraints": "{broken"}
    ),
    lambda p, app, node, key: Allocation(key=key, application_id=app, partition=p, resource={"vcore": HUGE}),
    lambda p, app, node, key: AddApplication(application_id=app, partition=p, queue="root.a", user="alice"),
    lambda p, app, node, key: AddApplication(application_id="", partition=p, queue="root.a", user="alice"),
    lambda p, app, node, key: AddApplication(application_id="x", partition=p, queue="root.a", user=""),
    lambda p, app, node, key: AddApplication(application_id="x", partition="elsewhere", queue="root.a", user="alice"),
    lambda p, app, node, key: AddApplication(
        application_id="x", partition=p, queue="root.a", user="alice", placeholder_ask={"vcore": 2 * HUGE}
    ),
    lambda p, app, node, key: AddApplication(
        application_id="x", partition=p, queue="root.a", user="alice", placeholder_ask={"vcore": -1}
    ),
    lambda p, app, node, key: AddApplication(application_id="x", partition=p, queue="root.no.such", user="zoë ; drop"),
    lambda p, app, node, key: RemoveApplication(application_id="nobody-knows", partition=p),
    lambda p, app, node, key: RemoveApplication(application_id=app, partition="elsewhere"),
    lambda p, app, node, key: Release(application_id=app, key="nothing", partition=p),
    lambda p, app, node, key: Release(application_id="nobody-knows", key=key, partition=p),
    lambda p, app, node, key: Release(application_id="", key="nothing", partition=p),
    lambda p, app, node, key: Release(application_id="", key="nothing", partition=p, what="ask"),
    lambda p, app, node, key: Release(application_id="", uuid="nothing", partition=p, what="allocation"),
    lambda p, app, node, key: Release(application_id=app, key=key, partition="elsewhere"),
    lambda p, app, node, key: NodeUpdate(node_id=node, action=NodeAction.CREATE, partition=p, capacity={"vcore": 1}),
    lambda p, app, node, key: NodeUpdate(node_id="", action=NodeAction.CREATE, partition=p, capacity={"vcore": 1}),
    lambda p, app, node, key: NodeUpdate(node_id="x", action=NodeAction.CREATE, partition=p, capacity={"vcore": -1}),
    lambda p, app, node, key: NodeUpdate(node_id="x", action=NodeAction.CREATE, partition=p, capacity={"vcore": 2 * HUGE}),
    lambda p, app, node, key: NodeUpdate(
        node_id="x", action=NodeAction.CREATE, partition=p, capacity={"vcore": 1}, attributes={"taints": "{broken"}
    ),
    lambda p, app, node, key: NodeUpdate(node_id=node, action=NodeAction.UPDATE, partition=p, capacity={"vcore": -1}),
    lambda p, app, node, key: NodeUpdate(node_id=node, action=NodeAction.UPDATE, partition=p, capacity={"vcore": HUGE}),
    lambda p, app, node, key: NodeUpdate(
        node_id=node, action=NodeAction.UPDATE, partition=p, capacity={"vcore": 1}, attributes={"taints": "{broken"}
    ),
    lambda p, app, node, key: NodeUpdate(node_id="nobody-knows", action=NodeAction.DRAIN_NODE, partition=p),
    lambda p, app, node, key: NodeUpdate(node_id="nobody-knows", action=NodeAction.DECOMISSION, partition=p),
    lambda p, app, node, key: NodeUpdate(node_id=node, action=NodeAction.UNKNOWN, partition=p),
    lambda p, app, node, key: NodeUpdate(node_id=node, action=NodeAction.DECOMISSION, partition="elsewhere"),
    lambda p, app, node, key: Allocation(key="x", partition=p, resource={"vcore": 1}, tags={"foreign": "static"}),
    lambda p, app, node, key: Allocation(
        key="x", partition=p, resource={"vcore": 1}, tags={"foreign": "static"}, node_id="nobody-knows"
    ),
    lambda p, app, node, key: Allocation(
        key="x", partition=p, resource={"vcore": -1}, tags={"foreign": "static"}, node_id=node
    ),
    lambda p, app, node, key: Allocation(
        key="x", partition=p, resource={"vcore": 2 * HUGE}, tags={"foreign": "static"}, node_id=node
    ),
    lambda p, app, node, key: Allocation(
        key="x", application_id="x", partition=p, resource={"vcore": HUGE}, independent=True
    ),
]

KINDS = len(_MAKERS)


def message(kind: int, partition: str, books: Books, which: int) -> Any:
    """The bad message of this number; it names what is there, where it has to."""
    apps, nodes = list(books.apps.values()), list(books.nodes)
    app = apps[which % len(apps)] if apps else None
    key = next(iter(app.asks), "x") if app else "x"
    node = nodes[which % len(nodes)] if nodes else "nobody-knows"
    return _MAKERS[kind](partition, app.id if app else "nobody-knows", node, key)
