"""The invariants of atomic gangs and of the nodes held for one (7, 9, 10 and 12), checked from first principles.

A part of `licorne.core.inspection.validate`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from licorne.core.base.states import ApplicationState
from licorne.core.constants import AWAITS_GANG
from licorne.core.queues.ask import total_amounts

from .plans import short_of

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application


def validate_gangs(partition: Partition) -> None:
    """Check the atomic gangs of a partition, its hold, and which nodes are open.

    Raises:
        AssertionError: the first contradiction found.
    """
    for app in partition.applications.values():
        _gang(partition, app)
    _hold(partition)
    backfill = partition.atomic.backfill
    for node in partition.nodes.values():
        free = node.schedulable and not node.reservations and not backfill.holds(node)
        assert node.open == free, f"invariant 9: whether node {node.id} is open"


def _gang(partition: Partition, app: Application) -> None:
    parked = [ask for ask in app.asks.values() if ask.parked == AWAITS_GANG]
    gang = app.atomic
    if app.lasting is not None:
        running = Counter(alloc.task_group for alloc in app.allocations.values())
        assert app.lasting.running == running, f"invariant 7: how many members of gang {app.id} run"
    if gang is None:
        assert not parked, f"invariant 7: asks of application {app.id} wait for a gang that it is not"
        return
    assert len(parked) == len(app.asks), f"invariant 10: gang {app.id} has asks that do not wait for it"
    ordinary = [ask.key for ask in app.reservations.values() if ask not in partition.claims.by_ask]
    assert not ordinary, f"invariant 10: gang {app.id} has reserved a node before it started: {ordinary}"
    wanted = {name: [a for a in app.requests.in_order() if a.task_group == name] for name in gang.needs}
    for name, asks in gang.pending(app).items():
        assert list(dict.fromkeys(asks)) == wanted[name], f"invariant 7: group {name} of gang {app.id}"
    waits = app in partition.parking.gangs
    held = partition.atomic.backfill.hold_of(gang) is not None
    assert waits or not held, f"invariant 9: gang {app.id} holds nodes and is not among those that wait for some"
    if waits and not held and not gang.stale and app.state is not ApplicationState.FAILING:
        assert gang.members(app), f"invariant 10: gang {app.id} waits for nodes and is not ready"
    if app.heap_index < 0 and not waits:
        members = gang.members(app)
        ready = bool(members) and app.queue.reachable and not short_of(app, total_amounts(members or []))
        blocked = any(app in q.blocked for q in app.queue.lineage()) or any(app in t.blocked for t in app.trackers)
        assert not ready or blocked, f"invariant 12: gang {app.id} sleeps, and waits for nothing"


def _hold(partition: Partition) -> None:
    hold = partition.atomic.backfill.hold
    if hold is None:
        return
    assert hold.nodes, "invariant 9: a gang holds no node"
    assert hold.timer is not None and hold.timer[3] is hold, f"invariant 9: the hold of {hold.app.id} never ends"
    assert hold.app.atomic is hold.gang, f"invariant 9: {hold.app.id} has started and holds nodes"
    planned = {node for _, node in hold.plan.placing}
    assert all(node in planned for node in hold.nodes), f"invariant 9: {hold.app.id} holds a node without a plan"
