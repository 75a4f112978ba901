"""Preemption: victims are told to go, and room is made for an ask that requires its node.

Source: docs/spec/preemption.md, sections 1 and 3.

The node of such an ask (a daemon) holds a reservation for it; allocations of no higher priority make room. What is free
on the node, and what is going already, counts before anybody is evicted. For asks below the guarantee of their queue
see `licorne.core.preemption.guaranteed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from licorne.core.amounts.vectors import Vec

from . import evictions
from .candidates import Candidate, LeafCandidates, NodeCandidates, QueueBudget
from .evictions import Eviction
from .victim_search import VictimSearch, wanted_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask


def make_room_on_required_node(partition: Partition, ask: Ask, node: Node) -> bool:
    """Evict what is needed on the node for this ask; False, and nothing changed, if that would not help or is not needed."""
    if not ask.shape.need.matches(node):
        return False  # it could not run there if the node were empty
    lacking = _lacking(ask, node)
    if not any(amount > 0 for amount in lacking.values()):
        return False
    chosen = VictimSearch().find(_candidates(ask, node), [], lacking, lacking.clone(), None)
    if chosen is None:
        if partition.events is not None:
            partition.events.request_events.no_victims(ask)
        return False
    missing = {name: amount for name, amount in lacking.named(partition.types).items() if amount > 0}
    victims = [c.alloc for c in chosen]
    records = evict(
        partition,
        ask,
        victims,
        "required-node",
        missing,
        f"preempting allocations to free up resources to run daemon set ask: {ask.key}",
        f"the ask runs on node {node.id} only, where allocations of no higher priority make room"
        " (docs/spec/preemption.md, section 3)",
    )
    partition.claims.add(ask, victims, records)
    partition.claims.placed(ask)
    return True


def evict(
    partition: Partition,
    ask: Ask,
    victims: Iterable[Ask],
    kind: Literal["guaranteed", "required-node"],
    missing: dict[str, int],
    message: str,
    rule: str,
) -> list[Eviction]:
    """Tell them all to go, in the order of their rank, and note why."""
    records = []
    asking: Application = ask.app
    for victim in sorted(victims, key=rank):
        app: Application = victim.app
        record = Eviction(
            kind,
            ask.key,
            asking.id,
            asking.queue.path,
            missing,
            rule,
            victim.id,
            app.id,
            app.queue.path,
            partition.now,
        )
        records.append(record)
        evictions.evict(partition, victim, record, message)
    return records


def rank(alloc: Ask) -> tuple[int, int, int, int]:
    """Class (ordinary, refuses preemption, originator), lower priority, newest first, of equally old the last to come."""
    if alloc.originator:
        kind = 3
    else:
        kind = 1 if alloc.allow_self else 2
    return kind, alloc.priority, -alloc.created, -alloc.seq


def _lacking(ask: Ask, node: Node) -> Vec:
    """What the ask lacks on the node when all have gone that are going, and others have what was made free for them."""
    lacking: Vec = ask.shape.amounts.clone()
    lacking.minus(node.free)
    for alloc in node.allocations:
        if alloc.preempted:
            lacking.minus(alloc.shape.amounts)
    for other in node.reservations:
        if other.triggered and other is not ask:
            lacking.plus(other.shape.amounts)
    return wanted_part(lacking, ask.shape.amounts)


def _candidates(ask: Ask, node: Node) -> list[Candidate]:
    """Who may be evicted on the node."""
    wanted = {d for d, amount in enumerate(ask.shape.amounts.values()) if amount}
    leaf_group = LeafCandidates(QueueBudget(ask.app.queue, None, Vec()), [])
    node_group = NodeCandidates(node, 0)
    return [
        Candidate(a, leaf_group, node_group, a.priority)
        for a in node.allocations
        if a.may_go
        and a.priority <= ask.priority
        and any(d in wanted and amount for d, amount in enumerate(a.shape.amounts.values()))
    ]
