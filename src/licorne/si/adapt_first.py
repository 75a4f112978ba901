"""Translates between the first interface and the core.

In: an `UpdateRequest` holds several lists and says nothing about their order, so the order is decided here. It is the
one in which a resource manager reports its state after a restart (docs/spec/scheduler-interface.md, section 6), as far
as the items of one list need those of another to exist; releases and removals come last, as in 1.9:

1. new nodes, then updated nodes: a node may be registered and drained in one request;
2. new applications, after the nodes, because a gang is measured against what the cluster has;
3. allocations that exist on the new nodes: they travel with the node, and the core admits them at this point;
4. asks;
5. releases of allocations, then of asks;
6. removals of applications.

So one request may add an ask and release it. To release an ask and add it anew takes two requests.

Out: one `UpdateResponse` for a batch of outputs. Each list keeps the order of the outputs; between lists the first
interface defines no order. Scheduling states belong to a plugin and are messages of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from licorne.si import adapt, first, messages, wire_roles
from licorne.si._check import Fault, Mistyped, plain
from licorne.si.decisions import run_end
from licorne.si.messages import NodeAction, Output, Termination
from licorne.si.partitions import ShortPartitions, names_for, qualified_partition, short_partition
from licorne.si.wire_asks import AskReader
from licorne.si.wire_decisions import write_first
from licorne.si.wire_write import encode

Kind = Literal["update", "state"]
Response = first.UpdateResponse | first.UpdateContainerSchedulingStateRequest

# The numbers differ, and the names are the same.
_ACTIONS = {action: NodeAction[action.name] for action in first.ActionFromRM}
_FROM_FIRST = {reason: Termination[reason.name] for reason in first.TerminationType}
# The first interface has no word for "unknown"; the original treats it as stopped by the resource manager.
_TO_FIRST = {theirs: ours for ours, theirs in _FROM_FIRST.items()} | {
    Termination.UNKNOWN: first.TerminationType.STOPPED_BY_RM
}
_VERDICTS: dict[type[Output], str] = {
    messages.AcceptedApplication: "accepted_applications",
    messages.RejectedApplication: "rejected_applications",
    messages.UpdatedApplication: "updated_applications",
    messages.AcceptedNode: "accepted_nodes",
    messages.RejectedNode: "rejected_nodes",
}
"""The list of a response for each type of output that is alike in both dialects."""


# -- in --------------------------------------------------------------------------------------------------


def inputs_from_update_request(req: first.UpdateRequest) -> adapt.Translation:
    """Translate a request, its lists in the order that the head of this module gives.

    A node that cannot be read is refused together with the allocations that it reports.
    """
    return adapt.translated(req, first.UpdateRequest, _made_update)


def _made_update(result: adapt.Translation, req: first.UpdateRequest, rm_id: str) -> Iterator[None]:
    partitions = names_for(rm_id).short

    def asks() -> Iterator[None]:
        read = adapt.ask_slow_path(result, "asks", first.AllocationAsk, _ask_reader(partitions))
        made = (read(index, value) for index, value in enumerate(adapt.readable(result, "asks", req.asks)))
        result.inputs += [ask for ask in made if ask is not None]
        yield

    return _inputs(result, req, rm_id, asks())


def _update(result: adapt.Translation, req: first.UpdateRequest, data: bytes, lengths: list[int]) -> Iterator[None]:
    partitions = names_for(req.rm_id).short
    slow_path = adapt.ask_slow_path_on_wire(
        result, "UpdateRequest", "asks", data, first.AllocationAsk, _ask_reader(partitions)
    )
    reader = AskReader(data, lengths, wire_roles.FIRST, partitions, slow_path)

    def asks() -> Iterator[None]:
        for start in range(0, len(lengths), adapt.STEP_ASKS):
            result.inputs += reader.read(start, start + adapt.STEP_ASKS)
            yield

    return _inputs(result, req, req.rm_id, asks())


UPDATES = adapt.Reading(first.UpdateRequest, "asks", _update)


def _inputs(result: adapt.Translation, req: first.UpdateRequest, rm_id: str, asks: Iterator[None]) -> Iterator[None]:
    """Translate all lists of a request in order, in steps; those of `asks` translate the asks."""
    inputs = result.inputs

    def new_node(value: object) -> None:
        node = plain(value, first.NewNodeInfo)
        update = _new_node(node, rm_id)
        update.existing = tuple(_existing(node, update.partition, rm_id))
        inputs.append(update)

    def updated_node(value: object) -> None:
        inputs.append(_updated_node(plain(value, first.UpdateNodeInfo), rm_id))

    def application(value: object) -> None:
        app = plain(value, first.AddApplicationRequest)
        inputs.append(adapt.application_input(app, rm_id, timeout_is_running_time=True))

    def removal(value: object) -> None:
        inputs.append(adapt.removal_input(plain(value, first.RemoveApplicationRequest), rm_id))

    yield from adapt.each(result, "newSchedulableNodes", req.new_schedulable_nodes, new_node, adapt.refused_node)
    yield from adapt.each(result, "updatedNodes", req.updated_nodes, updated_node, adapt.refused_node)
    yield from adapt.each(result, "newApplications", req.new_applications, application, adapt.refused_application)
    yield from asks
    if req.releases is not None:
        yield from _releases(result, req.releases, rm_id)
    yield from adapt.each(result, "removeApplications", req.remove_applications, removal, None)


def _new_node(node: first.NewNodeInfo, rm_id: str) -> messages.NodeUpdate:
    partition, attributes = adapt.node_attributes(node.attributes, rm_id)
    return messages.NodeUpdate(
        node_id=node.node_id,
        action=NodeAction.CREATE,
        partition=partition,
        attributes=attributes,
        capacity=node.schedulable_resource,
        occupied=node.occupied_resource,
        strict=True,
    )


def _existing(node: first.NewNodeInfo, partition: str, rm_id: str) -> list[messages.Allocation]:
    """Translate the allocations that a new node reports. They need not repeat its name and its partition.

    Raises:
        Fault: one of them names another node, or has an invalid priority.
    """
    result = []
    for index, allocation in enumerate(node.existing_allocations):
        try:
            if allocation.node_id not in ("", node.node_id):
                raise Fault(allocation.node_id, "must be the node that reports it").inside("nodeID")
            number, name = _priority(allocation.priority)
        except Fault as fault:
            raise fault.inside(f"existingAllocations[{index}]") from None
        key, application_id = allocation.allocation_key, allocation.application_id
        result.append(
            messages.Allocation(
                key=key,
                application_id=application_id or key,
                partition=short_partition(allocation.partition_name, rm_id) if allocation.partition_name else partition,
                resource=allocation.resource_per_alloc,
                priority=number,
                priority_class=name,
                tags=allocation.allocation_tags or None,
                node_id=node.node_id,
                task_group=allocation.task_group_name,
                placeholder=allocation.placeholder,
                uuid=allocation.uuid,
                independent=not application_id,
            )
        )
    return result


def _updated_node(node: first.UpdateNodeInfo, rm_id: str) -> messages.NodeUpdate:
    """Translate a change to a known node. With any action but UPDATE only the node and the action count."""
    partition, attributes = adapt.node_attributes(node.attributes, rm_id)
    update = messages.NodeUpdate(node_id=node.node_id, action=_ACTIONS[node.action], partition=partition, strict=True)
    if update.action is NodeAction.UPDATE:
        update.attributes = adapt.changed_attributes(node.attributes, attributes)
        update.capacity = node.schedulable_resource
        update.occupied = node.occupied_resource
    return update


def _priority(priority: first.Priority | None) -> tuple[int, str]:
    """Return the number of a priority and the name of its class; 0 and empty where the message has none.

    Raises:
        Fault: it has both, or an empty name.
    """
    if priority is None:
        return 0, ""
    number, name = priority.priority_value, priority.priority_class_name
    if number is not None and name is not None:
        raise Fault(priority, "must be a number or the name of a class, not both").inside("priority")
    if name == "":
        raise Fault(name, "must be the name of a class").inside("priority.priorityClassName")
    return number or 0, name or ""


def _ask_reader(partitions: ShortPartitions) -> Callable[..., messages.Allocation]:
    """Return the function that makes an input of an ask's fields, given in the order of their declaration."""

    def ask(
        key: str,
        application_id: str,
        partition: str,
        resource: dict[str, int] | None,
        max_allocations: int,
        priority: first.Priority | None,
        timeout_ms: int,
        tags: dict[str, str],
        task_group: str,
        placeholder: bool,
    ) -> messages.Allocation:
        if max_allocations < 0:
            raise Fault(max_allocations, "must not be negative").inside("maxAllocations")
        number, name = _priority(priority)
        return messages.Allocation(
            key=key,
            application_id=application_id or key,
            partition=partitions[partition],
            resource=resource,
            priority=number,
            priority_class=name,
            tags=tags or None,
            task_group=task_group,
            placeholder=placeholder,
            # On the wire zero means that the field is absent, and the default is one allocation.
            max_allocations=max_allocations or 1,
            timeout_ms=timeout_ms,
            independent=not application_id,
        )

    return ask


