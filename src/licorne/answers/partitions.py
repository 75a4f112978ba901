"""The capacity, pods and applications of a restored scheduler, with which `licorne config check --with` compares a configuration."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from licorne.answers.pods import pod_name
from licorne.answers.rulesused import Submitted, rules_used
from licorne.config import Pod, RunningPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from licorne.answers.restored import Restored
    from licorne.core.partition import Partition
    from licorne.si.messages import AddApplication


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


def with_rules_used(
    running: dict[str, RunningPartition], applications: Sequence[AddApplication]
) -> dict[str, RunningPartition]:
    """Return the partitions with what is known of the placement rules from applications as they were submitted."""
    submitted: dict[str, list[Submitted]] = {name: [] for name in running}
    for app in applications:
        name = app.partition.rpartition("]")[2]
        if name in submitted:
            submitted[name].append(Submitted(app.queue, app.user, app.groups, app.tags))
    return {name: replace(each, placed=partial(rules_used, submitted[name])) for name, each in running.items()}


def _pods(partition: Partition) -> Iterator[Pod]:
    for app in partition.applications.values():
        for item in (*app.asks.values(), *app.allocations.values()):
            name = pod_name(item)
            named = f"pod {name}" if name else f"allocation {item.key}"
            yield Pod(named, app.queue.path, app.user, dict(item.shape.resource))


__all__ = ["running_partitions", "with_rules_used"]
