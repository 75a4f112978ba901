"""Makes requests of the 1.9 interface from inputs of the core, for programs that act as a resource manager.

This is the opposite of what `licorne.si.adapt_v19` does with requests. What 1.9 cannot say is left out: repeated asks, UUIDs,
priority classes, and the execution timeouts of asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from licorne.si import messages, v19
from licorne.si.constants import DEFAULT_PARTITION, NODE_PARTITION

Request = v19.NodeRequest | v19.ApplicationRequest | v19.AllocationRequest
_POLICIES = {
    (own, other): v19.PreemptionPolicy(allow_preempt_self=own, allow_preempt_other=other) if own or other else None
    for own in (False, True)
    for other in (False, True)
}


def application(message: messages.AddApplication) -> v19.AddApplicationRequest:
    """Make a new application."""
    return v19.AddApplicationRequest(
        application_id=message.application_id,
        queue_name=message.queue,
        partition_name=message.partition,
        ugi=v19.UserGroupInformation(user=message.user, groups=list(message.groups)),
        tags=message.tags,
        execution_timeout_milli_seconds=message.execution_timeout_ms,
        placeholder_ask=message.placeholder_ask or None,
        gang_scheduling_style=message.gang_style,
    )


def removal(message: messages.RemoveApplication) -> v19.RemoveApplicationRequest:
    """Make the removal of an application."""
    return v19.RemoveApplicationRequest(application_id=message.application_id, partition_name=message.partition)


def allocation(message: messages.Allocation) -> v19.Allocation:
    """Make an ask, or with a node an existing allocation."""
    return v19.Allocation(
        allocation_key=message.key,
        allocation_tags=message.tags or {},
        resource_per_alloc=message.resource,
        priority=message.priority,
        node_id=message.node_id,
        application_id=message.application_id,
        partition_name=message.partition,
        task_group_name=message.task_group,
        placeholder=message.placeholder,
        originator=message.originator,
        preemption_policy=_POLICIES[message.allow_preempt_self, message.allow_preempt_other],
    )


def release(message: messages.Release) -> v19.AllocationRelease:
    """Make the release of an ask or allocation."""
    return v19.AllocationRelease(
        partition_name=message.partition,
        application_id=message.application_id,
        termination_type=v19.TerminationType(message.termination),
        message=message.message,
        allocation_key=message.key,
    )


def node(message: messages.NodeUpdate) -> v19.NodeInfo:
    """Make a new node, or a change to a node. An attribute names its partition, unless that is the default one."""
    attributes = message.attributes or {}
    if message.partition != DEFAULT_PARTITION:
        attributes = {**attributes, NODE_PARTITION: message.partition}
    return v19.NodeInfo(
        node_id=message.node_id,
        action=v19.ActionFromRM(message.action),
        attributes=attributes,
        schedulable_resource=message.capacity,
    )


_MAKERS: dict[type[messages.Input], Callable[[Any], Any]] = {
    messages.NodeUpdate: node,
    messages.AddApplication: application,
    messages.RemoveApplication: removal,
    messages.Release: release,
    messages.Allocation: allocation,
}


def requests(rm_id: str, inputs: Iterable[messages.Input]) -> list[tuple[str, Request]]:
    """Make as few requests as possible, each with the name of the method of `SchedulerAPI` or a client that takes it.

    Nodes go first, then applications, releases, and at last asks and allocations: a pod that is created again has the key of
    the one that ends. Among its kind, each input keeps its place.
    """
    made: dict[type[messages.Input], list[Any]] = {kind: [] for kind in _MAKERS}
    for message in inputs:
        made[type(message)].append(_MAKERS[type(message)](message))
    nodes, new, gone, releases, allocations = made.values()
    found: list[tuple[str, Request]] = []
    if nodes:
        found.append(("update_node", v19.NodeRequest(rm_id=rm_id, nodes=nodes)))
    if new or gone:
        found.append(("update_application", v19.ApplicationRequest(rm_id=rm_id, new=new, remove=gone)))
    if releases:
        ended = v19.AllocationReleasesRequest(allocations_to_release=releases)
        found.append(("update_allocation", v19.AllocationRequest(rm_id=rm_id, releases=ended)))
    if allocations:
        found.append(("update_allocation", v19.AllocationRequest(rm_id=rm_id, allocations=allocations)))
    return found
