"""The capacity, pods and applications of a restored scheduler, with which `licorne config check --from` compares a configuration."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from licorne.answers.pods import pod_name
from licorne.answers.rulesused import Submitted, asked_path, rules_used
from licorne.config import Pod, RunningPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from licorne.core.partition import Partition
    from licorne.si.messages import AddApplication
    from licorne.state.restored import Restored


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


def partitions_of_recording(restored: Restored, applications: Sequence[AddApplication]) -> dict[str, RunningPartition]:
    """Return the partitions of a recorded scheduler with all applications of the recording, as they were submitted.

    An application that has ended is taken to have been in the queue that it asked for, as one of a workload is. Pods are those
    of the end alone.
    """
    running = running_partitions(restored)
    submitted: dict[str, list[Submitted]] = {name: [] for name in running}
    ended: dict[str, dict[str, str]] = {name: {} for name in running}
    present = {partition.name: partition.applications for partition in restored.partitions}
    for app in applications:
        name = app.partition.rpartition("]")[2]
        if name in submitted:
            submitted[name].append(Submitted(app.queue, app.user, app.groups, app.tags, app.groups_found))
            if app.queue and app.application_id not in present[name]:
                ended[name][app.application_id] = asked_path(app.queue)
    return {
        name: replace(
            each,
            applications=dict(Counter(each.applications) + Counter(ended[name].values())),
            placed=partial(rules_used, submitted[name]),
        )
        for name, each in running.items()
    }


def _pods(partition: Partition) -> Iterator[Pod]:
    for app in partition.applications.values():
        for item in (*app.asks.values(), *app.allocations.values()):
            name = pod_name(item)
            named = f"pod {name}" if name else f"allocation {item.key}"
            yield Pod(named, app.queue.path, app.user, dict(item.shape.resource))
