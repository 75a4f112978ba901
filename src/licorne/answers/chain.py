"""Everything that an ask has to pass, from root to node, with what it finds there: the facts behind the answer to "why".

Amounts are by type of resource in base units: thousandths of a vcore, bytes of memory.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from licorne.core.inspection import explain
from licorne.core.inspection.sentences import sentence
from licorne.core.nodes.node import Node
from licorne.core.partition import Partition
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.bounds import missing, queue_bounds
from licorne.si.rest_objects import WaitingReason

NEAREST: Final = 5
"""How many of the nodes that come nearest to taking an ask are told."""


class QueueLevel(msgspec.Struct, frozen=True):
    """A queue on the way from root to the leaf of the ask.

    `max` and `guaranteed` are None where none is set; the max of root is the size of the cluster. `missing`: by how much
    the ask exceeds what the max leaves. `max_applications`: 0 for no maximum.
    """

    queue: str
    max: dict[str, int] | None
    guaranteed: dict[str, int] | None
    allocated: dict[str, int]
    pending: dict[str, int]
    missing: dict[str, int]
    running_applications: int
    max_applications: int


class LimitLevel(msgspec.Struct, frozen=True):
    """The limit of the ask's user or group at a queue. `wildcard`: it is that of `*`. Other fields as in `QueueLevel`."""

    kind: str
    name: str
    queue: str
    wildcard: bool
    max: dict[str, int] | None
    used: dict[str, int]
    missing: dict[str, int]
    running_applications: int
    max_applications: int


class NearMiss(msgspec.Struct, frozen=True):
    """A node that comes near to taking the ask: why it does not, and what is missing there.

    What is missing on one that is too small is missing even if it were empty.
    """

    node: str
    why: str
    missing: dict[str, int]


class Chain(msgspec.Struct, frozen=True):
    """What stands between an ask and a node.

    `queues` are from root to the leaf. `nodes` counts all nodes by why they do not take the ask, "" for those that would
    if nothing else were in the way. `reasons` are all for which it waits now, in the order of `explain.reasons`.
    """

    application_state: str
    queues: tuple[QueueLevel, ...]
    limits: tuple[LimitLevel, ...]
    nodes: dict[str, int]
    nearest: tuple[NearMiss, ...]
    reasons: tuple[WaitingReason, ...]


def chain(partition: Partition, app: Application, ask: Ask) -> tuple[Chain, list[explain.Reason]]:
    """Return what stands between a pending ask and a node, and why it waits; the nodes are looked at once for both."""
    survey = list(explain.survey(partition, ask))
    own = ask.reserved is not None  # then its nodes are not counted as those of asks that are alike
    counted = None if own else {explain.alike(ask): explain.count(partition, ask, survey)}
    reasons = explain.reasons(partition, app, ask, counted)
    if ask.required:
        survey = [each for each in survey if each[0].id == ask.required]
    found = Chain(
        application_state=str(app.state.value),
        queues=tuple(_queue_levels(partition, app, ask)),
        limits=tuple(_limit_levels(partition, app, ask)),
        nodes=_counts(survey),
        nearest=_nearest(partition, ask, survey),
        reasons=tuple(map(waiting_reason, reasons)),
    )
    return found, reasons


def waiting_reason(reason: explain.Reason) -> WaitingReason:
    """Return a reason as REST and answers tell it."""
    details = msgspec.to_builtins(reason)
    kind = details.pop("type")
    never = details.pop("never", False)
    return WaitingReason(kind=kind, text=sentence(reason), never=never, details=details)


def _queue_levels(partition: Partition, app: Application, ask: Ask) -> list[QueueLevel]:
    bounds = queue_bounds(app, cluster=not ask.required)
    lacking = {level.path: missing(partition.types, limit, used, ask.shape.amounts) for level, limit, used in bounds}
    return [
        QueueLevel(
            queue=queue.path,
            max=queue.max_resource(),
            guaranteed=queue.guaranteed_resource(),
            allocated=queue.allocated_resource(),
            pending=queue.pending_resource(),
            missing=lacking.get(queue.path, {}),
            running_applications=queue.running,
            max_applications=queue.max_apps,
        )
        for queue in reversed(app.queue.lineage())
    ]


def _limit_levels(partition: Partition, app: Application, ask: Ask) -> list[LimitLevel]:
    types = partition.types
    return [
        LimitLevel(
            kind=tracker.kind,
            name=tracker.name,
            queue=tracker.path,
            wildcard=bool(tracker.wildcard),
            max=None if tracker.limit is None else tracker.limit.named(types),
            used=tracker.used.named(types),
            missing={} if tracker.limit is None else missing(types, tracker.limit, tracker.used, ask.shape.amounts),
            running_applications=len(tracker.apps),
            max_applications=tracker.max_apps,
        )
        for tracker in reversed(app.trackers)
        if tracker.limit is not None or tracker.max_apps
    ]


def _counts(survey: Iterable[tuple[Node, str, bool]]) -> dict[str, int]:
    counts = Counter([why for _, why, _ in survey])
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _nearest(partition: Partition, ask: Ask, survey: Iterable[tuple[Node, str, bool]]) -> tuple[NearMiss, ...]:
    """Return the nodes that come nearest: those that could take the ask if they were empty, the others, those too small.

    Of each of these kinds those come first on which less is missing.
    """
    wanted = [(d, amount) for d, amount in enumerate(ask.shape.amounts.values()) if amount > 0]
    ranked: tuple[list[tuple[float, int, Node, str]], ...] = ([], [], [])
    for node, why, never in survey:
        kind = 2 if why == explain.TOO_SMALL else int(never)
        if kind and sum(map(len, ranked[:kind])) >= NEAREST:
            continue
        at = node.capacity.at if kind == 2 else node.free.at
        lack = 0.0
        for d, amount in wanted:
            left = at(d)
            if left < amount:
                lack += (amount - left) / amount if left > 0 else 1.0
        ranked[kind].append((lack, node.rank, node, why))
    near: list[tuple[float, int, Node, str]] = []
    for nodes in ranked:
        near += heapq.nsmallest(NEAREST - len(near), nodes)
    found = []
    for _, _, node, why in near:
        room = node.capacity if why == explain.TOO_SMALL else node.free
        found.append(NearMiss(node.id, why, explain.lack(partition, room, ask.shape.amounts)))
    return tuple(found)
