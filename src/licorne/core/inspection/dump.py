"""The state dump: the whole state of the scheduler as plain maps and lists, for a person who searches for a fault.

Two dumps of the same state are equal, byte for byte once they are JSON: resource managers, partitions, queues and
nodes are in the order of their names, applications, asks and allocations in the order of their arrival. Names are
those of the REST objects (docs/spec/rest-api.md, section 3). Times are in nanoseconds, a value that is not set is
`null`, and resources are maps from type to amount, without zeros. A dump copies the whole state, and so takes about as
much memory again while it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from licorne.core.inputs.numbering import EVERYWHERE
from licorne.core.queues.usage_history import most_used

if TYPE_CHECKING:
    from licorne.core.cluster import Cluster
    from licorne.core.manager import RegisteredManager
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

Map = dict[str, Any]


def state(cluster: Cluster, diagnostics: Mapping[str, Map]) -> Map:
    """Return the dump of a cluster; `diagnostics` is what resource managers add about themselves, by id."""
    managers = [cluster.managers[rm_id] for rm_id in sorted(cluster.managers)]
    return {
        "timestamp": cluster.now,
        "resourceTypes": sorted({*EVERYWHERE, *(name for found in cluster.partitions() for name in found.types.index)}),
        "resourceManagers": [_manager(manager, diagnostics.get(manager.rm_id)) for manager in managers],
    }


def _manager(manager: RegisteredManager, diagnostics: Map | None) -> Map:
    store = manager.store
    found: Map = {
        "rmID": manager.rm_id,
        "dialect": "first" if manager.first_interface else "1.9",
        "configChecksum": manager.configuration.checksum,
        "config": manager.configuration.text,
        "events": None if store is None else {"waiting": len(store), "dropped": store.dropped},
        "partitions": [_partition(partition) for partition in manager.ordered],
    }
    if diagnostics is not None:
        found["rmDiagnostics"] = diagnostics
    return found


def _partition(partition: Partition) -> Map:
    active = sorted(partition.applications.values(), key=attrgetter("seq"))
    return {
        "name": partition.name,
        "state": str(partition.state),
        "capacity": partition.total.named(partition.types),
        "nodeSortingPolicy": partition.config.node_sort.policy,
        "queues": [_queue(queue, partition) for queue in partition.tree.queues()],
        "nodes": [_node(partition.nodes[name], partition) for name in sorted(partition.nodes)],
        "applications": [_application(app) for app in active],
        "terminated": [_application(app) for app in partition.terminated],
        "reservations": [
            _reservation(name, ask)
            for name in sorted(partition.nodes)
            for ask in _by_arrival(partition.nodes[name].reservations)
        ],
        "gangHolds": holds(partition),
    }


def holds(partition: Partition) -> list[Map]:
    """Return the nodes that atomic gangs hold while they wait: one entry for each gang that holds some.

    `nodes` are all nodes that the gang holds, in the order in which it took them; `members` lists the planned node of
    each member; `startTime` is the planned start, null if it is unknown.
    """
    hold = partition.atomic.backfill.hold
    if hold is None:
        return []
    return [
        {
            "applicationID": hold.app.id,
            "since": hold.since_ns,
            "startTime": hold.plan.start_ns,
            "nodes": [node.id for node in hold.nodes],
            "members": [{"allocationKey": ask.key, "nodeID": node.id} for ask, node in hold.plan.placing],
        }
    ]


def _reservation(node_id: str, ask: Ask) -> Map:
    return {
        "nodeID": node_id,
        "allocationKey": ask.key,
        "applicationID": ask.app.id,
        "since": ask.reserved_ns,
        "required": bool(ask.required),
    }


def _queue(queue: Queue, partition: Partition) -> Map:
    return {
        "queuename": queue.path,
        "status": str(queue.state),
        "isLeaf": bool(queue.is_leaf),
        "isManaged": bool(queue.managed),
        "allocatedResource": queue.allocated_resource(),
        "pendingResource": queue.pending_resource(),
        "preemptingResource": queue.preempting_resource(),
        "maxResource": queue.max_resource(),
        "guaranteedResource": queue.guaranteed_resource(),
        "maxRunningApps": queue.max_apps,
        "runningApps": queue.running,
        "quotaPreemptionStartTime": partition.quotas.start_ns(queue),
        "properties": dict(sorted(queue.properties.items())),
    }


def _node(node: Node, partition: Partition) -> Map:
    types = partition.types
    return {
        "nodeID": node.id,
        "schedulable": bool(node.schedulable),
        "attributes": dict(sorted(node.attributes.items())),
        "capacity": node.capacity.named(types),
        "occupied": node.occupied.named(types),
        "allocated": node.allocated.named(types),
        "available": node.free.named(types),
        "allocations": [alloc.id for alloc in _by_arrival(node.allocations)],
        "foreignAllocations": {key: node.foreign[key].named(types) for key in sorted(node.foreign)},
    }


def _application(app: Application) -> Map:
    return {
        "applicationID": app.id,
        "queueName": app.queue.path,
        "user": app.user,
        "groups": list(app.groups),
        "applicationState": str(app.state),
        "submissionTime": app.submitted,
        "startTime": app.started_ns or None,
        "finishedTime": app.finished_ns or None,
        "message": app.message,
        "stateLog": [{"time": at, "applicationState": name} for at, name in app.state_log],
        "usedResource": app.allocated_resource(),
        "maxUsedResource": most_used(app),
        "placeholderResource": app.placeholders.named(app.queue.types),
        "pendingResource": app.pending_resource(),
        "placeholderData": _placeholder_data(app),
        "requests": [_ask(ask) | {"repeats": ask.repeats} for ask in _by_arrival(app.asks.values())],
        "allocations": [_ask(alloc) | _bound(alloc) for alloc in _by_arrival(app.allocations.values())],
    }


def _placeholder_data(app: Application) -> list[Map]:
    """Return the placeholder counters by task group, in the order of arrival; `inFlight` counts real asks in flight."""
    if app.gang is None:
        return []
    flying = [ask.task_group for ask in app.gang.replacing.values()]
    return [
        {
            "taskGroupName": group.name,
            "count": group.created,
            "minResource": {name: amount for name, amount in sorted(group.resource.items()) if amount},
            "replaced": group.replaced,
            "timedout": group.timed_out,
            "released": group.released,
            "inFlight": flying.count(group.name),
        }
        for group in app.gang.groups.values()
    ]


def _ask(ask: Ask) -> Map:
    return {
        "allocationKey": ask.key,
        "requestTime": ask.created,
        "resource": {name: amount for name, amount in sorted(ask.shape.resource.items()) if amount},
        "priority": ask.priority,
        "taskGroupName": ask.task_group,
        "placeholder": bool(ask.placeholder),
        "requiredNode": ask.required or None,
        "allocationTags": dict(sorted((ask.tags or {}).items())),
    }


def _bound(alloc: Ask) -> Map:
    node = alloc.node
    assert node is not None, f"{alloc.key}: an allocation without a node"
    return {
        "allocationID": alloc.id,
        "nodeID": node.id,
        "allocationTime": alloc.bound_ns,
        "preempted": bool(alloc.preempted),
        "released": bool(alloc.released),
    }


def _by_arrival(asks: Iterable[Ask]) -> list[Ask]:
    """Sort by arrival; the allocations of one ask stay in the order of decisions, as the sort is stable."""
    return sorted(asks, key=attrgetter("seq"))
