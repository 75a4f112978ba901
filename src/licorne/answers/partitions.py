"""The capacity, pods and applications of a restored scheduler, with which `licorne config check --with` compares a configuration."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from licorne.answers.pods import pod_name
from licorne.config import Pod, RunningPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from licorne.answers.restored import Restored
    from licorne.core.partition import Partition


def running_partitions(restored: Restored) -> dict[str, RunningPartition]:
    """Return the partitions of a restored scheduler by name, as configurations are compared with them."""
    return {
        partition.name: RunningPartition(
            partition.tree.root.max_resource() or {},
            tuple(_pods(partition)),
            dict(Counter(app.queue.path for app in partition.applications.values())),
        )
        for partition in restored.partitions
    }


def _pods(partition: Partition) -> Iterator[Pod]:
    for app in partition.applications.values():
        for item in (*app.asks.values(), *app.allocations.values()):
            name = pod_name(item)
            named = f"pod {name}" if name else f"allocation {item.key}"
            yield Pod(named, app.queue.path, app.user, dict(item.shape.resource))


__all__ = ["running_partitions"]
