"""Gangs without placeholders in the machine: how they come, and a naive answer to why one waits (invariant 12).

Which application is a gang that has not started is read from the product, as are the nodes that are held.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from licorne.si import messages
from machine.amounts import Amounts, plus
from machine.things import App, Ask

if TYPE_CHECKING:
    from machine.work import Usage
    from machine.world import World

SIZE_MAX = 4
"""A gang has no more members: a call with a limit may make that many less one more allocations."""


def arrive(world: World, at: int, queue: int, user: int, count: int, size: int) -> None:
    """A gang with all members, or all but one, all alike."""
    rm_id, name, expected = world.where(at)
    if len(expected.apps) >= 9:
        return
    need = 1 + count % SIZE_MAX
    add = world.application(rm_id, name, queue, user, 0)
    groups = [{"name": "w", "minMember": need, "minResource": {}}]
    add.tags = add.tags | {"gang.scheduling": "atomic", "yunikorn.apache.org/task-groups": json.dumps(groups)}
    world.send(rm_id, [add])
    world.driver.check()
    if add.application_id in expected.apps:
        members = need - (count > 5)
        asks = [
            messages.Allocation(
                key=world.key("w"),
                application_id=add.application_id,
                partition=name,
                resource={"vcore": 1 + size % 6},
                task_group="w",
                timeout_ms=5000 if rm_id == "s" and user % 2 else 0,
            )
            for _ in range(members)
        ]
        world.send(rm_id, asks)


def holds(partition: Any) -> bool:
    """Tell whether nodes are held for a gang."""
    return partition.atomic.backfill.hold is not None


def held(usage: Usage, node_id: str) -> bool:
    """Tell whether the node is held for a gang."""
    partition: Any = usage.partition
    return bool(partition.atomic.backfill.holds(partition.nodes[node_id]))


def why_wait(usage: Usage, app: App, quota: Callable[[Usage, App, Ask], str]) -> str:
    """Why a gang waits; "-" for what is none, or has started; empty if it could start, and then it is a fault."""
    core = usage.partition.applications[app.id]
    if core.atomic is None:
        return "-"
    need: int = core.atomic.needs["w"] - sum(a.task_group == "w" for a in core.allocations.values())
    pending = [core.asks[key] for key in app.asks if core.asks[key].task_group == "w"]
    pending.sort(key=lambda ask: (-ask.priority, ask.created, ask.seq))
    members = [app.asks[ask.key] for ask in pending for _ in range(ask.repeats)][: max(0, need)]
    if len(members) < need:
        return "gang is not complete"
    total: Amounts = {}
    for member in members:
        total = plus(total, member.resource)
    if quota(usage, app, Ask("", total, 1, 0, 0, 0, 0, "")):
        return "gang: quota"
    return "gang: nodes" if any(m.resource != members[0].resource for m in members) else _nodes(usage, app, members)


def _nodes(usage: Usage, app: App, members: list[Ask]) -> str:
    """How many members, all alike, do the nodes hold that are open to the gang?"""
    hold = usage.partition.atomic.backfill.hold
    mine = hold is not None and hold.app.id == app.id
    room = 0
    for node in usage.expected.nodes.values():
        core = usage.partition.nodes[node.id]
        if not node.schedulable or core.reservations or (held(usage, node.id) and not mine):
            continue
        if usage.expected.has_room(members[0], node) and usage.expected.meets(members[0], node):
            free = usage.expected.free(node)
            room += min(free.get(name, 0) // amount for name, amount in members[0].resource.items() if amount)
    return "gang: nodes" if room < len(members) else ""
