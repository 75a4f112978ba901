"""What a configuration is checked against beside a cluster: its nodes, its pods, and the queues of its applications."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from licorne.answers.pods import pod_name
from licorne.config import Cluster, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from licorne.answers.restore import Restored
    from licorne.core.partition import Partition


def clusters(restored: Restored) -> dict[str, Cluster]:
    """Return the partitions of a restored scheduler, by name."""
    return {
        partition.name: Cluster(
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


__all__ = ["clusters"]
