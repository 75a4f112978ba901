"""The capacity, pods and applications of a scheduler, a recording or a workload, with which `licorne config check --from` compares.

Beside them is a function that says how many applications each placement rule of a configuration would place.

All of a workload counts, whatever its time: its nodes together, and the pods of all its lines. Its applications are taken to
be in the queues that they ask for, since nothing places them here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from licorne.answers.above_max import above_max_under
from licorne.answers.pods import pod_name
from licorne.config import Pod, RunningPartition
from licorne.config.model import PartitionConfig
from licorne.core.inputs.admission import identity
from licorne.core.partition import Partition
from licorne.core.placement.placer import PlacementRequest, Placer, Verdict, is_forced
from licorne.core.placement.static_tree import StaticTree
from licorne.si.messages import AddApplication
from licorne.state.restored import Restored
from licorne.workload.lines import App, Ask, Node
from licorne.workload.workload import Workload

PARTITION = "default"
"""A workload has one partition."""


def running_partitions(restored: Restored) -> dict[str, RunningPartition]:
    """Return the partitions of a restored scheduler by name, as configurations are compared with them."""
    return {
        partition.name: RunningPartition(
            partition.tree.root.max_resource() or {},
            tuple(_pods(partition)),
            dict(Counter(app.queue.path for app in partition.applications.values())),
            above_max=partial(above_max_under, restored, partition.name),
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


def partitions_of_workload(workload: Workload) -> dict[str, RunningPartition]:
    """Return the partition of a workload by its name, as configurations are compared with it."""
    capacity: Counter[str] = Counter()
    applications = {line.id: line for line in workload.lines if isinstance(line, App)}
    pods: list[Pod] = []
    for line in workload.lines:
        if isinstance(line, Node):
            capacity.update(line.res)
        elif isinstance(line, Ask) and not line.ph and line.app in applications:
            app = applications[line.app]
            pods.append(Pod(f"pod {line.key}", asked_path(app.queue), app.user, dict(line.res)))
    queues = Counter(asked_path(app.queue) for app in applications.values() if app.queue)
    submitted = [Submitted(app.queue, app.user, app.groups, app.tags or {}) for app in applications.values()]
    return {PARTITION: RunningPartition(dict(capacity), tuple(pods), dict(queues), partial(rules_used, submitted))}


class Submitted(NamedTuple):
    """An application as it is submitted: the queue that it asks for, or none, its user, the user's groups, and its tags.

    `groups_found`: the host found the groups (`licorne.si.messages.AddApplication`).
    """

    queue: str
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]
    groups_found: bool = False


def rules_used(applications: Iterable[Submitted], partition: PartitionConfig) -> Counter[int]:
    """Return how many applications each rule places, by its position from 1, in the queues that are configured.

    The recovery rule, which is last, has a position too. What no rule places is not counted.
    """
    tree, placer = StaticTree(partition), Placer.first(partition.placement_rules)
    known: dict[tuple[object, ...], int] = {}  # most applications are submitted alike
    found: Counter[int] = Counter()
    for app in applications:
        alike = (app.queue, app.user, app.groups, tuple(sorted(app.tags.items())), app.groups_found)
        if alike not in known:
            known[alike] = _position(app, placer, tree)
        found[known[alike]] += 1
    del found[0]
    return found


def asked_path(queue: str) -> str:
    """Return the full path of a queue that an application asks for."""
    name = queue.lower()
    return name if not name or name == "root" or name.startswith("root.") else f"root.{name}"


def _position(app: Submitted, placer: Placer, tree: StaticTree) -> int:
    """Return the position of the rule that places an application; 0 if none does."""
    forced = is_forced(app.tags)
    user, groups, fault = identity(app.user, app.groups, forced=forced, found=app.groups_found)
    if fault:
        return 0
    steps = placer.place(PlacementRequest("", app.queue, user, groups, app.tags, forced), tree).steps
    return next((step.index for step in steps if step.verdict is Verdict.PLACED), 0)
