"""Preemption for an ask that requires its node, and the eviction of a whole victim set.

Source: docs/spec/preemption.md, sections 1 and 3.

An ask that requires a node (a pod of a DaemonSet) has reserved that node; allocations there of no higher priority make
room for it. What is free on the node, and what evicted allocations will give back, is used before any other allocation
is evicted. An ask that wants devices (`licorne.core.nodes.devices`) is given room on them in the same way, as are host ports, and
domains that terms of pods shut; but only while no other ask has a claim to the node that excludes that: which devices are
left beside it is known when the other has got its devices.
For asks whose queue is below its guarantee see `licorne.core.preemption.guarantee_preemption`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from licorne.core.amounts.vectors import Vec

from . import evictions
from .candidates import Candidate, LeafCandidates, NodeCandidates, QueueBudget
from .evictions import Eviction
from .ranking import release_order
from .together import broken_by_all, goes_together, may_be_evicted, with_the_others
from .verdicts import verdict_of
from .victim_search import VictimSearch, wanted_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

    from .disruption_budgets import DisruptionBudgets
    from .verdicts import NodeVerdict


def make_room_on_required_node(partition: Partition, ask: Ask, node: Node) -> bool:
    """Evict what is needed on the node for this ask, which gets a claim.

    False, and nothing changed, if evictions are not needed or would not help.
    """
    lacking = _lacking(ask, node)
    victims = victims_on(partition, ask, node)
    if not victims:
        if victims is None and partition.events is not None:
            partition.events.request_events.no_victims(ask)
        return False
    missing = {name: amount for name, amount in lacking.named(partition.types).items() if amount > 0}
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


def victims_on(partition: Partition, ask: Ask, node: Node) -> list[Ask] | None:
    """Return what must be evicted for this ask: allocations of the node, and those elsewhere that are evicted together with them.

    Nothing if that is not needed, or no search is made; None if nothing helps.
    """
    if any(alloc.node is node for alloc in partition.accounting.overdue):
        return []  # a victim there does not end, and perhaps no other would
    need = ask.shape.need
    with partition.claims.as_planned(need, without=(ask,)):
        if not need.may_match(node):
            return []  # it could not run there if the node were empty
        verdict = verdict_of(node, ask)
        if verdict is not None and any(other.shape.need.excludes(need) for other in _claiming_beside(ask, node)):
            return []
        lacking = _lacking(ask, node)
        if not any(amount > 0 for amount in lacking.values()) and (verdict is None or verdict.suffices()):
            return []
        search = VictimSearch()
        search.verdict = verdict
        candidates = _candidates(ask, node, verdict, partition.disruption_budgets)
        victims = _best(search, candidates, lacking, partition.disruption_budgets)
        if not victims and partition.disruption_budgets.by_id:
            search.keeps_budgets = False
            victims = _best(search, candidates, lacking, partition.disruption_budgets)
    return victims if victims and partition.claims.spare_domains(ask, node, victims) else None


def _best(search: VictimSearch, candidates: list[Candidate], lacking: Vec, budgets: DisruptionBudgets) -> list[Ask]:
    """Return the best victims with all that are evicted together with them, or the best that are evicted alone; none if neither will do."""
    single = [c for c in candidates if not goes_together(c.alloc.app)]
    for pool in (candidates, single) if len(single) < len(candidates) else (candidates,):
        chosen = search.find(pool, [], lacking.clone(), lacking.clone(), None)
        victims = with_the_others(c.alloc for c in chosen or ())
        allowed = not (search.keeps_budgets and budgets.refusing(victims))
        if victims and allowed and (search.verdict is None or search.verdict.suffices_without(victims)):
            return victims
    return []


def evict(
    partition: Partition,
    ask: Ask,
    victims: Iterable[Ask],
    kind: Literal["guaranteed", "within-queue", "required-node"],
    missing: dict[str, int],
    message: str,
    rule: str,
) -> list[Eviction]:
    """Evict all victims of one ask, in the order of releases; return the records of the evictions."""
    records = []
    asking: Application = ask.app
    for victim in sorted(victims, key=release_order):
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


def _lacking(ask: Ask, node: Node) -> Vec:
    """What the ask will lack on the node when evicted allocations have ended and other claims there are used."""
    lacking: Vec = ask.shape.amounts.clone()
    lacking.minus(node.free)
    for alloc in node.allocations:
        if alloc.preempted:
            lacking.minus(alloc.shape.amounts)
    for other in _claiming_beside(ask, node):
        lacking.plus(other.shape.amounts)
    return wanted_part(lacking, ask.shape.amounts)


def _claiming_beside(ask: Ask, node: Node) -> list[Ask]:
    """Return the other asks that have reserved the node, and for which allocations have been evicted."""
    return [other for other in node.reservations if other.triggered and other is not ask]


def _candidates(
    ask: Ask, node: Node, verdict: NodeVerdict | None, disruption_budgets: DisruptionBudgets
) -> list[Candidate]:
    """The allocations on the node that may be evicted for the ask."""
    wanted = {d for d, amount in enumerate(ask.shape.amounts.values()) if amount}
    leaf_group = LeafCandidates(QueueBudget(ask.app.queue, None, Vec()), [])
    node_group = NodeCandidates(node, 0)
    return [
        Candidate(
            a, leaf_group, node_group, a.priority, disruption_budgets.of(a) + broken_by_all(a.app, disruption_budgets)
        )
        for a in node.allocations
        if a.may_go
        and may_be_evicted(a.app, ask.priority)
        and a.priority <= ask.priority
        and (
            any(d in wanted and amount for d, amount in enumerate(a.shape.amounts.values()))
            or (verdict is not None and verdict.helps(a))
        )
    ]
