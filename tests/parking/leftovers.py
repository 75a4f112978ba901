"""Invariant 12 in a cluster in which nothing runs: an ask waits only if it cannot run there at all.

A naive answer over plain dicts, with no need of a second scheduler. From the product are read, as data: nodes, maxima, limits
and states of applications.
"""

from __future__ import annotations

from typing import Any

from licorne.core.base.states import ApplicationState

Amounts = dict[str, int]


def unexplained(partition: Any) -> list[str]:
    """The pending asks that nothing keeps from running."""
    return [
        f"{app.id}/{ask.key}"
        for app in partition.applications.values()
        for ask in app.asks.values()
        if not _application_waits(partition, app) and not _ask_waits(partition, app, ask)
    ]


def _within(wanted: Amounts, most: Amounts) -> bool:
    """Tell whether amounts are within `most`; a type that it does not name is not bounded."""
    return all(amount <= most[name] for name, amount in wanted.items() if name in most)


def _application_waits(partition: Any, app: Any) -> bool:
    """Tell whether the whole application waits: its queue is not visited, it has no slot, or back-off delays it."""
    queues = list(app.queue.lineage())
    if not app.queue.is_leaf or any(queue.is_leaf for queue in queues[1:]):
        return True
    if app.state is ApplicationState.ACCEPTED:
        if any(q.max_apps and q.running + len(q.accepted) >= q.max_apps and app not in q.accepted for q in queues):
            return True
        if any(not tracker.may_run(app) for tracker in app.trackers):
            return True
    rivals = sum(bool(peer.asks) for peer in app.queue.apps.values()) > 1
    if app.queue.stateaware and rivals and app.state in (ApplicationState.ACCEPTED, ApplicationState.STARTING):
        return True
    if app.atomic is not None:
        return not _whole_fits(partition, app)
    if not app.queue.backoff_after:
        return False  # else whoever stands behind asks that fit no node is never reached
    hopeless = sum(_no_node(partition, ask, _sized(ask)) for ask in app.asks.values())
    return bool(hopeless >= app.queue.backoff_after)


def _whole_fits(partition: Any, app: Any) -> bool:
    """Tell whether all members of a gang exist, and one node has room for all of them.

    Members that want a host port may need a node each, as may those whose terms are about pods: of such a gang nothing is said.
    """
    if sum(bool(ask.shape.need.ports) * ask.repeats for ask in app.asks.values()) > 1:
        return False
    if any(ask.shape.need.checks for ask in app.asks.values()):
        return False
    total: Amounts = {}
    for ask in app.asks.values():
        for name, amount in _sized(ask).items():
            total[name] = total.get(name, 0) + amount * ask.repeats
    counts = [sum(a.repeats for a in app.asks.values() if a.task_group == name) for name in app.atomic.needs]
    enough = all(count >= need for count, need in zip(counts, app.atomic.needs.values(), strict=True))
    fits = any(
        all(_takes(partition, node, ask, total) for ask in app.asks.values()) for node in partition.nodes.values()
    )
    return enough and fits and _allowed(app, total)


def _ask_waits(partition: Any, app: Any, ask: Any) -> bool:
    group = app.gang.groups.get(ask.task_group) if app.gang is not None and not ask.placeholder else None
    if group is not None and group.live() > 0:
        return True
    return not _allowed(app, _sized(ask)) or _no_node(partition, ask, _sized(ask))


def _sized(ask: Any) -> Amounts:
    return {name: amount for name, amount in ask.shape.resource.items() if amount}


def _allowed(app: Any, wanted: Amounts) -> bool:
    if not all(_within(wanted, queue.max_resource() or {}) for queue in app.queue.lineage()):
        return False
    types = app.queue.types.names
    limits = [tracker.limit for tracker in app.trackers if tracker.limit is not None]
    return all(_within(wanted, dict(zip(types, limit.values(), strict=False))) for limit in limits)


def _no_node(partition: Any, ask: Any, wanted: Amounts) -> bool:
    return not any(_takes(partition, node, ask, wanted) for node in partition.nodes.values())


def _takes(partition: Any, node: Any, ask: Any, wanted: Amounts) -> bool:
    """Nothing of the scheduler's runs on the node: it has its capacity without what others occupy."""
    if node.reservations or (ask.required != node.id if ask.required else not node.schedulable):
        return False
    room = node.free.named(partition.types)
    return all(amount <= room.get(name, 0) for name, amount in wanted.items()) and ask.shape.need.matches(node)
