"""Who may be evicted and who may evict, in the machine; and what of invariant 11 can be seen from outside."""

from __future__ import annotations

from typing import Any

from licorne.core.partition import Partition


def flags(rm_id: str, size: int, flavour: int, more: int) -> dict[str, Any]:
    """Of an ask of 1.9's dialect; the seed's knows nothing of the kind."""
    if rm_id != "v":
        return {}
    return {
        "allow_preempt_other": flavour != 1,
        "allow_preempt_self": (size + more) % 4 != 0,
        "originator": flavour == 7 and more == 3,
    }


def check(partition: Partition) -> None:
    """Evictions of this moment: by whom, of whom, and what is left to the queue of the victim."""
    new = [each for each in partition.evictions if each.at_ns == partition.now]
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
    used, going = queue.allocated_resource(), queue.preempting_resource()
    for name, amount in (queue.guaranteed_resource() or {}).items():
        if alloc.shape.resource.get(name, 0) > 0:
            left = used.get(name, 0) - going.get(name, 0)
            assert left >= amount, f"invariant 11: {path} is left with {left} of {amount} {name}"
