"""Queues that use more than their max, as after a configuration has lowered it, and what becomes of that."""

from __future__ import annotations

from licorne.config.quantity import spoken
from licorne.core.base.states import SECOND_NS
from licorne.core.partition import Partition
from licorne.core.preemption.quota_start import over
from licorne.state.exact import restore_checkpoint
from licorne.state.restored import Restored
from licorne.workload.quantities import duration


def above_max(partition: Partition) -> dict[str, str]:
    """Return for each queue that uses more than its max how much more, and what happens then."""
    found = {}
    for queue in partition.tree.queues():
        if queue.parent is None or not over(queue):
            continue
        used, most = queue.allocated_resource(), queue.max_resource() or {}
        more = {name: used.get(name, 0) - amount for name, amount in sorted(most.items())}
        listed = ", ".join(f"{spoken(name, amount)} {name}" for name, amount in more.items() if amount > 0)
        then = "it starts nothing new until that has ended; nothing is evicted"
        start_ns = partition.quotas.start_ns(queue)
        if partition.quotas.enabled and start_ns is not None:
            then = f"in {duration((start_ns - partition.now) / SECOND_NS)} allocations are evicted"
        found[queue.path] = f"uses {listed} above its max; {then}"
    return found


def above_max_under(restored: Restored, partition: str, text: str) -> dict[str, str]:
    """Return what `above_max` would for a partition as soon as its scheduler had another configuration, which is valid."""
    changed = restore_checkpoint(restored.api.checkpoint(), text, check=False)
    return next((above_max(each) for each in changed.partitions if each.name == partition), {})
