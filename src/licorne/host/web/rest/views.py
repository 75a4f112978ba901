"""Make REST objects from the scheduler's: partitions, queues, nodes, users and groups, history, placement rules.

Applications have a module of their own (`allocations`). Each object is read at one moment, between two steps of the
scheduler, and shares no mutable part with the state.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from licorne.config.placement import is_regexp
from licorne.config.properties import DEFAULT_DELAY_NS
from licorne.core.base.states import ApplicationState
from licorne.core.inputs.node_changes import full_name
from licorne.host.web.backend import Backend
from licorne.si import rest_objects as objects
from licorne.si.constants import HOST_NAME, RACK_NAME
from licorne.workload.quantities import bounded

from .allocations import allocation
from .amounts import by_name, duration, headroom, limits, percent, plain, used_percent

if TYPE_CHECKING:
    from licorne.config.model import FilterConfig, RuleConfig
    from licorne.core.nodes.foreign import Foreign
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.queue import Queue
    from licorne.core.queues.usage import Tracker
    from licorne.host.web.monitor import Monitor

CLUSTER_NAME = "kubernetes"
NODE_PARTITION = "si/node-partition"
RECOVERY_RULE = objects.Rule(name="recovery", parameters={"queue": "root.@recovery@"})
"""The built-in rule, which the original lists last."""


def cluster(backend: Backend, partition: Partition) -> objects.Cluster:
    """Return a partition as an entry of the list of clusters."""
    build = {**backend.build_info(partition.owner), "rmId": partition.owner}
    return objects.Cluster(
        start_time=backend.started_ns,
        rm_build_information=[build],
        partition=backend.shown_name(partition),
        cluster_name=CLUSTER_NAME,
    )


def partition(backend: Backend, found: Partition) -> objects.Partition:
    """Return a partition as a REST object."""
    types = found.types
    capacity = bounded(found.total.named(types))
    used = found.tree.root.allocated_resource()
    return objects.Partition(
        cluster_id=found.owner,
        name=backend.shown_name(found),
        capacity=objects.Capacity(capacity=capacity, used_capacity=used, utilization=used_percent(capacity, used)),
        node_sorting_policy=objects.NodeSortingPolicy(
            type=found.config.node_sort.policy,
            resource_weights={name: plain(weight) for name, weight in sorted(found.config.node_sort.weights.items())},
        ),
        preemption_enabled=found.config.preemption_enabled,
        quota_preemption_enabled=found.config.quota_preemption_enabled,
        total_nodes=len(found.nodes),
        applications=application_counts(found),
        total_containers=sum(len(app.allocations) for app in found.applications.values()),
        state=str(found.state),
        last_state_transition_time=found.started_ns,
    )


def partition_state(found: Partition) -> tuple[object, ...]:
    """Return what changes whenever anything of the partition does, except the reasons why asks wait."""
    return weakref.ref(found), found.generation, found.descent.visits


def application_counts(found: Partition) -> dict[str, int]:
    """Count applications by state, and in total: the live ones, and those that have ended and are still kept."""
    known = Counter(str(app.state) for app in (*found.applications.values(), *found.terminated))
    if found.rejected:
        known[ApplicationState.REJECTED] = len(found.rejected)
    counts = {str(state): known[state] for state in ApplicationState if known[state]}
    return {**counts, "total": sum(counts.values())}


# -- queues ----------------------------------------------------------------------------------------------


def queue(found: Queue, *, name: str = "", whole: bool = True) -> objects.Queue:
    """Return one queue without its children, only with their paths; `name` is the partition's, empty to leave it out.

    Not `whole`: only what the page shows, without what can be computed from other queues.
    """
    settings = found.settings
    maximum = by_name(bounded(found.max_resource() or {}))
    allocated = found.allocated_resource()
    return objects.Queue(
        queuename=found.path,
        status=str(found.state),
        partition=name,
        pending_resource=found.pending_resource(),
        max_resource=maximum,
        guaranteed_resource=by_name(found.guaranteed_resource() or {}),
        allocated_resource=allocated,
        preempting_resource=found.preempting_resource(),
        headroom=headroom(found) if whole else {},
        is_leaf=bool(found.is_leaf),
        is_managed=bool(found.managed),
        properties=dict(sorted(found.properties.items())),
        parent="" if found.parent is None else found.parent.path,
        template=_template(found),
        child_names=[f"{found.path}.{child}" for child in sorted(found.children)] if whole else [],
        abs_used_capacity=used_percent(maximum, allocated) if whole else {},
        max_running_apps=found.max_apps,
        running_apps=found.running,
        current_priority=found.priority,
        allocating_accepted_apps=[app.id for app in found.accepted],
        sorting_policy=_sorting_policy(found),
        priority_sorting=bool(found.by_priority),
        preemption_enabled=settings.preemption_policy != "disabled",
        is_preemption_fence=settings.preemption_policy == "fence",
        preemption_delay=duration(settings.preemption_delay_ns if found.is_leaf else DEFAULT_DELAY_NS),
        quota_preemption_delay=duration(settings.quota_preemption_delay_ns),
        is_priority_fence=bool(found.fence),
        priority_offset=found.offset,
    )


def _sorting_policy(found: Queue) -> str:
    if not found.is_leaf:
        return "fair"
    return "stateaware" if found.stateaware else "fair" if found.fair else "fifo"


def _template(found: Queue) -> objects.Template | None:
    template = found.template
    if template is None:
        return None
    return objects.Template(
        max_applications=template.max_applications,
        max_resource=template.max or {},
        guaranteed_resource=template.guaranteed or {},
        properties=dict(template.properties),
    )


# -- nodes -----------------------------------------------------------------------------------------------


def node(found: Node, home: Partition, *, whole: bool = True) -> objects.Node:
    """Return a node; not `whole`: only what lists of the page show, without allocations, attributes and percentages."""
    types = home.types
    capacity = found.capacity.named(types)
    allocated = found.allocated.named(types)
    return objects.Node(
        node_id=found.id,
        host_name=found.attributes.get(HOST_NAME, ""),
        rack_name=found.attributes.get(RACK_NAME, ""),
        attributes={NODE_PARTITION: full_name(home)} | dict(sorted(found.attributes.items())) if whole else {},
        capacity=capacity,
        allocated=allocated,
        occupied=found.occupied.named(types),
        available=found.free.named(types),
        utilized=used_percent(bounded(capacity), allocated) if whole else {},
        allocations=[allocation(alloc) for alloc in found.allocations] if whole else [],
        foreign_allocations=[
            _foreign(key, home.foreign[key], amounts.named(types)) for key, amounts in sorted(found.foreign.items())
        ]
        if whole
        else [],
        schedulable=bool(found.schedulable),
        is_reserved=bool(found.reservations),
        reservations=[ask.key for ask in found.reservations],
    )


def _foreign(key: str, found: Foreign, resource: objects.Resources) -> objects.ForeignAllocation:
    """Return an allocation of another scheduler; its time is its creation, as far as that is known."""
    return objects.ForeignAllocation(
        allocation_key=key,
        allocation_tags=dict(sorted(found.tags.items())),
        allocation_time=found.created,
        resource=resource,
        priority=str(found.priority),
        node_id=found.node.id,
        preemptable=not found.static,
    )


def bucket(share: int) -> int:
    """Return the bucket, of ten, of a percentage: 0 is 0-10 %, 9 is above 90 %."""
    return min(max(share - 1, 0) // 10, 9)


def utilizations(home: Partition) -> Iterator[objects.NodesUtilization | None]:
    """Yield the use of the nodes by resource type, after a None for each node that was read."""
    types = home.types
    buckets: dict[str, list[list[str]]] = {}
    for found in list(home.nodes.values()):
        capacity = bounded(found.capacity.named(types))
        for name, share in percent(capacity, found.allocated.named(types)).items():
            buckets.setdefault(name, [[] for _ in range(10)])[bucket(share)].append(found.id)
        yield None
    for name in sorted(buckets):
        yield objects.NodesUtilization(
            type=name,
            utilization=[
                objects.Bucket(
                    bucket_name=f"{10 * at}-{10 * at + 10}%", num_of_nodes=len(nodes), node_names=sorted(nodes)
                )
                for at, nodes in enumerate(buckets[name])
            ],
        )


# -- users and groups ------------------------------------------------------------------------------------


def user_usage(home: Partition, user: str, trackers: list[Tracker]) -> objects.UserUsage:
    """Return the usage of a user."""
    groups = {}
    for tracker in trackers:
        for app in tracker.apps:
            if app.group is not None:
                groups[app.id] = app.group
    return objects.UserUsage(user_name=user, groups=dict(sorted(groups.items())), queues=_usage(home, trackers))


def group_usage(home: Partition, group: str, trackers: list[Tracker]) -> objects.GroupUsage:
    """Return the usage of a group."""
    apps = sorted({app.id for tracker in trackers for app in tracker.apps})
    return objects.GroupUsage(group_name=group, applications=apps, queues=_usage(home, trackers))


def _usage(home: Partition, trackers: list[Tracker]) -> objects.Usage | None:
    """Return the trackers of one user or group as a tree; a level in between without a tracker is empty."""
    by_path: dict[str, objects.Usage] = {}
    for tracker in sorted(trackers, key=lambda t: t.path):
        by_path[tracker.path] = objects.Usage(
            queue_path=tracker.path,
            resource_usage=tracker.used.named(home.types),
            running_applications=[app.id for app in tracker.apps],
            max_resources=limits(tracker.limit, home.types),
            max_applications=tracker.max_apps,
        )
        path = tracker.path
        while "." in path:
            path = path.rpartition(".")[0]
            by_path.setdefault(path, objects.Usage(queue_path=path))
    for path in sorted(by_path):
        above = path.rpartition(".")[0]
        if above:
            by_path[above].children.append(by_path[path])
    return by_path.get("root")


# -- history --------------------------------------------------------------------------------------------------


def app_history(monitor: Monitor) -> list[objects.AppHistory]:
    """Return the numbers of running applications, oldest first."""
    return [
        objects.AppHistory(timestamp=minute.timestamp, total_applications=str(minute.applications))
        for minute in monitor.history.minutes
    ]


def container_history(monitor: Monitor) -> list[objects.ContainerHistory]:
    """Return the numbers of containers, oldest first."""
    return [
        objects.ContainerHistory(timestamp=minute.timestamp, total_containers=str(minute.containers))
        for minute in monitor.history.minutes
    ]


# -- placement rules -------------------------------------------------------------------------------------


def rules(home: Partition) -> list[objects.Rule]:
    """Return the placement rules, with the built-in one at the end."""
    return [*map(_rule, home.config.placement_rules), RECOVERY_RULE]


def _rule(config: RuleConfig) -> objects.Rule:
    name = config.name.lower()
    parameters = {"create": "true" if config.create else "false"}
    if name == "tag":
        parameters["tagName"] = config.value
    elif name == "fixed":
        parameters["queue"] = config.value
        parameters["qualified"] = "true" if config.value.startswith("root") else "false"
    return objects.Rule(
        name=name,
        parameters=parameters,
        filter=_filter(config.filter),
        parent_rule=None if config.parent is None else _rule(config.parent),
    )


def _filter(config: FilterConfig) -> objects.RuleFilter | None:
    if not config.users and not config.groups:
        return None
    user_exp = config.users[0] if len(config.users) == 1 and is_regexp(config.users[0]) else ""
    group_exp = config.groups[0] if len(config.groups) == 1 and is_regexp(config.groups[0]) else ""
    return objects.RuleFilter(
        type=config.type,
        user_list=[] if user_exp else sorted(config.users),
        group_list=[] if group_exp else sorted(config.groups),
        user_exp=user_exp,
        group_exp=group_exp,
    )