def _releases(result: adapt.Translation, releases: object, rm_id: str) -> Iterator[None]:
    """Translate releases of allocations, then of asks.

    One that names neither an application nor an item is noted in `ignored`.
    """

    def add(release: first.AllocationRelease | first.AllocationAskRelease, what: str, key: str, uuid: str) -> None:
        if not (release.application_id or key or uuid):
            raise Fault(release.application_id, "must name an application, or what is to be released")
        result.inputs.append(
            messages.Release(
                partition=short_partition(release.partition_name, rm_id),
                application_id=release.application_id,
                key=key,
                uuid=uuid,
                termination=_FROM_FIRST[release.termination_type],
                message=release.message,
                what=what,
            )
        )

    def allocation(value: object) -> None:
        release = plain(value, first.AllocationRelease)
        add(release, "allocation", "", release.uuid)

    def ask(value: object) -> None:
        release = plain(value, first.AllocationAskRelease)
        add(release, "ask", release.allocation_key, "")

    if not isinstance(releases, first.AllocationReleasesRequest):
        fault = Mistyped(releases, "must be AllocationReleasesRequest").inside("releases")
        result.ignored.append(result.reason(fault))
        return
    yield from adapt.each(result, "releases.allocationsToRelease", releases.allocations_to_release, allocation, None)
    yield from adapt.each(result, "releases.allocationAsksToRelease", releases.allocation_asks_to_release, ask, None)


