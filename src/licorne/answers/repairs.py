"""What may be done about a reason for which an ask waits: for each reason, the least change of each kind that is known.

What is found here is a proposal for a trial (`licorne.answers.trials`), no more: whether it helps, and whether less would,
only the trial can say, because other asks compete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from licorne.answers.changes import (
    HOSTNAMES,
    Change,
    End,
    LimitMax,
    MaxApplications,
    MoreNodes,
    NoTaint,
    QueueMax,
    Running,
    Schedulable,
)
from licorne.answers.pods import pod_name
from licorne.core.inspection import explain
from licorne.core.nodes.constraints import LABEL_PREFIX, NodeConstraints, NodeLabels

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.usage import Tracker

ENDED_MAX: Final = 64
"""More allocations than this are not proposed to end."""


class Repairs(msgspec.Struct, frozen=True):
    """The least change of each kind about one reason; None where there is none.

    `grow`: the configuration allows more, or there are more nodes. `open`: a node takes asks that it did not take.
    `end`: allocations end.
    """

    grow: Change | None = None
    open: Change | None = None
    end: Change | None = None


class Present(NamedTuple):
    """What was there before a trial began, by name: only that can be changed."""

    nodes: frozenset[str]
    allocations: frozenset[str]


def repairs(partition: Partition, present: Present, ask: Ask, reason: explain.Reason) -> Repairs:
    """Return what may be done about a reason for which the ask waits."""
    match reason:
        case explain.QueueQuota() | explain.Claimed(kind="queue"):
            path = reason.queue
            queue = partition.tree.find(path)
            assert queue is not None, "a reason names a queue that is there"
            below = [app for leaf in queue.walk() for app in leaf.apps.values()]
            grow = QueueMax(path, reason.missing, dynamic=not queue.managed)
            return Repairs(grow, end=_ends_of(present, below, reason.missing))
        case explain.UserLimit() | explain.Claimed():
            tracker = _tracker(partition, reason.kind, reason.name, reason.queue)
            wildcard = tracker is not None and tracker.wildcard
            limit = LimitMax(reason.kind, reason.name, reason.queue, reason.missing, wildcard)
            return Repairs(limit, end=_ends_of(present, () if tracker is None else tracker.apps, reason.missing))
        case explain.MaxApplications():
            return Repairs(_one_application_more(partition, reason))
        case explain.ClusterFull():
            return Repairs(_more_nodes(partition, present, ask), end=_end_on_a_node(partition, present, ask))
        case explain.Nodes():
            return Repairs(
                _more_nodes(partition, present, ask),
                _open_node(partition, present, ask),
                _end_on_a_node(partition, present, ask),
            )
        case explain.RequiredNode():
            node = partition.nodes.get(reason.node)
            if node is None:
                return Repairs()
            return Repairs(open=_opened(partition, ask, node), end=_end_on(partition, present, ask, node))
        case explain.Gang(ready=True, fits_quota=True):
            return Repairs(_more_nodes(partition, present, ask), end=_end_on_a_node(partition, present, ask))
        case _:
            return Repairs()


def _tracker(partition: Partition, kind: str, name: str, path: str) -> Tracker | None:
    named = partition.limits.tracked_users if kind == "user" else partition.limits.tracked_groups
    return named.get(name, {}).get(path)


def _one_application_more(partition: Partition, reason: explain.MaxApplications) -> MaxApplications:
    if reason.kind == "queue":
        queue = partition.tree.find(reason.queue)
        return MaxApplications(reason.queue, 1, dynamic=queue is not None and not queue.managed)
    tracker = _tracker(partition, reason.kind, reason.name, reason.queue)
    return MaxApplications(reason.queue, 1, reason.kind, reason.name, wildcard=tracker is not None and tracker.wildcard)


# -- nodes -------------------------------------------------------------------------------------------------------


def _more_nodes(partition: Partition, present: Present, ask: Ask) -> MoreNodes | None:
    """Return one node more like the smallest that would take the ask if it were empty; else one made for it."""
    total = partition.tree.root.limit
    best: tuple[float, Node] | None = None
    for node in partition.nodes.values():
        amounts, occupied = node.capacity.values(), node.occupied
        if node.id not in present.nodes or not _takes_when_new(ask, node):
            continue
        size = sum(amount / total.at(d) for d, amount in enumerate(amounts) if total.at(d) > 0)
        if any(amount > amounts[d] - occupied.at(d) for d, amount in enumerate(ask.shape.amounts.values()) if amount):
            continue
        if best is None or size < best[0]:
            best = size, node
    if best is not None:
        return MoreNodes(1, best[1].id)
    attributes = _attributes_for(ask.shape.need.constraints)
    if attributes is None or ask.required:
        return None
    return MoreNodes(1, "", dict(sorted(ask.shape.resource.items())), attributes)


def _takes_when_new(ask: Ask, node: Node) -> bool:
    """Return whether a new node like this one would take the ask: it has another name, and no ports are taken there."""
    if not node.capacity.covers(ask.shape.amounts):
        return False
    constraints = ask.shape.need.constraints
    names = {key.removeprefix(LABEL_PREFIX) for key in HOSTNAMES if key in node.attributes}
    pairs = tuple((key, f"{node.id}~1" if key in names else value) for key, value in node.labels.pairs)
    return not constraints.mismatch(NodeLabels(pairs, node.labels.taints))


def _attributes_for(constraints: NodeConstraints) -> dict[str, str] | None:
    """Return labels that meet the constraints, None if none are found: those that are selected, and one term of affinity."""
    found = dict(constraints.selector)
    for expression in (constraints.affinity or ((),))[0]:
        match expression.operator:
            case "In":
                found.setdefault(expression.key, expression.values[0])
            case "Exists":
                found.setdefault(expression.key, "")
            case "Gt":
                found.setdefault(expression.key, str(int(expression.values[0]) + 1))
            case "Lt":
                found.setdefault(expression.key, str(int(expression.values[0]) - 1))
    if constraints.mismatch(NodeLabels(tuple(sorted(found.items())))):
        return None
    return {LABEL_PREFIX + key: value for key, value in sorted(found.items())}


def _open_node(partition: Partition, present: Present, ask: Ask) -> Change | None:
    """Return the change that makes the first node take the ask that has room for it, but does not take it."""
    for node in sorted(partition.nodes.values(), key=attrgetter("rank")):
        if node.id in present.nodes and node.free.covers(ask.shape.amounts):
            change = _opened(partition, ask, node)
            if change is not None:
                return change
    return None


def _opened(partition: Partition, ask: Ask, node: Node) -> Change | None:
    """Return the change without which the node takes no ask, or not this one; None if that is not the reason."""
    if partition.atomic.backfill.holds(node):
        return None
    mismatch = ask.shape.need.constraints.mismatch(node.labels)
    if mismatch.startswith("taint "):
        return NoTaint(node.id, mismatch.removeprefix("taint "))
    return Schedulable(node.id) if not node.schedulable and not mismatch else None


# -- the end of allocations --------------------------------------------------------------------------------------


def _ends_of(present: Present, apps: Iterable[Application], missing: dict[str, int]) -> End | None:
    """Return the fewest allocations of these applications that make up what is missing, the largest first."""
    return _fewest(present, (alloc for app in apps for alloc in app.allocations.values()), missing)


def _end_on_a_node(partition: Partition, present: Present, ask: Ask) -> End | None:
    """Return the fewest allocations of any one node whose end gives the ask its room there."""
    best: End | None = None
    for node in sorted(partition.nodes.values(), key=attrgetter("rank")):
        if node.id in present.nodes and node.schedulable and not partition.atomic.backfill.holds(node):
            found = _end_on(partition, present, ask, node)
            if found is not None and (best is None or len(found.allocations) < len(best.allocations)):
                best = found
    return best


def _end_on(partition: Partition, present: Present, ask: Ask, node: Node) -> End | None:
    shape = ask.shape
    if not node.capacity.covers(shape.amounts):
        return None
    constraints = shape.need.constraints
    mismatch = constraints.mismatch(node.labels)
    if mismatch and not mismatch.startswith(explain.HOST_PORT):
        return None
    in_the_way = [alloc for alloc in node.allocations if constraints.excludes(alloc.shape.need.constraints)]
    missing = {
        partition.types.names[d]: amount - node.free.at(d)
        for d, amount in enumerate(shape.amounts.values())
        if amount > node.free.at(d) and amount > 0
    }
    return _fewest(present, iter(node.allocations), missing, in_the_way)


def _fewest(
    present: Present, candidates: Iterator[Ask], missing: dict[str, int], chosen: Iterable[Ask] = ()
) -> End | None:
    """Return `chosen` and the fewest others that make up what is missing: each time the one that covers most of it."""
    taken = list(chosen)
    left = dict(missing)
    for alloc in taken:
        _take(left, alloc)
    rest = sorted(
        (alloc for alloc in candidates if alloc.key in present.allocations and alloc not in taken),
        key=lambda alloc: (alloc.priority, -alloc.seq),
    )
    while left:
        best = max(rest, key=lambda alloc: _covered(left, alloc), default=None)
        if best is None or _covered(left, best) == 0 or len(taken) >= ENDED_MAX:
            return None
        rest.remove(best)
        taken.append(best)
        _take(left, best)
    if not taken:
        return None
    return End(tuple(sorted(map(running, taken))))


def running(alloc: Ask) -> Running:
    """Return an allocation as changes name it."""
    return Running(alloc.key, alloc.app.queue.path, "" if alloc.node is None else alloc.node.id, pod_name(alloc))


def _covered(missing: dict[str, int], alloc: Ask) -> float:
    """Return how much of what is missing an allocation makes up, as the sum of shares."""
    resource = alloc.shape.resource
    return sum(min(resource.get(name, 0), amount) / amount for name, amount in missing.items())


def _take(missing: dict[str, int], alloc: Ask) -> None:
    for name, amount in alloc.shape.resource.items():
        if name in missing:
            missing[name] -= amount
            if missing[name] <= 0:
                del missing[name]


__all__ = ["Present", "Repairs", "repairs", "running"]
