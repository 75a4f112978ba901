"""Bad input, by number: each message is one that must be refused, or ignored, and must change nothing."""

from __future__ import annotations

from typing import Any

from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate, Release, RemoveApplication
from machine.expected import ExpectedState

HUGE = 2**63 - 1


def _all(p: str, app: str, node: str, key: str) -> list[Any]:
    """Every bad message; partition, application, node and ask exist, or have unknown names where there is none."""
    return [
        Allocation(key="x", application_id="nobody-knows", partition=p, resource={"vcore": 1}),
        Allocation(key="x", application_id=app, partition="elsewhere", resource={"vcore": 1}),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": -1}),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": HUGE}),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 2 * HUGE}),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 0}),
        Allocation(key="x", application_id=app, partition=p, resource=None),
        Allocation(key="", application_id=app, partition=p, resource={"vcore": 1}),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 1}, priority=2**40),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 1}, priority_class="royal"),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 1}, max_allocations=0),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 1}, max_allocations=2**31),
        Allocation(key="x", application_id=app, partition=p, resource={"vcore": 1}, node_id="no-such-node"),
        Allocation(
            key="x",
            application_id=app,
            partition=p,
            resource={"vcore": 1},
            tags={"licorne/node-constraints": "{broken"},
        ),
        Allocation(key=key, application_id=app, partition=p, resource={"vcore": HUGE}),
        AddApplication(application_id=app, partition=p, queue="root.a", user="alice"),
        AddApplication(application_id="", partition=p, queue="root.a", user="alice"),
        AddApplication(application_id="x", partition=p, queue="root.a", user=""),
        AddApplication(application_id="x", partition="elsewhere", queue="root.a", user="alice"),
        AddApplication(
            application_id="x", partition=p, queue="root.a", user="alice", placeholder_ask={"vcore": 2 * HUGE}
        ),
        AddApplication(application_id="x", partition=p, queue="root.a", user="alice", placeholder_ask={"vcore": -1}),
        AddApplication(application_id="x", partition=p, queue="root.no.such", user="zoë ; drop"),
        RemoveApplication(application_id="nobody-knows", partition=p),
        RemoveApplication(application_id=app, partition="elsewhere"),
        Release(application_id=app, key="nothing", partition=p),
        Release(application_id="nobody-knows", key=key, partition=p),
        Release(application_id="", key="nothing", partition=p),
        Release(application_id="", key="nothing", partition=p, what="ask"),
        Release(application_id="", uuid="nothing", partition=p, what="allocation"),
        Release(application_id=app, key=key, partition="elsewhere"),
        NodeUpdate(node_id=node, action=NodeAction.CREATE, partition=p, capacity={"vcore": 1}),
        NodeUpdate(node_id="", action=NodeAction.CREATE, partition=p, capacity={"vcore": 1}),
        NodeUpdate(node_id="x", action=NodeAction.CREATE, partition=p, capacity={"vcore": -1}),
        NodeUpdate(node_id="x", action=NodeAction.CREATE, partition=p, capacity={"vcore": 2 * HUGE}),
        NodeUpdate(
            node_id="x", action=NodeAction.CREATE, partition=p, capacity={"vcore": 1}, attributes={"taints": "{broken"}
        ),
        NodeUpdate(node_id=node, action=NodeAction.UPDATE, partition=p, capacity={"vcore": -1}),
        NodeUpdate(node_id=node, action=NodeAction.UPDATE, partition=p, capacity={"vcore": HUGE}),
        NodeUpdate(
            node_id=node, action=NodeAction.UPDATE, partition=p, capacity={"vcore": 1}, attributes={"taints": "{broken"}
        ),
        NodeUpdate(node_id="nobody-knows", action=NodeAction.DRAIN_NODE, partition=p),
        NodeUpdate(node_id="nobody-knows", action=NodeAction.DECOMISSION, partition=p),
        NodeUpdate(node_id=node, action=NodeAction.UNKNOWN, partition=p),
        NodeUpdate(node_id=node, action=NodeAction.DECOMISSION, partition="elsewhere"),
        Allocation(key="x", partition=p, resource={"vcore": 1}, tags={"foreign": "static"}),
        Allocation(key="x", partition=p, resource={"vcore": 1}, tags={"foreign": "static"}, node_id="nobody-knows"),
        Allocation(key="x", partition=p, resource={"vcore": -1}, tags={"foreign": "static"}, node_id=node),
        Allocation(key="x", partition=p, resource={"vcore": 2 * HUGE}, tags={"foreign": "static"}, node_id=node),
        Allocation(key="x", application_id="x", partition=p, resource={"vcore": HUGE}, independent=True),
    ]


KINDS = len(_all("", "", "", ""))


def message(kind: int, partition: str, expected: ExpectedState, which: int) -> Any:
    """The bad message of this number; it names what is there, where it has to."""
    apps, nodes = list(expected.apps.values()), list(expected.nodes)
    app = apps[which % len(apps)] if apps else None
    key = next(iter(app.asks), "x") if app else "x"
    node = nodes[which % len(nodes)] if nodes else "nobody-knows"
    return _all(partition, app.id if app else "nobody-knows", node, key)[kind]