# -- out -------------------------------------------------------------------------------------------------


def responses(outputs: Iterable[Output], rm_id: str) -> Iterator[tuple[Kind, Response]]:
    """Translate the core's outputs: one response, unless it would be empty, then the scheduling states."""
    decisions, response, states = _sorted(outputs, rm_id)
    if decisions or response is not None:
        response = response or first.UpdateResponse()
        response.new_allocations = [_decision(output, rm_id) for output in decisions]
        yield "update", response
    for state in states:
        yield "state", state


def responses_as_bytes(outputs: Iterable[Output], rm_id: str) -> list[tuple[Kind, bytes]]:
    """Translate the core's outputs to protobuf bytes: one response, unless it would be empty, then scheduling states.

    This is for a host that takes the core's outputs (`on_output`) and sends bytes.
    """
    decisions, response, states = _sorted(outputs, rm_id)
    made: list[tuple[Kind, bytes]] = []
    if decisions or response is not None:
        # Bytes are in the order of field numbers, and of all fields used here decisions have the lowest number.
        written = write_first(decisions, 0, len(decisions), names_for(rm_id).qualified)
        made.append(("update", written + encode(response) if response is not None else written))
    made += [("state", encode(state)) for state in states]
    return made


def _sorted(
    outputs: Iterable[Output], rm_id: str
) -> tuple[list[Any], first.UpdateResponse | None, list[first.UpdateContainerSchedulingStateRequest]]:
    """Split the outputs: decisions; a response with everything else, None if there is nothing; scheduling states."""
    found = outputs if type(outputs) is list else list(outputs)
    if found and type(found[0]) is messages.NewAllocation and run_end(found, 0) == len(found):
        return found, None, []
    decisions: list[Any] = []
    response: first.UpdateResponse | None = None
    states: list[first.UpdateContainerSchedulingStateRequest] = []
    at = 0
    while at < len(found):
        output = found[at]
        if type(output) is messages.NewAllocation:
            end = run_end(found, at)
            decisions += found[at:end]
            at = end
            continue
        at += 1
        if isinstance(output, messages.WaitingForResources):
            states.append(_state(output))
        else:
            response = response or first.UpdateResponse()
            _say(response, output, rm_id)
    return decisions, response, states


def resync() -> first.UpdateResponse:
    """Make the response that tells a resource manager to stop and to register again."""
    return first.UpdateResponse(action=first.ActionFromScheduler.RESYNC)


def _say(response: first.UpdateResponse, output: Output, rm_id: str) -> None:
    """Add an output to the list it belongs to."""
    match output:
        case messages.Released(ask=True):
            response.released_allocation_asks.append(_released_ask(output, rm_id))
        case messages.Released():
            response.released_allocations.append(_released(output, rm_id))
        case messages.RejectedAllocation():
            response.rejected_allocations.append(
                first.RejectedAllocationAsk(
                    allocation_key=output.key, application_id=output.application_id, reason=output.reason
                )
            )
        case _:
            getattr(response, _VERDICTS[type(output)]).append(adapt.verdict(output))


def _decision(output: messages.NewAllocation, rm_id: str) -> first.Allocation:
    return first.Allocation(
        allocation_key=output.key,
        allocation_tags=output.tags or {},
        uuid=output.uuid,
        resource_per_alloc=output.resource,
        priority=first.Priority(priority_value=output.priority),
        queue_name=output.queue,
        node_id=output.node_id,
        application_id=output.application_id,
        partition_name=qualified_partition(output.partition, rm_id),
        task_group_name=output.task_group,
        placeholder=output.placeholder,
    )


def _released(output: messages.Released, rm_id: str) -> first.AllocationRelease:
    return first.AllocationRelease(
        partition_name=qualified_partition(output.partition, rm_id),
        application_id=output.application_id,
        uuid=output.uuid,
        termination_type=_TO_FIRST[output.termination],
        message=output.message,
    )


def _released_ask(output: messages.Released, rm_id: str) -> first.AllocationAskRelease:
    return first.AllocationAskRelease(
        partition_name=qualified_partition(output.partition, rm_id),
        application_id=output.application_id,
        allocation_key=output.key,
        termination_type=_TO_FIRST[output.termination],
        message=output.message,
    )


def _state(output: messages.WaitingForResources) -> first.UpdateContainerSchedulingStateRequest:
    return first.UpdateContainerSchedulingStateRequest(
        application_id=output.application_id,
        allocation_key=output.key,
        state=first.SchedulingState.FAILED,
        reason=output.reason,
    )
