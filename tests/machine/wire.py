"""The machine's messages in the two dialects.

Those of 1.9 are made by the product: what the scheduler does with them is compared with records of the message itself.
"""

from __future__ import annotations

from typing import Any

from licorne.si import first, messages, requests_v19
from licorne.si.constants import NODE_PARTITION


def can_say(message: Any, *, first_interface: bool) -> bool:
    """Tell whether the dialect can express this message."""
    if isinstance(message, messages.NodeUpdate):
        return not message.existing and (message.action is not messages.NodeAction.CREATE_DRAIN or not first_interface)
    # An allocation that exists comes with its node.
    return not (first_interface and isinstance(message, messages.Allocation) and message.node_id)


def send_v19(rm_id: str, inputs: list[Any]) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """One request of 1.9 for each message, in order."""
    return [(name, (request,), {}) for message in inputs for name, request in requests_v19.requests(rm_id, [message])]


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
        request.new_applications = [requests_v19.application(message)]
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
