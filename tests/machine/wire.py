"""The machine's messages in the two dialects."""

from __future__ import annotations

from typing import Any

from licorne.si import first, messages, v19

NODE_PARTITION = "si/node-partition"


def can_say(message: Any, *, first_interface: bool) -> bool:
    """Tell whether the dialect can express this message."""
    if isinstance(message, messages.NodeUpdate):
        return not message.existing and (message.action is not messages.NodeAction.CREATE_DRAIN or not first_interface)
    return not (
        first_interface and isinstance(message, messages.Allocation) and message.node_id
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


_FIRST_ACTIONS = {
    messages.NodeAction.UPDATE: first.ActionFromRM.UPDATE,
    messages.NodeAction.DRAIN_NODE: first.ActionFromRM.DRAIN_NODE,
    messages.NodeAction.DECOMISSION: first.ActionFromRM.DECOMISSION,
    messages.NodeAction.DRAIN_TO_SCHEDULABLE: first.ActionFromRM.DRAIN_TO_SCHEDULABLE,
}


def send_first(rm_id: str, inputs: list[Any]) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """One request of the first interface for each message, in order."""
    return [("update", (_first(rm_id, message),), {}) for message in inputs]


def _first(rm_id: str, message: Any) -> first.UpdateRequest:
    request = first.UpdateRequest(rm_id=rm_id)
    if isinstance(message, messages.AddApplication):
        request.new_applications = [_application(message)]
    elif isinstance(message, messages.RemoveApplication):
        request.remove_applications = [
            first.RemoveApplicationRequest(application_id=message.application_id, partition_name=message.partition)
        ]
    elif isinstance(message, messages.Allocation):
        request.asks = [_first_ask(message)]
    elif isinstance(message, messages.Release):
        request.releases = _first_release(message)
    elif message.action is messages.NodeAction.CREATE:
        request.new_schedulable_nodes = [
            first.NewNodeInfo(
                node_id=message.node_id,
                attributes={**(message.attributes or {}), NODE_PARTITION: message.partition},
                schedulable_resource=message.capacity,
                occupied_resource=message.occupied,
            )
        ]
    else:
        request.updated_nodes = [
            first.UpdateNodeInfo(
                node_id=message.node_id,
                attributes={**(message.attributes or {}), NODE_PARTITION: message.partition},
                schedulable_resource=message.capacity,
                occupied_resource=message.occupied,
                action=_FIRST_ACTIONS[message.action],
            )
        ]
    return request


def _first_ask(message: messages.Allocation) -> first.AllocationAsk:
    if message.priority_class:
        priority = first.Priority(priority_class_name=message.priority_class)
    else:
        priority = first.Priority(priority_value=message.priority)
    return first.AllocationAsk(
        allocation_key=message.key,
        application_id="" if message.independent else message.application_id,
        partition_name=message.partition,
        resource_ask=message.resource,
        max_allocations=message.max_allocations,
        priority=priority,
        execution_timeout_milli_seconds=message.timeout_ms,
        tags=message.tags or {},
    )


def _first_release(message: messages.Release) -> first.AllocationReleasesRequest:
    names: dict[str, Any] = {"partition_name": message.partition, "application_id": message.application_id}
    termination = first.TerminationType(max(0, message.termination - 1))
    if message.what == "ask":
        ask = first.AllocationAskRelease(**names, allocation_key=message.key, termination_type=termination)
        return first.AllocationReleasesRequest(allocation_asks_to_release=[ask])
    allocation = first.AllocationRelease(**names, uuid=message.uuid, termination_type=termination)
    return first.AllocationReleasesRequest(allocations_to_release=[allocation])
