"""Allocations that may be evicted and asks that may evict, in the machine; the part of invariant 11 that shows outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from licorne.core.partition import Partition
from licorne.core.preemption.evictions import Eviction
from machine.amounts import fits, plus


def flags(rm_id: str, size: int, flavour: int, more: int) -> dict[str, Any]:
    """Of an ask of the 1.9 interface; the first knows nothing of the kind."""
    if rm_id != "v":
        return {}
    return {
        "allow_preempt_other": flavour != 1,
        "allow_preempt_self": (size + more) % 4 != 0,
        "originator": flavour == 7 and more == 3,
    }


def check(partition: Partition, new: list[Eviction]) -> None:
    """The evictions of one call: by whom, of whom, and what is left to the queue of the victim."""
    for each in new:
        assert each.missing, f"invariant 11: {each.victim} was evicted without a reason"
        app = partition.applications.get(each.victim_application)
        alloc = None if app is None else app.allocations.get(each.victim)
        if app is None or alloc is None or not alloc.preempted:
            continue  # it has ended
        assert not alloc.required, f"invariant 11: {each.victim} requires its node"
        if each.kind == "guaranteed":
            assert each.queue != each.victim_queue, f"invariant 11: {each.victim} is of the same queue"
            _kept(partition, each.victim_queue, alloc, [e.victim_queue for e in new if e.kind != "guaranteed"])


def _kept(partition: Partition, path: str, alloc: Any, others: list[str]) -> None:
    queue = partition.tree.find(path)
    if queue is None or path in others:
        return
    planned = _planned(partition, queue)
    for name, amount in (queue.guaranteed_resource() or {}).items():
        if alloc.shape.resource.get(name, 0) > 0:
            left = planned.get(name, 0)
            assert left >= amount, f"invariant 11: {path} is left with {left} of {amount} {name}"


def _planned(partition: Partition, queue: Any) -> dict[str, int]:
    """The usage of the queue when the victims have gone, and the asks that they make room for have been placed."""
    left = plus(queue.allocated_resource(), queue.preempting_resource(), -1)
    for ask in partition.claims.by_ask:
        if queue in ask.app.queue.lineage():
            left = plus(left, ask.shape.resource)
    return left


def needed(partition: Partition, new: list[Eviction]) -> bool:
    """Check that every victim of one ask in one call was needed; return False where that cannot be told simply."""
    if not new or any((each.kind, each.ask) != ("guaranteed", new[0].ask) for each in new):
        return False
    ask = partition.applications[new[0].ask_application].asks.get(new[0].ask)
    if ask is None or ask.reserved is None or len(ask.reserved.reservations) > 1:
        return False
    node, wanted, types = ask.reserved, ask.shape.resource, partition.types
    free = dict(node.free.named(types))
    for alloc in node.allocations:
        if alloc.preempted:
            free = plus(free, alloc.shape.resource)
    assert fits(wanted, free), f"invariant 11: {ask.key} does not fit though {len(new)} victims went for it"
    for each in new:
        victim = partition.applications[each.victim_application].allocations[each.victim]
        without = plus(free, victim.shape.resource, -1) if victim.node is node else free
        room = all(_holds(partition, queue, victim, wanted) for queue in ask.app.queue.lineage())
        assert not (room and fits(wanted, without)), f"invariant 11: {each.victim} is a victim too many"
    return True


def _holds(partition: Partition, queue: Any, victim: Any, wanted: Mapping[str, int]) -> bool:
    """Tell whether the queue would be within its max if the victim stayed. Root has none: nodes alone decide."""
    planned = _planned(partition, queue)
    if queue in victim.app.queue.lineage():
        planned = plus(planned, victim.shape.resource)
    most = {} if queue.parent is None else queue.max_resource() or {}
    return all(planned.get(name, 0) <= most[name] for name in wanted if wanted[name] and name in most)
