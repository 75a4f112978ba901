"""The same messages in the words of the two dialects."""

from __future__ import annotations

from typing import Any

from licorne.si import messages, seed, v19

NODE_PARTITION = "si/node-partition"


def can_say(message: Any, *, seed_dialect: bool) -> bool:
    """Does the dialect have words for this message?"""
    if isinstance(message, messages.NodeUpdate):
        return not message.existing and (message.action is not messages.NodeAction.CREATE_DRAIN or not seed_dialect)
    return not (
        seed_dialect and isinstance(message, messages.Allocation) and message.node_id
    )  # an allocation that exists comes with its node


def send_v19(rm_id: str, inputs: list[Any]) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """One request of 1.9 for each message, in order."""
    return [_v19(rm_id, message) for message in inputs]


def _v19(rm_id: str, message: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    if isinstance(message, messages.AddApplication):
        added = v19.ApplicationRequest(rm_id=rm_id, new=[_application(message)])
        return "update_application", (added,), {}
    if isinstance(message, messages.RemoveApplication):
        gone = v19.RemoveApplicationRequest(application_id=message.application_id, partition_name=message.partition)
        return "update_application", (v19.ApplicationRequest(rm_id=rm_id, remove=[gone]),), {}
    if isinstance(message, messages.Allocation):
        return "update_allocation", (v19.AllocationRequest(rm_id=rm_id, allocations=[_allocation(message)]),), {}
    if isinstance(message, messages.Release):
        release = v19.AllocationRelease(
            partition_name=f"[{rm_id}]{message.partition}",
            application_id=message.application_id,
            termination_type=v19.TerminationType(message.termination),
            allocation_key=message.key,
        )
        releases = v19.AllocationReleasesRequest(allocations_to_release=[release])
        return "update_allocation", (v19.AllocationRequest(rm_id=rm_id, releases=releases),), {}
    node = v19.NodeInfo(
        node_id=message.node_id,
        action=v19.ActionFromRM(message.action),
        attributes={**(message.attributes or {}), NODE_PARTITION: message.partition},
        schedulable_resource=message.capacity,
    )
    return "update_node", (v19.NodeRequest(rm_id=rm_id, nodes=[node]),), {}


def _application(message: messages.AddApplication) -> Any:
    return v19.AddApplicationRequest(
        application_id=message.application_id,
        queue_name=message.queue,
        partition_name=message.partition,
        ugi=v19.UserGroupInformation(user=message.user, groups=list(message.groups)),
        tags=message.tags,
        execution_timeout_milli_seconds=message.execution_timeout_ms,
        placeholder_ask=message.placeholder_ask,
    )


def _allocation(message: messages.Allocation) -> v19.Allocation:
    return v19.Allocation(
        allocation_key=message.key,
        allocation_tags=message.tags or {},
        resource_per_alloc=message.resource,
        priority=message.priority,
        node_id=message.node_id,
        application_id=message.application_id,
        partition_name=message.partition,
    )


_SEED_ACTIONS = {
    messages.NodeAction.UPDATE: seed.ActionFromRM.UPDATE,
    messages.NodeAction.DRAIN_NODE: seed.ActionFromRM.DRAIN_NODE,
    messages.NodeAction.DECOMISSION: seed.ActionFromRM.DECOMISSION,
    messages.NodeAction.DRAIN_TO_SCHEDULABLE: seed.ActionFromRM.DRAIN_TO_SCHEDULABLE,
}


def send_seed(rm_id: str, inputs: list[Any]) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """One request of the seed's dialect for each message, in order."""
    return [("update", (_seed(rm_id, message),), {}) for message in inputs]


def _seed(rm_id: str, message: Any) -> seed.UpdateRequest:
    request = seed.UpdateRequest(rm_id=rm_id)
    if isinstance(message, messages.AddApplication):
        request.new_applications = [_application(message)]
    elif isinstance(message, messages.RemoveApplication):
        request.remove_applications = [
            seed.RemoveApplicationRequest(application_id=message.application_id, partition_name=message.partition)
        ]
    elif isinstance(message, messages.Allocation):
        request.asks = [_seed_ask(message)]
    elif isinstance(message, messages.Release):
        request.releases = _seed_release(message)
    elif message.action is messages.NodeAction.CREATE:
        request.new_schedulable_nodes = [
            seed.NewNodeInfo(
                node_id=message.node_id,
                attributes={**(message.attributes or {}), NODE_PARTITION: message.partition},
                schedulable_resource=message.capacity,
                occupied_resource=message.occupied,
            )
        ]
    else:
        request.updated_nodes = [
            seed.UpdateNodeInfo(
                node_id=message.node_id,
                attributes={**(message.attributes or {}), NODE_PARTITION: message.partition},
                schedulable_resource=message.capacity,
                occupied_resource=message.occupied,
                action=_SEED_ACTIONS[message.action],
            )
        ]
    return request


def _seed_ask(message: messages.Allocation) -> seed.AllocationAsk:
    if message.priority_class:
        priority = seed.Priority(priority_class_name=message.priority_class)
    else:
        priority = seed.Priority(priority_value=message.priority)
    return seed.AllocationAsk(
        allocation_key=message.key,
        application_id="" if message.independent else message.application_id,
        partition_name=message.partition,
        resource_ask=message.resource,
        max_allocations=message.max_allocations,
        priority=priority,
        execution_timeout_milli_seconds=message.timeout_ms,
        tags=message.tags or {},
    )


def _seed_release(message: messages.Release) -> seed.AllocationReleasesRequest:
    names: dict[str, Any] = {"partition_name": message.partition, "application_id": message.application_id}
    termination = seed.TerminationType(max(0, message.termination - 1))
    if message.what == "ask":
        ask = seed.AllocationAskRelease(**names, allocation_key=message.key, termination_type=termination)
        return seed.AllocationReleasesRequest(allocation_asks_to_release=[ask])
    allocation = seed.AllocationRelease(**names, uuid=message.uuid, termination_type=termination)
    return seed.AllocationReleasesRequest(allocations_to_release=[allocation])
